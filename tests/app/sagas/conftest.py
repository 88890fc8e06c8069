"""The fixture of tests that stop engines at every point."""

from support.crashing import new_store

__all__ = ["new_store"]
