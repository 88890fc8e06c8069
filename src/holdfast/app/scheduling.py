"""The starts that schedules ask for: what the engine does after the commit that a time has led to."""

from __future__ import annotations

from uuid import UUID
from zoneinfo import ZoneInfo

from holdfast.app.calls.start import Birth, started
from holdfast.app.desk import Desk
from holdfast.app.errands import Errands
from holdfast.app.schedule_plans import OPTIONS, READABLE
from holdfast.errors import HoldfastError, RejectedError
from holdfast.expressions import Expression
from holdfast.kernel.actor import SYSTEM, RequestContext
from holdfast.kernel.ids import InstanceId
from holdfast.machine.runs.refusals import Refusal
from holdfast.machine.schedules.words import SCHEDULE, NoteStart, StartScheduled
from holdfast.runtime.handlers import EffectContext


class Scheduling:
    """Does the errands of schedules."""

    def __init__(self, desk: Desk, errands: Errands) -> None:
        self._desk = desk
        errands.add(StartScheduled, self.start)

    def start(self, context: EffectContext, asked: StartScheduled) -> NoteStart:
        """Start the workflow. It may be asked for again: the schedule has named the run, so that there is one, whoever starts it."""
        desk = self._desk.acting(
            RequestContext(
                tenant=context.tenant, partition=context.partition, actor=asked.owner or SYSTEM, trace=context.trace
            )
        )
        plan = asked.plan
        try:
            started(
                desk,
                plan.workflow,
                {**plan.input, **self._computed(asked)},
                version=plan.version,
                key="",
                idempotency_key="",
                delay=0,
                comment=f"schedule {asked.id!r}, {asked.at.isoformat()}",
                birth=Birth(InstanceId(UUID(asked.run)), context.instance, SCHEDULE, asked.number),
            ).result()
        except RejectedError as error:
            if error.reason != Refusal.ALREADY_STARTED.value:
                return NoteStart(id=asked.id, number=asked.number, error=str(error))
        except HoldfastError as error:
            if error.retryable:
                raise
            return NoteStart(id=asked.id, number=asked.number, error=str(error))
        return NoteStart(id=asked.id, number=asked.number)

    def _computed(self, asked: StartScheduled) -> dict[str, object]:
        """What the expressions of a schedule come to at a time."""
        now = self._desk.service.shared.clock.now()
        day = asked.at.astimezone(ZoneInfo(asked.plan.time_zone)).date()
        values = (asked.at.isoformat(), day.isoformat(), now.isoformat(), asked.id, asked.number)
        known = dict(zip(READABLE, values, strict=True))
        return {
            name: Expression.from_data(stored, options=OPTIONS).evaluate(known)
            for name, stored in asked.plan.computed.items()
        }
