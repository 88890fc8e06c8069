"""Background loops, each on its own thread. A loop is woken by hints, rests in between, and survives every failure.

No loop rests for long. Hints may get lost, so polling is what guarantees progress.
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
"""Longest rest of a loop, whatever its step returns."""
_TRIES = 5
"""Failures of a chore before its alternative runs. An unavailable database does not count."""
_DEFAULT_LIMIT_SECONDS = 10.0

Step = Callable[[], float]
"""One bounded round of work. Returns the seconds to rest before the next one, unless a hint arrives."""


class Loop:
    """Repeats a step for as long as the engine runs."""

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
        """Seconds by which a successful round may be overdue."""
        self._hint = hint or threading.Event()
        """Set by any source of work, so that it need not know the loop."""
        self._is_begun = False
        self._is_stopped = False
        self._failures = 0
        self._error = ""
        """Error of the last round. Empty if it succeeded."""
        self.is_kept_waiting = False
        """Whether the last round failed because the database is unavailable."""
        self._went_well_at = time.monotonic()
        self._due_at = self._went_well_at
        """When a successful round is due: at the end of the last rest, or at the start of the current or failed
        round."""
        self._thread = threading.Thread(target=self._run, name=f"standfast-{name}".replace(" ", "-"), daemon=True)

    def start(self) -> None:
        """Start the loop's thread."""
        self._is_begun = True
        self._thread.start()

    def wake(self) -> None:
        """Run the next round without waiting, because there may be work."""
        self._hint.set()

    def stop(self) -> None:
        """End the loop after the current round."""
        self._is_stopped = True
        self._hint.set()

    def join(self, timeout: float) -> None:
        """Wait for the last round to end. A call from the loop itself returns immediately."""
        if self._thread.is_alive() and not self.is_here():
            self._thread.join(timeout)

    def is_here(self) -> bool:
        """Whether the current thread is the loop's own."""
        return threading.current_thread() is self._thread

    @property
    def silent_for(self) -> float:
        """Seconds since the last successful round."""
        return time.monotonic() - self._went_well_at

    @property
    def late_by(self) -> float:
        """Seconds by which a successful round is overdue. A resting loop is not late."""
        return max(0.0, time.monotonic() - self._due_at)

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def problem(self) -> str:
        """Describes the problem of the loop. Empty if there is none."""
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
            except BaseException:  # noqa: BLE001 - reporting a failure failed too, for example in a log handler of the application
                rest = _LONGEST_PAUSE_SECONDS
            self._hint.wait(rest)

    def _round(self) -> float:
        self._due_at = min(self._due_at, time.monotonic())
        try:
            rest = min(max(0.0, self.step()), _LONGEST_REST_SECONDS)
        except BaseException as error:  # noqa: BLE001 - a loop survives every failure
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
        # Publish before logging: an error tracker that also reads logs then knows the error with its details.
        self._telemetry.tell(LoopFailed(loop=self.name, error=self._error, failures=self._failures, exception=error))
        if isinstance(error, StoreUnavailableError):
            _log.warning("loop_waiting loop=%r: %s", self.name, error)
        else:
            _log.error("loop_failed loop=%r", self.name, exc_info=error)
        return pause_after(self._failures)


class IsolatedTasks:
    """Runs the tasks of a round so that the failure of one does not stop the others.

    The first error is raised at the end.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        """The first error."""

    def take(self, turn: Callable[[], T], otherwise: T) -> T:
        """Run a task, and return its result, or `otherwise` if it fails."""
        try:
            return turn()
        except BaseException as error:  # noqa: BLE001 - raised after all tasks have run
            self.error = self.error or error
            return otherwise

    def end(self) -> None:
        """End the round. Raises the first error."""
        if self.error is not None:
            raise self.error


class _Chore:
    """A pending task of a loop."""

    __slots__ = ("again_at", "do", "error", "failed_at", "failures", "otherwise", "tries")

    def __init__(self, do: Callable[[], None], otherwise: Callable[[], None] | None, again_at: float) -> None:
        self.do = do
        self.otherwise = otherwise
        self.failures = 0
        self.tries = 0
        """Failures that an unavailable database did not cause."""
        self.failed_at: float | None = None
        """Time of the first failure."""
        self.again_at = again_at
        """Monotonic time before which it is not run."""
        self.error = ""

    def fail(self, error: BaseException, now: float) -> None:
        """Schedule a retry, or the alternative after too many failures."""
        self.failed_at = self.failed_at or now
        self.error = describe(error)
        self.failures += 1
        self.tries += not isinstance(error, StoreUnavailableError)
        if self.otherwise is not None and self.tries >= _TRIES:
            self.do, self.otherwise = self.otherwise, None
        self.again_at = now + pause_after(self.failures)


class Chores:
    """Tasks that other threads submit to a loop, to run on its thread and connection."""

    def __init__(self, name: str = "chores", *, limit: float = _DEFAULT_LIMIT_SECONDS) -> None:
        self.name = name
        self._limit = limit
        self._queue: SimpleQueue[_Chore] = SimpleQueue()
        self._failed: list[_Chore] = []
        """Tasks that wait for their time, usually for a retry. The list is replaced as a whole, so that any thread
        can read it."""
        self.hint = threading.Event()
        """Wakes the loop."""

    def wake(self) -> None:
        """Wake the loop to look for work."""
        self.hint.set()

    def add(
        self, chore: Callable[[], None], *, otherwise: Callable[[], None] | None = None, after: float = 0.0
    ) -> None:
        """Schedule a task for the next round, or after this many seconds.

        `otherwise` replaces the task after several failures of its own.
        """
        self._queue.put(_Chore(chore, otherwise, time.monotonic() + after if after else 0.0))
        self.wake()

    def run(self) -> int:
        """Run the due tasks, and return their number. A failed task is retried later and does not stop the others."""
        now = time.monotonic()
        waiting = [*self._failed, *self._new()]
        left = [each for each in waiting if each.again_at > now]
        due = [each for each in waiting if each.again_at <= now]
        for number, each in enumerate(due, start=1):
            try:
                each.do()
            except StoreUnavailableError as error:  # The other tasks need the database too. They run in the next round.
                self._note(each, error)
                left += [*due[number:], each]
                break
            except BaseException as error:  # noqa: BLE001 - one task's failure must not affect the others
                self._note(each, error)
                left.append(each)
        self._failed = left
        return len(waiting) - len(left)

    def drain(self) -> int:
        """Run all tasks now on the caller's thread, and raise the first error. Failed tasks stay queued.

        Returns the number of tasks run. A task that only postpones itself does not count, so that the caller does not
        wait forever.
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
        """Return how long the loop may rest: at most `seconds`, and until the next retry."""
        if not self._failed:
            return seconds
        return min(seconds, max(0.0, min(each.again_at for each in self._failed) - time.monotonic()))

    @property
    def is_kept_waiting(self) -> bool:
        """Whether all failing tasks wait for an unavailable database."""
        return not any(each.tries for each in self._failed)

    def problem(self) -> str:
        """Describes the failing tasks. Empty if there are none."""
        failed, now = self._failed, time.monotonic()
        late = [(now - each.failed_at, each.error) for each in failed if each.failed_at is not None]
        longest, error = max(late, default=(0.0, ""))
        if longest < self._limit or not late:
            return ""
        return f"{len(late)} tasks fail, one of them for {longest:.0f} s: {error}"

    def _note(self, chore: _Chore, error: BaseException) -> None:
        chore.fail(error, time.monotonic())
        level = logging.WARNING if isinstance(error, StoreUnavailableError) else logging.ERROR
        _log.log(level, "chore_failed loop=%r: %s", self.name, chore.error)

    def _new(self) -> list[_Chore]:
        found = []
        while True:
            try:
                found.append(self._queue.get_nowait())
            except Empty:
                return found


def pause_after(failures: int) -> float:
    """Return the seconds to wait after this many consecutive failures."""
    return float(min(_FIRST_PAUSE_SECONDS * 2.0 ** min(failures - 1, 10), _LONGEST_PAUSE_SECONDS))
