"""Finding the instances of one kind by what their callers know of them."""

from __future__ import annotations

from typing import Protocol

import msgspec

from holdfast.kernel.ids import InstanceId


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """Which instances are meant; all that is given has to be so."""

    kind: str
    statuses: tuple[str, ...] = ()
    """Empty means all."""
    definition: str = ""
    key: str = ""
    partition: str | None = None
    """None means whatever it is."""
    started_by: str = ""
    before: InstanceId | None = None
    """Only instances born before this one: the last of the page before. What is counted does not depend on it."""
    limit: int = 100


class Matches(Protocol):
    """Instances by what is known of them."""

    def matching(self, match: Match) -> list[InstanceId]:
        """A page of them, newest first."""
        ...

    def count_matching(self, match: Match) -> int:
        """How many there are on all pages."""
        ...
