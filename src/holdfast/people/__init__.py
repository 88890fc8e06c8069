"""People: how they are found, and how they are told."""
