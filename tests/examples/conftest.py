"""The fixture of examples that are played on both stores."""

from support.engines import place

__all__ = ["place"]
