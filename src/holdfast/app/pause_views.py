"""What the engine shows of a pause: where a run would go on, what can be done about it and by whom, and who asked for what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Literal, cast
from uuid import UUID

import msgspec

from holdfast.app.operator_views import Hold
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.records import ResumeTrigger
from holdfast.machine.graphs.graph import Graph, Human, WaitEvent, WaitEvents, WaitTimer
from holdfast.machine.runs.law import OVERRIDE, REPAIR, RESUME
from holdfast.machine.runs.state import State
from holdfast.machine.runs.task_times import can_go_higher, ends_next
from holdfast.machine.runs.tasks import ESCALATE
from holdfast.store import resuming

Action = Literal[
    "resume", "decide", "override", "escalate", "signal", "publish", "requeue", "retry_compensation", "end_pause"
]


class ResumeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody or something wanted a run to go on."""

    id: UUID
    instance: InstanceId
    triggered_by: ResumeTrigger
    triggered_by_id: str
    """The id of an approval, of an event or of a call; of a person who gave none, who that is."""
    trigger_data: object
    """What it brought along; None if that was nothing."""
    reason: str
    requested_by: str
    requested_at: datetime
    executed_at: datetime | None
    """When the run went on; None if it has not, or did not."""
    error_message: str
    """Why it was refused; empty if it was not."""


class ResumeOption(msgspec.Struct, frozen=True, kw_only=True):
    """Something that would bring a run on."""

    action: Action
    """`resume`, `decide` a question, `override` or `escalate` it, send a `signal`, `publish` an event, `requeue` a dead letter, `retry_compensation`,
    or `end_pause`, which `pauses.resume` does, of the wider scope that `choices` names in words."""
    step_id: str = ""
    """Names the step that it is about, in calls such as `tasks.decide`; empty if it is about the run."""
    step_name: str = ""
    choices: tuple[str, ...] = ()
    """The outcomes that a decision can have, or the names of the signal or of the events."""
    role: str = ""
    """Who may: those with this role; empty means anybody who has the capability."""
    capability: str = ""
    """What they need; empty means nothing."""


def resume_request(stored: resuming.ResumeRequest) -> ResumeRequest:
    """A stored request."""
    return ResumeRequest(
        id=stored.id,
        instance=stored.instance,
        triggered_by=stored.triggered_by,
        triggered_by_id=stored.triggered_by_id,
        trigger_data=None if stored.trigger_data is None else msgspec.json.decode(stored.trigger_data),
        reason=stored.reason,
        requested_by=stored.requested_by,
        requested_at=stored.requested_at,
        executed_at=stored.executed_at,
        error_message=stored.error_message,
    )


def brought(requests: Sequence[resuming.ResumeRequest]) -> dict[str, object]:
    """What the last resume brought along that brought anything: data, a decision or an event."""
    given = [each.trigger_data for each in requests if each.executed_at is not None and each.trigger_data is not None]
    return cast("dict[str, object]", msgspec.json.decode(given[-1])) if given else {}


def last_attempt(requests: Sequence[resuming.ResumeRequest]) -> tuple[datetime | None, str]:
    """When it was last tried to let a run go on, and why that failed; empty if it did not."""
    tried = [each for each in requests if each.outcome != "open"]
    return (tried[-1].executed_at or tried[-1].requested_at, tried[-1].error_message) if tried else (None, "")


def resume_options(instance: InstanceId, state: State, graph: Graph, holds: Sequence[Hold]) -> list[ResumeOption]:
    """What can be done to bring a run on, and by whom, pauses of wider scopes first; empty if nothing can."""
    if state.is_terminal and not _stuck(state):
        return []
    return [
        *(ResumeOption(action="end_pause", choices=(each.scope,), capability=RESUME) for each in holds),
        *_about_run(instance, state),
        *_about_steps(instance, state, graph),
        *_past_waits(instance, state, graph),
    ]


def _about_run(instance: InstanceId, state: State) -> Iterator[ResumeOption]:
    for step in state.dead.values():
        yield ResumeOption(
            action="requeue", step_id=f"{instance}:{step.number}", step_name=step.node, capability=REPAIR
        )
    stuck = _stuck(state)
    if stuck:
        yield ResumeOption(
            action="retry_compensation",
            step_id=f"{instance}:{stuck}",
            step_name=state.executed[stuck].node,
            capability=REPAIR,
        )
    if state.status == "paused" and (state.pause is not None or not state.dead):
        yield ResumeOption(action="resume", capability=RESUME)


def _past_waits(instance: InstanceId, state: State, graph: Graph) -> Iterator[ResumeOption]:
    """Rules that wait count as paused, so somebody can resume them; past a question that is to `override` it."""
    steps = state.open.values() if graph.kind == "rules" and state.status == "running" else ()
    for step in steps:
        if isinstance(graph.nodes[step.node].op, WaitEvents | WaitTimer):
            yield ResumeOption(
                action="resume", step_id=f"{instance}:{step.number}", step_name=step.node, capability=RESUME
            )


def _stuck(state: State) -> int:
    halted = state.rollback or state.dropped
    return 0 if halted is None else halted.stuck or 0


def _about_steps(instance: InstanceId, state: State, graph: Graph) -> Iterator[ResumeOption]:
    for step in state.open.values():
        node, name = graph.nodes[step.node], f"{instance}:{step.number}"
        if step.of is not None:
            continue
        if isinstance(node.op, Human):
            yield ResumeOption(
                action="decide",
                step_id=name,
                step_name=step.node,
                choices=node.op.answers,
                role=node.op.role,
                capability=node.capability,
            )
            yield ResumeOption(action="override", step_id=name, step_name=step.node, capability=OVERRIDE)
            if (higher := can_go_higher(node.op, step)) is not None:
                yield ResumeOption(
                    action="escalate",
                    step_id=name,
                    step_name=step.node,
                    choices=(higher,),
                    role=node.op.role,
                    capability=ESCALATE if ends_next(node.op, step) else "",
                )
        elif isinstance(node.op, WaitEvent):
            yield ResumeOption(
                action="signal",
                step_id=name,
                step_name=step.node,
                choices=(node.op.signal,),
                capability=node.capability,
            )
        elif isinstance(node.op, WaitEvents):
            yield ResumeOption(
                action="publish",
                step_id=name,
                step_name=step.node,
                choices=tuple(each.event for each in node.op.events),
                capability=node.capability,
            )
