"""How published events change the state of a run."""

from __future__ import annotations

from collections.abc import Callable

from standfast.graph.index import GraphIndex
from standfast.graph.model import WaitEventsOp
from standfast.machine.model import events as e
from standfast.machine.model.state import RunState


def _received(routes: GraphIndex, state: RunState, event: e.EventReceived) -> None:
    step = state.open[event.step]
    op = routes.node(step.node).op
    assert isinstance(op, WaitEventsOp)
    state.chain = 0
    step.came = {**(step.came or {}), op.events[event.place].title: event.payload}
    if routes.reads_event:
        state.event = {"name": event.event, "payload": event.payload}
    # What has expired cannot be met again: so that nothing grows with the age of the run.
    state.taken = {name: until for name, until in state.taken.items() if until > event.at}
    if event.expires_at:
        state.taken[event.id] = event.expires_at


def _noted(_routes: GraphIndex, _state: RunState, _event: e.EventDeclined | e.EventsSought) -> None:
    """Nothing changes by it."""


ARRIVALS: dict[type[e.Event], Callable[..., None]] = {
    e.EventReceived: _received,
    e.EventDeclined: _noted,
    e.EventsSought: _noted,
}
