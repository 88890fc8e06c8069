"""Finding processes by what their callers know of them."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import msgspec

from standfast.kernel.ids import InstanceId

MOST_COUNTED = 1_000
"""Of more than so many it is not counted how many there are, unless somebody asks for it."""
ALL = 2**31 - 1
"""More than there are."""


class AskedOf(NamedTuple):
    """Somebody whom a process asks."""

    kind: str
    name: str
    definition: str = ""
    """Where only one definition is meant."""


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """Which processes are meant; all that is given has to be so."""

    statuses: tuple[str, ...]
    """One of these."""
    definition: str = ""
    key: str = ""
    partition: str | None = None
    """None means whatever it is."""
    started_by: str = ""
    people: tuple[AskedOf, ...] | None = None
    """At a step that asks one of these; None means whoever is asked."""
    before: InstanceId | None = None
    """Only instances born before this one: the last of the page before. What is counted does not depend on it."""
    limit: int = 100
    most: int | None = MOST_COUNTED
    """Of more than so many it is not counted how many there are; None means that all are counted."""


def counting(match: Match) -> Match:
    """The same, to be counted: all pages, and one more than is counted."""
    return msgspec.structs.replace(match, before=None, limit=ALL if match.most is None else match.most + 1)


class Matches(Protocol):
    """Processes by what is known of them."""

    def matching(self, match: Match) -> list[InstanceId]:
        """A page of them, newest first."""
        ...

    def count_matching(self, match: Match) -> int:
        """How many there are on all pages; one more than `match.most` where there are more than that."""
        ...
