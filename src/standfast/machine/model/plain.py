"""Values of expressions as they can be kept: instants are texts."""

from __future__ import annotations

from datetime import date, datetime


def plain(value: object) -> object:
    """The same value in plain data."""
    match value:
        case datetime() | date():
            return value.isoformat()
        case dict():
            return {str(name): plain(each) for name, each in value.items()}
        case list() | tuple():
            return [plain(each) for each in value]
        case _:
            return value
