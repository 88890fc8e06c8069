"""Start, find, explain, repair and fork runs."""
