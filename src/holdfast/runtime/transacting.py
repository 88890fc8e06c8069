"""Handlers that run inside a commit: their writes and the completion of their effect are one transaction, exactly once."""

from __future__ import annotations

import threading
from collections.abc import Callable

from holdfast.errors import ConflictError
from holdfast.kernel.ids import effect_key
from holdfast.kernel.program import Programs
from holdfast.runtime.calling import Execution, call_here
from holdfast.runtime.committing import Committing
from holdfast.runtime.deciding import Batch
from holdfast.runtime.issuing import result_of
from holdfast.runtime.submissions import Outcome, Submission
from holdfast.store.port import LostRaceError, Unit, Writer


class _TooLateError(Exception):
    """The handler came back when its call had been given up."""


class Transacting:
    """Calls transactional handlers, each on its own thread and connection."""

    def __init__(
        self,
        open_writer: Callable[[], Writer],
        committing: Callable[[Writer], Committing],
        written: Callable[[Batch], None],
        programs: Programs,
    ) -> None:
        self._open_writer = open_writer
        self._programs = programs
        self._committing = committing
        self._written = written
        self._local = threading.local()

    def run(self, execution: Execution) -> None:
        """Call the handler in a transaction that commits with what it returns, or not at all."""
        writer: Writer | None = getattr(self._local, "writer", None)
        if writer is None:
            writer = self._local.writer = self._open_writer()
        try:
            with writer.unit() as unit:
                batch = self._call(execution, unit, self._committing(writer))
        except _TooLateError:
            return  # Somebody else has spoken for the call; what the handler wrote is undone.
        except LostRaceError as error:
            raise ConflictError(f"what the handler wrote was undone: {error}") from error
        if batch is None:
            return
        self._written(batch)
        if batch.observations:
            writer.write([], observations=batch.observations, now=batch.observations[0].at)

    def _call(self, execution: Execution, unit: Unit, committing: Committing) -> Batch | None:
        with unit.lend() as connection:
            execution.context.connection = connection
            command = call_here(execution)
        if not execution.settle():
            raise _TooLateError
        if command is None:
            unit.consume([execution.claim])
            return None
        effect = execution.effect
        address, command = result_of(effect, command, self._programs(effect.definition))
        batch = committing.commit_inside(
            unit,
            Submission(
                address=address,
                command=command,
                cause=effect_key(effect.instance, effect.number),
                claim=execution.claim,
                may_create=True,
                settled=_ignore,
            ),
        )
        for _, _, error in batch.answers:
            if error is not None:
                raise error
        return batch


def _ignore(_outcome: Outcome | None, _error: BaseException | None) -> None:
    """The transaction itself is the answer."""
