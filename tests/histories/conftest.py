"""The fixtures of tests with whole engines."""

from support.engines import place

__all__ = ["place"]
