"""What became of instances in a commit, for whoever measures it."""

from __future__ import annotations

from standfast.engine.commit.batch import CommandBatch
from standfast.engine.common.telemetry import (
    InstanceEnded,
    InstancePaused,
    InstanceStarted,
    StepBuried,
    Telemetry,
    WorkRetried,
)
from standfast.kernel.row_kinds.steps import DeadLetterRaised, StepMoved
from standfast.kernel.rows import Record
from standfast.store.records.instances import InstanceHeader


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
