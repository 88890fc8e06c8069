"""One action on many runs."""
