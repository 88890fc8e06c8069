"""Slots that nobody gives back: every one of a handler, or of the process, is taken by a call that has no limit, and effects wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from standfast.engine.common.handlers import Handlers
from standfast.engine.worker.call import Execution


class _Jam(NamedTuple):
    """All slots of a kind, taken by calls of which none need ever end."""

    slots: str
    """Which ones, in words."""
    handlers: Sequence[str]
    """Those whose effects would have them."""
    since: float
    """When the last of the calls began, by the ticks of the engine's clock."""


class StarvationDetector:
    """Looks for slots that are taken for good. Calls are looked at when somebody asks: nothing is counted while they come and go."""

    name = "slots"

    def __init__(
        self,
        held: Callable[[], Sequence[Execution]],
        handlers: Handlers,
        ticks: Callable[[], float],
        *,
        most: int,
        limit: float,
    ) -> None:
        self._held = held
        self._handlers = handlers
        self._ticks = ticks
        self._most = most
        """Slots of the whole process."""
        self._limit = limit
        """Seconds for which all of them may be taken by the same calls while something waits."""
        self._wanted: frozenset[str] = frozenset()
        """The slots that something waited for when that was last looked at."""

    def look(self, waits: Callable[[str], bool]) -> None:
        """Find out whether something waits for slots that are taken for good; `waits` asks the database about a handler."""
        self._wanted = frozenset(jam.slots for jam in self._jams() if any(map(waits, jam.handlers)))

    def problem(self) -> str:
        """What keeps effects from being begun, in words; empty if nothing does."""
        wanted, now = self._wanted, self._ticks()
        return "; ".join(
            f"{jam.slots} have been busy for {now - jam.since:.0f} s with calls that have no limit, and more wait; give them a timeout"
            for jam in (self._jams() if wanted else ())
            if jam.slots in wanted
        )

    def _jams(self) -> Iterator[_Jam]:
        """Those that have lasted for as long as they may."""
        calls = [each for each in self._held() if each.has_slot]
        by_handler: dict[str, list[Execution]] = {}
        for each in calls:
            by_handler.setdefault(each.handler.name, []).append(each)
        for name, own in by_handler.items():
            if len(own) >= own[0].handler.concurrency and self._lasts(own):
                yield _Jam(f"all {len(own)} of {name!r}", [name], max(each.started for each in own))
        if len(calls) >= self._most and self._lasts(calls):
            since = max(each.started for each in calls)
            yield _Jam(f"all {len(calls)} of the process", self._handlers.names(), since)

    def _lasts(self, calls: Sequence[Execution]) -> bool:
        oldest = self._ticks() - self._limit
        return all(each.is_begun and each.deadline is None and each.started <= oldest for each in calls)
