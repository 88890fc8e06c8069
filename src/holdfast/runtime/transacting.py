"""Handlers that run inside a commit: their writes and the completion of their effect are one transaction, exactly once."""

from __future__ import annotations

import threading
from collections.abc import Callable

from holdfast.kernel.ids import effect_key
from holdfast.runtime.committing import Committing
from holdfast.runtime.deciding import Batch
from holdfast.runtime.submissions import Outcome, Submission
from holdfast.runtime.worker import Execution
from holdfast.store.port import LostRaceError, Unit, Writer
from holdfast.store.shapes import Address


class Transacting:
    """Calls transactional handlers, each on its own thread and connection."""

    def __init__(
        self,
        open_writer: Callable[[], Writer],
        committing: Callable[[Writer], Committing],
        written: Callable[[Batch], None],
    ) -> None:
        self._open_writer = open_writer
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
        except LostRaceError:
            return  # The effect belongs to somebody else by now; what the handler wrote is undone.
        if batch is not None:
            self._written(batch)

    def _call(self, execution: Execution, unit: Unit, committing: Committing) -> Batch | None:
        execution.context.connection = unit.connection
        command = execution.handler.function(execution.context, execution.body)
        if not execution.settle():
            raise LostRaceError("the handler came back too late")
        if command is None:
            unit.consume([execution.claim])
            return None
        effect = execution.effect
        batch = committing.commit_inside(
            unit,
            Submission(
                address=Address(tenant=effect.tenant, definition=effect.definition, instance=effect.instance),
                command=command,
                cause=effect_key(effect.instance, effect.number),
                claim=execution.claim,
                settled=_ignore,
            ),
        )
        for _, _, error in batch.answers:
            if error is not None:
                raise error
        return batch


def _ignore(_outcome: Outcome | None, _error: BaseException | None) -> None:
    """The transaction itself is the answer."""
