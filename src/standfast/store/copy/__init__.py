"""Copies a database and verifies the copy."""
