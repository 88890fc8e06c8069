"""Which databases of a project are those of a test runner: it gives them other names when the project is loaded already."""

from __future__ import annotations

from django.db import connections

_names: dict[str, str] = {}
"""What each database was called when the project was loaded."""


def remember_names() -> None:
    """Keep what the databases are called now."""
    for alias in connections:
        _names.setdefault(alias, _name(alias))


def is_of_tests(alias: str) -> bool:
    """Whether a test runner has made this database, so that nothing in it has to stay."""
    return alias in _names and _names[alias] != _name(alias)


def is_in_memory(alias: str) -> bool:
    """Whether nobody but Django can reach this database."""
    return connections[alias].vendor == "sqlite" and bool(connections[alias].is_in_memory_db())


def is_out_of_reach(alias: str | None) -> bool:
    """Whether this is a database of a test runner in memory, in which no engine can be."""
    return alias is not None and is_of_tests(alias) and is_in_memory(alias)


def _name(alias: str) -> str:
    return str(connections.settings[alias]["NAME"])
