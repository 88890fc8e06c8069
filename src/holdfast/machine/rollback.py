"""Going back: stop what runs, then undo what was done, one step after the other, in reverse order of completion.

Only what was executed is undone. A failed step's own undoing comes first. A rollback after a failure stops at the nearest save point on the way of
each branch; one after a cancellation goes to the root. Neither crosses a point of no return.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from holdfast.machine.commands import RunStep, WithdrawnStep
from holdfast.machine.events import (
    CompensationExhausted,
    CompensationRetried,
    CompensationStarted,
    RollbackPlanned,
    RollbackStarted,
    StepRolledBack,
    WorkflowCancelled,
    WorkflowFailed,
)
from holdfast.machine.graph import NoReturn, SavePoint, Work
from holdfast.machine.routes import Routes
from holdfast.machine.state import ROOT, Executed, State, Step
from holdfast.machine.stopping import skip
from holdfast.machine.turn import Turn, policy_of


def start_rollback(
    turn: Turn, *, cause: Literal["failure", "cancel"], failed_step: int | None = None, error: str = ""
) -> None:
    """Turn back. What still runs is waited for; nothing new begins."""
    turn.emit(RollbackStarted(cause=cause, failed_step=failed_step, error=error))
    if cause == "failure":
        _stop_waiting(turn)
        recall_running(turn)
    go_on(turn)


def recall_running(turn: Turn) -> None:
    """Take back the work that nobody has begun; what is under way may finish."""
    for step in turn.state.open.values():
        if step.effect is not None and step.of is None:
            turn.recall(step.effect, WithdrawnStep(step=step.number), stop=False)


def _stop_waiting(turn: Turn) -> None:
    """Steps that only wait are not waited for."""
    for step in [each for each in turn.state.open.values() if each.effect is None and each.of is None]:
        skip(turn, step, "a step of another branch failed")


def go_on(turn: Turn) -> None:
    """Take the next step back, if nothing runs any more."""
    state = turn.state
    rollback = state.rollback
    if rollback is None or state.is_terminal or state.stopping or any(step.of is None for step in state.open.values()):
        return
    if rollback.chain is None:
        turn.emit(RollbackPlanned(chain=plan(turn.routes, state)))
    if not state.open:
        _undo_next(turn)


def _undo_next(turn: Turn) -> None:
    rollback = turn.state.rollback
    assert rollback is not None
    assert rollback.chain is not None
    while rollback.chain:
        executed = turn.state.executed[rollback.chain[-1]]
        work = turn.routes.node(executed.node).compensation
        if work is None or not executed.was_called:
            turn.emit(StepRolledBack(step=turn.next_number(), of=executed.number))
            continue
        begin_undoing(turn, executed, work)
        return
    _finish(turn)


def begin_undoing(turn: Turn, executed: Executed, work: Work) -> None:
    """Have a step undone."""
    number = turn.next_number()
    if work.retry.max_calls == 0:
        turn.emit(CompensationStarted(step=number, of=executed.number))
        exhaust(turn, turn.state.open[number], "no call is allowed")
        return
    turn.emit(CompensationStarted(step=number, of=executed.number, effect=turn.upcoming_effect()))
    _call(turn, turn.state.open[number], work)


def _call(turn: Turn, step: Step, work: Work, *, delay: timedelta = timedelta(0)) -> None:
    rollback = turn.state.rollback
    assert rollback is not None
    assert step.of is not None
    executed = turn.state.executed[step.of]
    failed = turn.state.executed.get(rollback.failed_step or 0)
    node = turn.routes.node(step.node)
    body = RunStep(
        step=step.number,
        node=step.node,
        input=executed.input or {},
        attempt=step.attempt,
        is_compensation=True,
        output=executed.output,
        error=executed.error or rollback.error or rollback.reason,
        failed_step=failed.node if failed else "",
        metadata=dict(node.metadata),
    )
    turn.call(work, body, priority=node.priority, delay=delay)


def undoing_failed(turn: Turn, step: Step, error: str, *, is_final: bool) -> None:
    """An undoing call failed: try again, or give up."""
    work = turn.routes.node(step.node).compensation
    assert work is not None
    policy = policy_of(work.retry)
    if is_final or work.once or not policy.allows_another(step.attempt):
        exhaust(turn, step, error)
        return
    delay = policy.wait_after(step.attempt)
    effect = turn.upcoming_effect()
    turn.emit(CompensationRetried(step=step.number, attempt=step.attempt, error=error, effect=effect))
    _call(turn, step, work, delay=delay)


def exhaust(turn: Turn, step: Step, error: str) -> None:
    """A step could not be undone: the chain halts here, and an operator has to look."""
    turn.emit(CompensationExhausted(step=step.number, error=error))
    turn.emit(WorkflowFailed(error=f"{step.node!r} could not be undone: {error}", reason="compensation_failed"))


def _finish(turn: Turn) -> None:
    rollback = turn.state.rollback
    assert rollback is not None
    if rollback.cause == "cancel":
        turn.emit(WorkflowCancelled(requested_by=rollback.requested_by, reason=rollback.reason))
    else:
        turn.emit(WorkflowFailed(error=rollback.error))


def plan(routes: Routes, state: State) -> list[int]:
    """The executed steps to undo, in the order of undoing."""
    rollback = state.rollback
    assert rollback is not None
    failed = state.executed.get(rollback.failed_step or 0)
    order = [failed] if failed is not None else []
    bounds: list[str] = []
    for each in reversed(state.executed.values()):
        op = routes.node(each.node).op
        if isinstance(op, NoReturn) or (isinstance(op, SavePoint) and rollback.cause == "failure"):
            bounds.append(each.token)
        elif each is not failed and _is_concerned(each) and not _is_kept(each.token, bounds, failed):
            order.append(each)
    return [each.number for each in order]


def _is_concerned(executed: Executed) -> bool:
    """A step that was stopped half-way is undone only inside a branch; the others were never done."""
    return executed.status != "skipped" or executed.token != ROOT


def _is_kept(token: str, bounds: list[str], failed: Executed | None) -> bool:
    """Whether a boundary that was passed later protects a step: one on its own way, or on the way of the step that failed."""
    for bound in bounds:
        is_below = token == bound or token.startswith(f"{bound}/")
        leads_on = failed is None or failed.token == bound or failed.token.startswith(f"{bound}/")
        if is_below or (leads_on and bound.startswith(f"{token}/")):
            return True
    return False
