"""Commands to runs."""
