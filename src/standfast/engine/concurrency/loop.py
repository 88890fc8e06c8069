"""Loops that never die: each runs on its own thread, is woken by hints, rests in between, and goes on after any failure.

Nothing rests for long: hints may get lost, so that what is looked at now and then is what guarantees progress.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

from standfast.engine.common.telemetry import LoopFailed, Telemetry
from standfast.engine.common.work_errors import describe
from standfast.engine.concurrency.replies import serve_many
from standfast.errors import StoreUnavailableError

T = TypeVar("T")

_log = logging.getLogger("standfast.loops")

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 5.0
_LONGEST_REST_SECONDS = 60.0
"""A loop never rests longer than this, whatever its step says."""
_TRIES = 5
"""How often a chore may fail before what can be done instead is done; an absent database does not count."""
_DEFAULT_LIMIT_SECONDS = 10.0

Step = Callable[[], float]
"""One bounded round of work; how many seconds to wait before the next one unless a hint comes."""


class Loop:
    """A step that is repeated for as long as the engine runs."""

    def __init__(
        self,
        name: str,
        step: Step,
        telemetry: Telemetry,
        *,
        limit: float = _DEFAULT_LIMIT_SECONDS,
        hint: threading.Event | None = None,
    ) -> None:
        self.name = name
        self.step = step
        self._telemetry = telemetry
        self._limit = limit
        """Seconds for which a round that goes well may be overdue."""
        self._hint = hint or threading.Event()
        """Set by whoever knows of work; those who have it for the loop's work need not know the loop."""
        self._is_begun = False
        self._is_stopped = False
        self._failures = 0
        self._error = ""
        """Of the last round, if it failed."""
        self.is_kept_waiting = False
        """Whether that was because the database is away."""
        self._went_well_at = time.monotonic()
        self._due_at = self._went_well_at
        """When a round that goes well is owed: when the last rest ends, or since the round began that is under way or failed."""
        self._thread = threading.Thread(target=self._run, name=f"standfast-{name}".replace(" ", "-"), daemon=True)

    def start(self) -> None:
        """Begin."""
        self._is_begun = True
        self._thread.start()

    def wake(self) -> None:
        """There may be something to do: do not wait."""
        self._hint.set()

    def stop(self) -> None:
        """Do not begin another round."""
        self._is_stopped = True
        self._hint.set()

    def join(self, timeout: float) -> None:
        """Wait for the last round to end, unless it is the one that asks."""
        if self._thread.is_alive() and not self.is_here():
            self._thread.join(timeout)

    def is_here(self) -> bool:
        """Whether the present thread is the loop's own."""
        return threading.current_thread() is self._thread

    @property
    def silent_for(self) -> float:
        """Seconds since the last round that went well."""
        return time.monotonic() - self._went_well_at

    @property
    def late_by(self) -> float:
        """Seconds for which a round that goes well is overdue; a loop that rests is not late."""
        return max(0.0, time.monotonic() - self._due_at)

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def problem(self) -> str:
        """What keeps the loop from its work, in words; empty if nothing does."""
        if not self._is_begun or self._is_stopped:
            return ""
        if not self.is_alive:
            return "its thread has ended"
        late = self.late_by
        if late < self._limit:
            return ""
        if self._error:
            return f"has not gone well for {late:.0f} s: {self._error}"
        return f"has been in the same round for {late:.0f} s"

    def _run(self) -> None:
        serve_many()
        while not self._is_stopped:
            self._hint.clear()
            try:
                rest = self._round()
            except BaseException:  # noqa: BLE001 - even the report of a failure failed, for example in a log handler of the application's
                rest = _LONGEST_PAUSE_SECONDS
            self._hint.wait(rest)

    def _round(self) -> float:
        self._due_at = min(self._due_at, time.monotonic())
        try:
            rest = min(max(0.0, self.step()), _LONGEST_REST_SECONDS)
        except BaseException as error:  # noqa: BLE001 - a loop outlives whatever happens in it
            return self._fail(error)
        self._failures = 0
        self._error = ""
        self.is_kept_waiting = False
        self._went_well_at = time.monotonic()
        self._due_at = self._went_well_at + rest
        return rest

    def _fail(self, error: BaseException) -> float:
        if self._is_stopped:
            return 0.0
        self._failures += 1
        self._error = describe(error)
        self.is_kept_waiting = isinstance(error, StoreUnavailableError)
        # Before the log: an error tracker that reads logs too then knows the error already, with what the listener says of it.
        self._telemetry.tell(LoopFailed(loop=self.name, error=self._error, failures=self._failures, exception=error))
        if isinstance(error, StoreUnavailableError):
            _log.warning("%s: %s", self.name, error)
        else:
            _log.error("%s failed", self.name, exc_info=error)
        return pause_after(self._failures)


class IsolatedTasks:
    """Several things of one round, none of which may keep the others from being done. What failed is raised at the end."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        """The first one."""

    def take(self, turn: Callable[[], T], otherwise: T) -> T:
        """What comes of it, or something else if it fails."""
        try:
            return turn()
        except BaseException as error:  # noqa: BLE001 - raised when all have had their turn
            self.error = self.error or error
            return otherwise

    def end(self) -> None:
        """All had their turn: the round failed if one of them did."""
        if self.error is not None:
            raise self.error


class _Chore:
    """Something that is still to be done."""

    __slots__ = ("again_at", "do", "error", "failed_at", "failures", "otherwise", "tries")

    def __init__(self, do: Callable[[], None], otherwise: Callable[[], None] | None, again_at: float) -> None:
        self.do = do
        self.otherwise = otherwise
        self.failures = 0
        self.tries = 0
        """Failures for which an absent database is not to blame."""
        self.failed_at: float | None = None
        """When it failed first."""
        self.again_at = again_at
        """Monotonic time before which it is not tried."""
        self.error = ""

    def fail(self, error: BaseException, now: float) -> None:
        """Try again in a while, or do something else then."""
        self.failed_at = self.failed_at or now
        self.error = describe(error)
        self.failures += 1
        self.tries += not isinstance(error, StoreUnavailableError)
        if self.otherwise is not None and self.tries >= _TRIES:
            self.do, self.otherwise = self.otherwise, None
        self.again_at = now + pause_after(self.failures)


class Chores:
    """Things that other threads ask a loop to do on its own thread and connection."""

    def __init__(self, name: str = "chores", *, limit: float = _DEFAULT_LIMIT_SECONDS) -> None:
        self.name = name
        self._limit = limit
        self._queue: SimpleQueue[_Chore] = SimpleQueue()
        self._failed: list[_Chore] = []
        """Those that wait for their time, mostly for the next try; replaced whole, so that any thread can look."""
        self.hint = threading.Event()
        """What the loop waits for."""

    def wake(self) -> None:
        """Have the loop look for work."""
        self.hint.set()

    def add(
        self, chore: Callable[[], None], *, otherwise: Callable[[], None] | None = None, after: float = 0.0
    ) -> None:
        """Have it done in the next round, or when so many seconds have passed.

        `otherwise` is done in its place once it has failed several times for a reason of its own.
        """
        self._queue.put(_Chore(chore, otherwise, time.monotonic() + after if after else 0.0))
        self.wake()

    def run(self) -> int:
        """Do what was asked for; how many things. One that fails is tried again later, and keeps nothing else from being done."""
        now = time.monotonic()
        waiting = [*self._failed, *self._new()]
        left = [each for each in waiting if each.again_at > now]
        due = [each for each in waiting if each.again_at <= now]
        for number, each in enumerate(due, start=1):
            try:
                each.do()
            except StoreUnavailableError as error:  # The others need the database too: their turn is the next round.
                self._note(each, error)
                left += [*due[number:], each]
                break
            except BaseException as error:  # noqa: BLE001 - its trouble is not that of the others
                self._note(each, error)
                left.append(each)
        self._failed = left
        return len(waiting) - len(left)

    def drain(self) -> int:
        """Do everything now, on the thread of a caller, who is told of the first failure; what failed is kept.

        How many things were done; those that only put themselves off do not count, or a caller would wait for them for ever.
        """
        everything, self._failed = [*self._failed, *self._new()], []
        first: Exception | None = None
        for number, each in enumerate(everything):
            try:
                each.do()
            except Exception as error:  # noqa: BLE001 - raised below
                first = first or error
                self._failed.append(each)
            except BaseException:
                self._failed += everything[number:]
                raise
        if first is not None:
            raise first
        asked_for = self._new()
        self._failed += asked_for
        return len(everything) - sum(each.again_at > 0 for each in asked_for)

    def rest(self, seconds: float) -> float:
        """How long the loop may rest, if it wants to rest so long: until the next try of a chore."""
        if not self._failed:
            return seconds
        return min(seconds, max(0.0, min(each.again_at for each in self._failed) - time.monotonic()))

    @property
    def is_kept_waiting(self) -> bool:
        """Whether all that cannot be done waits for a database that is away."""
        return not any(each.tries for each in self._failed)

    def problem(self) -> str:
        """What cannot be done, in words; empty if all goes well."""
        failed, now = self._failed, time.monotonic()
        late = [(now - each.failed_at, each.error) for each in failed if each.failed_at is not None]
        longest, error = max(late, default=(0.0, ""))
        if longest < self._limit or not late:
            return ""
        return f"{len(late)} cannot be done, one of them for {longest:.0f} s: {error}"

    def _note(self, chore: _Chore, error: BaseException) -> None:
        chore.fail(error, time.monotonic())
        level = logging.WARNING if isinstance(error, StoreUnavailableError) else logging.ERROR
        _log.log(level, "%s: one of them failed: %s", self.name, chore.error)

    def _new(self) -> list[_Chore]:
        found = []
        while True:
            try:
                found.append(self._queue.get_nowait())
            except Empty:
                return found


def pause_after(failures: int) -> float:
    """Seconds to wait after so many failures in a row."""
    return float(min(_FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 10), _LONGEST_PAUSE_SECONDS))
