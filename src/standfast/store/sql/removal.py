"""Removes everything that Standfast has created in a database, completely or not at all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from standfast.errors import RejectedError
from standfast.store.sql.migrations import Migration

_MADE = re.compile(r"^create (?:unlogged )?(table|function|view) (?:standfast\.)?(\w+)", re.MULTILINE)


class RemovalRefusal(StrEnum):
    """Reasons for refusing a removal. They are documented in `docs/reference/rejections.md`."""

    STILL_WORKING = "still_working"
    """Workers are alive on the database. Stop them, or wait until the leases of dead ones expire."""
    UNFINISHED = "unfinished"
    """Instances have not ended, and their work would be lost. Let them end, or allow the loss."""
    DEPENDED_ON = "depended_on"
    """Foreign tables, views or triggers depend on those of Standfast. The message names them; drop them first."""


class RemovalPreview(NamedTuple):
    """The data that would be lost."""

    instances: int
    unfinished: int
    workers: int
    """Return the number of live workers."""


class Removal(NamedTuple):
    """The removed objects."""

    url: str
    """URL of the database, without secrets."""
    tables: int = 0
    instances: int = 0


class Removable(Protocol):
    """A database from which Standfast can be removed."""

    url: str

    def remove(self, made: Made, *, with_unfinished: bool, with_workers: bool) -> Removal:
        """Remove these objects in one transaction.

        Raises RejectedError, without changes, if `check_idle` or foreign objects prevent it.
        """
        ...


class Made(NamedTuple):
    """The names of all objects that migrations create."""

    tables: list[str]
    functions: list[str]
    views: list[str]


def made_by(migrations: Sequence[Migration]) -> Made:
    """Return the tables, functions and views that migrations create. Dependent objects are dropped with their table."""
    found = [match.groups() for each in migrations for match in _MADE.finditer(each.sql)]
    return Made(
        tables=[name for kind, name in found if kind == "table"],
        functions=[name for kind, name in found if kind == "function"],
        views=[name for kind, name in found if kind == "view"],
    )


def check_idle(url: str, standing: RemovalPreview, *, with_unfinished: bool, with_workers: bool) -> None:
    """Raise RejectedError if workers are alive or instances have not ended, unless the arguments allow it."""
    if standing.workers and not with_workers:
        told = (
            f"{standing.workers} workers are alive on {url}; stop them, or wait until the leases of dead ones are over"
        )
        raise refusal(RemovalRefusal.STILL_WORKING, told)
    if standing.unfinished and not with_unfinished:
        told = f"{standing.unfinished} instances in {url} have not ended; let them end, cancel them, or say --with-unfinished to lose them"
        raise refusal(RemovalRefusal.UNFINISHED, told)


def refusal(code: RemovalRefusal, message: str) -> RejectedError:
    """Build a refusal. Nothing was removed."""
    return RejectedError(reason=code.value, message=message)
