"""The starts that schedules ask for: what the engine does after the commit that a time has led to."""

from __future__ import annotations

from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from standfast.calls.context import CallContext, checked_id, nothing
from standfast.calls.handlers.builtin import BuiltinHandlers
from standfast.engine.common.handlers import EffectContext
from standfast.errors import ForbiddenError, RejectedError, StandfastError
from standfast.expressions import Expression
from standfast.features.runs.start import ParentLink, start_run
from standfast.features.schedules.calls import check_starter
from standfast.features.schedules.model.messages import (
    SCHEDULE,
    NoteStart,
    NoteStop,
    StartScheduled,
    StopScheduled,
)
from standfast.features.schedules.model.plan import Plan
from standfast.features.schedules.plan_input import OPTIONS, READABLE, made_document_id
from standfast.kernel.actor import later
from standfast.kernel.ids import InstanceId
from standfast.machine.model.commands.run_commands import CancelWorkflow
from standfast.machine.model.rejections import Refusal
from standfast.store.ports.store import StoreParts

_FIRST = 10
"""Events at the beginning of a document among which it says that it was created."""


class Scheduling:
    """Does the errands of schedules."""

    def __init__(self, desk: CallContext, errands: BuiltinHandlers) -> None:
        self._desk = desk
        errands.add(StartScheduled, self.start)
        errands.add(StopScheduled, self.stop)

    def start(self, context: EffectContext, asked: StartScheduled) -> NoteStart:
        """Start the workflow. It may be asked for again: the schedule has named the run, so that there is one, whoever starts it."""
        place = {"tenant": context.tenant, "partition": context.partition, "trace": context.trace}
        desk = self._desk.acting(later(asked.owner, asked.terms, **place))
        plan = asked.plan
        told = f"schedule {asked.id!r}, {asked.at.isoformat()}"
        if asked.by:
            told = f"{told}, {'triggered' if asked.why == 'manual' else 'made up for'} by {' for '.join(map(repr, asked.by))}"
        try:
            if asked.asker is not None:
                self._check_asker(self._desk.acting(later(asked.asker.actor, asked.asker.terms, **place)), plan)
            data = {**plan.input, **self._computed(asked)}
            if plan.is_document:
                return self._create(desk, asked, data, told)
            start_run(
                desk,
                plan.workflow,
                data,
                version=plan.version,
                key="",
                idempotency_key="",
                delay=0,
                comment=told,
                birth=ParentLink(InstanceId(UUID(asked.run)), context.instance, SCHEDULE, asked.number, asked.by),
            ).result()
        except RejectedError as error:
            if error.reason != Refusal.ALREADY_STARTED.value:
                return NoteStart(id=asked.id, number=asked.number, error=str(error))
        except StandfastError as error:
            if error.retryable:
                raise
            return NoteStart(id=asked.id, number=asked.number, error=str(error))
        return NoteStart(id=asked.id, number=asked.number)

    def _check_asker(self, desk: CallContext, plan: Plan) -> None:
        """ForbiddenError unless whoever had a time started, or has a period made up for, may still do so."""
        found: list[CallContext] = []
        desk.operate(_nothing, check=found.append)
        check_starter(found[0], plan)

    def stop(self, context: EffectContext, asked: StopScheduled) -> NoteStop:
        """Have a run end, on behalf of whoever wants another one in its place, if they may cancel it now."""
        place = {"tenant": context.tenant, "partition": context.partition, "trace": context.trace}
        desk = self._desk.acting(later(asked.stopper, asked.terms, **place))
        command = CancelWorkflow(reason=asked.reason, by_parent=True)
        told = NoteStop(id=asked.id, number=asked.number, waiting=asked.waiting)
        address = desk.address(instance=InstanceId(UUID(asked.run)))
        try:
            desk.command(address, command, nothing, comment=asked.reason, may_create=False).result()
        except ForbiddenError as error:
            return msgspec.structs.replace(told, error=str(error))
        except StandfastError as error:
            if error.retryable:
                raise
        return told

    def _create(self, desk: CallContext, asked: StartScheduled, data: dict[str, object], told: str) -> NoteStart:
        """Create the document of a time; one that is there already is that of this very time if it says so."""
        from standfast.features.documents.calls import FutureDocuments  # Loaded by the first schedule of a document.

        type_, origin = asked.plan.workflow, f"schedule/{asked.id}#{asked.number}"
        key = self._document_id(asked)
        try:
            made = (
                FutureDocuments(desk, origin=origin, involved=asked.by)
                .create(type_, data, id=key, reason=told)
                .result()
            )
        except RejectedError as error:
            if error.reason != Refusal.ALREADY_STARTED.value:
                raise
            row = desk.reader.document(type_, key)
            if row is None:
                return NoteStart(id=asked.id, number=asked.number, error=str(error))
            run, is_own = row.instance, _origin_of(desk, row.instance) == origin
        else:
            run, is_own = made.instance, True
        return NoteStart(id=asked.id, number=asked.number, run=str(run), document=key, was_there=not is_own)

    def _document_id(self, asked: StartScheduled) -> str:
        stored = asked.plan.document_id
        if not stored:
            return made_document_id(asked.id, asked.at)
        made = Expression.from_data(stored, options=OPTIONS).evaluate(self._known(asked))
        return checked_id(made, "document id that the schedule computes")

    def _computed(self, asked: StartScheduled) -> dict[str, object]:
        """What the expressions of a schedule come to at a time."""
        known = self._known(asked)
        return {
            name: Expression.from_data(stored, options=OPTIONS).evaluate(known)
            for name, stored in asked.plan.computed.items()
        }

    def _known(self, asked: StartScheduled) -> dict[str, object]:
        now = self._desk.service.shared.clock.now()
        day = asked.at.astimezone(ZoneInfo(asked.plan.time_zone)).date()
        values = (asked.at.isoformat(), day.isoformat(), now.isoformat(), asked.id, asked.number)
        return dict(zip(READABLE, values, strict=True))


def _nothing(_parts: StoreParts) -> None:
    """Nothing is written: whoever asked is looked at."""


def _origin_of(desk: CallContext, instance: InstanceId) -> str:
    """What has created a document, as its history tells it."""
    for event in desk.reader.events(instance, limit=_FIRST):
        if event.type == "document_created":
            return str(msgspec.json.decode(event.data, type=dict[str, object]).get("origin", ""))
    return ""
