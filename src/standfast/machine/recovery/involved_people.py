"""People who bring about what others decide on: they are remembered, in the run and in those that it has started, and do not decide it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from msgspec.structs import replace

from standfast.graph.model import CallOp
from standfast.kernel.decision import Message, Rejection
from standfast.kernel.ids import InstanceId
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.commands.run_commands import InvolvePeople
from standfast.machine.model.events import PeopleInvolved
from standfast.machine.model.queries.eligibility import acting_names, separation_refusal
from standfast.machine.model.state import ROOT, RunState, StepState
from standfast.machine.recovery.passed_steps import approvals_kept


def keep_refusal(turn: DecisionBuilder, state: RunState) -> Rejection | None:
    """Returns why an actor may not give a run other data behind its approvals: to keep one is to decide it again."""
    for node in approvals_kept(turn.routes, state):
        asked = StepState(number=0, node=node, token=ROOT)
        barred = separation_refusal(turn.routes, state, asked, turn.moment.actor)
        if barred is not None:
            told = f"to keep what was decided at {node!r} for other data is to decide it again: {barred.message}"
            return replace(barred, message=told)
    return None


def involve_actor(turn: DecisionBuilder, *, keeps: Sequence[str] = ()) -> None:
    """Remember whoever gives the run other data, and for whom they act; the answers of the questions that it `keeps` are theirs too."""
    names = acting_names(turn.moment.actor)
    decided = keeps if names and turn.routes.tells_deciders_apart else ()
    involve(turn, names, decided=dict.fromkeys(decided, names))


def involve(turn: DecisionBuilder, names: Iterable[str], *, decided: dict[str, list[str]] | None = None) -> None:
    """Remember people who have brought the run about, where somebody may be kept from deciding by that."""
    state = turn.state
    new = [name for name in dict.fromkeys(names) if name not in {state.requester, *state.involved}]
    new = new if turn.routes.keeps_own_out or state.parent else []
    if not new and not decided:
        return
    turn.emit(PeopleInvolved(names=new, decided=decided or {}))
    if new:
        _tell_children(turn, new)


def involve_authors(turn: DecisionBuilder, known: set[str]) -> None:
    """Have the runs that a document has called know of its new authors, and of whoever has asked for its transition since."""
    state = turn.state
    assert state.document is not None
    new = sorted(state.document.authors() - known - {state.requester, *state.involved})
    if new:
        _tell_children(turn, new)


def _tell_children(turn: DecisionBuilder, new: list[str]) -> None:
    """Tell the runs that were called, and are under way, whose matter they are too."""
    state = turn.state
    for step in (*state.open.values(), *state.dead.values(), *state.frozen.values()):
        op = turn.routes.node(step.node).op
        if step.child and step.of is None and isinstance(op, CallOp) and not op.detached:
            child = InstanceId(UUID(step.child))
            turn.send(Message(decider=op.definition, command=InvolvePeople(names=new), instance=child))
