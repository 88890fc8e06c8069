"""How events about notices and about questions that nobody answers change the state."""

from __future__ import annotations

from collections.abc import Callable

from standfast.graph.index import GraphIndex
from standfast.machine.model import events as e
from standfast.machine.model.folds.pause_fold import put_off
from standfast.machine.model.state import RunState


def _reminded(_routes: GraphIndex, state: RunState, event: e.TaskReminded) -> None:
    step = state.open[event.step]
    step.reminded = event.count
    put_off(step, event.shift_ms)


def _sent(_routes: GraphIndex, state: RunState, event: e.NotificationsSent) -> None:
    state.open[event.step].notices = list(event.keys)


def _delivered(_routes: GraphIndex, state: RunState, event: e.NotificationDelivered) -> None:
    state.open[event.step].notices.remove(event.key)


def _failed(_routes: GraphIndex, _state: RunState, _event: e.NotificationFailed) -> None:
    """If the step waited for it, that the step has failed is told by an event of its own."""


FOLDS: dict[type[e.Event], Callable[..., None]] = {
    e.TaskReminded: _reminded,
    e.NotificationsSent: _sent,
    e.NotificationDelivered: _delivered,
    e.NotificationFailed: _failed,
}
