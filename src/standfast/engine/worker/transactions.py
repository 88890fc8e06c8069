"""Transactional handlers: a handler's writes and the completion of its effect commit in one transaction, exactly once.

The claim guarantees this. It is checked before the call, so that a worker that has lost its work does nothing. It is
checked again under the instance's lock, after which no other worker can take the effect over before the commit.

The instance is locked last, after the rows of the handler. Other commands on the instance therefore do not wait for the
handler.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from standfast.engine.commit.batch import CommandBatch
from standfast.engine.commit.cache import CachedInstance
from standfast.engine.commit.committer import Committer
from standfast.engine.commit.context import EngineContext
from standfast.engine.commit.submission import CommandOutcome, Submission, causes, refused
from standfast.engine.commit.unit_of_work import JointCommit
from standfast.engine.commit.work_rows import own_message, result_of
from standfast.engine.common.handlers import Fail
from standfast.engine.common.work_errors import is_stranded, outcome_of
from standfast.engine.worker.call import Execution, call_here
from standfast.engine.worker.unreadable_work import UnreadableWork
from standfast.errors import ConflictError
from standfast.kernel.actor import following_bytes
from standfast.kernel.ids import InstanceId, effect_key
from standfast.store.ports.store import (
    EndedTransactionError,
    LostRaceError,
    StoreParts,
    Transaction,
    Writer,
)
from standfast.store.records.instances import Borrower
from standfast.store.sql.conflicts import VoidClaimError

_ROUNDS = 8
"""Repetitions of a call undone by concurrent transactions, before it counts as failed."""


class _TooLateError(Exception):
    """The handler returned after its call had been abandoned."""


class _FailedError(Exception):
    """The handler raised this."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(str(error))


class _RefusedError(Exception):
    """The result of the handler was refused."""

    def __init__(self, submission: Submission, error: BaseException) -> None:
        self.submission = submission
        self.error = error
        super().__init__(str(error))


class Transactions:
    """Calls transactional handlers, each on its own thread and exclusive connection."""

    def __init__(
        self,
        open_line: Callable[[], StoreParts],
        committing: Callable[[Writer], Committer],
        written: Callable[[CommandBatch], None],
        shared: EngineContext,
        *,
        take: Callable[[InstanceId], CachedInstance | None],
    ) -> None:
        self._open_line = open_line
        self._shared = shared
        self._telemetry = shared.telemetry
        self._unreadable = UnreadableWork(shared)
        self._committing = committing
        self._written = written
        self._take = take
        """Takes an instance out of the cache. It is not returned, because it is stale after the commit."""
        self._idle: deque[StoreParts] = deque()
        """Idle connections. They are not bound to threads: an abandoned call returns its connection when it ends."""
        self._most_idle = shared.settings.threads
        self._role = shared.settings.handler_role
        """Database role of the handlers. Empty means the engine's own."""

    def run(self, execution: Execution) -> str:
        """Call the handler in a transaction that commits with its result, or not at all.

        Return why nothing was committed, empty on success.
        """
        try:
            line = self._idle.pop()
        except IndexError:
            line = self._open_line()
        try:
            return self._run(execution, line.writer())
        finally:
            if len(self._idle) < self._most_idle:
                self._idle.append(line)
            else:
                line.close()

    def _run(self, execution: Execution, writer: Writer) -> str:
        try:
            batch = self._committed(execution, writer)
        except _TooLateError:
            return "given up"  # Another thread has settled the call, so the handler's writes are rolled back.
        except VoidClaimError:
            execution.settle()
            self._shared.telemetry.tell(execution.lost())
            return "the claim is void"
        except _FailedError as failure:
            if not execution.settle():
                return "given up"
            raise failure.error from failure.error.__cause__
        except _RefusedError as refusal:
            if self._telemetry.is_heard:
                self._telemetry.tell(refused(refusal.submission, refusal.error))
            outcome = outcome_of(refusal.error)
            raise outcome from (refusal.error.__cause__ if outcome is refusal.error else refusal.error)
        joint = execution.joint
        for each in joint.batches if isinstance(joint, JointCommit) else ():
            self._written(each)
        if batch is not None:
            self._written(batch)
            if batch.observations:
                writer.write([], observations=batch.observations, now=batch.observations[0].at)
        return ""

    def _committed(self, execution: Execution, writer: Writer) -> CommandBatch | None:
        """Commit the call and return the batch.

        A call undone by others, as a deadlock victim, is repeated and counts once.
        """
        for _ in range(_ROUNDS):
            has_spoken = False
            try:
                with writer.unit() as unit:
                    batch = self._call(execution, unit, self._committing(writer))
                    has_spoken = execution.settle()
                    if not has_spoken:
                        raise _TooLateError
            except LostRaceError as error:
                lost = error
                if has_spoken:
                    execution.retract()
            except EndedTransactionError as error:
                if has_spoken:
                    execution.retract()
                # Its writes may be committed: another call could repeat them.
                told = f"{error}: what it wrote before may be stored, without the end of its effect"
                raise _FailedError(Fail(told)) from error
            else:
                return batch
        raise ConflictError(f"what the handler wrote was undone {_ROUNDS} times in a row: {lost}") from lost

    def _call(self, execution: Execution, unit: Transaction, committing: Committer) -> CommandBatch | None:
        if execution.is_settled:
            raise _TooLateError
        if not execution.handler.joins:
            command = self._called(execution, unit)
        elif unit.void([execution.claim]):
            raise VoidClaimError
        else:
            command = self._joined(execution, unit, committing)
        if command is None:
            unit.consume([execution.claim])
            return None
        submission = self._submission(execution, command)
        instance = submission.address.instance
        known = None if instance is None else self._take(instance)
        batch = committing.commit_inside(unit, submission, known)
        for _, _, error in batch.answers:
            if error is None:
                continue
            if not is_stranded(error):
                raise _RefusedError(submission, error)
            self._hand_on(execution, submission, unit)
            self._unreadable.tell_stranded(execution.effect, error)
        return batch

    def _called(self, execution: Execution, unit: Transaction) -> object:
        """Return the handler's result. Its own errors are wrapped, because errors of the engine mean something else."""
        borrower = Borrower(execution.effect.tenant, self._role) if self._role else None
        try:
            with unit.lend(execution.limit, borrower, execution.claim) as connection:
                return _called_with(connection, execution, unit)
        except (LostRaceError, VoidClaimError, EndedTransactionError, _TooLateError):
            raise
        except Exception as error:
            raise _FailedError(error) from error
        finally:
            execution.take_back = None

    def _joined(self, execution: Execution, unit: Transaction, committing: Committer) -> object:
        """Return the result of a built-in handler that commits commands of other instances in the same transaction."""
        effect = execution.effect
        execution.context.connection = JointCommit(
            unit, committing, causes(effect_key(effect.instance, effect.number)), self._role
        )
        try:
            return call_here(execution)
        except LostRaceError:
            raise
        except Exception as error:
            raise _FailedError(error) from error

    def _hand_on(self, execution: Execution, submission: Submission, unit: Transaction) -> None:
        """Send the result through the inbox to a process that can record it, in the same transaction as the handler's writes."""
        unit.consume([execution.claim])
        message = own_message(
            submission.address, submission.command, execution.program, following_bytes(execution.effect.context)
        )
        unit.accept([message], self._shared.clock.now())

    def _submission(self, execution: Execution, command: object) -> Submission:
        effect = execution.effect
        address, own = result_of(effect, command, execution.program, execution.follow_up.partition)
        return Submission(
            address=address,
            command=own,
            cause=effect_key(effect.instance, effect.number),
            request=execution.follow_up,
            claim=execution.claim,
            taken_at=effect.taken_at,
            may_create=True,
            settled=_ignore,
        )


def _called_with(connection: object, execution: Execution, unit: Transaction) -> object:
    execution.take_back = unit.take_back
    if execution.is_settled:  # The thread that abandoned the call may have found no connection to revoke.
        raise _TooLateError
    execution.context.connection = connection
    return call_here(execution)


def _ignore(_outcome: CommandOutcome | None, _error: BaseException | None) -> None:
    """Ignore the outcome: the transaction itself is the answer."""
