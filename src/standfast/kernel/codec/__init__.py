"""Conversion of values to bytes: message types, type checks, equality, defaults."""
