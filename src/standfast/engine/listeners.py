"""Listeners of commits: the worker of the process, and telemetry about instances."""

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
    """Publish which instances started, ended or paused, and which of their steps failed."""
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
    """The worker of this process with its loops, as the dispatcher sees it. See docs/internals/lost-answers.md."""

    def written(self, batch: CommandBatch) -> None:
        """A batch was committed: run the effects that it handed over, stop withdrawn ones and schedule its timers."""
        ...

    def look(self) -> None:
        """There may be work."""
        ...

    def held(self) -> Sequence[EffectClaim]:
        """Returns the claims that the worker owns, including failed calls that are not handled yet."""
        ...

    def holds(self, key: Key) -> bool:
        """Returns whether the worker owns an effect."""
        ...

    def claiming(self) -> AbstractContextManager[object]:
        """Context in which no effect passes from the database to the worker."""
        ...


class NoWorkerListener:
    """The listener of an engine without a worker."""

    def written(self, batch: CommandBatch) -> None:
        """Does nothing: workers of other processes find the work."""

    def look(self) -> None:
        """Does nothing: workers of other processes poll."""

    def held(self) -> Sequence[EffectClaim]:
        """Returns nothing."""
        return ()

    def holds(self, key: Key) -> bool:  # noqa: ARG002 - the same for all
        """Returns False."""
        return False

    def claiming(self) -> AbstractContextManager[object]:
        """Does nothing: no effect is ever in transit."""
        return nullcontext()
