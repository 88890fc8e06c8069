"""The fixtures of tests with whole engines."""

from support.crashing import new_store
from support.engines import live, place

__all__ = ["live", "new_store", "place"]
