"""What a run answers to a command: a function for each command, found in a table."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from holdfast.kernel.decision import Answer, Ignored, Message, Rejection
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.moment import SYSTEM, Moment
from holdfast.machine import commands as c
from holdfast.machine.branches import on_scope_changed
from holdfast.machine.events import (
    AbortStarted,
    Approved,
    CancellationStarted,
    CompensationSucceeded,
    HandlerMissing,
    Rejected,
    SignalReceived,
    StepCompleted,
    StepRequeued,
    StepStarted,
    StepStopped,
    StepWithdrawn,
    TimedOut,
    WorkflowAborted,
    WorkflowCancelled,
    WorkflowCompleted,
    WorkflowResumed,
    WorkflowStarted,
)
from holdfast.machine.failing import give_up
from holdfast.machine.graph import OK, TIMEOUT, Human, Task, WaitEvent, WaitTimer
from holdfast.machine.nodes import kind_of, task, wait
from holdfast.machine.rollback import begin_undoing, go_on, start_rollback, undoing_failed
from holdfast.machine.routes import Routes
from holdfast.machine.state import ROOT, State, Step
from holdfast.machine.stopping import stop_everything
from holdfast.machine.turn import Turn, policy_of, step_timer

DEADLINE = "deadline"

LATE = Ignored(reason="nobody waits for this any more")


def decide(routes: Routes, state: State, command: c.Command, moment: Moment) -> Answer:
    """The answer to a command. The state is changed as far as the answer is a decision."""
    refusal = _refusal(state, command)
    if refusal is not None:
        return refusal
    turn = Turn(routes, state, moment, kind_of)
    turn.on_scope_changed = on_scope_changed
    answer = _TABLE[type(command)](turn, command)
    if answer is not None:
        return answer
    turn.run()
    go_on(turn)
    _complete(turn)
    if state.is_terminal and state.parent:
        _tell_parent(turn)
    return turn.decision() if turn.has_happened else LATE


def _refusal(state: State, command: c.Command) -> Answer | None:
    is_start = isinstance(command, c.StartWorkflow)
    if is_start and state.status != "new":
        return Rejection(code="already_started", message="the workflow has already been started")
    if not is_start and state.status == "new":
        return Rejection(code="not_started", message="there is no such workflow")
    if state.is_terminal and not isinstance(command, c.RetryCompensation):
        if isinstance(command, _OPERATIONS):
            return Rejection(code="already_terminal", message=f"already in terminal state: {state.status}")
        return LATE
    return None


_OPERATIONS = (c.CancelWorkflow, c.AbortWorkflow, c.RequeueStep, c.DecideStep, c.SendSignal)


def _complete(turn: Turn) -> None:
    """A run without tokens is over."""
    state = turn.state
    if not turn.may_begin or state.tokens or state.parked or state.open:
        return
    turn.cancel_timer(DEADLINE)
    turn.emit(WorkflowCompleted())


def _tell_parent(turn: Turn) -> None:
    state = turn.state
    error = state.rollback.error if state.rollback else state.reason
    told = c.ChildEnded(step=state.parent_step, status=state.status, result=state.result, error=error)
    parent = InstanceId(UUID(state.parent))
    turn.send(Message(decider=state.parent_definition, command=told, instance=parent))


def _start(turn: Turn, command: c.StartWorkflow) -> None:
    turn.emit(
        WorkflowStarted(
            input=command.input,
            parent=command.parent,
            parent_definition=command.parent_definition,
            parent_step=command.parent_step,
        )
    )
    deadline = turn.routes.graph.policies.deadline_ms
    if deadline is not None:
        turn.set_timer(DEADLINE, deadline, c.PassDeadline())
    turn.move(ROOT, turn.routes.graph.entry)


def _complete_step(turn: Turn, command: c.CompleteStep) -> Answer | None:
    if command.step in turn.state.stopping:
        turn.emit(StepStopped(step=command.step, was_called=True, output=command.output))
        return None
    step = turn.state.open.get(command.step)
    if step is None:
        return LATE
    if step.of is not None:
        turn.emit(CompensationSucceeded(step=step.number))
        return None
    turn.cancel_timer(step_timer(step.number))
    turn.emit(StepCompleted(step=step.number, output=command.output))
    turn.leave(step.token, step.node, OK)
    return None


def _fail_step(turn: Turn, command: c.FailStep) -> Answer | None:
    if command.step in turn.state.stopping:
        turn.emit(StepStopped(step=command.step, was_called=command.was_called))
        return None
    step = turn.state.open.get(command.step)
    if step is None:
        return LATE
    if step.of is not None:
        undoing_failed(turn, step, command.error, is_final=command.is_final)
        return None
    node = turn.routes.node(step.node)
    assert isinstance(node.op, Task)
    work = node.op.work
    may_retry = not command.is_final and not work.once and policy_of(work.retry).allows_another(step.attempt)
    if may_retry and turn.may_begin:
        task.retry(turn, step, error=command.error, after=command.after)
    else:
        give_up(turn, step, command.error)
    return None


def _withdrawn(turn: Turn, command: c.WithdrawnStep) -> Answer | None:
    if command.step in turn.state.stopping:
        turn.emit(StepStopped(step=command.step, was_called=False))
        return None
    if command.step not in turn.state.open:
        return LATE
    if turn.may_begin:  # The run goes on meanwhile: let the step be called after all.
        step = turn.state.open[command.step]
        task.retry(turn, step, error="taken back before it began")
        return None
    turn.emit(StepWithdrawn(step=command.step))
    return None


def _time_out(turn: Turn, command: c.TimeOut) -> Answer | None:
    step = turn.state.open.get(command.step)
    if step is None:
        return LATE
    node = turn.routes.node(step.node)
    if isinstance(node.op, WaitTimer):
        turn.emit(StepCompleted(step=step.number))
        turn.leave(step.token, step.node, OK)
        return None
    turn.emit(TimedOut(step=step.number))
    if turn.routes.ways(step.node, TIMEOUT):
        turn.stop(step)
        turn.emit(StepCompleted(step=step.number, outcome=TIMEOUT))
        turn.leave(step.token, step.node, TIMEOUT)
    else:
        turn.stop(step)
        give_up(turn, step, f"{step.node!r} waited too long")
    return None


def _pass_deadline(turn: Turn, _command: c.PassDeadline) -> Answer | None:
    if turn.state.rollback is not None:
        return LATE
    _cancel(turn, SYSTEM, "the deadline has passed")
    return None


def _decide_step(turn: Turn, command: c.DecideStep) -> Answer | None:
    step = turn.state.open.get(command.step)
    if step is None or not isinstance(turn.routes.node(step.node).op, Human):
        return Rejection(code="not_waiting", message=f"step {command.step} does not wait for a decision")
    actor = turn.moment.actor
    turn.cancel_timer(step_timer(step.number))
    if command.decision == "confirmed":
        turn.emit(Approved(step=step.number, actor=actor, comment=command.comment))
        turn.emit(StepCompleted(step=step.number, outcome="confirmed"))
        turn.leave(step.token, step.node, "confirmed")
        return None
    turn.emit(Rejected(step=step.number, actor=actor, comment=command.comment))
    turn.emit(StepCompleted(step=step.number, outcome="rejected"))
    if turn.routes.ways(step.node, "rejected"):
        turn.leave(step.token, step.node, "rejected")
    else:
        _abort(turn, actor, f"{step.node!r} was rejected")
    return None


def _signal(turn: Turn, command: c.SendSignal) -> None:
    step = _waiting_for(turn, command.name)
    if step is None:
        turn.emit(SignalReceived(name=command.name, payload=command.payload))
    else:
        wait.received(turn, step, command.payload)


def _waiting_for(turn: Turn, signal: str) -> Step | None:
    for step in turn.state.open.values():
        op = turn.routes.node(step.node).op
        if isinstance(op, WaitEvent) and op.signal == signal:
            return step
    return None


def _cancel_workflow(turn: Turn, command: c.CancelWorkflow) -> Answer | None:
    if turn.state.rollback is not None:
        word = "cancellation" if turn.state.rollback.cause == "cancel" else "rollback"
        return Rejection(code="rollback_in_progress", message=f"a {word} is in progress already")
    _cancel(turn, turn.moment.actor, command.reason)
    return None


def _cancel(turn: Turn, actor: str, reason: str) -> None:
    turn.cancel_timer(DEADLINE)
    undoes = turn.routes.graph.policies.on_cancel == "compensate"
    turn.emit(CancellationStarted(requested_by=actor, reason=reason))
    stop_everything(turn, will_undo=undoes)
    if undoes:
        start_rollback(turn, cause="cancel")
    else:
        turn.emit(WorkflowCancelled(requested_by=actor, reason=reason))


def _abort_workflow(turn: Turn, command: c.AbortWorkflow) -> None:
    _abort(turn, turn.moment.actor, command.reason)


def _abort(turn: Turn, actor: str, reason: str) -> None:
    turn.cancel_timer(DEADLINE)
    turn.emit(AbortStarted(requested_by=actor, reason=reason))
    stop_everything(turn, will_undo=False)
    turn.emit(WorkflowAborted(requested_by=actor, reason=reason))


def _requeue(turn: Turn, command: c.RequeueStep) -> Answer | None:
    state = turn.state
    step = state.dead.get(command.step)
    if step is None:
        return Rejection(code="not_dead", message=f"step {command.step} is not among the dead letters")
    turn.emit(StepRequeued(step=command.step, actor=turn.moment.actor, input=command.input))
    held, frozen = list(state.held), list(state.frozen.values())
    if state.status == "paused":
        turn.emit(WorkflowResumed())
    for each in (step, *frozen):
        _begin_again(turn, each)
    for move in held:
        turn.leave(move.token, move.node, move.outcome)
    return None


def _begin_again(turn: Turn, step: Step) -> None:
    """A new row for a step that is tried again; the old one stays as it ended."""
    node = turn.routes.node(step.node)
    number = turn.next_number()
    turn.emit(
        StepStarted(
            step=number,
            node=step.node,
            token=step.token,
            visit=step.visit + 1,
            effect=turn.upcoming_effect(),
            input=step.input,
            retry_of=step.number,
        )
    )
    task.call(turn, turn.state.open[number], node)


def _retry_compensation(turn: Turn, command: c.RetryCompensation) -> Answer | None:
    rollback = turn.state.rollback
    if rollback is None or rollback.stuck is None:
        return Rejection(code="not_dead", message=f"compensation {command.step} is not among the dead letters")
    executed = turn.state.executed[rollback.stuck]
    work = turn.routes.node(executed.node).compensation
    assert work is not None
    turn.emit(WorkflowResumed())
    begin_undoing(turn, executed, work)
    return None


def _child_ended(turn: Turn, command: c.ChildEnded) -> Answer | None:
    step = turn.state.open.get(command.step)
    if step is None:
        return LATE
    turn.cancel_timer(step_timer(step.number))
    if command.status == "completed":
        turn.emit(StepCompleted(step=step.number, output=command.result))
        turn.leave(step.token, step.node, OK)
    else:
        give_up(turn, step, f"the workflow that {step.node!r} started ended as {command.status}: {command.error}")
    return None


def _note_missing(turn: Turn, command: c.NoteMissingHandler) -> Answer | None:
    if command.step not in turn.state.open:
        return LATE
    turn.emit(HandlerMissing(step=command.step, handler=command.handler))
    return None


_TABLE: dict[type[c.Command], Callable[..., Answer | None]] = {
    c.StartWorkflow: _start,
    c.CompleteStep: _complete_step,
    c.FailStep: _fail_step,
    c.WithdrawnStep: _withdrawn,
    c.TimeOut: _time_out,
    c.PassDeadline: _pass_deadline,
    c.DecideStep: _decide_step,
    c.SendSignal: _signal,
    c.CancelWorkflow: _cancel_workflow,
    c.AbortWorkflow: _abort_workflow,
    c.RequeueStep: _requeue,
    c.RetryCompensation: _retry_compensation,
    c.ChildEnded: _child_ended,
    c.NoteMissingHandler: _note_missing,
}
