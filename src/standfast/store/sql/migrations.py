"""Applies migrations: numbered files, forward only, under a lock, each in a transaction."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib import resources
from typing import Protocol

import msgspec

from standfast.errors import SchemaMismatchError

_FILE = re.compile(r"^(\d{4})_(\w+)\.sql$")


class Migration(msgspec.Struct, frozen=True):
    """One migration."""

    number: int
    name: str
    sql: str


class Migratable(Protocol):
    """A database that can be migrated."""

    url: str

    def version(self) -> int:
        """Number of the newest applied migration. 0 for an empty database."""
        ...

    def locked(self) -> AbstractContextManager[None]:
        """Hold the migration lock."""
        ...

    def apply(self, migration: Migration) -> None:
        """Run the migration and record its number, in one transaction."""
        ...


@cache
def read_migrations(package: str) -> tuple[Migration, ...]:
    """Return the migrations of a driver, in order."""
    found = []
    for file in (resources.files(package) / "migrations").iterdir():
        match = _FILE.match(file.name)
        if match:
            found.append(Migration(int(match[1]), match[2], file.read_text(encoding="utf-8")))
    return tuple(sorted(found, key=lambda each: each.number))


def scripted(migrations: Sequence[Migration], *, after: int, noted: Callable[[Migration], str]) -> str:
    """Return the migrations after a number as a script for other tools.

    Each has its transaction, with the statement that records it.
    """
    parts = [
        f"-- {each.number:04} {each.name}\nbegin;\n{each.sql.strip()}\n{noted(each)};\ncommit;\n"
        for each in migrations
        if each.number > after
    ]
    return "\n".join(parts)


def bring_up(database: Migratable, migrations: Sequence[Migration], *, may_migrate: bool) -> None:
    """Apply the missing migrations. Raises SchemaMismatchError where that is not allowed or not possible."""
    newest = migrations[-1].number
    if _checked_version(database, newest) == newest:
        return
    if not may_migrate:
        raise SchemaMismatchError(
            f"{database.url} is at schema {database.version()} and this code needs {newest}: run `standfast migrate` on it"
        )
    with database.locked():
        at = _checked_version(database, newest)
        for migration in migrations:
            if migration.number > at:
                database.apply(migration)


def _checked_version(database: Migratable, newest: int) -> int:
    at = database.version()
    if at > newest:
        raise SchemaMismatchError(
            f"{database.url} is at schema {at}, which is newer than this code ({newest}): upgrade Standfast before opening it"
        )
    return at
