"""The audit of an instance: one entry for each command that a caller gave, made from the history.

Each event names its actor, principal, reason and command. So nothing else has to be stored, and no command can be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby, islice
from typing import Final, cast

import msgspec

from standfast.calls.context import CallContext, checked_span
from standfast.engine.commit.submission import is_call
from standfast.errors import NotFoundError, StandfastError
from standfast.features.deciders import views
from standfast.kernel.actor import SYSTEM
from standfast.kernel.decider import BATCH_KIND, SCHEDULE_KIND, Decider
from standfast.kernel.history import ROWS_REBUILT, StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.kernel.row_kinds.events import EVENT_KIND
from standfast.machine.audit import facts_of
from standfast.machine.machine import GraphMachine
from standfast.machine.model.document_state import DRIFT
from standfast.machine.model.state import RunState
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import InstanceHeader

Data = dict[str, object]


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One act on an instance, by a person or by a program that called the engine."""

    sequence: int
    """Number of the first event that it led to."""
    at: datetime
    actor: str
    """Who did it; `system` for a call that named no actor."""
    on_behalf_of: str
    """Whom the actor stood in for; empty if the actor acted for themselves."""
    action: str
    """What was done, such as `pause`, `decide confirmed` or `reassign`; the name of the event where there is no word for it."""
    step: int | None
    """Number of the step that it was done to; None if it was done to the whole instance."""
    reason: str
    """Why, in the actor's words."""
    before: Data
    """The values before the act that are different since."""
    after: Data
    """The same values after it."""
    trace: str
    """Trace of the request; empty if it had none."""


_Words = Mapping[str, Callable[[Data], str]]
"""What events are called as acts; empty for one that follows from another act."""


def _resumed(data: Data) -> str:
    """A resume that somebody asked for; a run also goes on because a step of it is tried again, or was answered."""
    return "resume" if data.get("request") else ""


def _fired(data: Data) -> str:
    fire = data.get("fire")
    return "trigger" if isinstance(fire, dict) and fire.get("why") == "manual" else ""


def _created(data: Data) -> str:
    if data.get("is_adopted"):
        return "adopt"
    return "amend" if data.get("amended_from") else str(data.get("action", ""))


_OF_RUNS: Final[_Words] = {
    "workflow_started": lambda _: "start",
    "workflow_forked": lambda _: "fork",
    "signal_received": lambda data: f"signal {data.get('name')}",
    "workflow_paused": lambda data: "pause" if data.get("reason") == "requested" else _resumed(data),
    "workflow_resumed": _resumed,
    "cancellation_started": lambda _: "cancel",
    "abort_started": lambda _: "abort",
    "rollback_started": lambda data: "fail" if data.get("requested_by") else "",
    "step_repaired": lambda data: str(data.get("repair", "")),
    "step_requeued": lambda data: str(data.get("verb", "requeue")),
    "compensation_waived": lambda _: "skip",
    "branch_cancelled": lambda _: "cancel branch",
    "data_changed": lambda _: "change data",
    "move_back_started": lambda _: "move back",
    **dict.fromkeys(("compensation_started", "compensation_retry", "step_rolled_back"), lambda _: "retry compensation"),
    "task_decided": lambda data: f"decide {data.get('outcome')}",
    "step_answered": lambda data: "withdraw" if data.get("outcome") == "withdrawn" else f"decide {data.get('outcome')}",
    "task_decision_withdrawn": lambda _: "withdraw decision",
    "approvals_voided": lambda data: "withdraw decision" if data.get("why") == "withdrawn" else "",
    "task_claimed": lambda _: "claim",
    "task_released": lambda _: "release",
    "task_delegated": lambda _: "delegate",
    "task_reassigned": lambda _: "reassign",
    "task_approver_added": lambda _: "add approver",
    "task_commented": lambda data: "ask back" if data.get("is_question") else "comment",
    "task_escalated": lambda _: "escalate",
    "document_changed": lambda data: "" if data.get("step") else str(data.get("action", "")),
    "transition_requested": lambda data: f"request {data.get('transition')}",
    "document_superseded": lambda _: "supersede",
    "document_redacted": lambda _: "redact",
    "workflow_switched": lambda _: "switch workflow",
}
"""The words for events by which people act. Empty where the same event follows from something else: what a command leads to is not what it is called."""
_NAMING: Final[_Words] = {
    "document_created": _created,
    "act_noted": lambda data: str(data.get("action", "")),
    "step_answered": lambda data: "override" if data.get("overridden") else "",
}
"""Events that name the command wherever they stand among those that it led to."""
_OF_SCHEDULES: Final[_Words] = {
    "schedule_put": lambda _: "put",
    "schedule_paused": lambda _: "pause",
    "schedule_resumed": lambda _: "resume",
    "schedule_deleted": lambda _: "delete",
    "fire_told": _fired,
    "backfill_moved": lambda data: "stop backfills" if data.get("is_stopped") else "backfill",
}
_OF_BATCHES: Final[_Words] = {
    "batch_begun": lambda _: "begin",
    "batch_cancelled": lambda _: "cancel",
}
_WORDS: Final[Mapping[str, tuple[_Words, ...]]] = {
    Decider.kind: (),
    SCHEDULE_KIND: (_OF_SCHEDULES,),
    BATCH_KIND: (_OF_BATCHES,),
    EVENT_KIND: ({"event_published": lambda _: "publish"},),
}
"""By the kind of the instance; all others are runs. What an application's own decider does is called by the names of its events."""
_VALUES: Final[Mapping[str, Callable[[Data], tuple[Data, Data]]]] = {
    "document_redacted": lambda data: ({}, {"redacted": data.get("fields")}),
    "act_noted": lambda data: ({}, _elsewhere(data)),
    "workflow_switched": lambda data: ({"workflow": data.get("before")}, {"workflow": data.get("version")}),
}
"""Events that name values before and after themselves, besides what the state shows."""


def _elsewhere(data: Data) -> Data:
    """What another system has changed, if the act tells of that; of the others the state shows it."""
    after = data.get("after")
    return after if data.get("action") == DRIFT and isinstance(after, dict) else {}


_STRETCH: Final = 1000
"""Events are read so many at a time."""


def last_act(given: AuditEntry | int) -> int:
    """The sequence after which a page of acts begins."""
    return checked_span(given.sequence if isinstance(given, AuditEntry) else given, None)[0]


def audit_of(
    desk: CallContext, reader: TenantReader, identity: InstanceId, *, after: int, limit: int
) -> list[AuditEntry]:
    """Return a page of what callers did to an instance, in order: the acts whose first event comes after a sequence."""
    header = next(iter(reader.headers([identity])), None)
    if header is None:
        raise NotFoundError("instance", identity)
    try:
        fold: _Blind = _States(desk.registry.get(header.tenant, header.definition, header.definition_version))
    except StandfastError:
        fold = _Blind(desk.registry.library.speaker)
    found = (each for each in _entries(fold, header, _events(reader, identity)) if each.sequence > after)
    return list(islice(found, limit))


def _events(reader: TenantReader, identity: InstanceId) -> Iterator[StoredEvent]:
    last = 0
    while page := reader.events(identity, after=last, limit=_STRETCH):
        yield from page
        last = page[-1].sequence


class _Blind:
    """An instance whose workflow this code does not know: its events are shown, and nothing of its state."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def seen(self, step: int | None) -> Data:
        """What an auditor sees of the state."""
        del step
        return {}

    def fold(self, events: Sequence[StoredEvent]) -> None:
        """Go on to the state behind some events."""


class _States(_Blind):
    """The states of an instance, one after the other."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self._state = program.initial()
        self._is_readable = True

    def seen(self, step: int | None) -> Data:
        return _seen(self.program, self._state, step) if self._is_readable else {}

    def fold(self, events: Sequence[StoredEvent]) -> None:
        if self._is_readable:
            try:
                self._state = self.program.replay(self._state, events)
            except StandfastError:  # Written by newer code: who did what is still there.
                self._is_readable = False


def _entries(fold: _Blind, header: InstanceHeader, events: Iterable[StoredEvent]) -> Iterator[AuditEntry]:
    for (cause, actor), group in groupby(events, key=lambda each: (each.cause, each.actor)):
        together = list(group)
        if actor == SYSTEM.id and not is_call(cause):
            fold.fold(together)
            continue
        facts = [_data(fold.program, each) for each in together]
        first, (place, word) = together[0], _telling(together, facts, header)
        told, data = together[place], facts[place]
        number = data.get("step")
        step = number if isinstance(number, int) and number > 0 else None
        old, new = _VALUES[told.type](data) if told.type in _VALUES else ({}, {})
        before = fold.seen(step) | old
        fold.fold(together)
        after = fold.seen(step) | new
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        yield AuditEntry(
            sequence=first.sequence,
            at=first.at,
            actor=first.actor,
            on_behalf_of=first.on_behalf_of or str(data.get("on_behalf_of") or ""),
            action=word,
            step=step,
            reason=_reason(first, data),
            before={name: before[name] for name in sorted(changed & before.keys())},
            after={name: after[name] for name in sorted(changed & after.keys())},
            trace=first.trace,
        )


def word_of(events: Sequence[tuple[str, Data]], kind: str = "") -> tuple[int, str] | None:
    """The place of the event that is the command itself, and what that is called: the first that only a command brings about. None if there is none."""
    for table in _WORDS.get(kind, (_NAMING, _OF_RUNS)):
        for place, (name, data) in enumerate(events):
            if name in table and (word := table[name](data)):
                return place, word
    return None


def _reason(event: StoredEvent, data: Data) -> str:
    """Why it was done: of a batch in the words of its order, which come before those of the request."""
    order = data.get("order")
    said = order.get("reason") if isinstance(order, dict) else None
    return str(said or event.comment or data.get("reason") or data.get("comment") or data.get("text") or "")


def _telling(events: Sequence[StoredEvent], facts: Sequence[Data], header: InstanceHeader) -> tuple[int, str]:
    """The event that says what was done, and the word for it; the name of the first event if there is no word."""
    named = [(each.type, data) for each, data in zip(events, facts, strict=True)]
    place = next((place for place, each in enumerate(events) if not each.is_system), 0)
    name = events[place].type.removeprefix(f"{header.definition}_")
    return word_of(named, header.kind) or (place, "rebuild rows" if name == ROWS_REBUILT else name)


def _data(program: Program, event: StoredEvent) -> Data:
    said, _ = views.told(event, program)
    if isinstance(said, msgspec.Struct):  # Fields that have their default are not written.
        return {name: msgspec.to_builtins(getattr(said, name)) for name in said.__struct_fields__}
    plain = msgspec.to_builtins(said)
    return plain if isinstance(plain, dict) else {"data": plain}


def _seen(program: Program, state: object, step: int | None) -> Data:
    """What an auditor sees of a state: of a workflow how it stands and its data, of another instance all of it. The content of a document is told by its versions."""
    if isinstance(program.decider, GraphMachine) and isinstance(state, RunState):
        if state.status == "new":
            return {}
        found = facts_of(program.decider.routes_of(state), state, step or 0)
        if state.document is not None:
            return {**found, "version": state.document.version, "document": state.document.status}
        tokens = (*state.tokens.values(), *state.parked.values())
        return found | {f"data.{each.id}.{name}": value for each in tokens for name, value in each.data.items()}
    try:
        plain = msgspec.json.decode(program.snapshot(state))
    except (StandfastError, msgspec.MsgspecError):
        return {}  # It is written in another way than as JSON: that something was done is told all the same.
    return cast("Data", plain) if isinstance(plain, dict) else {"state": plain}
