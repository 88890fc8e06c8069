"""The commit queue: groups waiting commands into batches, and commits each batch in one transaction.

While one batch is at the database, the next one gathers. Batches therefore grow with the load.

After `start` each committer works on its own thread. A single command may be committed on its caller's thread, which
saves two context switches. Without `start`, the submitting thread commits, as tests require.

Several committers run in parallel: one decides while another waits for the database.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from queue import Empty, SimpleQueue

from standfast.engine.commit.batch import CommandBatch
from standfast.engine.commit.cache import CachedInstance, InstanceCache
from standfast.engine.commit.committer import Committer
from standfast.engine.commit.inbox import InboxSubmission, InboxWriter
from standfast.engine.commit.submission import CommandOutcome, Submission, accompany, refused
from standfast.engine.common.interceptors import committed, ended
from standfast.engine.common.telemetry import Committed, Telemetry
from standfast.engine.common.work_errors import describe
from standfast.engine.concurrency.replies import Bringing
from standfast.errors import HeldError, StoppedError, StoreUnavailableError
from standfast.kernel.ids import InstanceId
from standfast.store.records.instances import Address, Claim, InstanceHeader

_log = logging.getLogger("standfast.committer")

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 2.0
_HELD_SECONDS = 0.1
"""Interval between retries of a command whose instance another transaction holds."""
_RECOVERY_SECONDS = 1.0
"""Interval between retries of a lease recovery while the queue is idle."""
_ECHO_SECONDS = 65.0
"""Longer than any statement of the engine may take. Until then a server that has not noticed a lost connection may
still execute a claim."""

Item = Submission | Claim | None
"""A command, a claim that ended without a command, or None to wake the committer."""


class CommitQueue:
    """Commits commands in groups."""

    def __init__(
        self,
        committing: Committer,
        acceptances: InboxWriter,
        telemetry: Telemetry,
        *,
        name: str = "committer",
        limit: float = 10.0,
        batch_limit: int,
        written: Callable[[CommandBatch], None],
        recovered: Callable[[], None],
    ) -> None:
        self.name = name
        self._limit = limit
        """Seconds that a commit may take."""
        self._committing = committing
        self._acceptances = acceptances
        self._telemetry = telemetry
        self._batch_limit = batch_limit
        self._written = written
        self._recovered = recovered
        self._queue: SimpleQueue[Item] = SimpleQueue()
        self.handing_over = threading.Lock()
        """Held while effects pass from a commit to the worker. Neither of them lists these effects meanwhile."""
        self._turn = threading.RLock()
        self._is_busy = False
        self._thread: threading.Thread | None = None
        self._is_stopped = False
        self._has_ended = False
        self._busy_since: float | None = None
        """Monotonic time at which the current work began."""
        self._error = ""
        """The error of the current outage."""
        self._failing_since: float | None = None
        self._failed_at = 0.0
        """Monotonic times of the first and the last failed attempt of the current outage, None without one. The
        callers may have given up since."""
        self._owes_recovery = False
        self._owes_since = 0.0
        self._echo = _ECHO_SECONDS
        self._again_at: float | None = None
        """Monotonic time of a second recovery, for a lost claim that the server executed after the first one."""
        self._when_recovered: list[Callable[[], None]] = []
        self._held: deque[tuple[float, Submission]] = deque()
        """Commands whose instances other transactions hold, with the time of the next retry. Any thread appends, one
        thread removes."""
        self._claiming: set[Submission] = set()
        self._claims: dict[int, Claim] = {}
        """Claims of work that ended without a command and is not committed yet. The key is the identity of the claim
        object, because Python compares and hashes the ids in claims slowly."""

    def submit(self, submission: Submission, *, may_wait: bool = False) -> None:
        """Queue a command. Its `settled` callback is called when it is committed or has failed.

        A caller that may wait commits the command on its own thread if the committer is idle.
        """
        if self._is_stopped:
            submission.settled(None, StoppedError("the engine is stopped"))
            return
        if submission.claim is not None:
            self._claiming.add(submission)
        if self._telemetry.companions.is_any:
            accompany(submission, self._telemetry.companions)
        if not (may_wait and self._is_committed_here(submission)):
            self._put(submission)

    def accept(self, acceptance: InboxSubmission) -> None:
        """Queue a message for the inbox. Its reply is set when the message is stored or has failed."""
        if self._is_stopped:
            acceptance.reply.set_error(StoppedError("the engine is stopped"))
            return
        self._acceptances.add(acceptance)
        self._put(None)

    def finish(self, claim: Claim) -> None:
        """Consume the claim of work that ended without a command, with the next commit."""
        self._claims[id(claim)] = claim
        self._put(claim)

    def claims(self) -> list[Claim]:
        """Return the claims that the worker no longer owns because their end is queued here."""
        submissions = self._claiming.copy()
        return [*self._claims.copy().values(), *(each.claim for each in submissions if each.claim is not None)]

    def owe_recovery(self, when_recovered: Callable[[], None]) -> None:
        """Request a lease recovery after a statement whose outcome is unknown.

        It frees effects that this worker owns without knowing it.
        """
        self._when_recovered.append(when_recovered)
        self._owe()
        self._put(None)

    def start(self) -> None:
        """Start the committer's thread."""
        self._thread = threading.Thread(target=self._run, name=f"standfast-{self.name.replace(' ', '-')}", daemon=True)
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Commit the queued work, then end."""
        self._is_stopped = True
        if self._thread is not None:
            deadline = time.monotonic() + timeout
            self._queue.put(None)
            if self.is_here():
                return  # The thread ends after its current work.
            self._thread.join(timeout)
            self._thread = None
            # A caller may be committing on its own thread.
            if self._turn.acquire(timeout=max(0.0, deadline - time.monotonic())):
                self._turn.release()

    def is_here(self) -> bool:
        """Whether the current thread is the committer's own."""
        return threading.current_thread() is self._thread

    @property
    def is_kept_waiting(self) -> bool:
        """Whether the database is unavailable, or a lease recovery is still pending."""
        thread = self._thread
        return thread is not None and thread.is_alive() and (self._failing_since is not None or self._owes_recovery)

    def problem(self) -> str:
        """Describe why commands are not committed. Empty if all is well."""
        thread, now = self._thread, time.monotonic()
        if thread is None or self._is_stopped:
            return ""
        if not thread.is_alive():
            return "its thread has ended"
        failing = self._failing_since
        if failing is not None and self._failed_at - failing >= self._limit > now - self._failed_at:
            return f"has committed nothing for {now - failing:.0f} s: {self._error}"
        since = self._busy_since
        if since is not None and now - since >= self._limit:
            return f"has been in the same commit for {now - since:.0f} s{self._error and ': ' + self._error}"
        held = [now - each.held_since for _, each in self._held.copy() if each.held_since is not None]
        if held and max(held) >= self._limit:
            return f"{len(held)} commands wait for instances that other transactions hold, one of them for {max(held):.0f} s"
        if self._owes_recovery and now - self._owes_since >= self._limit:
            return f"the lease recovery after an outage has been pending for {now - self._owes_since:.0f} s"
        return ""

    def _put(self, item: Item) -> None:
        self._queue.put(item)
        if self._has_ended:
            self._refuse_rest()
        elif self._thread is None:
            self._work_here()

    def _work_here(self) -> None:
        """Commit on the caller's thread if there is no other.

        A call from inside a commit returns, because that commit goes on.
        """
        with self._turn:
            if self._is_busy:
                return
            self._is_busy = True
            try:
                with Bringing(serves_many=False):
                    while items := self._take(wait=False):
                        self._work(items)
            finally:
                self._is_busy = False

    def _is_committed_here(self, submission: Submission) -> bool:
        """Commit a command on the caller's thread.

        Return False if other work is queued or the commit failed, so that the committer's thread handles it.
        """
        if self._thread is None or not self._turn.acquire(blocking=False):
            return False
        try:
            if self._owes_recovery or self._held or not self._queue.empty():
                return False
            self._busy_since = time.monotonic()
            with self.handing_over, Bringing():
                batch = self._commit([submission], [])
                self._failing_since = None
                self._settle(batch)
        except BaseException as error:  # noqa: BLE001 - the committer's thread finds out whether it was committed
            _log.debug("inline_commit_failed: %s", error)
            submission.is_uncertain = True
            self._owe()
            return False
        else:
            return True
        finally:
            self._busy_since = None
            self._turn.release()

    def _run(self) -> None:
        with Bringing():
            while not (self._is_stopped and self._queue.empty()):
                items = self._take(wait=True)
                try:
                    with self._turn:  # The current holder records since when it is busy.
                        self._busy_since = time.monotonic()
                        self._work(items)
                except BaseException:  # noqa: BLE001 - the following commands must still be committed
                    _log.exception("committer_failed")
                finally:
                    self._busy_since = None
        self._has_ended = True
        self._refuse_rest()

    def _refuse_rest(self) -> None:
        """Refuse the commands that arrived while the committer ended, so that no caller waits forever."""
        error = StoppedError("the engine is stopped")
        held = [self._held.popleft()[1] for _ in range(len(self._held))]
        self._refuse([*held, *_sorted(self._take(wait=False))[0]], error)
        self._acceptances.refuse(error)

    def _take(self, *, wait: bool) -> list[Item]:
        """Take at most a batch of queued items. Return none if the queue is empty and the caller does not wait."""
        items: list[Item] = []
        try:
            items.append(self._queue.get(block=wait, timeout=self._rest()))
            while len(items) < self._batch_limit:
                items.append(self._queue.get_nowait())
        except Empty:
            pass
        return [*self._freed(items), *items] if self._held else items

    def _rest(self) -> float | None:
        """Return the seconds to wait for commands. None means without limit."""
        if self._owes_recovery:
            return _RECOVERY_SECONDS
        dues = [at for at in (self._again_at, self._acceptances.again_at) if at is not None]
        if self._held:
            dues.append(self._held[0][0])
        return max(0.0, min(dues) - time.monotonic()) if dues else None

    def _work(self, items: list[Item]) -> None:
        with self.handing_over:
            had_outage = self._carry_out(items)
        if had_outage:
            self._owe()
        if self._owes_recovery or (self._again_at is not None and time.monotonic() >= self._again_at):
            self._recover()
        if self._acceptances.waiting:
            self._acceptances.write(may_wait=self._may_wait)

    def _owe(self) -> None:
        """Note that a lease recovery is due, because this worker may own effects without knowing it."""
        if not self._owes_recovery:
            self._owes_since = time.monotonic()
        self._owes_recovery = True

    def _carry_out(self, items: list[Item]) -> bool:
        """Commit these items. Return whether there was an outage, so that their outcome is unknown."""
        submissions, finished = _sorted(items)
        pause, had_outage = _FIRST_PAUSE_SECONDS, False
        while submissions or finished:
            try:
                batch = self._commit(submissions, finished)
            except StoreUnavailableError as error:
                had_outage = True
                self._note_failure(error)
                submissions = self._outlast(submissions, error)
                if self._acceptances.waiting:
                    self._acceptances.outlast(error, may_wait=self._may_wait)
                if not self._may_wait:
                    return False
                _log.warning("database_unavailable retry_in=%.2f: %s", pause, error)
                time.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
                more, done = _sorted(self._take(wait=False))
                submissions += more
                finished += done
            except BaseException as error:
                if self._is_callers(error):
                    raise
                _log.exception("commit_failed")
                self._refuse(submissions, error)
                self._drop(finished)
                had_outage = True  # Claims that ended without a command may still be queued.
                break
            else:
                self._failing_since, self._error = None, ""
                self._settle(batch)
                self._drop(finished)
                break
        return had_outage

    def _note_failure(self, error: StoreUnavailableError) -> None:
        now = time.monotonic()
        # The outage began so long ago that its state is unknown.
        if self._failing_since is None or now - self._failed_at >= self._limit:
            self._failing_since = now
        self._failed_at, self._error = now, describe(error)

    def _drop(self, finished: list[Claim]) -> None:
        for claim in finished:
            self._claims.pop(id(claim), None)

    def _recover(self) -> None:
        try:
            self._recovered()
        except Exception as error:  # noqa: BLE001 - the recovery stays pending and is retried
            _log.warning("lease_recovery_pending committer=%r: %s", self.name, error)
            return
        self._again_at = time.monotonic() + self._echo if self._owes_recovery else None
        self._owes_recovery = False
        waiting, self._when_recovered = self._when_recovered, []
        for each in waiting:
            each()

    @property
    def _may_wait(self) -> bool:
        """Return whether to wait out an outage: not on a caller's thread, and not while the engine stops."""
        return self._thread is not None and not self._is_stopped

    def _commit(self, submissions: list[Submission], finished: list[Claim]) -> CommandBatch:
        begun = time.perf_counter()
        batch = self._committing.commit(submissions, finished)
        if self._telemetry.companions.is_any:
            for each in submissions:
                committed(each.passages, time.perf_counter() - begun)
        if self._telemetry.is_heard:
            self._telemetry.tell(
                Committed(
                    commands=len(submissions),
                    instances=len(batch.written),
                    events=sum(len(draft.change.events) for draft in batch.written),
                    took=timedelta(seconds=time.perf_counter() - begun),
                )
            )
        return batch

    def _settle(self, batch: CommandBatch) -> None:
        """Notify the listeners of a commit. Their failures do not affect it."""
        try:
            self._written(batch)
        except BaseException as problem:
            if self._is_callers(problem):
                raise
            _log.exception("commit_listener_failed listener=worker")
            self._owe()  # Effects of this commit may have no owner.
        for submission, outcome, error in batch.answers:
            if isinstance(error, HeldError) and self._is_put_off(submission):
                continue
            self._tell(submission, outcome, error)
        for kept in batch.kept:  # From here on other threads may change the states.
            kept.free.append(None)

    def _is_put_off(self, submission: Submission) -> bool:
        """Delay a command whose instance another transaction holds, unless its deadline has passed."""
        now = time.monotonic()
        if not self._may_wait or (submission.deadline is not None and submission.deadline < now):
            return False
        submission.held_since = submission.held_since or now
        self._held.append((now + _HELD_SECONDS, submission))
        self._queue.put(None)  # Wakes the committer, because this may be another thread.
        return True

    def _freed(self, coming: Sequence[Item]) -> list[Submission]:
        """Return the delayed commands that are due for a retry, in order.

        All delayed commands for the same instance are retried together, and before a new one. No command overtakes
        another on the same instance.
        """
        now = time.monotonic()
        waiting = [self._held.popleft() for _ in range(len(self._held))]
        tried = {each.address for each in coming if isinstance(each, Submission)}
        tried.update(each.address for at, each in waiting if at <= now)
        self._held.extendleft(reversed([each for each in waiting if each[1].address not in tried]))
        return [each for _, each in waiting if each.address in tried]

    def _tell(self, submission: Submission, outcome: CommandOutcome | None, error: BaseException | None) -> None:
        """Settle a command. A failure of its callback does not affect other commands."""
        if error is not None and self._telemetry.is_heard:
            self._telemetry.tell(refused(submission, error))
        if submission.passages:
            ended(submission.passages, error)
        try:
            submission.settled(outcome, error)
        except BaseException as problem:
            if self._is_callers(problem):
                raise
            _log.exception("reply_callback_failed command=%s", submission.cause)
        if submission.claim is not None:
            self._claiming.discard(submission)

    def _is_callers(self, error: BaseException) -> bool:
        """Return whether an error belongs to the caller on whose thread the commit runs, because programs do not handle it."""
        return self._thread is None and not isinstance(error, Exception)

    def _outlast(self, submissions: list[Submission], error: StoreUnavailableError) -> list[Submission]:
        """Answer the callers whose deadline has passed. Return the other commands, to be looked up after the outage."""
        now = time.monotonic()
        left = []
        for each in submissions:
            each.is_uncertain = True
            if not self._may_wait or (each.deadline is not None and each.deadline < now):
                self._tell(each, None, _unknown(error))
            else:
                left.append(each)
        return left

    def _refuse(self, submissions: list[Submission], error: BaseException) -> None:
        for each in submissions:
            self._tell(each, None, error)


def _sorted(items: list[Item]) -> tuple[list[Submission], list[Claim]]:
    submissions: list[Submission] = []
    claims: list[Claim] = []
    for item in items:
        if type(item) is Submission:
            submissions.append(item)
        elif item is not None:
            claims.append(item)  # type: ignore[arg-type]
    return submissions, claims


def _unknown(error: StoreUnavailableError) -> StoreUnavailableError:
    told = StoreUnavailableError(
        f"{error}. Whether the command was carried out is unknown; send it again with the same command id"
    )
    told.__cause__ = error
    return told


class Lane:
    """A committer and its cache."""

    def __init__(self, committer: CommitQueue, cache: InstanceCache) -> None:
        self.committer = committer
        self.cache = cache


class CommitQueues:
    """Commits commands in groups, several groups in parallel."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self.lanes = lanes
        self._recovering = threading.Lock()

    def submit(self, submission: Submission, *, may_wait: bool = False) -> None:
        """Queue a command.

        Its `settled` callback is called when it is committed or has failed. See `CommitQueue.submit`.
        """
        self._lane_of(submission.address).submit(submission, may_wait=may_wait)

    def accept(self, acceptance: InboxSubmission) -> None:
        """Queue a message for the inbox.

        One lane handles all messages, so that each target keeps the order of its callers.
        """
        self.lanes[0].committer.accept(acceptance)

    def is_running(self, instance: InstanceId, partition: str = "") -> bool:
        """Whether an instance is cached and has not ended, in the partition if one is given.

        A commit that ends it will notify this process.
        """
        return any(lane.cache.is_running(instance, partition) for lane in self.lanes)

    def is_at(self, instance: InstanceId, version: int) -> bool:
        """Whether an instance is cached at this version. A commit that moves it in this process updates the cache."""
        return any(lane.cache.is_at(instance, version) for lane in self.lanes)

    def header(self, instance: InstanceId) -> InstanceHeader | None:
        """Return the cached row of an instance."""
        return next((found for lane in self.lanes if (found := lane.cache.header(instance)) is not None), None)

    def take(self, instance: InstanceId) -> CachedInstance | None:
        """Return a cached instance and transfer its ownership to the caller, or None if another thread owns it."""
        return next((found for lane in self.lanes if (found := lane.cache.take(instance)) is not None), None)

    def outdate(self, instance: InstanceId) -> None:
        """Mark an instance as stale in all lanes after a commit that no lane made.

        A decision on the stale state would lose its race.
        """
        for lane in self.lanes:
            if lane.cache.header(instance) is not None:
                lane.cache.outdated.append(instance)

    def finish(self, claim: Claim) -> None:
        """Consume the claim of work that ended without a command, with the next commit."""
        self.lanes[0].committer.finish(claim)

    def claims(self) -> list[Claim]:
        """Return the claims that the worker no longer owns because their end is queued here."""
        return [claim for lane in self.lanes for claim in lane.committer.claims()]

    def owe_recovery(self, when_recovered: Callable[[], None]) -> None:
        """Request a lease recovery after a statement whose outcome is unknown.

        It frees effects that this worker owns without knowing it.
        """
        self.lanes[0].committer.owe_recovery(when_recovered)

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Context in which no lane hands over effects."""
        with self._recovering, ExitStack() as stack:
            for lane in self.lanes:
                stack.enter_context(lane.committer.handing_over)
            yield

    def start(self) -> None:
        """Start the threads of all lanes."""
        for lane in self.lanes:
            lane.committer.start()

    def stop(self, timeout: float) -> None:
        """Commit the queued work, then end."""
        deadline = time.monotonic() + timeout
        for lane in self.lanes:
            lane.committer.stop(max(0.0, deadline - time.monotonic()))

    def is_here(self) -> bool:
        """Whether the current thread belongs to a lane."""
        return any(lane.committer.is_here() for lane in self.lanes)

    def _lane_of(self, address: Address) -> CommitQueue:
        if len(self.lanes) == 1:
            return self.lanes[0].committer
        for lane in self.lanes:
            if lane.cache.knows(address):
                return lane.committer
        name = address.instance.int if address.instance is not None else hash((address.definition, address.key))
        return self.lanes[name % len(self.lanes)].committer
