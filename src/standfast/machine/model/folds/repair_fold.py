"""How what operators did to a run changes its state."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from standfast.graph.index import GraphIndex
from standfast.machine.model import events as e
from standfast.machine.model.document_state import CHANGED_ELSEWHERE, DRIFT
from standfast.machine.model.folds.task_fold import close_question, note_names, note_passer
from standfast.machine.model.json_values import patched
from standfast.machine.model.queries.tokens import enter
from standfast.machine.model.state import ROOT, Executed, RollbackState, RunState, StepState, Token

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(RunState).decode


def _step_repaired(_routes: GraphIndex, state: RunState, event: e.StepRepaired) -> None:
    """A step whose end an operator brings about has no call under way any more; in place of one that gave up another one ends."""
    state.chain = 0
    if event.repair not in {"skip", "complete"}:
        return
    dead = state.dead.pop(event.step, None)
    if dead is not None:
        token = state.tokens[dead.token]
        token.retry_of, token.first = dead.number, dead.first or dead.number
        if dead.retry_of is not None:
            state.executed.pop(dead.retry_of, None)
        return
    step = state.open.get(event.step) or state.frozen.pop(event.step)
    step.effect = None
    state.open[event.step] = step


def _act_noted(_routes: GraphIndex, state: RunState, event: e.ActNoted) -> None:
    """It is told by the audit, and changes nothing besides; what another system has changed waits for the pause that tells of it."""
    if event.action == DRIFT and state.document is not None:
        fields = event.after.get(CHANGED_ELSEWHERE)
        names = ", ".join(map(str, fields)) if isinstance(fields, list) and fields else "nothing"
        told = f"{event.actor!r} tells that {names} changed elsewhere, which was refused here ({event.after.get('refused')})"
        state.document.drift_at = state.document.drift_at or event.at
        state.document.drift = f"{state.document.drift}; {told}" if state.document.drift else f"drift: {told}"


def _people_involved(_routes: GraphIndex, state: RunState, event: e.PeopleInvolved) -> None:
    state.involve(event.names)
    for node, names in event.decided.items():
        note_names(state, node, names)


def _branch_cancelled(_routes: GraphIndex, state: RunState, event: e.BranchCancelled) -> None:
    """What an operator brings about is no part of a chain of steps that nobody asked for."""
    state.chain = 0
    for node in event.decided:
        note_names(state, node, (event.actor, event.on_behalf_of))


def _step_skipped(routes: GraphIndex, state: RunState, event: e.StepSkipped) -> None:
    """Nothing of it is undone later, nor of the one that it repeats."""
    step = state.open.pop(event.step, None)
    if step is not None:
        close_question(routes, state, step)
    else:
        step = StepState(number=event.step, node=event.node, token=event.token, retry_of=event.retry_of)
        enter(routes, state, event)
    note_passer(routes, state, step.node, event)
    if step.retry_of is not None:
        state.executed.pop(step.retry_of, None)
    if routes.remembers:
        state.executed[step.number] = Executed(
            number=step.number, node=step.node, token=step.token, status="skipped", was_called=False
        )


def _data_changed(_routes: GraphIndex, state: RunState, event: e.DataChanged) -> None:
    for name in event.hashes:
        token = state.token(name)
        assert token is not None
        token.data = patched(token.data, event.patch)


def _move_back_started(_routes: GraphIndex, state: RunState, event: e.MoveBackStarted) -> None:
    state.rollback = RollbackState(
        cause="return", to=event.step, data=event.data, requested_by=event.actor, reason=event.reason
    )
    state.status, state.reason, state.error = "running", "", ""
    if state.dropped is not None:  # The way back will try it again.
        state.dropped.stuck = None


def _moved_back(_routes: GraphIndex, state: RunState, event: e.MovedBack) -> None:
    """One token is left, at the save point, with the data of that time; how often it was where is not forgotten."""
    assert state.rollback is not None
    before = state.token(ROOT)
    token = Token(id=ROOT, node=state.executed[event.step].node, data=state.rollback.data)
    if before is not None:
        token.visits = before.visits
    while next(reversed(state.executed)) != event.step:
        state.executed.popitem()
    state.tokens, state.parked, state.scopes = {ROOT: token}, {}, {}
    state.rollback = state.dropped = None
    state.chain, state.result = 0, None


def _workflow_forked(_routes: GraphIndex, state: RunState, event: e.WorkflowForked) -> None:
    """The state is a copy, because the fold changes it in place and the event is for ever."""
    copy = _decode(_encode(event.state))
    for name in RunState.__struct_fields__:
        setattr(state, name, getattr(copy, name))


REPAIRED: dict[type[e.Event], Callable[..., None]] = {
    e.StepRepaired: _step_repaired,
    e.BranchCancelled: _branch_cancelled,
    e.ActNoted: _act_noted,
    e.PeopleInvolved: _people_involved,
    e.StepSkipped: _step_skipped,
    e.DataChanged: _data_changed,
    e.MoveBackStarted: _move_back_started,
    e.MovedBack: _moved_back,
    e.WorkflowForked: _workflow_forked,
}
"""A function for each event."""
