"""Routes of administration."""
