"""Human tasks: assign, complete, remind, notify."""
