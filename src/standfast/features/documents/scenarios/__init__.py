"""Scenarios of a body."""
