"""What a run answers to operators who repair it: who may, what can be done to which step, and what follows from it.

None of it is done over a gate that is protected, while the run undoes itself, or without a reason.
"""

from __future__ import annotations

from typing import Literal

from standfast.errors import ExpressionError
from standfast.graph.index import GraphIndex
from standfast.graph.model import (
    OK,
    ConditionOp,
    HumanOp,
    Node,
    SavePointOp,
    SplitOp,
)
from standfast.kernel.decision import Rejection
from standfast.machine.flow.action_inputs import take_over
from standfast.machine.flow.cancellation import stop_step
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.handler_calls import call_anew, mapped_output
from standfast.machine.flow.list_branches import enter_changed, lists_of_document
from standfast.machine.flow.node_kind import no_transition
from standfast.machine.flow.process_answers import keep_answers, void_answers
from standfast.machine.flow.rollback import NOT_UNDONE, behind, halt, passes_no_return
from standfast.machine.flow.routing import finish, is_barred, leave_by, pass_through, stay_or_end, way_out
from standfast.machine.flow.slots import standing, void
from standfast.machine.model.commands import repair_commands as r
from standfast.machine.model.commands.run_commands import AnswerStep
from standfast.machine.model.commands.timers import DEADLINE
from standfast.machine.model.document_state import Document
from standfast.machine.model.events import (
    CompensationWaived,
    DataAssigned,
    DataChanged,
    MoveBackStarted,
    Repairing,
    RollbackStarted,
    StepRepaired,
    StepRequeued,
    StepSkipped,
    WorkflowResumed,
)
from standfast.machine.model.folds.task_fold import DATA_CHANGED
from standfast.machine.model.json_values import fingerprint, patched
from standfast.machine.model.queries.authorization import override_refusal, repair_refusal
from standfast.machine.model.queries.eligibility import separation_refusal
from standfast.machine.model.queries.outputs import (
    Data,
    fits,
    hidden_of,
    hidden_refusal,
    is_within,
    may_become,
    merged,
    too_large,
)
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import ROOT, Executed, RunState, StepState, Token
from standfast.machine.recovery.branch_cancel import cancel_branch
from standfast.machine.recovery.human_decisions import (
    around_refusal,
    end_child_refusal,
    past_call_refusal,
    past_refusal,
    say_refusal,
)
from standfast.machine.recovery.involved_people import involve_actor, keep_refusal
from standfast.machine.recovery.passed_steps import approvals_kept
from standfast.machine.recovery.pause import OF_A_STEP, go_on
from standfast.machine.recovery.protection import before_gates, is_protected, protected

AGAIN = "retry"
"""In the metadata of a step of a process: what it takes to have its call made again. So is the event called by which that is asked for."""

_OTHER_DATA = "give the run other data"
_CHANGED = "the data was changed"


def repair(turn: DecisionBuilder, command: r.Repair) -> Rejection | None:
    """Do what an operator asks for; why not, if it cannot be done."""
    refusal = may_repair(turn, command.reason)
    waives = isinstance(command, r.SkipStep) and _is_of_compensation(turn.state, command.step)
    if refusal is None and turn.state.rollback is not None and not waives:
        told = "the workflow undoes what it did, and nothing can be repaired meanwhile; wait for its end, or abort it"
        refusal = refused(Refusal.ROLLBACK_IN_PROGRESS, told)
    if refusal is not None:
        return refusal
    match command:
        case r.SkipStep() if waives:
            return _waive(turn, command)
        case r.ChangeData():
            return _change_data(turn, command)
        case r.MoveBack():
            return _move_back(turn, command)
        case r.CancelBranch():
            return cancel_branch(turn, command)
        case r.ForceFailure() if turn.state.document is not None:
            return ended_by_life(turn.state.document)
        case r.ForceFailure():
            return _force_failure(turn, command)
        case r.ForkWorkflow():
            raise AssertionError("a fork is a start")
        case _:
            return _repair_step(turn, command)


def ended_by_life(document: Document) -> Rejection:
    """What is said to whoever wants to end the run of a document, which would leave a document that nothing can be done to."""
    told = f"{document.id!r} is a document, which ends by its lifecycle alone; ask for one of its transitions"
    return refused(Refusal.DOCUMENT_LIFE, told)


def may_repair(turn: DecisionBuilder, reason: str) -> Rejection | None:
    """Why an actor may not repair anything: it lacks the capability, or does not say why."""
    barred = repair_refusal(turn.moment.actor)
    if barred is not None:
        return barred
    if not reason.strip():
        return refused(Refusal.NO_REASON, "a repair needs a reason, which the history keeps: say why")
    return None


# -- a compensation that gave up


def _is_of_compensation(state: RunState, step: int) -> bool:
    """Whether a skip is about what could not be undone: of a run that has failed by it, or of a branch that was not needed."""
    halted = state.rollback or state.dropped
    if halted is None or halted.stuck is None:
        return False
    return state.rollback is not None or halted.stuck == step


def _waive(turn: DecisionBuilder, command: r.SkipStep) -> Rejection | None:
    """Go on without the compensation of the named step. The same call again is refused: nothing waits for that compensation then."""
    state = turn.state
    halted = state.rollback or state.dropped
    assert halted is not None
    assert halted.stuck is not None
    node = state.executed[halted.stuck].node
    if halted.stuck != command.step:
        told = f"the rollback does not wait for the compensation of step {command.step}, but for that of step {halted.stuck} ({node!r})"
        return refused(Refusal.NOT_DEAD, told)
    if command.outcome:
        told = f"the compensation of {node!r} has no outcomes; leave the outcome out"
        return refused(Refusal.UNKNOWN_OUTCOME, told)
    if state.rollback is not None:
        turn.emit(WorkflowResumed())
    turn.emit(CompensationWaived(step=halted.stuck, actor=turn.moment.actor.id, reason=command.reason))
    if state.status == "paused" and state.reason == NOT_UNDONE:
        go_on(turn)
    return None


# -- one step


def _repair_step(
    turn: DecisionBuilder, command: r.RetryStep | r.ReenqueueStep | r.SkipStep | r.CompleteByHand
) -> Rejection | None:
    state = turn.state
    step = state.open.get(command.step) or state.dead.get(command.step) or state.frozen.get(command.step)
    if step is None:
        return refused(Refusal.NOT_OPEN, f"step {command.step} has not begun, or has ended; {_others(state)}")
    if step.of is not None:
        told = f"step {command.step} undoes {step.node!r}, and is tried again as a dead letter once it gave up"
        return refused(Refusal.NOT_REPAIRABLE, told)
    node = turn.routes.node(step.node)
    if is_protected(node) and not (isinstance(command, r.RetryStep) and step.number in state.dead):
        return protected(node)
    match command:
        case r.RetryStep():
            return _retry(turn, step, command)
        case r.ReenqueueStep():
            return _reenqueue(turn, step, command)
        case r.SkipStep():
            return _skip(turn, step, command)
        case r.CompleteByHand():
            return _complete(turn, step, command)


def _others(state: RunState) -> str:
    steps = [step for step in (*state.open.values(), *state.dead.values(), *state.frozen.values()) if step.of is None]
    named = ", ".join(f"{step.number} ({step.node!r})" for step in sorted(steps, key=lambda each: each.number))
    return f"these steps have not ended: {named}" if named else "no step of it waits for anything"


def _retry(turn: DecisionBuilder, step: StepState, command: r.RetryStep) -> Rejection | None:
    """Of a step that gave up a new one is begun; the call of one that waits is taken back, and comes again at once."""
    state = turn.state
    if step.number in state.dead:
        return requeue(turn, step, command.input, command.reason, verb="retry")
    if command.input is not None:
        told = (
            f"{step.node!r} has not given up, so its input stays; change the data of its token first, and then retry it"
        )
        return refused(Refusal.NOT_DEAD, told)
    refusal = _uncalled(turn, step)
    if refusal is None:
        _note(turn, step, "retry", command.reason)
        turn.recall(step, stop=False, is_asked=True)
    return refusal


def requeue(
    turn: DecisionBuilder,
    step: StepState,
    data: Data | None,
    reason: str,
    *,
    verb: Literal["requeue", "retry"] = "requeue",
) -> Rejection | None:
    """Begin a step anew that gave up. A gate that has denied it looks again: at whoever asks now, if they may do what is behind it themselves."""
    node = turn.routes.node(step.node)
    if data is not None and is_protected(node):  # It looks again at what is so, and not at what an operator says.
        return protected(node)
    if data is not None:
        own = hidden_of(turn.routes, turn.state.tokens[step.token].data)
        barred = _other_data_refusal(turn) or hidden_refusal(turn.routes, data, own)
        if barred is not None:
            return barred
        data = own | data
        if not is_within(turn.routes, data):
            return too_large(turn.routes, "the input")
    if turn.state.document is not None and turn.kind(step).may_take_over(turn, node):
        take_over(turn)
    if data is not None:
        _void_decided(turn)
    kept = () if data is None else approvals_kept(turn.routes, turn.state)
    turn.emit(StepRequeued(step=step.number, actor=turn.moment.actor.id, input=data, reason=reason, verb=verb))
    if data is not None:
        involve_actor(turn, keeps=kept)
    turn.move(step.token, step.node, is_asked=True)
    if turn.state.status == "paused" and turn.state.pause is None:  # What somebody has paused goes on when he says so.
        go_on(turn)
    return None


def _other_data_refusal(turn: DecisionBuilder) -> Rejection | None:
    """Why an actor may not give the run other data: people have a say in it, or have decided what the actor may not decide."""
    return say_refusal(turn, _OTHER_DATA) or keep_refusal(turn, turn.state)


def may_be_repeated(routes: GraphIndex, node: Node) -> bool:
    """Whether the definition of a process lets those who advance it have a call made again."""
    return routes.graph.kind == "process" and AGAIN in node.metadata


def repeat(turn: DecisionBuilder, step: StepState, command: AnswerStep) -> Rejection | None:
    """Have a call made again that is under way, or put off: by the transition for that, whose guard the actor must have."""
    guard = str(turn.routes.node(step.node).metadata[AGAIN])
    if command.outcome != AGAIN or not turn.moment.actor.may(guard):
        return no_transition(step.node, command.outcome, turn.moment.actor.id)
    given = command.data if isinstance(command.data, dict) else {}
    if given and not guard:
        told = f"{AGAIN!r} of {step.node!r} has no guard, so it does the same again: leave out the data"
        return refused(Refusal.INVALID_FORM, told)
    barred = hidden_refusal(turn.routes, given) or (_other_data_refusal(turn) if given else None)
    if barred is not None:
        return barred
    if not is_within(turn.routes, {**turn.state.tokens[step.token].data, **given}):
        return too_large(turn.routes, f"what comes with {AGAIN!r}")
    _note(turn, step, "retry", command.comment)
    if given:
        turn.emit(DataAssigned(token=step.token, data=given))
        involve_actor(turn, keeps=approvals_kept(turn.routes, turn.state))
    turn.withdraw(step)
    call_anew(turn, step)
    return None


def _uncalled(turn: DecisionBuilder, step: StepState) -> Rejection | None:
    """Why no call of a step is waiting."""
    if step.number not in turn.state.open:
        told = f"{step.node!r} waits for the workflow, which is paused; resume it, or skip or complete the step"
        return refused(Refusal.NOT_REPAIRABLE, told)
    if step.effect is None:
        told = f"{step.node!r} calls no handler; skip it, complete it by hand, or give it what it waits for"
        return refused(Refusal.NOT_REPAIRABLE, told)
    return None


def _reenqueue(turn: DecisionBuilder, step: StepState, command: r.ReenqueueStep) -> Rejection | None:
    """The effect goes, with whatever claim there is on it, and another one takes its place."""
    refusal = _uncalled(turn, step)
    if refusal is not None:
        return refusal
    work = turn.routes.node(step.node).op.call
    assert work is not None
    if work.once:
        told = f"{step.node!r} is called at most once, and may have been; skip it, or complete it by hand"
        return refused(Refusal.NOT_REPAIRABLE, told)
    _note(turn, step, "reenqueue", command.reason)
    turn.withdraw(step)
    call_anew(turn, step)
    return None


def _skip(turn: DecisionBuilder, step: StepState, command: r.SkipStep) -> Rejection | None:
    """Leave a step by one of its outcomes."""
    node, token = turn.routes.node(step.node), turn.state.tokens[step.token]
    outcome = command.outcome or _good_outcome(node)
    refusal = _unskippable(node) or _goes_past(turn, step, outcome)
    if refusal is not None:
        return refusal
    if outcome not in node.op.exits:
        possible = ", ".join(map(repr, sorted(node.op.exits)))
        told = f"cannot be left by {outcome!r}" if outcome else "is left by an outcome: name one"
        return refused(Refusal.UNKNOWN_OUTCOME, f"{node.id!r} {told}; there are {possible}")
    if is_barred(turn, token, node.id, outcome, data=token.data):
        return no_transition(node.id, outcome, turn.moment.actor.id)
    is_dead = step.number in turn.state.dead
    _take_in_hand(turn, step, "skip", command.reason)
    keep_answers(turn, step)
    edge = way_out(turn, token, node.id, outcome)
    to, by = ("", "") if edge is None else (edge.target, edge.id)
    actor = turn.moment.actor
    skipped = StepSkipped(
        step=step.number, outcome=outcome, to=to, edge=by, by=actor.id, on_behalf_of=actor.on_behalf_of
    )
    turn.emit(_instead(turn, token, node, skipped) if is_dead else skipped)
    if edge is None:
        stay_or_end(turn, token, node.id, outcome)
    else:
        leave_by(turn, token, edge)
    return None


def _complete(turn: DecisionBuilder, step: StepState, command: r.CompleteByHand) -> Rejection | None:
    """End a step as if its handler had come back."""
    node, token = turn.routes.node(step.node), turn.state.tokens[step.token]
    if OK not in node.op.exits:
        told = f"{node.id!r} is ended by a decision and not by an answer; have it decided, or skip it by an outcome"
        return refused(Refusal.NOT_REPAIRABLE, told)
    refusal = _goes_past(turn, step, OK) or (_other_data_refusal(turn) if command.output else None)
    refusal = refusal or hidden_refusal(turn.routes, command.output)
    if refusal is not None:
        return refusal
    try:
        output = mapped_output(turn, step, command.output) if turn.routes.maps_answers else command.output
    except ExpressionError as error:
        told = f"the output of {node.id!r} cannot be told from this answer: {error}"
        return refused(Refusal.INVALID_FORM, f"{told}; give what its handler would have come back with")
    if not fits(turn.routes, token.data, node.id, output):
        return too_large(turn.routes, f"the answer of {node.id!r}")
    data = merged(turn.routes, token.data, node.id, output)
    if is_barred(turn, token, node.id, OK, data=data, answer=output):
        return no_transition(node.id, OK, turn.moment.actor.id)
    is_dead = step.number in turn.state.dead
    keeps = approvals_kept(turn.routes, turn.state) if command.output else ()
    _take_in_hand(turn, step, "complete", command.reason)
    involve_actor(turn, keeps=keeps)
    actor = turn.moment.actor
    if is_dead:
        pass_through(turn, token, node, output=output, by=actor)
    else:
        finish(turn, step, output=output, by=actor)
    return None


def _instead(turn: DecisionBuilder, token: Token, node: Node, skipped: StepSkipped) -> StepSkipped:
    """The same of a step that stands for one that gave up, which has ended already."""
    return StepSkipped(
        step=turn.next_step,
        outcome=skipped.outcome,
        to=skipped.to,
        edge=skipped.edge,
        node=node.id,
        token=token.id,
        visit=token.visits.get(node.id, 0) + 1,
        retry_of=token.retry_of,
        by=skipped.by,
        on_behalf_of=skipped.on_behalf_of,
    )


def _unskippable(node: Node) -> Rejection | None:
    """Why nobody can go past a step by choosing an outcome: there is none to choose."""
    if not isinstance(node.op, SplitOp):
        return None
    told = f"{node.id!r} begins branches and cannot be skipped; correct the data that it reads, and retry it"
    return refused(Refusal.NOT_REPAIRABLE, told)


def _goes_past(turn: DecisionBuilder, step: StepState, outcome: str) -> Rejection | None:
    """Why an actor may not end a step by hand: people decide there, something else does, or another way on from it leads to people.

    Whoever goes past a question decides it, which four eyes are about. Nobody leads a document around an approval.
    """
    node, actor = turn.routes.node(step.node), turn.moment.actor
    if isinstance(node.op, HumanOp):
        barred = override_refusal(turn.routes.graph, actor)
        return barred or separation_refusal(turn.routes, turn.state, step, actor)
    around = _around(turn.routes, node, outcome)
    at_stake = before_gates(turn.routes, node.id) if isinstance(node.op, ConditionOp) else around
    walls = ", ".join(repr(each.id) for each in at_stake if isinstance(each.op, HumanOp) and each.op.pins)
    if walls and turn.routes.documents is not None:
        told = f"{node.id!r} tells whether {walls} is asked for, which no operator does"
        return refused(Refusal.PROTECTED, f"{told}; correct the document if need be, and retry it")
    barred = past_refusal(turn, node, f"go past {node.id!r}, which decides")
    return barred or past_call_refusal(turn, step) or around_refusal(turn, around)


def _around(routes: GraphIndex, node: Node, outcome: str) -> list[Node]:
    """The nodes that a token may come to before a gate from a node, and not by this outcome."""
    met: set[str] = set()
    for edge in routes.ways(node.id, outcome):
        met |= {edge.target, *(each.id for each in before_gates(routes, edge.target))}
    return [each for each in before_gates(routes, node.id) if each.id not in met]


def _good_outcome(node: Node) -> str:
    """What a step is left by that ended well; for a question that is the first answer that its definition names. Empty if there is none."""
    return OK if OK in node.op.exits else next(iter(node.op.answers), "")


def _take_in_hand(turn: DecisionBuilder, step: StepState, how: Repairing, reason: str) -> None:
    """Nobody works on the step any more, and a run that waits because it gave up goes on."""
    state = turn.state
    was_dead = step.number in state.dead
    if step.child:
        turn.stops_for(f"{turn.moment.actor.id!r}: {reason}")
    if step.number in state.open:
        turn.cancel_step_timer(step)
        if step.effect is not None:
            turn.withdraw(step)
        else:
            turn.kind(step).stop(turn, step, "drop")
    _note(turn, step, how, reason)
    if was_dead and state.status == "paused" and state.reason in OF_A_STEP:
        go_on(turn)


def _note(turn: DecisionBuilder, step: StepState, how: Repairing, reason: str) -> None:
    turn.emit(StepRepaired(step=step.number, repair=how, actor=turn.moment.actor.id, reason=reason))


# -- the whole run


def _change_data(turn: DecisionBuilder, command: r.ChangeData) -> Rejection | None:
    state = turn.state
    live = {**state.tokens, **state.parked}
    if command.token and command.token not in live:
        named = ", ".join(map(repr, live)) or "none"
        return refused(
            Refusal.UNKNOWN_TOKEN, f"the workflow has no token {command.token!r} any more; there are: {named}"
        )
    if not live:
        return refused(Refusal.UNKNOWN_TOKEN, "the workflow has no data any more that a step could work on")
    barred = _other_data_refusal(turn) or hidden_refusal(turn.routes, command.patch)
    if barred is not None:
        return barred
    names = [command.token] if command.token else list(live)
    for step in (*state.open.values(), *state.dead.values(), *state.frozen.values()):
        node = turn.routes.node(step.node)
        if node.op.is_protected and step.token in names:
            return protected(node)
    changed = {name: patched(live[name].data, command.patch) for name in names}
    if not all(may_become(turn.routes, live[name].data, data) for name, data in changed.items()):
        return too_large(turn.routes, "the patch")
    hashes = {name: [fingerprint(live[name].data), fingerprint(data)] for name, data in changed.items()}
    actor, lists = turn.moment.actor.id, lists_of_document(turn)
    turn.emit(DataChanged(patch=command.patch, hashes=hashes, actor=actor, reason=command.reason))
    involve_actor(turn, keeps=approvals_kept(turn.routes, state))
    enter_changed(turn, lists, (), told=_CHANGED)
    _void_decided(turn)
    for step in [each for each in state.open.values() if each.token in changed and _is_about_data(turn, each)]:
        void_answers(turn, step, _CHANGED)
        stop_step(turn, step, "drop", error=_CHANGED, reason=DATA_CHANGED)
        turn.move(step.token, step.node, is_asked=True)
    return None


def _is_about_data(turn: DecisionBuilder, step: StepState) -> bool:
    """Whether a step asks people, who see the data and decide on it."""
    return step.of is None and isinstance(turn.routes.node(step.node).op, HumanOp)


def _void_decided(turn: DecisionBuilder) -> None:
    """Approvals of a document, which were given to the data as it was, are asked for again."""
    if turn.state.document is not None:
        void(turn, standing(turn), "repaired")


def _move_back(turn: DecisionBuilder, command: r.MoveBack) -> Rejection | None:
    state = turn.state
    if state.pause is not None:  # It lasts until somebody ends it, and nothing is undone meanwhile.
        return refused(Refusal.ALREADY_PAUSED, "somebody has paused it; resume it first, and move it back then")
    point = state.executed.get(command.step)
    if point is None or not is_save_point(turn.routes, point) or not _is_own(point):
        return _no_save_point(turn, point)
    for each in behind(state, point.number):
        node = turn.routes.node(each.node)
        if is_protected(node):
            return protected(node)
        if passes_no_return(turn.routes, each):
            told = f"{each.node!r}, behind {point.node!r}, is a point of no return; fork the workflow instead"
            return refused(Refusal.NO_SAVE_POINT, told)
        if each.not_undone:
            told = f"{each.node!r}, behind {point.node!r}, started the workflow {each.child}, which cannot be undone: {each.not_undone}"
            return refused(Refusal.NO_SAVE_POINT, f"{told}; fork the workflow instead")
    actor = turn.moment.actor.id
    turn.emit(MoveBackStarted(step=point.number, data=command.data, actor=actor, reason=command.reason))
    halt(turn)
    return None


def _no_save_point(turn: DecisionBuilder, point: Executed | None) -> Rejection:
    """Why a run cannot be moved back to a step, and where else it can be moved to."""
    passed = [each for each in turn.state.executed.values() if is_save_point(turn.routes, each)]
    named = ", ".join(dict.fromkeys(repr(each.node) for each in passed if _is_own(each)))
    can = f"it can be moved back to {named}" if named else "it has passed none on its main way"
    if point is None or not is_save_point(turn.routes, point):
        return refused(Refusal.NO_SAVE_POINT, f"the workflow has not passed this save point; {can}")
    told = f"the workflow was forked from one that had passed {point.node!r} before, and what that one did is not undone by this one"
    return refused(Refusal.NO_SAVE_POINT, f"{told}; {can} itself, or fork that one where it had passed {point.node!r}")


def _is_own(executed: Executed) -> bool:
    """Whether the run itself has done a step, and not the one that it was forked from."""
    return executed.was_called


def is_save_point(routes: GraphIndex, executed: Executed) -> bool:
    """Whether a run can be moved back to a step: a save point on the way of its first token."""
    return executed.token == ROOT and isinstance(routes.node(executed.node).op, SavePointOp)


def return_to_save_point(turn: DecisionBuilder) -> None:
    """All behind the save point is undone: go on from there."""
    token = turn.state.tokens[ROOT]
    edge = way_out(turn, token, token.node, OK)
    if edge is None:
        stay_or_end(turn, token, token.node, OK)
    else:
        leave_by(turn, token, edge)
    turn.run()


def _force_failure(turn: DecisionBuilder, command: r.ForceFailure) -> Rejection | None:
    """Turn back; the step that gave up first, if one did, is the one that has failed."""
    barred = end_child_refusal(turn)
    if barred is not None:
        return barred
    turn.stops_for(f"{turn.moment.actor.id!r}: {command.reason}")
    turn.cancel_timer(DEADLINE)
    failed = next(iter(turn.state.dead), None)
    actor = turn.moment.actor.id
    turn.emit(RollbackStarted(error=command.reason, failed_step=failed, requested_by=actor))
    halt(turn)
    return None
