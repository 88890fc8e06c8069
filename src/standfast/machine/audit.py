"""What people do to a run, for auditors: what it is called, and what is so before and after it.

The history of a run tells that by itself: each event says who brought it about. The audit of a document is made from what events say, so
an act that leaves no other line there is noted by an event of its own.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from standfast.graph.index import GraphIndex
from standfast.graph.model import HumanOp
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.commands import repair_commands as r
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.events import ActNoted
from standfast.machine.model.json_values import fingerprint
from standfast.machine.model.queries.eligibility import question_of
from standfast.machine.model.state import Data, RunState
from standfast.machine.model.task_state import shown
from standfast.machine.status import status_of

NOTED: Final[dict[type[object], str]] = {
    c.PauseWorkflow: "pause",
    c.ResumeWorkflow: "resume",
    c.RequeueStep: "requeue",
    c.RetryCompensation: "retry compensation",
    c.SendSignal: "signal",
    c.ClaimTask: "claim",
    c.ReleaseTask: "release",
    c.DelegateTask: "delegate",
    c.ReassignTask: "reassign",
    c.AddApprover: "add approver",
    c.CommentTask: "comment",
    c.PutHigher: "escalate",
    r.RetryStep: "retry",
    r.ReenqueueStep: "reenqueue",
    r.SkipStep: "skip",
    r.CompleteByHand: "complete",
    r.ChangeData: "change data",
    r.MoveBack: "move back",
    r.ForceFailure: "fail",
}
"""What is noted of a document, by the command. The others leave a line of their own: decisions, changes, transitions, and what ends a branch or takes a question back."""


def is_noted(turn: DecisionBuilder, command: c.Command) -> bool:
    """Tell whether a command acts on a document and leaves no other line in its audit.

    The engine's own commands are not noted. A call that names no actor is, if it gives a reason.
    """
    moment = turn.moment
    is_given = moment.actor.kind != "system" or bool(moment.comment)
    return is_given and turn.state.document is not None and type(command) in NOTED


class Facing(NamedTuple):
    """What an act is about, as it was before."""

    node: str
    facts: Data


def note(turn: DecisionBuilder, command: c.Command, faced: Facing) -> None:
    """Note what somebody did, and what is different since."""
    before = faced.facts
    actor, after = turn.moment.actor, facts_of(turn.routes, turn.state, step_of(command), _names(command))
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    turn.emit(
        ActNoted(
            action="ask back" if isinstance(command, c.CommentTask) and command.is_question else NOTED[type(command)],
            actor=actor.id,
            on_behalf_of=actor.on_behalf_of,
            reason=str(getattr(command, "reason", "")) or turn.moment.comment,
            step=step_of(command),
            at_node=faced.node,
            before={name: before[name] for name in sorted(changed & before.keys())},
            after={name: after[name] for name in sorted(changed & after.keys())},
        )
    )


def faced_by(turn: DecisionBuilder, command: c.Command) -> Facing:
    """What a command is about, and what is so of it."""
    state, number = turn.state, step_of(command)
    step = state.open.get(number) or state.dead.get(number) or state.frozen.get(number)
    return Facing("" if step is None else step.node, facts_of(turn.routes, state, number, _names(command)))


def step_of(command: object) -> int:
    """The step that a command is about; 0 if it is about the whole."""
    number = getattr(command, "step", 0)
    return number if isinstance(number, int) else 0


def _names(command: object) -> list[str]:
    return sorted(command.patch) if isinstance(command, r.ChangeData) else []


def facts_of(routes: GraphIndex, state: RunState, number: int = 0, names: list[str] | None = None) -> Data:
    """What an auditor would ask of a run: how it stands, and, of a step, whether it is open, who is asked, and who has taken it."""
    status = status_of(routes, state)
    found: Data = {
        "status": f"{status.word}: {status.reason}" if status.reason else status.word,
        "under way": sorted(f"{each.node} ({each.token})" for each in state.open.values()),
    }
    for name in names or ():
        for token in (*state.tokens.values(), *state.parked.values()):
            found[f"data.{token.id}.{name}"] = fingerprint({name: token.data.get(name)})  # It may be for few eyes.
    if not number:
        return found
    step = state.open.get(number) or state.dead.get(number) or state.frozen.get(number)
    found["step"] = "ended" if step is None else "open" if number in state.open else "given up"
    if step is not None and step.effect is not None:
        found["call"] = step.effect
    if step is None or step.of is not None or not isinstance(routes.node(step.node).op, HumanOp):
        return found
    question = question_of(routes, state, step)
    found["asked"] = [shown(seat.person) for _, seat in question.asked if seat.is_free]
    found["claimed_by"] = question.claimed_by
    found["comments"] = question.comments
    found["level"] = step.level
    return found
