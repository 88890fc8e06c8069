"""Where a run stands, in the words of the row of its instance."""

from __future__ import annotations

from datetime import datetime

from standfast.graph.index import GraphIndex
from standfast.kernel.decider import Status
from standfast.machine.model.queries.resume_points import resume_point
from standfast.machine.model.state import RunState
from standfast.machine.nodes import kind_of

_STATUSES = {
    "new": Status("running"),
    "running": Status("running"),
    "paused": Status("paused"),
    "completed": Status("completed"),
    "failed": Status("failed"),
    "cancelled": Status("cancelled"),
    "aborted": Status("aborted"),
}


_AWAITED = {
    "human": "approval_required",
    "event": "waiting_for_event",
    "timer": "waiting_for_time",
    "child": "waiting_for_workflow",
}
"""Why a run is paused that waits, by what it waits for."""
WAITING = frozenset(_AWAITED.values())
"""Reasons of a run that counts as paused because it waits, and needs no operator."""

_RESUMING = Status("running", "resuming")
_RESTING = Status("running", "round_completed")
_PAUSED_BY: dict[str, frozenset[str]] = {"rules": frozenset(_AWAITED), "process": frozenset({"event", "timer"})}
"""What a run of a kind is paused by while it waits for nothing else; runs of the others are never paused by a wait."""


def status_of(routes: GraphIndex, state: RunState) -> Status:
    """Where a run stands. Rules that wait are paused: that is what they are there for. Processes are that wait for no person."""
    found = _stands(routes, state)
    if found.word != "paused":
        return found
    return Status("paused", found.reason, found.since, resume_point(state, routes.graph).next_step)


def _stands(routes: GraphIndex, state: RunState) -> Status:
    if state.document is not None and state.document.is_resting and state.status == "running":
        return _RESTING
    if state.reason:
        return Status("running" if state.status == "new" else state.status, state.reason)
    waits = _PAUSED_BY.get(routes.graph.kind) if state.status == "running" else None
    return _STATUSES[state.status] if waits is None else _waiting(routes, state, waits)


def _waiting(routes: GraphIndex, state: RunState, waits: frozenset[str]) -> Status:
    """A run whose open steps all wait is paused, and the first of them says what for; one whose last resume led to an open step is resuming."""
    kinds = [kind_of(routes.node(step.node)).wait_kind for step in state.open.values()]
    if kinds and waits.issuperset(kinds):
        since = next(iter(state.open.values())).asked_at
        return Status("paused", _AWAITED[kinds[0]], datetime.fromisoformat(since) if since else None)
    is_resuming = state.resumed is not None and state.resumed.step in state.open
    return _RESUMING if is_resuming else _STATUSES["running"]
