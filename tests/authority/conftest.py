"""The fixtures of tests with whole engines."""

from support.engines import live, place

__all__ = ["live", "place"]
