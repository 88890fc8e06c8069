"""What became of instances in a commit, for whoever measures it."""

from __future__ import annotations

from holdfast.runtime.commit.batch import Batch
from holdfast.runtime.telemetry import InstanceEnded, InstancePaused, InstanceStarted, Telemetry


def tell_lives(telemetry: Telemetry, batch: Batch) -> None:
    """Which instances began, which ended, and which stand still."""
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
