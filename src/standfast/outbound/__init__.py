"""Access to other systems: allowed addresses, the HTTP client, and the invokers of steps."""
