"""Bytes: message types, type checks, equality, defaults."""
