"""The row of a process, made from events alone; and its state as callers see it, which the row holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from standfast.graph.index import GraphIndex
from standfast.graph.model import Graph
from standfast.kernel.row_kinds.processes import ProcessChanged, ProcessOpened
from standfast.kernel.rows import Record
from standfast.machine.model import events as e
from standfast.machine.model.json_values import patched
from standfast.machine.model.queries.outputs import ANSWERS, LAST_ERROR, merged
from standfast.machine.model.queries.tokens import OWN, place_of
from standfast.machine.model.state import ROOT, Data, RunState
from standfast.machine.model.task_state import Question, by_approver

CHAIN_LIMIT: Final = "WORKFLOW_CHAIN_LIMIT"
_CHAIN_ERROR: Final[Data] = {"code": CHAIN_LIMIT, "message": "Too many consecutive system steps"}
_STEP: Final = "step"
"""In the metadata of a node that is no step of its own: the step that it belongs to."""

_encode = msgspec.json.Encoder().encode


def step_named(graph: Graph, node: str) -> str:
    """The step of the definition that a node is, or is a part of; empty for none."""
    own = graph.nodes[node].metadata.get(_STEP) if node else ""
    return own if isinstance(own, str) else node


def current_step(graph: Graph, state: RunState) -> str:
    """The step that a process is at, or would enter if it were not suspended."""
    token = state.token(ROOT)
    held_at = "" if token is None or token.stay is None else token.stay.target
    return held_at or step_named(graph, place_of(state))


def gathered(state: RunState) -> Data | None:
    """What has gathered on the way; None if it ended without leaving anything."""
    token = state.token(ROOT)
    if token is not None:
        return token.data
    return state.result if isinstance(state.result, dict) else None


def shown(state: RunState, data: Data) -> Data:
    """The data as callers see it: with what approvers of the open step have given, and with the failure that the process stands at."""
    return _seen(state, data).shown()


class _Seen(NamedTuple):
    """What the state is made of that callers see."""

    data: Data
    error: Data | None
    node: str
    """The step that is open to several approvers, if one is."""
    answers: Data
    """What they have given."""

    def shown(self) -> Data:
        data = self.data
        if self.answers:
            kept = data.get(ANSWERS)
            data = {**data, ANSWERS: {**(kept if isinstance(kept, dict) else {}), self.node: self.answers}}
        if self.error is not None:
            return {**data, LAST_ERROR: self.error}
        is_mended = LAST_ERROR in data and data[LAST_ERROR] is None
        return {name: value for name, value in data.items() if name != LAST_ERROR} if is_mended else data


def _seen(state: RunState, data: Data) -> _Seen:
    node, question = _asked(state)
    return _Seen(data, _error(state), node, {} if question is None else question.answers)


def _asked(state: RunState) -> tuple[str, Question | None]:
    for number, question in state.questions.items():
        step = state.open.get(number)
        if step is not None:
            return step.node, question
    return "", None


def _error(state: RunState) -> Data | None:
    """The failure that a process stands at."""
    if state.status == "paused" and state.reason == "chain_limit":
        return _CHAIN_ERROR
    step = next(iter(state.dead.values()), None)
    return None if step is None else {"step": step.node, "message": step.error}


# -- the row


class View(NamedTuple):
    """What rows are made of: the graph, and the state before the event."""

    routes: GraphIndex
    state: RunState

    @property
    def seen(self) -> _Seen:
        """What callers see before the event."""
        return _seen(self.state, gathered(self.state) or {})


def records_of(routes: GraphIndex, state: RunState, event: e.Event) -> Sequence[Record]:
    """What changes in the row with an event; the state is still the one before it."""
    make = _TABLE.get(type(event))
    has_row = state.has_row or isinstance(event, e.WorkflowStarted | e.WorkflowForked)
    return make(View(routes, state), event) if make is not None and has_row else ()


def _with_state(seen: _Seen) -> list[Record]:
    return [ProcessChanged(state=_encode(seen.shown()))]


def _started(_view: View, event: e.WorkflowStarted) -> list[Record]:
    return [ProcessOpened(state=_encode(event.input))] if event.has_row else []


def _forked(view: View, event: e.WorkflowForked) -> list[Record]:
    state = _encode(shown(event.state, gathered(event.state) or {}))
    return (
        []
        if not event.state.has_row
        else [ProcessOpened(current_step=current_step(view.routes.graph, event.state), state=state)]
    )


def _entered(view: View, event: e.StepStarted | e.StepSkipped) -> list[Record]:
    if not event.node or event.node.startswith(OWN):
        return []
    return [ProcessChanged(current_step=step_named(view.routes.graph, event.node))]


def _completed(view: View, event: e.StepCompleted) -> list[Record]:
    open_ = view.state.open.get(event.step)
    node = event.node if open_ is None else open_.node
    changed = None
    if event.output is not None:
        seen = view.seen
        data = merged(view.routes, seen.data, node, event.output)
        changed = _encode(seen._replace(data=data, answers={}).shown())
    place = None if not event.node or event.node.startswith(OWN) else step_named(view.routes.graph, event.node)
    return [] if changed is None and place is None else [ProcessChanged(current_step=place, state=changed)]


def _held(_view: View, event: e.TokenHeld) -> list[Record]:
    return [ProcessChanged(current_step=event.target)] if event.target else []


def _assigned(view: View, event: e.DataAssigned) -> list[Record]:
    seen = view.seen
    return _with_state(seen._replace(data={**seen.data, **event.data}))


def _data_changed(view: View, event: e.DataChanged) -> list[Record]:
    seen = view.seen
    return _with_state(seen._replace(data=patched(seen.data, event.patch))) if ROOT in event.hashes else []


def _decided(view: View, event: e.TaskDecided | e.DecisionWithdrawn) -> list[Record]:
    """Others still decide, so that the step is open."""
    seen, step = view.seen, view.state.open[event.step]
    question = view.state.questions.get(event.step)
    given = question.given if question is not None else []
    seat = None if question is None else question.seats[event.seat - 1].given
    told = [(each.on_behalf_of or each.actor, each.data) for each in given if each is not seat]
    if isinstance(event, e.TaskDecided):
        told.append((event.on_behalf_of or event.actor, event.data))
    answers = by_approver(told)
    return [] if answers == seen.answers else _with_state(seen._replace(node=step.node, answers=answers))


def _gave_up(view: View, event: e.StepPaused) -> list[Record]:
    step = view.state.open.get(event.step) or view.state.frozen[event.step]
    return _with_state(view.seen._replace(error={"step": step.node, "message": event.error}, answers={}))


def _mended(view: View, event: e.StepRequeued) -> list[Record]:
    """A step that gave up begins anew, perhaps with other data."""
    seen = view.seen
    data = seen.data if event.input is None else event.input
    return _with_state(seen._replace(data=data, error=None))


def _settled(view: View, event: e.StepRepaired | e.StepFailed) -> list[Record]:
    """Nobody waits any more for an operator to look at a step that gave up."""
    is_over = isinstance(event, e.StepFailed) or event.repair in {"skip", "complete"}
    return _with_state(view.seen._replace(error=None)) if is_over and event.step in view.state.dead else []


def _paused(view: View, event: e.WorkflowPaused) -> list[Record]:
    return _with_state(view.seen._replace(error=_CHAIN_ERROR)) if event.reason == "chain_limit" else []


def _went_on(view: View, _event: e.Event) -> list[Record]:
    seen = view.seen
    return _with_state(seen._replace(error=None)) if seen.error is _CHAIN_ERROR else []


_TABLE: dict[type[e.Event], Callable[..., Sequence[Record]]] = {
    e.WorkflowStarted: _started,
    e.WorkflowForked: _forked,
    e.StepStarted: _entered,
    e.StepSkipped: _entered,
    e.StepCompleted: _completed,
    e.TokenHeld: _held,
    e.DataAssigned: _assigned,
    e.DataChanged: _data_changed,
    e.TaskDecided: _decided,
    e.DecisionWithdrawn: _decided,
    e.StepPaused: _gave_up,
    e.StepRequeued: _mended,
    e.StepRepaired: _settled,
    e.StepFailed: _settled,
    e.WorkflowPaused: _paused,
    e.WorkflowResumed: _went_on,
    e.RollbackStarted: _went_on,
    e.CancellationStarted: _went_on,
    e.WorkflowAborted: _went_on,
}
