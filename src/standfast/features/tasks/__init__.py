"""Human tasks, and the calls of directory, chains and notifications."""
