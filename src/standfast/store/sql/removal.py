"""Taking everything away again that Standfast has made in a database, and nothing else: whole, or not at all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from standfast.errors import RejectedError
from standfast.store.sql.migrations import Migration

_MADE = re.compile(r"^create (?:unlogged )?(table|function|view) (?:standfast\.)?(\w+)", re.MULTILINE)


class RemovalRefusal(StrEnum):
    """Why nothing is taken away. The page `docs/reference/rejections.md` lists them too."""

    STILL_WORKING = "still_working"
    """Workers are alive on the database; stop them, or wait until the leases of dead ones are over."""
    UNFINISHED = "unfinished"
    """Instances have not ended, and their work would be lost; let them end, or say that they may be lost."""
    DEPENDED_ON = "depended_on"
    """Tables, views or triggers of somebody else build on those of Standfast; the message names them, and they have to go first."""


class RemovalPreview(NamedTuple):
    """What would be lost."""

    instances: int
    unfinished: int
    workers: int
    """Those that are alive."""


class Removal(NamedTuple):
    """What was taken away."""

    url: str
    """From where, without any secret."""
    tables: int = 0
    instances: int = 0


class Removable(Protocol):
    """A database from which everything of Standfast can be taken away."""

    url: str

    def remove(self, made: Made, *, with_unfinished: bool, with_workers: bool) -> Removal:
        """Take away these things in one transaction; RejectedError, and everything stays, if `check_idle` or somebody else's things speak against it."""
        ...


class Made(NamedTuple):
    """What migrations make, by its names."""

    tables: list[str]
    functions: list[str]
    views: list[str]


def made_by(migrations: Sequence[Migration]) -> Made:
    """The tables, functions and views that migrations make; what hangs on a table goes with it."""
    found = [match.groups() for each in migrations for match in _MADE.finditer(each.sql)]
    return Made(
        tables=[name for kind, name in found if kind == "table"],
        functions=[name for kind, name in found if kind == "function"],
        views=[name for kind, name in found if kind == "view"],
    )


def check_idle(url: str, standing: RemovalPreview, *, with_unfinished: bool, with_workers: bool) -> None:
    """RejectedError while somebody works there, unless the asker knows better, or while something has not ended and may not be lost."""
    if standing.workers and not with_workers:
        told = (
            f"{standing.workers} workers are alive on {url}; stop them, or wait until the leases of dead ones are over"
        )
        raise refusal(RemovalRefusal.STILL_WORKING, told)
    if standing.unfinished and not with_unfinished:
        told = f"{standing.unfinished} instances in {url} have not ended; let them end, cancel them, or say --with-unfinished to lose them"
        raise refusal(RemovalRefusal.UNFINISHED, told)


def refusal(code: RemovalRefusal, message: str) -> RejectedError:
    """A refusal; nothing was taken away."""
    return RejectedError(reason=code.value, message=message)
