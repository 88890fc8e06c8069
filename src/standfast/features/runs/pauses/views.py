"""What the engine shows of a pause: where a run would go on, what can be done about it and by whom, and who asked for what."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from datetime import datetime
from typing import Literal, cast
from uuid import UUID

import msgspec

from standfast.calls.operator_views import Hold
from standfast.graph.model import Graph, HumanOp, Node, WaitEventOp, WaitEventsOp, WaitTimerOp
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import ResumeTrigger
from standfast.machine import remedies as m
from standfast.machine.model.queries.authorization import OVERRIDE, REPAIR, RESUME
from standfast.machine.model.queries.eligibility import question_of
from standfast.machine.model.state import RunState, StepState
from standfast.machine.remedies import OperationTrials
from standfast.machine.tasks.actions import ADD_APPROVER, ESCALATE, REASSIGN
from standfast.machine.tasks.reminders import can_go_higher
from standfast.store.ports import maintenance as resuming

Action = Literal[
    "resume",
    "decide",
    "override",
    "escalate",
    "release",
    "reassign",
    "add_approver",
    "signal",
    "publish",
    "transition",
    "requeue",
    "retry_compensation",
    "skip",
    "end_pause",
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
    """`resume`, `decide` a question, `release` one that a person has claimed, `override` or `escalate` it, `reassign` it or `add_approver` if nobody who is asked can decide, send a `signal`,
    `publish` an event, ask for a `transition` of the document, `requeue` a dead letter, `retry_compensation`, `skip` a compensation that gave up, or `end_pause`, which `pauses.resume`
    does, of the wider scope that `choices` names in words."""
    step_id: str = ""
    """Names the step that it is about, in calls such as `tasks.decide`; empty if it is about the run."""
    step_name: str = ""
    choices: tuple[str, ...] = ()
    """The outcomes that a decision can have, the transitions, or the names of the signal or of the events."""
    role: str = ""
    """Who may: those with this role; empty means anybody who has the capability."""
    capability: str = ""
    """What they must be allowed to do; several that are needed together are separated by commas, and empty means nothing. Those who are asked, and
    whoever started the run, escalate a question without it, unless that ends it."""


def resume_request(stored: resuming.ResumeRequestRecord) -> ResumeRequest:
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


def brought(requests: Sequence[resuming.ResumeRequestRecord]) -> dict[str, object]:
    """What the last resume brought along that brought anything: data, a decision or an event."""
    given = [each.trigger_data for each in requests if each.executed_at is not None and each.trigger_data is not None]
    return cast("dict[str, object]", msgspec.json.decode(given[-1])) if given else {}


def last_attempt(requests: Sequence[resuming.ResumeRequestRecord]) -> tuple[datetime | None, str]:
    """When it was last tried to let a run go on, and why that failed; empty if it did not."""
    tried = [each for each in requests if each.outcome != "open"]
    return (tried[-1].executed_at or tried[-1].requested_at, tried[-1].error_message) if tried else (None, "")


def resume_options(
    instance: InstanceId, trials: OperationTrials, graph: Graph, holds: Sequence[Hold], *, letters: Container[int]
) -> list[ResumeOption]:
    """What can be done to bring a run on, and by whom, pauses of wider scopes first; empty if nothing can. Each would be accepted now.

    `letters` are the steps of which the dead letter of a compensation is kept.
    """
    state = trials.state
    if state.is_terminal and not is_stuck(state):
        return []
    options = _Options(instance, trials, graph, letters)
    return [
        *(ResumeOption(action="end_pause", choices=(each.scope,), capability=RESUME) for each in holds),
        *options.about_run(),
        *options.about_steps(),
        *options.past_waits(),
    ]


def is_stuck(state: RunState) -> bool:
    """Whether a compensation of the run has given up, and the undoing stands there."""
    halted = state.rollback or state.dropped
    return halted is not None and halted.stuck is not None


class _Options:
    """The options of one run."""

    def __init__(self, instance: InstanceId, trials: OperationTrials, graph: Graph, letters: Container[int]) -> None:
        self._instance = instance
        self._letters = letters
        self._trials = trials
        self._graph = graph
        self._state = trials.state

    def about_run(self) -> Iterator[ResumeOption]:
        """What gave up, and the whole run."""
        trials = self._trials
        for step in self._state.dead.values():
            if trials.tried(m.AcceptedOperation(operation="retry", step=step.number)):
                yield self._option("requeue", step.number, step.node, capability=REPAIR)
        for each in m.about_undoing(trials):
            if each.operation == "retry_compensation" and each.step in self._letters:
                node = self._state.executed[each.step].node
                yield self._option("retry_compensation", each.step, node, capability=REPAIR)
            if each.operation == "skip":
                yield self._option("skip", each.step, self._state.executed[each.step].node, capability=REPAIR)
        if self._state.status == "paused" and trials.tried(m.AcceptedOperation(operation="resume")):
            yield ResumeOption(action="resume", capability=RESUME)
        if names := tuple(each.name for each in m.transitions(trials)):
            yield ResumeOption(action="transition", choices=names)

    def about_steps(self) -> Iterator[ResumeOption]:
        """What the steps wait for."""
        for step in self._state.open.values():
            node = self._graph.nodes[step.node]
            if step.of is not None:
                continue
            if isinstance(node.op, HumanOp):
                yield from self._about_question(step, node, node.op)
            elif isinstance(node.op, WaitEventOp) and m.about_wait(self._trials, step):
                yield self._option("signal", step.number, step.node, choices=(node.op.signal,), capability=_named(node))
            elif isinstance(node.op, WaitEventsOp) and not self._trials.is_over(step):
                events = tuple(each.event for each in node.op.events if each.title not in (step.came or {}))
                yield self._option("publish", step.number, step.node, choices=events, capability=_named(node))

    def past_waits(self) -> Iterator[ResumeOption]:
        """Rules that wait count as paused, so somebody can resume them; past a question that is to `override` it."""
        steps = self._state.open.values() if self._graph.kind == "rules" and self._state.status == "running" else ()
        for step in steps:
            waits = isinstance(self._graph.nodes[step.node].op, WaitEventsOp | WaitTimerOp)
            if waits and m.past_wait(self._trials, step):
                yield self._option("resume", step.number, step.node, capability=RESUME)

    def _about_question(self, step: StepState, node: Node, op: HumanOp) -> Iterator[ResumeOption]:
        number, role = step.number, op.role
        question = question_of(self._trials.routes, self._state, step)
        found = m.about_question(self._trials, step)
        if not question.trouble and found:
            answers = tuple(each for each in op.answers if each == op.abstains or each in {f.name for f in found})
            yield self._option("decide", number, step.node, choices=answers, role=role, capability=_named(node))
        if self._trials.claimant(step):
            yield self._option("release", number, step.node, capability=REASSIGN)
        for each in dict.fromkeys(each.operation for each in found if each.operation in {"reassign", "add_approver"}):
            capability = REASSIGN if each == "reassign" else ADD_APPROVER
            yield self._option(cast("Action", each), number, step.node, capability=capability)
        past = {each.operation for each in m.past_question(self._trials, step)}
        if "override" in past:
            needed = (RESUME, OVERRIDE, self._trials.guard_past(step))
            yield self._option("override", number, step.node, capability=", ".join(filter(None, needed)))
        higher = can_go_higher(op, step)
        if higher is not None and "escalate" in past:
            # Whoever is asked, or wanted the run, escalates it without the capability, unless that ends it.
            yield self._option("escalate", number, step.node, choices=(higher,), role=role, capability=ESCALATE)

    def _option(
        self,
        action: Action,
        number: int,
        node: str,
        *,
        choices: tuple[str, ...] = (),
        role: str = "",
        capability: str = "",
    ) -> ResumeOption:
        step = f"{self._instance}:{number}"
        return ResumeOption(
            action=action, step_id=step, step_name=node, choices=choices, role=role, capability=capability
        )


def _named(node: Node) -> str:
    """What the node needs, as an option says it."""
    return node.capability if isinstance(node.capability, str) else ", ".join(node.capability)
