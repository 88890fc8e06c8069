"""What a run answers to a command: a function for each command, found in a table."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from standfast.errors import ExpressionError
from standfast.graph.index import GraphIndex
from standfast.graph.model import ActionOp, GateOp, PolicyGateOp
from standfast.kernel.actor import Actor
from standfast.kernel.decision import Answer, Ignored, Message
from standfast.kernel.facts import archived_fact
from standfast.kernel.ids import InstanceId
from standfast.kernel.moment import Moment
from standfast.machine.audit import faced_by, is_noted, note
from standfast.machine.documents.migration import switch
from standfast.machine.documents.mutations import mutate, tell_drift
from standfast.machine.documents.transitions import create, request, supersede
from standfast.machine.flow.cancellation import abort
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.failures import give_up, pass_deadline, take_answer
from standfast.machine.flow.handler_calls import mapped_output
from standfast.machine.flow.rollback import (
    NOT_UNDONE,
    cancel,
    child_undone,
    end_grace,
    go_back,
    is_awaited,
    is_to_undo,
    passes_no_return,
    retry_undoing,
    stopped,
    undo,
    undoing_failed,
    undone,
    work_of,
)
from standfast.machine.flow.slots import release
from standfast.machine.flow.unneeded_branches import is_stopping, undo_dropped
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.commands.document_commands import (
    CreateDocument,
    Mutate,
    RequestTransition,
    SupersedeDocument,
    SwitchWorkflow,
    TellDrift,
)
from standfast.machine.model.commands.repair_commands import CancelBranch, ForkWorkflow, SkipStep
from standfast.machine.model.commands.timers import DEADLINE, GRACE, START, step_timer
from standfast.machine.model.events import (
    CancellationStarted,
    ChildEnded,
    ChildUndone,
    HandlerMissing,
    StepRolledBack,
    WorkflowCompleted,
    WorkflowFailed,
    WorkflowResumed,
    WorkflowStarted,
)
from standfast.machine.model.queries.authorization import repair_refusal, requeue_refusal, stop_refusal
from standfast.machine.model.queries.branches import needs_undoing
from standfast.machine.model.queries.eligibility import acting_names
from standfast.machine.model.queries.outputs import is_within, too_large
from standfast.machine.model.queries.starter_rights import lack_of
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import ROOT, Executed, RunState, StepState
from standfast.machine.nodes import kind_of
from standfast.machine.nodes.action import completed, taken_back
from standfast.machine.nodes.call import child_ended, child_stopped, is_undone
from standfast.machine.nodes.event_wait import take_events
from standfast.machine.nodes.gate import actor_found
from standfast.machine.nodes.task import failed, returned
from standfast.machine.nodes.wait import signal
from standfast.machine.preconditions import LATE, REPAIRS, refusal_of
from standfast.machine.process_advance import advance
from standfast.machine.recovery.fork import fork
from standfast.machine.recovery.human_decisions import end_child_refusal
from standfast.machine.recovery.involved_people import involve, involve_authors
from standfast.machine.recovery.pause import expire, go_on, pause, resume
from standfast.machine.recovery.repair import (
    ended_by_life,
    repair,
    requeue,
    return_to_save_point,
)
from standfast.machine.recovery.rule_resume import stations, tell_of_waking
from standfast.machine.tasks.actions import TASK_COMMANDS, task_command
from standfast.machine.tasks.assignment import NO_APPROVER, people_found
from standfast.machine.tasks.completion import answer_step
from standfast.machine.tasks.notifications import end_notice
from standfast.machine.tasks.reminders import escalate, remind
from standfast.machine.tasks.review import ask_again, look_at_others, people_reviewed

_MAY_BAR = (c.AnswerStep, SkipStep, CancelBranch, Mutate)
"""What may keep a person from deciding who is asked: deciding or passing another question, or editing the document. Giving a run other data does so too."""
_KNOWN = Ignored(reason="the history says so already")


def decide(routes: GraphIndex, state: RunState, command: c.Command, moment: Moment) -> Answer:
    """The answer to a command. The state is changed as far as the answer is a decision."""
    refusal = refusal_of(routes, state, command, moment)
    if refusal is not None:
        return refusal
    turn = DecisionBuilder(routes, state, moment, kind_of)
    known = None if state.status == "new" else len(state.involved)
    authors = set() if state.document is None else state.document.authors()
    before = faced_by(turn, command) if routes.documents is not None and is_noted(turn, command) else None
    answer = _TABLE[type(command)](turn, command)
    if answer is not None:
        return answer
    if before is not None and turn.has_happened:
        note(turn, command, before)
    turn.run()
    may_bar = isinstance(command, _MAY_BAR) or (isinstance(command, c.ResumeWorkflow) and command.override)
    if state.open and (may_bar or known not in {None, len(state.involved)}):
        look_at_others(turn)
    if state.rollback is not None:
        go_back(turn)
        if state.may_begin:
            return_to_save_point(turn)
    if state.dropped is not None:
        undo_dropped(turn)
    if state.document is not None:
        _let_go_on(turn)
        involve_authors(turn, authors)
    _complete(turn)
    if state.parent and turn.has_ended:
        _tell_parent(turn)
    return turn.decision() if turn.has_happened else LATE


def _let_go_on(turn: DecisionBuilder) -> None:
    """A document that waited at the end of a slot goes on once nothing else of it is under way; so far as that leads."""
    while release(turn):
        turn.run()
        if turn.state.dropped is not None:
            undo_dropped(turn)


def _complete(turn: DecisionBuilder) -> None:
    """A run without tokens is over, once what it did in vain is undone."""
    state = turn.state
    if not state.may_begin or state.tokens or state.parked or state.open:
        return
    if state.dropped is None:
        turn.emit(WorkflowCompleted())
    elif state.dropped.stuck is not None:
        node, why = state.executed[state.dropped.stuck].node, state.dropped.whence
        turn.pause(NOT_UNDONE, f"{node!r}, {why}, could not be undone")


def _tell_parent(turn: DecisionBuilder) -> None:
    state, routes = turn.state, turn.routes
    is_done = state.status == "completed"
    to_undo = is_done and any(needs_undoing(routes, each) for each in state.executed.values())
    keeps = is_done and routes.remembers
    passed = [each.node for each in state.executed.values() if keeps and passes_no_return(routes, each)]
    is_cancelled = state.status == "cancelled" and routes.policies.on_cancel == "compensate"
    told = c.EndChild(
        step=state.parent_step,
        status=state.status,
        result=state.result if is_done else None,
        error=state.error,
        reason=state.reason,
        is_undoable=to_undo and not passed,
        no_return=passed[0] if passed else "",
        has_undone=state.status == "failed" or is_cancelled,
        involved=state.involved,
    )
    parent = InstanceId(UUID(state.parent))
    turn.send(Message(decider=state.parent_definition, command=told, instance=parent))


# -- the start


def _start(turn: DecisionBuilder, command: c.StartWorkflow) -> Answer | None:
    if turn.routes.documents is not None:
        told = f"{turn.routes.graph.name!r} manages documents: create one, and it begins by itself"
        return refused(Refusal.NO_DOCUMENT, told)
    if not command.parent and not is_within(turn.routes, command.input):
        return too_large(turn.routes, "the input")
    actor = turn.moment.actor
    is_own = actor.kind == "system"
    starter, may = (command.starter, command.may) if is_own else (actor.id, sorted(actor.capabilities))
    keeps = turn.routes.asks_starter
    turn.emit(
        WorkflowStarted(
            input=command.input,
            delay_ms=command.delay_ms,
            parent=command.parent,
            parent_definition=command.parent_definition,
            parent_step=command.parent_step,
            requester=_requester(turn.moment.actor, command),
            involved=_involved(turn.moment.actor, command),
            wait_ms=command.wait_ms,
            escalates=command.escalates,
            looks_up=command.looks_up,
            starter=starter if keeps else "",
            may=may if keeps else [],
            has_row=turn.routes.graph.kind == "process",
        )
    )
    barred = _barred(turn, command)
    if barred is not None:
        turn.emit(WorkflowFailed(error=barred[1], reason=barred[0].value))
        return None
    deadline = turn.routes.policies.deadline_ms
    if deadline is not None:
        turn.set_timer(DEADLINE, command.delay_ms + deadline, c.PassDeadline())
    if command.delay_ms > 0:
        turn.set_timer(START, command.delay_ms, c.BeginWorkflow())
    else:
        _enter(turn)
    return None


def _barred(turn: DecisionBuilder, command: c.StartWorkflow) -> tuple[Refusal, str] | None:
    """Why the run that starts this one may not: the definition is archived, or its starter lacks a right. Nothing is done then, and the caller is told."""
    if not command.parent:
        return None
    graph = turn.routes.graph
    closed = turn.moment.facts.get(archived_fact(graph.name, graph.version)).value
    if closed:
        return Refusal.ARCHIVED, str(closed)
    if not command.starter:
        return None
    starter = Actor(id=command.starter, capabilities=frozenset(command.may))
    lack = lack_of(starter, graph.rights.start, f"start {graph.name!r}", turn.moment.facts)
    return (Refusal.NOT_ALLOWED, lack) if lack else None


def _requester(actor: Actor, command: c.StartWorkflow) -> str:
    """Who wants the run: its actor, or, if the engine itself starts it, who wanted the run that asks for it."""
    return command.requester if actor.kind == "system" else actor.on_behalf_of or actor.id


def _involved(actor: Actor, command: c.StartWorkflow) -> list[str]:
    """Who else has brought the run about: whoever starts it for another, and who is named by what starts it."""
    names = [*acting_names(actor), *command.involved] if actor.on_behalf_of else command.involved
    return [name for name in dict.fromkeys(names) if name != _requester(actor, command)]


def _begin(turn: DecisionBuilder, _command: c.BeginWorkflow) -> Answer | None:
    if turn.moment.fired_timer != START:
        return LATE
    _enter(turn)
    return None


def _enter(turn: DecisionBuilder) -> None:
    turn.move(ROOT, turn.routes.graph.entry)


# -- what comes back from handlers, timers, people and the world


def _complete_step(turn: DecisionBuilder, command: c.CompleteStep) -> Answer | None:
    if is_awaited(turn, command.step):
        if turn.state.document is not None and work_of(turn, command.step).transactional:
            told = f"step {command.step} was stopped, because its slot was left; nothing of what it wrote counts"
            return refused(Refusal.NOT_WAITING, told)
        stopped(turn, command.step, came_back=True, is_done=True, output=command.output)
        return None
    step = _called(turn, command.step)
    if step is None:
        return LATE
    if isinstance(turn.routes.node(step.node).op, ActionOp):
        return (completed if step.of is None else taken_back)(turn, step, command.output)
    if step.of is not None:
        undone(turn, step)
    else:
        turn.cancel_step_timer(step)
        _keep_answer(turn, step, command.output)
    return None


def _keep_answer(turn: DecisionBuilder, step: StepState, answer: object) -> None:
    """End a step with what its task keeps of the answer. A task that cannot tell what it keeps has failed: no later step is given a null instead."""
    if turn.routes.maps_answers:
        try:
            answer = mapped_output(turn, step, answer)
        except ExpressionError as error:
            give_up(turn, step, f"the handler of {step.node!r} has answered, and its output cannot be told: {error}")
            return
    take_answer(turn, step, answer)


def _fail_step(turn: DecisionBuilder, command: c.FailStep) -> Answer | None:
    if is_awaited(turn, command.step):
        stopped(turn, command.step, came_back=command.was_called)
        return None
    step = _called(turn, command.step)
    if step is None:
        return LATE
    if step.of is not None:
        undoing_failed(turn, step, command)
    else:
        failed(turn, step, command)
    return None


def _return_step(turn: DecisionBuilder, command: c.ReturnStep) -> Answer | None:
    if is_awaited(turn, command.step):
        stopped(turn, command.step, came_back=False)
        return None
    step = _called(turn, command.step)
    if step is None:
        return LATE
    returned(turn, step, is_asked=command.is_asked)
    return None


def _resumes_if_free(act: Callable[..., Answer | None]) -> Callable[..., Answer | None]:
    """Wrap the function of a command: afterwards the run goes on if nothing holds it up any more.

    That is so once a question has an approver again, or once a document is rejected and all else in its slot has ended.
    """

    def decide(turn: DecisionBuilder, command: c.Command) -> Answer | None:
        answer, state = act(turn, command), turn.state
        if answer is None and state.status == "paused" and state.pause is None and _is_free(state):
            go_on(turn)
        return answer

    return decide


def _is_free(state: RunState) -> bool:
    if state.document is not None and state.document.refused is not None:
        return True
    return state.reason == NO_APPROVER and not any(each.trouble for each in state.questions.values())


def _records_resume(act: Callable[..., Answer | None]) -> Callable[..., Answer | None]:
    """Wrap the function of a command: afterwards the history says so if the command has resumed a run of rules, which counts as paused while it waits."""

    def decide(turn: DecisionBuilder, command: c.Command) -> Answer | None:
        waited = stations(turn)
        answer = act(turn, command)
        if waited and answer is None:
            tell_of_waking(turn, waited, command)
        return answer

    return decide


def _called(turn: DecisionBuilder, number: int) -> StepState | None:
    """The open step with this number, if it has a call under way."""
    step = turn.state.open.get(number)
    return step if step is not None and step.effect is not None else None


def _time_out(turn: DecisionBuilder, command: c.TimeOut) -> Answer | None:
    step = turn.state.open.get(command.step)
    if step is None or turn.moment.fired_timer != step_timer(command.step):
        return LATE
    turn.kind(step).time_out(turn, step)
    return None


def _pass_deadline(turn: DecisionBuilder, _command: c.PassDeadline) -> Answer | None:
    if turn.moment.fired_timer != DEADLINE:
        return LATE
    pass_deadline(turn)
    return None


def _end_grace(turn: DecisionBuilder, _command: c.EndGrace) -> Answer | None:
    if turn.moment.fired_timer != GRACE:
        return LATE
    end_grace(turn)
    return None


def _involve(turn: DecisionBuilder, command: c.InvolvePeople) -> Answer | None:
    involve(turn, command.names)
    return None


def _end_child(turn: DecisionBuilder, command: c.EndChild) -> Answer | None:
    executed = turn.state.executed.get(command.step)
    if executed is not None and executed.child and command.step in turn.state.stopping:
        return None if child_stopped(turn, executed, command) else LATE
    undoing = next((each for each in turn.state.open.values() if each.of == command.step and each.child), None)
    if undoing is not None:
        child_undone(turn, undoing, command)
        return None
    caller = executed or turn.state.dead.get(command.step) or turn.state.frozen.get(command.step)
    if caller is not None and caller.not_undone and is_undone(command):
        _child_undone(turn, caller)
        return None
    step = turn.state.open.get(command.step)
    if step is None or step.of is not None or not step.child:
        return LATE
    involve(turn, command.involved)
    child_ended(turn, step, command)
    return None


def _child_undone(turn: DecisionBuilder, caller: Executed | StepState) -> None:
    """A child is undone that could not be: whoever has halted because of it goes on."""
    state = turn.state
    halted = state.rollback or state.dropped
    if not isinstance(caller, Executed) or halted is None or halted.stuck != caller.number:
        _note_undone(turn, caller)
        return
    if state.rollback is not None:
        turn.emit(WorkflowResumed())
    elif state.status == "paused" and state.reason == NOT_UNDONE:
        go_on(turn)
    _note_undone(turn, caller)
    if not is_to_undo(turn, caller):
        turn.emit(StepRolledBack(step=turn.next_step, of=caller.number))
    elif state.rollback is not None:
        undo(turn, caller)


def _note_undone(turn: DecisionBuilder, caller: Executed | StepState) -> None:
    turn.emit(ChildUndone(step=caller.number))
    if caller.is_undoable or turn.routes.node(caller.node).compensation is not None:
        turn.emit(ChildEnded(step=caller.number, is_settled=True))


def _people_found(turn: DecisionBuilder, command: c.PeopleFound) -> Answer | None:
    step = turn.state.open.get(command.step)
    if step is None or not isinstance(turn.routes.node(step.node).op, GateOp | PolicyGateOp):
        return people_found(turn, command)
    actor_found(turn, step, command)
    return None


def _note_missing(turn: DecisionBuilder, command: c.NoteMissingHandler) -> Answer | None:
    step = _called(turn, command.step)
    if step is None:
        return LATE
    if step.missed == step.effect:
        return _KNOWN
    turn.emit(HandlerMissing(step=command.step, handler=command.handler))
    return None


# -- what people ask for


def _cancel_workflow(turn: DecisionBuilder, command: c.CancelWorkflow) -> Answer | None:
    if turn.state.document is not None:
        return ended_by_life(turn.state.document)
    barred = stop_refusal(turn.routes.graph, turn.moment.actor) or end_child_refusal(turn)
    if barred is not None:
        return barred
    rollback = turn.state.rollback
    if rollback is None:
        if by := command.by or _in_words(turn, command.reason):
            turn.stops_for(by)
        cancel(turn, turn.moment.actor.id, command.reason)
        return None
    if command.by_parent:
        return LATE  # It undoes what it did already, and will tell when it has ended.
    word = "cancellation" if rollback.cause == "cancel" else "rollback"
    return refused(Refusal.ROLLBACK_IN_PROGRESS, f"a {word} is in progress already")


def _in_words(turn: DecisionBuilder, reason: str) -> str:
    """Who stops the run, and why, as the runs below are told; empty for the engine itself."""
    actor = turn.moment.actor
    return "" if actor.kind == "system" else f"{actor.id!r}: {reason}" if reason else repr(actor.id)


def _undo_workflow(turn: DecisionBuilder, command: c.UndoWorkflow) -> Answer | None:
    """Undo what was done, also after a good end: that is for the run alone that this one is a part of."""
    state, actor = turn.state, turn.moment.actor
    if actor.kind != "system" or (state.parent, state.parent_step) != (command.parent, command.step):
        told = (
            f"only the workflow that started {turn.moment.instance} can have it undone, as a part of its own rollback"
        )
        return refused(Refusal.NOT_ALLOWED, f"{told}; cancel it while it runs")
    if state.rollback is not None or state.status not in {"running", "paused", "completed"}:
        return LATE  # It undoes what it did already, or has.
    if state.status == "completed":
        turn.emit(CancellationStarted(requested_by=actor.id, reason=command.reason))
    else:
        cancel(turn, actor.id, command.reason)
    return None


def _abort_workflow(turn: DecisionBuilder, command: c.AbortWorkflow) -> Answer | None:
    if turn.state.document is not None:
        return ended_by_life(turn.state.document)
    barred = stop_refusal(turn.routes.graph, turn.moment.actor) or end_child_refusal(turn)
    if barred is None:
        if by := command.by or _in_words(turn, command.reason):
            turn.stops_for(by)
        abort(turn, turn.moment.actor.id, command.reason)
    return barred


def _requeue(turn: DecisionBuilder, command: c.RequeueStep) -> Answer | None:
    barred = requeue_refusal(turn.routes.graph, turn.moment.actor, is_changed=command.input is not None)
    if barred is not None:
        return barred
    step = turn.state.dead.get(command.step)
    if step is None:
        return refused(Refusal.NOT_DEAD, f"step {command.step} is not among the dead letters")
    return requeue(turn, step, command.input, command.reason)


def _retry_compensation(turn: DecisionBuilder, command: c.RetryCompensation) -> Answer | None:
    barred = repair_refusal(turn.moment.actor)
    if barred is not None:
        return barred
    state = turn.state
    halted = state.rollback or state.dropped
    if halted is None or halted.stuck is None or halted.stuck != command.step:
        return refused(Refusal.NOT_DEAD, f"the compensation of step {command.step} is not among the dead letters")
    executed = state.executed[halted.stuck]
    if executed.not_undone:
        told = (
            f"the workflow {executed.child} that {executed.node!r} started could not be undone: {executed.not_undone}"
        )
        how = f"try its own compensation again, or undo by hand what it did, and skip step {command.step} of this workflow"
        return refused(Refusal.CHILD_NOT_UNDONE, f"{told}; {how}")
    if state.rollback is not None:
        retry_undoing(turn, executed)
        return None
    if state.dropped is not None and is_stopping(turn, state.dropped):
        return refused(
            Refusal.STILL_STOPPING, "handlers of this branch are still being stopped; try again when they have"
        )
    if state.status == "paused" and state.reason == NOT_UNDONE:
        go_on(turn)
    undo(turn, executed, is_asked=True)
    return None


_TABLE: dict[type[c.Command], Callable[..., Answer | None]] = {
    c.StartWorkflow: _start,
    c.BeginWorkflow: _begin,
    c.CompleteStep: _complete_step,
    c.FailStep: _fail_step,
    c.ReturnStep: _return_step,
    c.TimeOut: _records_resume(_resumes_if_free(_time_out)),
    c.PassDeadline: _pass_deadline,
    c.EndGrace: _end_grace,
    c.AnswerStep: _records_resume(_resumes_if_free(answer_step)),
    c.AdvanceProcess: _records_resume(_resumes_if_free(advance)),
    c.SendSignal: signal,
    c.CancelWorkflow: _cancel_workflow,
    c.AbortWorkflow: _abort_workflow,
    c.UndoWorkflow: _undo_workflow,
    c.RequeueStep: _requeue,
    c.PauseWorkflow: pause,
    c.ResumeWorkflow: _resumes_if_free(resume),
    c.ExpirePause: expire,
    c.RetryCompensation: _retry_compensation,
    c.EndChild: _end_child,
    c.InvolvePeople: _involve,
    c.NoteMissingHandler: _note_missing,
    c.PeopleFound: _people_found,
    c.PeopleReviewed: _resumes_if_free(people_reviewed),
    c.AskAgain: _resumes_if_free(ask_again),
    c.TakeEvents: _records_resume(take_events),
    **dict.fromkeys(REPAIRS, _resumes_if_free(repair)),
    ForkWorkflow: fork,
    c.RemindTask: remind,
    c.EscalateTask: _records_resume(_resumes_if_free(escalate)),
    c.EndNotice: end_notice,
    **dict.fromkeys(TASK_COMMANDS, _records_resume(_resumes_if_free(task_command))),
    CreateDocument: create,
    Mutate: _resumes_if_free(mutate),
    RequestTransition: request,
    SupersedeDocument: supersede,
    SwitchWorkflow: switch,
    TellDrift: tell_drift,
}
