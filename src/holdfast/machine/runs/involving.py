"""People who bring about what others decide on: they are remembered, in the run and in those that it has started, and do not decide it."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from holdfast.kernel.decision import Message
from holdfast.kernel.ids import InstanceId
from holdfast.machine.graphs.graph import Call
from holdfast.machine.runs.candidates import acting_names
from holdfast.machine.runs.commands import InvolvePeople
from holdfast.machine.runs.events import PeopleInvolved
from holdfast.machine.runs.turn import Turn


def involve_actor(turn: Turn) -> None:
    """Remember whoever gives the run other data, and for whom they act."""
    involve(turn, acting_names(turn.moment.actor))


def involve(turn: Turn, names: Iterable[str]) -> None:
    """Remember people who have brought the run about, where somebody may be kept from deciding by that."""
    state = turn.state
    new = [name for name in dict.fromkeys(names) if name not in {state.requester, *state.involved}]
    if not new or not (turn.routes.keeps_own_out or state.parent):
        return
    turn.emit(PeopleInvolved(names=new))
    for step in (*state.open.values(), *state.dead.values(), *state.frozen.values()):
        op = turn.routes.node(step.node).op
        if step.child and step.of is None and isinstance(op, Call) and not op.detached:
            child = InstanceId(UUID(step.child))
            turn.send(Message(decider=op.definition, command=InvolvePeople(names=new), instance=child))
