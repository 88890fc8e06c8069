"""Features, a room for each."""
