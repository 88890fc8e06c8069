"""How events change the state: a function for each event, found in a table. The state is changed in place.

How published events change the state of a run.
"""

from __future__ import annotations

from collections.abc import Callable

from standfast.graph.index import GraphIndex
from standfast.graph.model import CallOp, HumanOp, WaitEventsOp, WaitTimerOp
from standfast.machine.model import events as e
from standfast.machine.model.folds import (
    document_fold as document_folds,
)
from standfast.machine.model.folds import (
    pause_fold as holding,
)
from standfast.machine.model.folds import (
    task_fold as task_folds,
)
from standfast.machine.model.folds.repair_fold import REPAIRED
from standfast.machine.model.folds.task_fold import FOLDS as NOTICE_FOLDS
from standfast.machine.model.queries.branches import shorten, undoable
from standfast.machine.model.queries.outputs import merged, name_of, without
from standfast.machine.model.queries.tokens import enter, leave
from standfast.machine.model.state import (
    ROOT,
    BranchScope,
    Dropped,
    Executed,
    RollbackState,
    RunState,
    Stay,
    StepState,
    Token,
)


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


def _declined(_routes: GraphIndex, state: RunState, event: e.EventDeclined) -> None:
    step = state.open.get(event.step)
    if event.publisher and step is not None:
        step.refused = [*step.refused, event.id]


def _sought(_routes: GraphIndex, state: RunState, event: e.EventsSought) -> None:
    if event.over_at:
        state.open[event.step].over_at = event.over_at


ARRIVALS: dict[type[e.Event], Callable[..., None]] = {
    e.EventReceived: _received,
    e.EventDeclined: _declined,
    e.EventsSought: _sought,
}


MOST_DECIDED = 1000
"""Answers that a run remembers in order to tell a repeated one: those of a run that goes on for years must not grow with it."""


def evolve(routes: GraphIndex, state: RunState, event: e.Event) -> RunState:
    """The state after an event."""
    _TABLE[type(event)](routes, state, event)
    if state.document is not None:
        document_folds.notice(routes, state, event)
    return state


def _workflow_started(_routes: GraphIndex, state: RunState, event: e.WorkflowStarted) -> None:
    state.status = "running"
    state.parent, state.parent_definition = event.parent, event.parent_definition
    state.parent_step, state.requester, state.involved = event.parent_step, event.requester, event.involved
    state.wait_ms, state.escalates, state.looks_up = event.wait_ms, event.escalates, event.looks_up
    state.starter, state.may = event.starter, event.may
    state.has_row = event.has_row
    state.tokens[ROOT] = Token(id=ROOT, data=event.input)


# -- steps


def _step_started(routes: GraphIndex, state: RunState, event: e.StepStarted) -> None:
    state.open[event.step] = StepState(
        number=event.step,
        node=event.node,
        token=event.token,
        effect=event.effect,
        first=event.first,
        retry_of=event.retry_of,
        asked_at=event.asked_at,
        call_at=event.call_at,
    )
    state.chain += event.effect is not None
    enter(routes, state, event)


def _step_completed(routes: GraphIndex, state: RunState, event: e.StepCompleted) -> None:
    step = state.open.pop(event.step, None)
    if step is not None and state.questions:
        task_folds.close_question(routes, state, step)
    if step is None:
        first = state.tokens[event.token].first
        step = StepState(number=event.step, node=event.node, token=event.token, retry_of=event.retry_of, first=first)
        enter(routes, state, event)
        state.chain += event.effect is not None  # It is one of those in a row, although nobody waits for it.
    token = state.tokens[step.token]
    if isinstance(routes.node(step.node).op, WaitTimerOp):
        state.chain = 0
    executed = Executed(number=step.number, node=step.node, token=step.token, output=event.output)
    _keep_child(step, executed)
    _execute(routes, state, step, executed)
    if event.output is not None:
        token.data = merged(routes, token.data, step.node, event.output)
        token.last_output, token.answer = event.output, name_of(routes, step.node, event.output)


def _execute(routes: GraphIndex, state: RunState, step: StepState, executed: Executed) -> None:
    """Remember a step that ended; what only its undoing would need is kept only if it can be undone."""
    token = state.token(step.token)
    if routes.node(step.node).compensation is None:
        executed.output = None
    elif token is not None:
        executed.input = token.data
    executed.retry_of, executed.first = step.retry_of, step.first
    if not routes.remembers:
        _forget(state)
    state.executed[step.number] = executed
    if executed.was_called:
        _stand_for(state, executed)


def _forget(state: RunState) -> None:
    """Forget the last steps that no rollback will ask for, where nothing can be undone: a run may go in circles for years."""
    failed = None if state.rollback is None else state.rollback.failed_step
    while state.executed:
        number = next(reversed(state.executed))
        executed = state.executed[number]
        if number == failed or number in state.stopping or executed.not_undone or executed.is_undoable:
            return
        del state.executed[number]


def _again(routes: GraphIndex, state: RunState, number: int) -> Executed:
    """A step that ended before and that may be forgotten from now on, if steps are: then it is the last one."""
    executed = state.executed[number]
    if not routes.remembers:
        state.executed[number] = state.executed.pop(number)
    return executed


def _stand_for(state: RunState, executed: Executed) -> None:
    """A repeated step does the work of the one before: only the last one is undone. But each has started a run of its own."""
    before = state.executed.get(executed.retry_of or 0)
    if before is not None and not before.is_undoable:
        del state.executed[before.number]


def _retried(_routes: GraphIndex, state: RunState, event: e.StepRetried | e.CompensationRetried) -> None:
    step = state.open[event.step]
    step.attempt, step.effect = event.attempt + 1, event.effect
    if event.was_called:
        step.made = event.attempt
    if isinstance(event, e.StepRetried):
        step.call_at = event.call_at


def _step_failed(routes: GraphIndex, state: RunState, event: e.StepFailed) -> None:
    waits_for_operator = event.step in state.dead
    step = state.open.pop(event.step, None) or state.dead.pop(event.step, None) or state.frozen.pop(event.step)
    task_folds.close_question(routes, state, step, is_void=event.reason == task_folds.DATA_CHANGED)
    if step.of is not None:
        if event.awaits_stop:
            _await_undoing(state, step)
        return
    is_stopped = bool(event.reason) and not waits_for_operator
    executed = Executed(
        number=step.number,
        node=step.node,
        token=step.token,
        error=step.error or event.error,
        status="skipped" if is_stopped else "failed",
        was_called=step.made > 0 or (event.was_called and not is_stopped),
        child=step.child,
        not_undone=step.not_undone,
        attempt=step.attempt if event.awaits_stop and step.effect is not None else 0,
        is_recalled=event.awaits_stop and step.is_late,
    )
    _keep_child(step, executed)
    _execute(routes, state, step, executed)
    if event.awaits_stop:
        state.stopping[event.step] = None


def _await_undoing(state: RunState, step: StepState) -> None:
    """The run ends while a compensation is under way: whether it was called is told when it comes back."""
    state.executed[step.number] = Executed(
        number=step.number, node=step.node, token=step.token, status="skipped", attempt=step.attempt, of=step.of
    )
    state.stopping[step.number] = None


def _step_stopped(routes: GraphIndex, state: RunState, event: e.StepStopped) -> None:
    del state.stopping[event.step]
    executed = _again(routes, state, event.step)
    executed.was_called = executed.was_called or event.attempt > 0 or event.is_done
    executed.is_done = event.is_done
    executed.output = event.output
    if executed.was_called:
        _stand_for(state, executed)


def _step_withdrawn(routes: GraphIndex, state: RunState, event: e.StepWithdrawn) -> None:
    step = state.open.pop(event.step)
    if state.status == "paused":
        state.frozen[event.step] = step
        return
    executed = Executed(number=step.number, node=step.node, token=step.token, status="skipped")
    executed.was_called = step.made > 0
    _execute(routes, state, step, executed)


def _step_resumed(_routes: GraphIndex, state: RunState, event: e.StepResumed) -> None:
    step = state.frozen.pop(event.step, None) or state.open[event.step]
    step.effect = event.effect
    state.open[event.step] = step


def _step_paused(routes: GraphIndex, state: RunState, event: e.StepPaused) -> None:
    is_open = event.step in state.open
    step = state.dead[event.step] = (state.open if is_open else state.frozen).pop(event.step)
    step.error, step.has_failed = event.error, False
    task_folds.close_question(routes, state, step)


def _step_requeued(routes: GraphIndex, state: RunState, event: e.StepRequeued) -> None:
    state.chain = 0
    step = state.dead.pop(event.step)
    executed = Executed(number=step.number, node=step.node, token=step.token, error=step.error, status="failed")
    executed.is_settled = step.is_settled
    if step.is_undoable:
        executed.child, executed.is_undoable = step.child, True
    _execute(routes, state, step, executed)
    token = state.tokens[step.token]
    token.retry_of = event.step
    if event.input is None:
        token.first = step.first or step.number
    else:
        token.data = event.input


def _child_started(_routes: GraphIndex, state: RunState, event: e.ChildStarted) -> None:
    state.open[event.step].child = event.child


def _keep_child(step: StepState, executed: Executed) -> None:
    """Remember the run that a step started, as far as a rollback will have to deal with it."""
    executed.is_settled = step.is_settled
    if step.is_undoable or step.not_undone:
        executed.child, executed.not_undone, executed.is_undoable = step.child, step.not_undone, step.is_undoable


def _child_ended(routes: GraphIndex, state: RunState, event: e.ChildEnded) -> None:
    caller = _caller(state, event.step)
    caller.is_undoable, caller.is_settled = event.is_undoable, event.is_settled
    if event.no_return:
        caller.not_undone = f"it has passed its point of no return, {event.no_return!r}"
    if isinstance(caller, Executed):
        _again(routes, state, event.step)


def _child_not_undone(_routes: GraphIndex, state: RunState, event: e.ChildNotUndone) -> None:
    _caller(state, event.step).not_undone = event.error


def _child_undone(routes: GraphIndex, state: RunState, event: e.ChildUndone) -> None:
    _caller(state, event.step).not_undone = ""
    if event.step in state.executed:
        _again(routes, state, event.step)
    halted = state.rollback or state.dropped
    if halted is not None and halted.stuck == event.step:
        halted.stuck = None


def _caller(state: RunState, number: int) -> StepState | Executed:
    """The step that started a run, which may have ended before it."""
    return state.open.get(number) or state.dead.get(number) or state.frozen.get(number) or state.executed[number]


# -- tokens


def _data_assigned(_routes: GraphIndex, state: RunState, event: e.DataAssigned) -> None:
    token = state.tokens[event.token]
    token.data = {**token.data, **event.data}


def _token_held(_routes: GraphIndex, state: RunState, event: e.TokenHeld) -> None:
    state.tokens[event.token].stay = Stay(target=event.target, node=event.node, outcome=event.outcome)


def _token_ended(routes: GraphIndex, state: RunState, event: e.TokenEnded) -> None:
    token = state.tokens.pop(event.token, None) or state.parked.pop(event.token)
    if token.scope is None:
        state.result, state.outcome = token.data, event.outcome
        leave(routes, state, token)
        if event.why:
            state.reason = event.why
        return
    scope = state.scopes.get(token.scope)
    if scope is not None:
        del scope.live[event.token]
        if event.reason == "failed":
            scope.failed.append(token.node)


def _branches_opened(_routes: GraphIndex, state: RunState, event: e.BranchesOpened) -> None:
    split = state.executed[event.step]
    items = None if event.items is None else list(event.items)
    scope = BranchScope(step=event.step, node=split.node, parent=split.token, items=items)
    state.scopes[event.step] = scope
    state.parked[split.token] = state.tokens.pop(split.token)
    for place in event.taken or range(1, event.branches + 1):
        _begin_branch(state, scope, state.parked[split.token].data, place)


def _items_begun(routes: GraphIndex, state: RunState, event: e.ItemsBegun) -> None:
    scope = state.scopes[event.step]
    assert scope.items is not None
    data, name, place = state.parked[scope.parent].data, routes.item_name(scope.node), routes.list_place(scope.node)
    if place:  # Each branch has its item; with the whole list in each, a list would take the square of its size.
        data = without(data, place)
    for item in scope.items[: event.count]:
        _begin_branch(state, scope, {**data, name: item}, scope.begun + 1)
    del scope.items[: event.count]


def _begin_branch(state: RunState, scope: BranchScope, data: dict[str, object], place: int) -> None:
    scope.begun = place
    name = f"{scope.parent}/{scope.step}.{place}"
    state.tokens[name] = Token(id=name, data=data, scope=scope.step)
    scope.live[name] = None


def _join_arrived(_routes: GraphIndex, state: RunState, event: e.JoinArrived) -> None:
    scope = state.tokens[event.token].scope
    assert scope is not None
    state.scopes[scope].arrived.append(event.token)


def _branches_met(_routes: GraphIndex, state: RunState, event: e.BranchesMet) -> None:
    scope = state.scopes.pop(event.step)
    document_folds.branches_met(state, scope)
    for name in scope.arrived:
        del state.tokens[name]
    state.tokens[scope.parent] = state.parked.pop(scope.parent)


def _branches_closed(_routes: GraphIndex, state: RunState, event: e.BranchesClosed) -> None:
    scope = state.scopes.pop(event.step)
    if scope.parent in state.parked:
        state.tokens[scope.parent] = state.parked.pop(scope.parent)


def _branches_dropped(routes: GraphIndex, state: RunState, event: e.BranchesDropped) -> None:
    dropped = state.dropped = state.dropped or Dropped()
    dropped.tokens.update(dict.fromkeys(event.tokens, event.error))
    dropped.steps.update(dict.fromkeys(event.steps, event.error))
    # The branches have ended, so this is all that they have done; whether each step was called at all may be told later.
    dropped.chain = dict.fromkeys(undoable(routes, state, dropped))


def _branches_undone(_routes: GraphIndex, state: RunState, _event: e.BranchesUndone) -> None:
    state.dropped = None


# -- the world


def _answered(routes: GraphIndex, state: RunState, event: e.StepAnswered) -> None:
    state.chain = 0
    if routes.tells_deciders_apart:
        task_folds.note_decider(routes, state, event)
    state.decided[event.step] = task_folds.kept_answer(routes, state, event)
    task_folds.note_asked(routes, state, event)
    if len(state.decided) > MOST_DECIDED:
        oldest = next(iter(state.decided))
        del state.decided[oldest]
        state.asked.pop(oldest, None)


def _timed_out(routes: GraphIndex, state: RunState, event: e.TimedOut) -> None:
    """What follows from it has events of its own; the row of a question says that its time has passed."""
    state.chain = 0
    step = state.open.get(event.step)
    if step is not None and isinstance(routes.node(step.node).op, HumanOp | CallOp):
        step.is_late = True


def _missed(_routes: GraphIndex, state: RunState, event: e.HandlerMissing) -> None:
    """It is told once for each call that waits, however long nobody has the handler."""
    step = state.open[event.step]
    step.missed = step.effect


def _signal_received(_routes: GraphIndex, state: RunState, event: e.SignalReceived) -> None:
    state.chain = 0
    state.signals.setdefault(event.name, []).append(event.payload)


def _signal_taken(routes: GraphIndex, state: RunState, event: e.SignalTaken) -> None:
    kept = state.signals[event.name]
    payload = kept.pop(0)
    if routes.reads_event:
        state.event = {"name": event.name, "payload": payload}
    if not kept:
        del state.signals[event.name]


# -- the way back


def _rollback_started(_routes: GraphIndex, state: RunState, event: e.RollbackStarted) -> None:
    _turn_back(state, RollbackState(cause="failure", failed_step=event.failed_step, error=event.error))


def _cancellation_started(_routes: GraphIndex, state: RunState, event: e.CancellationStarted) -> None:
    _turn_back(state, RollbackState(cause="cancel", requested_by=event.requested_by, reason=event.reason))


def _turn_back(state: RunState, rollback: RollbackState) -> None:
    state.rollback = rollback
    state.status, state.reason, state.error, state.pause = "running", "", "", None
    if state.dropped is not None:  # The rollback will try it again.
        state.dropped.stuck = None


def _rollback_planned(_routes: GraphIndex, state: RunState, event: e.RollbackPlanned) -> None:
    assert state.rollback is not None
    state.rollback.chain = event.chain[::-1]
    state.dropped = None


def _compensation_started(routes: GraphIndex, state: RunState, event: e.CompensationStarted) -> None:
    of = state.executed[event.of]
    state.next_step = event.step + 1
    step = StepState(number=event.step, node=of.node, token=of.token, effect=event.effect, of=event.of)
    if of.is_undoable and not of.not_undone:
        step.child = of.child
    state.open[event.step] = step
    _undone(routes, state, event.of)


def _undone(routes: GraphIndex, state: RunState, number: int) -> None:
    """A step is undone, or about to be: nothing is stuck, and the next one follows."""
    if state.rollback is None:
        assert state.dropped is not None
        state.dropped.stuck = None
        state.dropped.chain.pop(number, None)
        shorten(routes, state, state.dropped)
        return
    state.rollback.stuck = None
    planned = state.rollback.chain
    if planned and planned[-1] == number:
        planned.pop()


def _step_rolled_back(routes: GraphIndex, state: RunState, event: e.StepRolledBack) -> None:
    state.next_step = event.step + 1
    _undone(routes, state, event.of)
    if state.rollback is None or state.rollback.cause == "return":
        del state.executed[event.of]


def _compensation_succeeded(_routes: GraphIndex, state: RunState, event: e.CompensationSucceeded) -> None:
    of, rollback = state.open.pop(event.step).of, state.rollback
    # A rollback that is still to be planned must not find it.
    if rollback is None or rollback.chain is None or rollback.cause == "return":
        del state.executed[of or 0]


def _compensation_exhausted(routes: GraphIndex, state: RunState, event: e.CompensationExhausted) -> None:
    halted = state.rollback or state.dropped
    number = state.open.pop(event.step).of
    assert halted is not None
    assert number is not None
    halted.stuck = number
    if isinstance(halted, Dropped):  # It is still to be undone, once an operator or a child lets it.
        halted.chain = dict.fromkeys(undoable(routes, state, halted))


def _compensation_waived(_routes: GraphIndex, state: RunState, event: e.CompensationWaived) -> None:
    if state.rollback is not None:  # What is undone by hand is not undone again.
        state.rollback.stuck = None
        waived = state.executed[event.step]
        waived.not_undone, waived.is_undoable, waived.is_settled = "", False, True
        return
    assert state.dropped is not None
    state.dropped.stuck = None
    del state.executed[event.step]


# -- the run


def _abort_started(_routes: GraphIndex, state: RunState, _event: e.AbortStarted) -> None:
    state.rollback = state.dropped = None


def _completed(_routes: GraphIndex, state: RunState, _event: e.WorkflowCompleted) -> None:
    state.status, state.reason = "completed", state.reason or state.outcome


def _failed(_routes: GraphIndex, state: RunState, event: e.WorkflowFailed) -> None:
    state.status, state.reason, state.error = "failed", event.reason, event.error


def _cancelled(_routes: GraphIndex, state: RunState, event: e.WorkflowCancelled) -> None:
    state.status, state.reason, state.error = "cancelled", "", event.reason
    state.rollback = state.dropped = None


def _aborted(_routes: GraphIndex, state: RunState, event: e.WorkflowAborted) -> None:
    state.status, state.reason, state.error, state.pause = "aborted", "", event.reason, None


_TABLE: dict[type[e.Event], Callable[..., None]] = {
    e.WorkflowStarted: _workflow_started,
    e.StepStarted: _step_started,
    e.StepCompleted: _step_completed,
    e.StepRetried: _retried,
    e.StepFailed: _step_failed,
    e.StepStopped: _step_stopped,
    e.StepWithdrawn: _step_withdrawn,
    e.StepResumed: _step_resumed,
    e.StepPaused: _step_paused,
    e.StepRequeued: _step_requeued,
    e.ChildStarted: _child_started,
    e.ChildEnded: _child_ended,
    e.ChildNotUndone: _child_not_undone,
    e.ChildUndone: _child_undone,
    e.DataAssigned: _data_assigned,
    e.TokenHeld: _token_held,
    e.TokenEnded: _token_ended,
    e.BranchesOpened: _branches_opened,
    e.ItemsBegun: _items_begun,
    e.JoinArrived: _join_arrived,
    e.BranchesMet: _branches_met,
    e.BranchesClosed: _branches_closed,
    e.BranchesDropped: _branches_dropped,
    e.BranchesUndone: _branches_undone,
    e.StepAnswered: _answered,
    e.TimedOut: _timed_out,
    e.HandlerMissing: _missed,
    e.SignalReceived: _signal_received,
    e.SignalTaken: _signal_taken,
    e.RollbackStarted: _rollback_started,
    e.RollbackPlanned: _rollback_planned,
    e.CompensationStarted: _compensation_started,
    e.CompensationRetried: _retried,
    e.CompensationSucceeded: _compensation_succeeded,
    e.CompensationExhausted: _compensation_exhausted,
    e.CompensationWaived: _compensation_waived,
    e.StepRolledBack: _step_rolled_back,
    e.CancellationStarted: _cancellation_started,
    e.AbortStarted: _abort_started,
    e.WorkflowPaused: holding.paused,
    e.TimerHeld: holding.timer_held,
    e.FailureHeld: holding.failure_held,
    e.WorkflowResumed: holding.resumed,
    e.WorkflowCompleted: _completed,
    e.WorkflowFailed: _failed,
    e.WorkflowCancelled: _cancelled,
    e.WorkflowAborted: _aborted,
    **ARRIVALS,
    **REPAIRED,
    **NOTICE_FOLDS,
    **task_folds.TABLE,
    **document_folds.TABLE,
}
