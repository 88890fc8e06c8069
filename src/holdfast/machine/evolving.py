"""How events change the state: a function for each event, found in a table. The state is changed in place."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.machine import events as e
from holdfast.machine.graph import Join, Split
from holdfast.machine.routes import Routes
from holdfast.machine.state import ROOT, Executed, Held, Rollback, Scope, State, Step, Token


def evolve(routes: Routes, state: State, event: e.Event) -> State:
    """The state after an event."""
    _TABLE[type(event)](routes, state, event)
    return state


def merged(data: dict[str, object], node: str, output: object) -> dict[str, object]:
    """A token's data after a step: what it answered, by name; an answer that is no object is found under the step's name."""
    if output is None:
        return data
    return {**data, **output} if isinstance(output, dict) else {**data, node: output}


def _workflow_started(_routes: Routes, state: State, event: e.WorkflowStarted) -> None:
    state.status = "running"
    state.input = event.input
    state.parent, state.parent_definition = event.parent, event.parent_definition
    state.parent_step = event.parent_step
    state.tokens[ROOT] = Token(id=ROOT, data=event.input)


def _step_started(_routes: Routes, state: State, event: e.StepStarted) -> None:
    state.open[event.step] = Step(
        number=event.step,
        node=event.node,
        token=event.token,
        visit=event.visit,
        attempt=event.attempt,
        effect=event.effect,
        input=event.input,
    )
    _enter(state, event.step, event.node, event.token)
    state.frozen.pop(event.retry_of or 0, None)
    state.dead.pop(event.retry_of or 0, None)


def _enter(state: State, step: int, node: str, token_id: str) -> None:
    state.next_step = max(state.next_step, step + 1)
    token = state.tokens.get(token_id)
    if token is not None:
        token.visits[node] = token.visits.get(node, 0) + 1
        token.node = node


def _step_completed(routes: Routes, state: State, event: e.StepCompleted) -> None:
    step = state.open.pop(event.step, None)
    if step is None:
        step = Step(number=event.step, node=event.node, token=event.token, visit=event.visit)
        if isinstance(routes.node(event.node).op, Join):
            _close_scope(routes, state, step)
        _enter(state, event.step, event.node, event.token)
    token = state.tokens[step.token]
    keeps = routes.node(step.node).compensation is not None
    state.executed[step.number] = Executed(
        number=step.number,
        node=step.node,
        token=step.token,
        input=(step.input or token.data) if keeps else None,
        output=event.output if keeps else None,
    )
    if isinstance(routes.node(step.node).op, Split):
        _open_scope(state, step, event.output)
    else:
        token.data = merged(token.data, step.node, event.output)
        token.last_output = event.output
    if state.status == "paused":
        state.held.append(Held(token=step.token, node=step.node, outcome=event.outcome))


def _open_scope(state: State, step: Step, items: object) -> None:
    listed = list(items) if isinstance(items, list) else []
    state.scopes[step.number] = Scope(step=step.number, node=step.node, parent=step.token, items=listed)
    state.parked[step.token] = state.tokens.pop(step.token)


def _close_scope(routes: Routes, state: State, join: Step) -> None:
    """The branches have met: their answers go to the token that waited for them, by the name of each branch's last step."""
    scope = next(each for each in state.scopes.values() if each.parent == join.token)
    del state.scopes[scope.step]
    parent = state.tokens[join.token] = state.parked.pop(join.token)
    branches = [state.tokens.pop(name) for name in scope.arrived]
    if routes.items(scope.node) is not None:
        ordered = sorted(branches, key=lambda token: int(token.id.rsplit(".", 1)[1]))
        parent.data = {**parent.data, scope.node: [token.last_output for token in ordered]}
    else:
        parent.data = {**parent.data, **{token.node: token.last_output for token in branches}}


def _token_moved(_routes: Routes, state: State, event: e.TokenMoved) -> None:
    if event.scope is None:
        token = state.tokens[event.token]
        token.data = {**token.data, **event.assigned}
        return
    scope = state.scopes[event.scope]
    parent = state.parked[scope.parent]
    data = {**parent.data, **event.assigned}
    state.tokens[event.token] = Token(id=event.token, data=data, scope=event.scope)
    scope.live.append(event.token)
    scope.begun += 1
    if scope.items:
        scope.items.pop(0)


def _join_arrived(_routes: Routes, state: State, event: e.JoinArrived) -> None:
    token = state.tokens[event.token]
    assert token.scope is not None
    state.scopes[token.scope].arrived.append(event.token)


def _token_ended(_routes: Routes, state: State, event: e.TokenEnded) -> None:
    token = state.tokens.pop(event.token, None) or state.parked.pop(event.token)
    if token.scope is None:
        state.result = token.data
        return
    scope = state.scopes.get(token.scope)
    if scope is not None:
        scope.live.remove(event.token)
        if event.token in scope.arrived:
            scope.arrived.remove(event.token)
        if event.reason == "failed":
            scope.failed.append(event.token)


def _scope_closed(_routes: Routes, state: State, event: e.ScopeClosed) -> None:
    scope = state.scopes.pop(event.scope)
    state.tokens[scope.parent] = state.parked.pop(scope.parent)


def _step_retried(_routes: Routes, state: State, event: e.StepRetried) -> None:
    step = state.open[event.step]
    step.attempt = event.attempt + 1
    step.effect = event.effect


def _step_failed(routes: Routes, state: State, event: e.StepFailed) -> None:
    step = state.open.pop(event.step, None) or state.dead.pop(event.step, None) or state.frozen.pop(event.step)
    if step.of is not None:
        return
    token = state.tokens.get(step.token) or state.parked.get(step.token)
    keeps = routes.node(step.node).compensation is not None
    state.executed[step.number] = Executed(
        number=step.number,
        node=step.node,
        token=step.token,
        input=(step.input or (token.data if token else {})) if keeps else None,
        error=event.error,
        status="skipped" if event.reason else "failed",
    )
    if event.awaits_stop:
        state.stopping.append(event.step)


def _step_stopped(_routes: Routes, state: State, event: e.StepStopped) -> None:
    state.stopping.remove(event.step)
    executed = state.executed[event.step]
    executed.was_called = event.was_called
    executed.output = event.output


def _step_withdrawn(_routes: Routes, state: State, event: e.StepWithdrawn) -> None:
    step = state.open.pop(event.step)
    if state.status == "paused":
        state.frozen[event.step] = step


def _step_paused(_routes: Routes, state: State, event: e.StepPaused) -> None:
    state.dead[event.step] = state.open.pop(event.step)


def _decided(_routes: Routes, _state: State, _event: e.Approved | e.Rejected | e.TimedOut | e.HandlerMissing) -> None:
    """What follows from it has events of its own."""


def _signal_received(_routes: Routes, state: State, event: e.SignalReceived) -> None:
    state.signals.setdefault(event.name, []).append(event.payload)


def _signal_taken(_routes: Routes, state: State, event: e.SignalTaken) -> None:
    waiting = state.signals[event.name]
    waiting.pop(0)
    if not waiting:
        del state.signals[event.name]


def _rollback_started(_routes: Routes, state: State, event: e.RollbackStarted) -> None:
    before = state.rollback
    state.rollback = Rollback(
        cause=event.cause,
        failed_step=event.failed_step,
        error=event.error,
        requested_by=before.requested_by if before else "",
        reason=before.reason if before else "",
    )
    if state.status == "paused":
        state.status, state.reason = "running", ""


def _rollback_planned(_routes: Routes, state: State, event: e.RollbackPlanned) -> None:
    assert state.rollback is not None
    state.rollback.chain = list(reversed(event.chain))


def _compensation_started(_routes: Routes, state: State, event: e.CompensationStarted) -> None:
    of = state.executed[event.of]
    state.next_step = max(state.next_step, event.step + 1)
    state.open[event.step] = Step(number=event.step, node=of.node, token=of.token, effect=event.effect, of=event.of)
    _undone(state, event.of)


def _undone(state: State, number: int) -> None:
    assert state.rollback is not None
    chain = state.rollback.chain
    if chain and chain[-1] == number:
        chain.pop()
    state.rollback.stuck = None


def _step_rolled_back(_routes: Routes, state: State, event: e.StepRolledBack) -> None:
    state.next_step = max(state.next_step, event.step + 1)
    _undone(state, event.of)


def _compensation_retried(_routes: Routes, state: State, event: e.CompensationRetried) -> None:
    step = state.open[event.step]
    step.attempt = event.attempt + 1
    step.effect = event.effect


def _compensation_succeeded(_routes: Routes, state: State, event: e.CompensationSucceeded) -> None:
    del state.open[event.step]


def _compensation_exhausted(_routes: Routes, state: State, event: e.CompensationExhausted) -> None:
    assert state.rollback is not None
    state.rollback.stuck = state.open.pop(event.step).of


def _cancellation_started(_routes: Routes, state: State, event: e.CancellationStarted) -> None:
    state.rollback = Rollback(cause="cancel", requested_by=event.requested_by, reason=event.reason)


def _abort_started(_routes: Routes, state: State, _event: e.AbortStarted) -> None:
    state.rollback = None


def _child_started(_routes: Routes, state: State, event: e.ChildStarted) -> None:
    state.open[event.step].child = event.child


def _requeued(_routes: Routes, state: State, event: e.StepRequeued) -> None:
    if event.input is not None:
        state.dead[event.step].input = event.input


def _resumed(_routes: Routes, state: State, _event: e.WorkflowResumed) -> None:
    state.status, state.reason = "running", ""
    state.held = []


def _dead_lettered(_routes: Routes, state: State, _event: e.WorkflowDeadLettered) -> None:
    state.status, state.reason = "paused", "dlq"


def _completed(_routes: Routes, state: State, _event: e.WorkflowCompleted) -> None:
    state.status = "completed"


def _failed(_routes: Routes, state: State, event: e.WorkflowFailed) -> None:
    state.status, state.reason = "failed", event.reason


def _cancelled(_routes: Routes, state: State, _event: e.WorkflowCancelled) -> None:
    state.status, state.rollback = "cancelled", None


def _aborted(_routes: Routes, state: State, _event: e.WorkflowAborted) -> None:
    state.status = "aborted"


_TABLE: dict[type[e.Event], Callable[..., None]] = {
    e.WorkflowStarted: _workflow_started,
    e.StepStarted: _step_started,
    e.StepCompleted: _step_completed,
    e.StepRetried: _step_retried,
    e.StepFailed: _step_failed,
    e.StepStopped: _step_stopped,
    e.StepWithdrawn: _step_withdrawn,
    e.StepPaused: _step_paused,
    e.TokenMoved: _token_moved,
    e.TokenEnded: _token_ended,
    e.JoinArrived: _join_arrived,
    e.ScopeClosed: _scope_closed,
    e.Approved: _decided,
    e.Rejected: _decided,
    e.TimedOut: _decided,
    e.HandlerMissing: _decided,
    e.SignalReceived: _signal_received,
    e.SignalTaken: _signal_taken,
    e.CompensationStarted: _compensation_started,
    e.CompensationRetried: _compensation_retried,
    e.CompensationSucceeded: _compensation_succeeded,
    e.CompensationExhausted: _compensation_exhausted,
    e.StepRolledBack: _step_rolled_back,
    e.RollbackStarted: _rollback_started,
    e.RollbackPlanned: _rollback_planned,
    e.CancellationStarted: _cancellation_started,
    e.AbortStarted: _abort_started,
    e.WorkflowCompleted: _completed,
    e.WorkflowFailed: _failed,
    e.WorkflowCancelled: _cancelled,
    e.WorkflowAborted: _aborted,
    e.WorkflowDeadLettered: _dead_lettered,
    e.StepRequeued: _requeued,
    e.WorkflowResumed: _resumed,
    e.ChildStarted: _child_started,
}
