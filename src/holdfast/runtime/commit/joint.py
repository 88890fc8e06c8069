"""Several commands in one transaction of the engine's own, with user code between them: all of it is written, or nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

from holdfast.errors import ConflictError
from holdfast.kernel.actor import RequestContext
from holdfast.runtime.commit.batch import Batch
from holdfast.runtime.commit.committer import Committer
from holdfast.runtime.commit.submissions import Outcome, Submission, digest_of
from holdfast.store.port import LostRaceError, Parts, Unit, Writer
from holdfast.store.shapes import Address, Borrower, ReceiptKey

T = TypeVar("T")

_ROUNDS = 8
"""How often a transaction that others undid is made again."""
_MOST_IDLE = 4
"""Lines that are kept for the next one."""


class Joint:
    """One open transaction. A command that is refused raises, and nothing of the transaction stands."""

    def __init__(self, unit: Unit, committing: Committer, next_cause: Callable[[], str], role: str) -> None:
        self._unit = unit
        self._committing = committing
        self._next_cause = next_cause
        self._role = role
        self.batches: list[Batch] = []

    def lend(self, tenant: str) -> AbstractContextManager[object]:
        """The connection, for user code that writes in the same transaction; before any command, so that it locks its own rows first."""
        return self._unit.lend(None, Borrower(tenant, self._role) if self._role else None)

    def carry_out(
        self,
        address: Address,
        command: object,
        *,
        request: RequestContext,
        comment: str = "",
        receipt: ReceiptKey | None = None,
        may_create: bool = False,
        definition_version: str = "",
    ) -> Outcome:
        """Decide and write a command; what became of it. Its refusal is raised."""
        submission = Submission(
            address=address,
            command=command,
            cause=self._next_cause(),
            settled=_ignore,
            request=request,
            comment=comment,
            receipt=receipt,
            digest=b"" if receipt is None else digest_of(address, command),
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


class Joints:
    """Makes such transactions, each on a connection that nobody else uses meanwhile."""

    def __init__(  # noqa: PLR0917 - what a service has, once
        self,
        open_line: Callable[[], Parts],
        committing: Callable[[Writer], Committer],
        written: Callable[[Batch], None],
        next_cause: Callable[[], str],
        role: str,
    ) -> None:
        self._open_line = open_line
        self._committing = committing
        self._written = written
        self._next_cause = next_cause
        self._role = role
        self._idle: deque[Parts] = deque()

    def run(self, work: Callable[[Joint], T]) -> T:
        """Have work done in one transaction. If others undo it, it is done again from the beginning."""
        try:
            line = self._idle.pop()
        except IndexError:
            line = self._open_line()
        try:
            joint, value = self._committed(line.writer(), work)
        finally:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append(line)
            else:
                line.close()
        for batch in joint.batches:
            self._written(batch)
        return value

    def _committed(self, writer: Writer, work: Callable[[Joint], T]) -> tuple[Joint, T]:
        lost: LostRaceError | None = None
        for _ in range(_ROUNDS):
            try:
                with writer.unit() as unit:
                    joint = Joint(unit, self._committing(writer), self._next_cause, self._role)
                    value = work(joint)
            except LostRaceError as error:
                lost = error
            else:
                return joint, value
        raise ConflictError(f"others were first {_ROUNDS} times in a row ({lost}); try again")


def _ignore(_outcome: Outcome | None, _error: BaseException | None) -> None:
    """The transaction itself is the answer."""
