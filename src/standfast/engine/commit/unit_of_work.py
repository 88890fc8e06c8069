"""Unit of work: several commands and user code in one transaction of the engine. All of it is committed, or nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeVar

from standfast.engine.commit.batch import CommandBatch
from standfast.engine.commit.cache import CachedInstance
from standfast.engine.commit.committer import Committer
from standfast.engine.commit.facts import Acting
from standfast.engine.commit.queue import CommitQueues
from standfast.engine.commit.submission import (
    CommandOutcome,
    Submission,
    digest_of,
    is_same,
    reasoned,
    receipted,
)
from standfast.errors import ConflictError, ReusedIdError, StoppedError
from standfast.store.ports.store import LostRaceError, Store, StoreParts, Transaction, Writer
from standfast.store.records.instances import Address, Borrower, ReceiptKey

T = TypeVar("T")

_ROUNDS = 8
"""Repetitions of a transaction that other transactions undid."""
_MOST_IDLE = 4
"""Idle connections kept for reuse."""


class JointCommit:
    """One open transaction. A refused command raises, and the whole transaction is rolled back."""

    def __init__(self, unit: Transaction, committing: Committer, next_cause: Callable[[], str], role: str) -> None:
        self._unit = unit
        self._committing = committing
        self._next_cause = next_cause
        self._role = role
        self.batches: list[CommandBatch] = []

    def lend(self, tenant: str) -> AbstractContextManager[object]:
        """Lend the connection to user code that writes in the same transaction.

        Call it before any command, so that the code locks its own rows first.
        """
        return self._unit.lend(None, Borrower(tenant, self._role) if self._role else None)

    def look(self, address: Address) -> CachedInstance | None:
        """Return an instance in this transaction, locked until the end, or None if there is none."""
        return self._committing.look_inside(self._unit, address)

    def repeated(self, receipt: ReceiptKey | None, address: Address, said: object) -> CommandOutcome | None:
        """Return the outcome of an earlier command with this receipt, or None.

        Raises ReusedIdError if that command was different.
        """
        known = None if receipt is None else self._unit.receipts([receipt]).get(receipt)
        if receipt is None or known is None:
            return None
        if not is_same(known.digest, digest_of(address, said)):
            raise ReusedIdError(receipt.key)
        return CommandOutcome(known.instance, known.version)

    def carry_out(
        self,
        address: Address,
        command: object,
        *,
        by: Acting,
        comment: str = "",
        receipt: ReceiptKey | None = None,
        said: object = None,
        may_create: bool = False,
        definition_version: str = "",
    ) -> CommandOutcome:
        """Decide and write a command, and return its outcome.

        A refusal is raised. `said` is the caller's content, which identifies a repetition.
        """
        given, why = reasoned(command, comment, by.asked)
        submission = Submission(
            address=address,
            command=given,
            cause=receipted(self._next_cause(), receipt),
            settled=_ignore,
            request=by.asked,
            stands_in=by.stands_in,
            vouched=by.vouched,
            comment=why,
            receipt=receipt,
            digest=b"" if receipt is None else digest_of(address, command if said is None else said),
            may_create=may_create,
            definition_version=definition_version,
        )
        batch = self._committing.commit_inside(self._unit, submission)
        ((_, outcome, error),) = batch.answers
        if error is not None:
            raise error
        assert outcome is not None
        self.batches.append(batch)
        return outcome


def outdate(committer: CommitQueues, batch: CommandBatch) -> None:
    """Mark the instances of a commit that no lane made as stale in all caches."""
    for draft in batch.written:
        committer.outdate(draft.header.id)


class Around(Protocol):
    """The engine services that a unit of work needs."""

    committer: CommitQueues

    def transactor(self, writer: Writer) -> Committer:
        """Returns the committer of a single command inside an open transaction."""
        ...

    def written_inside(self, batch: CommandBatch) -> None:
        """Notifies the engine of a commit."""
        ...

    def refusal(self) -> str:
        """Returns why commands are currently refused. Empty if they are not."""
        ...


class JointCommits:
    """Runs units of work, each on an exclusive connection or on the caller's open one."""

    def __init__(self, store: Store, around: Around, next_cause: Callable[[], str], role: str) -> None:
        self._store = store
        self._around = around
        self._next_cause = next_cause
        self._role = role
        self._idle: deque[StoreParts] = deque()

    def run(self, work: Callable[[JointCommit], T], connection: object = None) -> T:
        """Run `work` in one transaction. A transaction undone by others is repeated from the beginning.

        With a connection, the unit joins the caller's open transaction. An error leaves that transaction as it was, and
        no listener is notified before the caller commits.
        """
        if refusal := self._around.refusal():
            raise StoppedError(refusal)
        if connection is not None:
            with self._line() as line:
                inside, value = self._done(lambda: self._store.within(connection), line.writer(), work, role="")
            for batch in inside.batches:
                outdate(self._around.committer, batch)
            return value
        self._store.refuse_inside()
        with self._line() as line:
            joint, value = self._done(line.writer().unit, line.writer(), work, role=self._role)
        for batch in joint.batches:
            self._around.written_inside(batch)
        return value

    @contextmanager
    def _line(self) -> Iterator[StoreParts]:
        try:
            line = self._idle.pop()
        except IndexError:
            line = self._store.line()
        try:
            yield line
        finally:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append(line)
            else:
                line.close()

    def _done(
        self,
        begin: Callable[[], AbstractContextManager[Transaction]],
        writer: Writer,
        work: Callable[[JointCommit], T],
        *,
        role: str,
    ) -> tuple[JointCommit, T]:
        lost: LostRaceError | None = None
        for _ in range(_ROUNDS):
            try:
                with begin() as unit:
                    joint = JointCommit(unit, self._around.transactor(writer), self._next_cause, role)
                    value = work(joint)
            except LostRaceError as error:
                lost = error
            else:
                return joint, value
        raise ConflictError(f"others were first {_ROUNDS} times in a row ({lost}); try again")


def _ignore(_outcome: CommandOutcome | None, _error: BaseException | None) -> None:
    """Ignore the outcome: the transaction itself is the answer."""
