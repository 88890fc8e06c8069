"""Copy a database and verify the copy."""
