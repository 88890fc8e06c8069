"""What somebody did to an instance, for auditors: one entry for each command that was not the engine's own, made from the history.

Every event says who brought it about, for whom, why and by which command: nothing besides has to be kept, and no command can be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Final, cast

import msgspec

from holdfast.app import views
from holdfast.app.desk import Desk
from holdfast.errors import HoldfastError, NotFoundError
from holdfast.kernel.actor import SYSTEM
from holdfast.kernel.history import StoredEvent
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.program import Program
from holdfast.machine.machine import GraphMachine
from holdfast.machine.runs.acts import facts_of
from holdfast.machine.runs.state import State
from holdfast.store.reading import Reader
from holdfast.store.shapes import Header

Data = dict[str, object]


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One act of somebody on an instance."""

    sequence: int
    """Number of the first event that it led to."""
    at: datetime
    actor: str
    on_behalf_of: str
    """For whom the actor stood in; empty if for themselves."""
    action: str
    """What was done: `pause`, `decide confirmed`, `reassign`; the name of the event where there is no word for it."""
    step: int | None
    """The step that it was done to; None if it was done to the whole."""
    reason: str
    """Why, in the actor's words."""
    before: Data
    """What was so before, as far as it is something else since."""
    after: Data
    trace: str
    """Names the request that it was part of; empty if none was named."""


_SAID: Final[Mapping[str, Callable[[Data], str]]] = {
    "act_noted": lambda data: str(data["action"]),
    "task_decided": lambda data: f"decide {data['outcome']}",
    "step_answered": lambda data: "withdraw" if data["outcome"] == "withdrawn" else f"decide {data['outcome']}",
    "step_repaired": lambda data: str(data["repair"]),
    "step_requeued": lambda _: "requeue",
    "task_decision_withdrawn": lambda _: "withdraw decision",
    "task_claimed": lambda _: "claim",
    "task_released": lambda _: "release",
    "task_delegated": lambda _: "delegate",
    "task_reassigned": lambda _: "reassign",
    "task_approver_added": lambda _: "add approver",
    "task_commented": lambda data: "ask back" if data.get("is_question") else "comment",
    "task_escalated": lambda _: "escalate",
    "branch_cancelled": lambda _: "cancel branch",
    "data_changed": lambda _: "change data",
    "move_back_started": lambda _: "move back",
    "rollback_started": lambda _: "fail",
    "cancellation_started": lambda _: "cancel",
    "abort_started": lambda _: "abort",
    "workflow_paused": lambda _: "pause",
    "document_created": lambda data: str(data["action"]),
    "document_changed": lambda data: str(data["action"]),
    "transition_requested": lambda data: f"request {data['transition']}",
    "document_superseded": lambda _: "supersede",
    "document_redacted": lambda _: "redact",
    "workflow_switched": lambda _: "switch workflow",
    "workflow_forked": lambda _: "fork",
    "workflow_started": lambda _: "start",
    "signal_received": lambda data: f"signal {data['name']}",
    "workflow_resumed": lambda _: "resume",
}
"""The words for events by which people act, those that say most first: of several that one command led to, the first one here tells what was done."""
_RANK: Final = {name: place for place, name in enumerate(_SAID)}
_UNDOING: Final = frozenset({"compensation_started", "compensation_retry", "step_rolled_back"})
_REBUILT: Final = "$rows_rebuilt"


def audit_of(desk: Desk, reader: Reader, identity: InstanceId) -> list[AuditEntry]:
    """All that people did to an instance, in order."""
    header = next(iter(reader.headers([identity])), None)
    if header is None:
        raise NotFoundError("instance", identity)
    program = desk.registry.get(header.tenant, header.definition, header.definition_version)
    return list(_entries(program, header, reader.events(identity)))


def _entries(program: Program, header: Header, events: Sequence[StoredEvent]) -> Iterator[AuditEntry]:
    state = program.initial()
    for _, group in groupby(events, key=lambda each: (each.cause, each.actor)):
        together = list(group)
        if together[0].actor == SYSTEM.id:
            state = program.replay(state, together)
            continue
        facts = [_data(program, each) for each in together]
        first, (told, data) = together[0], _telling(together, facts)
        number = data.get("step")
        step = number if isinstance(number, int) and number > 0 else None
        before = _seen(program, state, step)
        state = program.replay(state, together)
        after = _seen(program, state, step)
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        yield AuditEntry(
            sequence=first.sequence,
            at=first.at,
            actor=first.actor,
            on_behalf_of=first.on_behalf_of,
            action=_word(told, data, header),
            step=step,
            reason=first.comment or str(data.get("reason") or data.get("comment") or data.get("text") or ""),
            before={name: before[name] for name in sorted(changed & before.keys())},
            after={name: after[name] for name in sorted(changed & after.keys())},
            trace=first.trace,
        )


def _telling(events: Sequence[StoredEvent], facts: Sequence[Data]) -> tuple[StoredEvent, Data]:
    """The event that says what was done: the one that has most to say, or the first."""
    ranked = [(_RANK.get(each.type, len(_RANK)), place) for place, each in enumerate(events)]
    place = min(ranked)[1]
    return events[place], facts[place]


def _word(event: StoredEvent, data: Data, header: Header) -> str:
    if event.type in _SAID:
        return _SAID[event.type](data)
    if event.type in _UNDOING:
        return "retry compensation"
    return "rebuild rows" if event.type == _REBUILT else event.type.removeprefix(f"{header.definition}_")


def _data(program: Program, event: StoredEvent) -> Data:
    said, _ = views.told(event, program)
    plain = msgspec.to_builtins(said)
    return plain if isinstance(plain, dict) else {"data": plain}


def _seen(program: Program, state: object, step: int | None) -> Data:
    """What an auditor sees of a state: of a workflow how it stands and its data, of another instance all of it. The content of a document is told by its versions."""
    if isinstance(program.decider, GraphMachine) and isinstance(state, State):
        if state.status == "new":
            return {}
        found = facts_of(program.decider.routes_of(state), state, step or 0)
        if state.document is not None:
            return {**found, "version": state.document.version, "document": state.document.status}
        tokens = (*state.tokens.values(), *state.parked.values())
        return found | {f"data.{each.id}.{name}": value for each in tokens for name, value in each.data.items()}
    try:
        plain = msgspec.json.decode(program.snapshot(state))
    except (HoldfastError, msgspec.MsgspecError):
        return {}  # It is written in another way than as JSON: that something was done is told all the same.
    return cast("Data", plain) if isinstance(plain, dict) else {"state": plain}
