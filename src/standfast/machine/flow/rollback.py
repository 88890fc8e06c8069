"""Going back: wait for what runs, then undo what was done, one step after the other, in reverse order of completion.

Only what was executed is undone. A failed step's own undoing comes first. A rollback after a failure stops at the nearest save point on the way of
each branch; one after a cancellation goes to the root. Neither crosses a point of no return.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import takewhile
from typing import Final
from uuid import UUID

from standfast.graph.index import GraphIndex
from standfast.graph.model import ActionOp, CallOp, HandlerCall, NoReturnOp, SavePointOp
from standfast.kernel.decision import Message
from standfast.kernel.ids import InstanceId
from standfast.machine.flow.action_inputs import undo_input
from standfast.machine.flow.cancellation import stop_everything, stop_step, unended
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.commands.run_commands import (
    EndChild,
    EndGrace,
    FailStep,
    RunStep,
    UndoWorkflow,
)
from standfast.machine.model.commands.timers import CLOCK, DEADLINE, GRACE, RESUME
from standfast.machine.model.events import (
    CancellationStarted,
    ChildNotUndone,
    CompensationExhausted,
    CompensationRetried,
    CompensationStarted,
    CompensationSucceeded,
    MovedBack,
    RollbackPlanned,
    RollbackStarted,
    StepFailed,
    StepRolledBack,
    StepStopped,
    WorkflowCancelled,
    WorkflowFailed,
    WorkflowResumed,
)
from standfast.machine.model.queries.branches import (
    branch_of,
    is_concerned,
    is_kept,
    lies_below,
    needs_undoing,
)
from standfast.machine.model.queries.outputs import name_of
from standfast.machine.model.state import Executed, RollbackState, RunState, StepState

FAILED_ELSEWHERE = "a step of another branch failed"
NOT_UNDONE: Final = "compensation_failed"
"""Why a run ended, or waits for an operator, that could not undo what it had to."""


def roll_back(turn: DecisionBuilder, error: str, *, failed_step: int | None = None) -> None:
    """Turn back after a failure. What runs may finish and is waited for; nothing new begins."""
    _end_waiting(turn)
    turn.emit(RollbackStarted(error=error, failed_step=failed_step))
    for step in unended(turn):
        if step.of is not None:
            continue  # What is being undone is undone to its end.
        if step.number in turn.state.open and step.effect is not None:
            turn.recall(step, stop=False)
        else:
            stop_step(turn, step, "undo", error=FAILED_ELSEWHERE)


def cancel(turn: DecisionBuilder, actor: str, reason: str) -> None:
    """Stop everything, and undo what was done if that is the policy."""
    _end_waiting(turn)
    turn.emit(CancellationStarted(requested_by=actor, reason=reason))
    if turn.routes.policies.on_cancel == "compensate":
        halt(turn)
    else:
        stop_everything(turn, "drop")
        turn.emit(WorkflowCancelled(requested_by=actor, reason=reason))


def halt(turn: DecisionBuilder) -> None:
    """Stop all that runs, in order to undo it; handlers are told, and have their time."""
    stop_everything(turn, "undo")
    if awaited_calls(turn):
        turn.set_timer(GRACE, turn.routes.policies.stop_grace_ms, EndGrace())


def _end_waiting(turn: DecisionBuilder) -> None:
    """A run that turns back has no deadline, and no pause that could end."""
    turn.cancel_timer(DEADLINE)
    turn.cancel_timer(RESUME)
    turn.cancel_timer(CLOCK)


def stopped(turn: DecisionBuilder, step: int, *, came_back: bool, is_done: bool = False, output: object = None) -> None:
    """The call of a step that was stopped has come back, or was never made; earlier calls of the step may have been."""
    attempt = turn.state.executed[step].attempt if came_back else 0
    turn.emit(StepStopped(step=step, attempt=attempt, is_done=is_done, output=output, is_shown=output is not None))


def end_grace(turn: DecisionBuilder) -> None:
    """Handlers that were told to stop have had their time: they are not waited for any more."""
    for step in awaited_calls(turn):
        stopped(turn, step, came_back=True)


def is_awaited(turn: DecisionBuilder, step: int) -> bool:
    """Whether a step was stopped and its handler may still be running."""
    return step in turn.state.stopping and turn.state.executed[step].attempt > 0


def work_of(turn: DecisionBuilder, step: int) -> HandlerCall:
    """What a step that was stopped had called."""
    executed = turn.state.executed[step]
    node = turn.routes.node(executed.node)
    work = node.compensation if executed.of is not None else node.op.call
    assert work is not None
    return work


def awaited_calls(turn: DecisionBuilder) -> list[int]:
    """The stopped steps whose handlers may still be running; children take the time that their own rollback needs."""
    return [step for step in turn.state.stopping if turn.state.executed[step].attempt]


def go_back(turn: DecisionBuilder) -> None:
    """Undo the next step, if nothing runs any more."""
    state = turn.state
    rollback = state.rollback
    if rollback is None or state.is_terminal or state.stopping or state.open:
        return
    if rollback.chain is None:
        turn.cancel_timer(GRACE)
        turn.emit(RollbackPlanned(chain=plan(turn.routes, state)))
    assert rollback.chain is not None
    while rollback.chain:
        executed = state.executed[rollback.chain[-1]]
        if is_to_undo(turn, executed):
            undo(turn, executed)
            return
        turn.emit(StepRolledBack(step=turn.next_step, of=executed.number))
    _finish(turn, rollback)


def is_to_undo(turn: DecisionBuilder, executed: Executed) -> bool:
    """Whether something has to be done to undo a step; any other is rolled past."""
    return needs_undoing(turn.routes, executed)


def undone(turn: DecisionBuilder, step: StepState) -> None:
    """A compensation came back."""
    turn.emit(CompensationSucceeded(step=step.number))


def undoing_failed(turn: DecisionBuilder, step: StepState, command: FailStep) -> None:
    """A compensation failed: try again, or give up."""
    work = turn.routes.node(step.node).compensation
    assert work is not None
    if command.is_final or not turn.policy_of(work.retry).allows_another(step.attempt):
        _exhaust(turn, step, command.error, was_called=command.was_called)
        return
    delay = command.after if command.after is not None else turn.wait_after(work.retry, step.attempt)
    turn.emit(
        CompensationRetried(
            step=step.number,
            attempt=step.attempt,
            error=command.error,
            effect=turn.next_effect,
            was_called=command.was_called,
        )
    )
    _call(turn, step, work, delay)


def retry_undoing(turn: DecisionBuilder, executed: Executed) -> None:
    """An operator wants a step undone that could not be; the rest of the rollback follows."""
    turn.emit(WorkflowResumed())
    undo(turn, executed, is_asked=True)


def undo(turn: DecisionBuilder, executed: Executed, *, is_asked: bool = False) -> None:
    """Have the compensation of a step called; what an operator asks for does not wait."""
    work = turn.routes.node(executed.node).compensation
    number = turn.next_step
    if executed.is_undoable and not executed.not_undone:
        _undo_child(turn, executed, number)
        return
    if work is None or executed.not_undone or work.retry.max_calls == 0:
        turn.emit(CompensationStarted(step=number, of=executed.number))
        _exhaust(turn, turn.state.open[number], _left(executed) if executed.not_undone else "no call is allowed")
        return
    delay_ms = 0 if is_asked else work.start_after_ms
    turn.emit(CompensationStarted(step=number, of=executed.number, effect=turn.next_effect, delay_ms=delay_ms))
    _call(turn, turn.state.open[number], work, timedelta(milliseconds=delay_ms))


def _left(executed: Executed) -> str:
    return f"the workflow {executed.child} that it started could not be undone: {executed.not_undone}"


def _undo_child(turn: DecisionBuilder, executed: Executed, number: int) -> None:
    """Have the run undone that a step started; it tells when it has ended."""
    turn.emit(CompensationStarted(step=number, of=executed.number))
    recall_child(turn, executed, f"the workflow that started it undoes {executed.node!r}")


def recall_child(turn: DecisionBuilder, caller: StepState | Executed, reason: str) -> None:
    """Tell a run that a step started to undo what it did, whether it has completed or not."""
    op = turn.routes.node(caller.node).op
    assert isinstance(op, CallOp)
    command = UndoWorkflow(parent=str(turn.moment.instance), step=caller.number, reason=reason)
    child, own = InstanceId(UUID(caller.child)), turn.moment.instance
    turn.send(Message(decider=op.definition, command=command, instance=child, parent=own))


def child_undone(turn: DecisionBuilder, step: StepState, command: EndChild) -> None:
    """A run that was told to undo what it did has ended."""
    assert step.of is not None
    if command.status == "cancelled" and command.reason != NOT_UNDONE:
        turn.emit(CompensationSucceeded(step=step.number))
        return
    error = command.error or command.reason or command.status
    turn.emit(
        ChildNotUndone(step=step.of, error=f"{command.status}: {error}" if command.status == "aborted" else error)
    )
    _exhaust(turn, step, _left(turn.state.executed[step.of]))


def _call(turn: DecisionBuilder, step: StepState, work: HandlerCall, delay: timedelta) -> None:
    assert step.of is not None
    executed = turn.state.executed[step.of]
    failed, cause = _cause(turn.state, executed)
    node = turn.routes.node(step.node)
    priority, metadata = node.compensation_priority, node.compensation_metadata
    body = RunStep(
        step=step.number,
        node=step.node,
        input=undo_input(turn, node, executed) if isinstance(node.op, ActionOp) else executed.input or {},
        attempt=step.attempt,
        first=executed.first or executed.number,
        is_compensation=True,
        writes=isinstance(node.op, ActionOp) and not node.op.of,
        output=executed.output,
        output_name=name_of(turn.routes, step.node, executed.output),
        error=executed.error or cause,
        failed_step=failed,
        metadata=node.metadata if metadata is None else metadata,
        capability=work.capability,
    )
    turn.call(work, body, priority=node.priority if priority is None else priority, delay=delay)


def _cause(state: RunState, executed: Executed) -> tuple[str, str]:
    """Why a step is undone: the name of the step that failed and led to it, if there is one, and what was said."""
    rollback, dropped = state.rollback, state.dropped
    if rollback is not None and rollback.chain is not None:
        failed = state.executed.get(rollback.failed_step or 0)
        return failed.node if failed else "", rollback.error or rollback.reason
    assert dropped is not None
    why = dropped.steps.get(executed.number)
    return "", dropped.tokens[branch_of(executed.token, dropped.tokens)] if why is None else why


def _exhaust(turn: DecisionBuilder, step: StepState, error: str, *, was_called: bool = True) -> None:
    """A step could not be undone: the chain halts here, and an operator has to look."""
    rollback = turn.state.rollback
    if rollback is not None and rollback.chain is None:  # It was a dropped branch's; the rollback will try it again.
        turn.emit(StepFailed(step=step.number, error=error, was_called=was_called))
        return
    turn.emit(CompensationExhausted(step=step.number, error=error, was_called=was_called))
    if rollback is not None:
        told = f"{step.node!r} could not be undone: {error}"
        turn.emit(WorkflowFailed(error=told, reason=NOT_UNDONE))


def _finish(turn: DecisionBuilder, rollback: RollbackState) -> None:
    if rollback.cause == "return":
        turn.emit(MovedBack(step=rollback.to))
    elif rollback.cause == "cancel":
        turn.emit(WorkflowCancelled(requested_by=rollback.requested_by, reason=rollback.reason))
    else:
        turn.emit(WorkflowFailed(error=rollback.error))


def passes_no_return(routes: GraphIndex, executed: Executed) -> bool:
    """Whether nothing before a step is ever undone."""
    return isinstance(routes.node(executed.node).op, NoReturnOp)


def behind(state: RunState, step: int) -> list[Executed]:
    """The steps that ended after one, the last one first."""
    return list(takewhile(lambda each: each.number != step, reversed(state.executed.values())))


def plan(routes: GraphIndex, state: RunState) -> list[int]:
    """The executed steps to undo, in the order of undoing."""
    rollback = state.rollback
    assert rollback is not None
    if rollback.cause == "return":
        return [each.number for each in behind(state, rollback.to) if is_concerned(routes, each)]
    if not routes.remembers:
        return [each.number for each in reversed(state.executed.values()) if each.not_undone or each.is_undoable]
    failed = state.executed.get(rollback.failed_step or 0)
    order = [failed.number] if failed is not None and failed.was_called else []
    dropped = state.dropped.tokens if state.dropped is not None else ()
    bounds: list[tuple[str, bool]] = []
    inner: list[tuple[str, bool]] = []
    """Those of branches that were not needed: nothing else protects what such a branch did."""
    for each in reversed(state.executed.values()):
        is_dropped = bool(dropped) and bool(branch_of(each.token, dropped))
        op = routes.node(each.node).op
        if isinstance(op, NoReturnOp):
            bounds.append((each.token, True))
            if is_dropped:
                inner.append((each.token, True))
        elif isinstance(op, SavePointOp):
            if rollback.cause == "failure" and not is_dropped:
                bounds.append((each.token, failed is not None and lies_below(failed.token, each.token)))
        elif each is failed or is_kept(each.token, inner if is_dropped else bounds):
            continue
        elif is_concerned(routes, each):
            order.append(each.number)
    return order
