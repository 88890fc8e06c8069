"""What became of instances in a commit, for whoever measures it.

The two sides of an engine: what the command side needs of the worker of its process, if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from standfast.engine.commit.batch import CommandBatch
from standfast.engine.common.telemetry import (
    InstanceEnded,
    InstancePaused,
    InstanceStarted,
    StepBuried,
    Telemetry,
    WorkRetried,
)
from standfast.engine.worker.call import Key
from standfast.kernel.row_kinds.steps import DeadLetterRaised, StepMoved
from standfast.kernel.rows import Record
from standfast.store.records.instances import EffectClaim, InstanceHeader


def tell_lives(telemetry: Telemetry, batch: CommandBatch) -> None:
    """Which instances began, which ended, which stand still, and which steps of them failed."""
    for draft in batch.written:
        header = draft.header
        definition, tenant, instance, kind = header.definition, header.tenant, header.id, header.kind
        if draft.before is None:
            telemetry.tell(InstanceStarted(definition=definition, tenant=tenant, instance=instance, kind=kind))
        if draft.ends and header.ended_at is not None:
            took = header.ended_at - header.created_at
            telemetry.tell(
                InstanceEnded(
                    definition=definition, tenant=tenant, instance=instance, kind=kind, status=header.status, took=took
                )
            )
        if draft.pauses:
            telemetry.tell(
                InstancePaused(definition=definition, tenant=tenant, instance=instance, kind=kind, reason=header.reason)
            )
        for record in draft.change.records:
            _tell_record(telemetry, header, record)


def _tell_record(telemetry: Telemetry, header: InstanceHeader, record: Record) -> None:
    definition, tenant, instance = header.definition, header.tenant, header.id
    match record:
        case StepMoved(status="running", error=str(error)) if error:
            telemetry.tell(
                WorkRetried(
                    definition=definition,
                    tenant=tenant,
                    instance=instance,
                    number=record.number,
                    is_step=True,
                    error=error,
                )
            )
        case DeadLetterRaised():
            telemetry.tell(
                StepBuried(
                    definition=definition,
                    tenant=tenant,
                    instance=instance,
                    step=record.name,
                    reason=record.reason,
                    error=record.error,
                )
            )
        case _:
            pass


class CommitListener(Protocol):
    """A part of the engine that has to know what this process commits."""

    def committed(self, batch: CommandBatch) -> None:
        """Learn of a commit. It runs on the thread that committed, so it must be quick; what it raises is logged."""
        ...


class WorkerListener(Protocol):
    """The worker of this process with its loops, as the command side knows it; see docs/internals/lost-answers.md."""

    def written(self, batch: CommandBatch) -> None:
        """The committer has written a batch: run what it handed over, stop what it withdrew, mind its timers."""
        ...

    def look(self) -> None:
        """There may be work that nobody was told of."""
        ...

    def held(self) -> Sequence[EffectClaim]:
        """What the worker has in hand, calls whose failure is not dealt with included."""
        ...

    def holds(self, key: Key) -> bool:
        """Whether the worker has an effect in hand."""
        ...

    def claiming(self) -> AbstractContextManager[object]:
        """Inside it no effect is on its way from the database into the worker's hands."""
        ...


class NoWorkerListener:
    """The working side of an engine that only takes commands."""

    def written(self, batch: CommandBatch) -> None:
        """Workers of other processes find what was written."""

    def look(self) -> None:
        """Workers of other processes look by themselves."""

    def held(self) -> Sequence[EffectClaim]:
        """Nothing."""
        return ()

    def holds(self, key: Key) -> bool:  # noqa: ARG002 - the same for all
        """No."""
        return False

    def claiming(self) -> AbstractContextManager[object]:
        """Nothing is ever on its way."""
        return nullcontext()
