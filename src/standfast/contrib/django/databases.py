"""Detects databases of a test runner, which renames them after the project was loaded."""

from __future__ import annotations

from django.db import connections

_names: dict[str, str] = {}
"""Names of the databases when the project was loaded."""


def remember_names() -> None:
    """Record the current names of the databases."""
    for alias in connections:
        _names.setdefault(alias, _name(alias))


def is_of_tests(alias: str) -> bool:
    """Return whether a test runner has created this database, so that its content is disposable."""
    return alias in _names and _names[alias] != _name(alias)


def is_in_memory(alias: str) -> bool:
    """Return whether only Django's own connection can reach this database."""
    return connections[alias].vendor == "sqlite" and bool(connections[alias].is_in_memory_db())


def is_out_of_reach(alias: str | None) -> bool:
    """Return whether this is an in-memory database of a test runner, which no engine can open."""
    return alias is not None and is_of_tests(alias) and is_in_memory(alias)


def _name(alias: str) -> str:
    return str(connections.settings[alias]["NAME"])
