"""Detects starvation: effects wait while calls without a timeout occupy all slots of a handler or of the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from standfast.engine.common.handlers import Handlers
from standfast.engine.worker.call import Execution


class _Jam(NamedTuple):
    """A set of slots that are all occupied by calls without a timeout."""

    slots: str
    """Description of the slots."""
    handlers: Sequence[str]
    """The handlers that need them."""
    since: float
    """Start of the last of the calls, in ticks of the engine's clock."""


class StarvationDetector:
    """Detects starved handlers. Calls are inspected only on request, so that counting costs nothing per call."""

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
        """Total slots of the process."""
        self._limit = limit
        """Seconds for which the same calls may occupy all slots while an effect waits."""
        self._wanted: frozenset[str] = frozenset()
        """The slots that an effect waited for at the last check."""

    def look(self, waits: Callable[[str], bool]) -> None:
        """Check for effects that wait for permanently occupied slots. `waits` asks the database about a handler."""
        self._wanted = frozenset(jam.slots for jam in self._jams() if any(map(waits, jam.handlers)))

    def problem(self) -> str:
        """Describes why effects are not begun. Empty if they are."""
        wanted, now = self._wanted, self._ticks()
        return "; ".join(
            f"{jam.slots} have been busy for {now - jam.since:.0f} s with calls that have no limit, and more wait; give them a timeout"
            for jam in (self._jams() if wanted else ())
            if jam.slots in wanted
        )

    def _jams(self) -> Iterator[_Jam]:
        """Yield the starved sets of slots that have lasted too long."""
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
