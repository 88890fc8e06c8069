"""Advance, read and list processes."""
