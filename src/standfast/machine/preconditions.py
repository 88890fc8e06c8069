"""Commands that a run does not go on from: it is not there, has ended, or was asked the same before; and what the late ends of its work are told."""

from __future__ import annotations

from functools import partial
from typing import cast, get_args

from standfast.graph.index import GraphIndex
from standfast.kernel.actor import Actor
from standfast.kernel.decision import Answer, Ignored, Rejection
from standfast.kernel.moment import Moment
from standfast.machine.documents.transitions import ended
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.rollback import is_awaited, stopped, work_of
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.commands.document_commands import CreateDocument, DocumentCommand
from standfast.machine.model.commands.repair_commands import ForkWorkflow, Repair, SkipStep
from standfast.machine.model.queries.authorization import READ, start_refusal
from standfast.machine.model.queries.eligibility import may_all, person, was_asked
from standfast.machine.model.queries.voting import repeated_outcome
from standfast.machine.model.rejections import Refusal, already_terminal, refused
from standfast.machine.model.state import Data, RunState
from standfast.machine.nodes import kind_of
from standfast.machine.nodes.call import is_undone
from standfast.machine.nodes.event_wait import decline
from standfast.machine.process_advance import inactive
from standfast.machine.recovery.pause import REPEATED, is_halted, is_repeated
from standfast.machine.tasks.actions import ADD_APPROVER, ESCALATE, REASSIGN, TASK_COMMANDS, WITHDRAW

REPAIRS: tuple[type[Repair], ...] = get_args(Repair)
"""What operators ask for."""

DOCUMENT_COMMANDS: tuple[type[DocumentCommand], ...] = get_args(DocumentCommand)
"""What is asked of a document that is there."""

LATE = Ignored(reason="nobody waits for this any more")

_STARTS = (c.StartWorkflow, ForkWorkflow, CreateDocument)
_SEEING = (c.AnswerStep, c.AdvanceProcess, c.CancelWorkflow, c.ResumeWorkflow)
"""What may be asked by somebody who says which state of the run they have seen."""
_QUESTIONS = (c.AnswerStep, *TASK_COMMANDS)
"""What is done to questions."""
_AFTER_END = (c.RetryCompensation, c.EndNotice, c.UndoWorkflow)
"""What may lead on from the end of a run."""
OPERATIONS = (
    c.CancelWorkflow,
    c.AbortWorkflow,
    c.RequeueStep,
    c.PauseWorkflow,
    c.ResumeWorkflow,
    c.AnswerStep,
    c.SendSignal,
    *REPAIRS,
    *TASK_COMMANDS,
    *DOCUMENT_COMMANDS,
)
"""What people ask for: they are told that the run has ended. The others are late answers of the run's own work."""


def refusal_of(routes: GraphIndex, state: RunState, command: c.Command, moment: Moment) -> Answer | None:
    """The answer to a command that the run does not go on from."""
    if isinstance(command, _STARTS):
        barred = start_refusal(routes.graph, moment.actor)
        return barred or (None if state.status == "new" else _started_before(moment))
    if state.status == "new" or (isinstance(command, _SEEING) and command.seen not in {None, moment.version}):
        return _unseen(state, moment)
    if isinstance(command, DOCUMENT_COMMANDS):
        return _without_document(routes, state, command, moment)
    if isinstance(command, c.AdvanceProcess):
        return inactive(routes, state, command, moment)
    if state.resumed is not None and is_repeated(state.resumed, command):
        return REPEATED
    if isinstance(command, _QUESTIONS) and (answer := _to_question(state, command, moment)) is not None:
        return answer
    if not state.is_terminal or isinstance(command, _AFTER_END) or _frees(state, command):
        return None
    return _after_end(routes, state, command, moment)


def _to_question(state: RunState, command: c.AnswerStep | c.TaskCommand, moment: Moment) -> Answer | None:
    """The answer to what is done to a question that is answered. Whoever has no part in it learns nothing of it."""
    if not _is_concerned(state, command.step, moment.actor):
        told = f"{moment.actor.id!r} may not do this to step {command.step}: that is for those who are asked there"
        return refused(Refusal.NOT_ALLOWED, told)
    if isinstance(command, c.AnswerStep) and command.step in state.decided:
        return _answered_before(state, command, moment)
    return None


def _is_concerned(state: RunState, number: int, actor: Actor) -> bool:
    """Whether an actor may learn how a question stands. Of one that is open the question itself says who may do what."""
    if (
        number in state.open
        or may_all(actor)
        or any(map(actor.may, (READ, REASSIGN, ADD_APPROVER, WITHDRAW, ESCALATE)))
    ):
        return True
    names = {actor.id, person(actor)}
    if state.requester in names or (state.document is not None and state.document.authors() & names):
        return True
    known, asked = state.decided.get(number), state.asked.get(number)
    if known is None or not asked:  # Nothing is remembered that anybody could be told, or anybody was asked.
        return True
    given = cast("list[Data]", known.get("decisions", [known]))
    if any(names & {each["decided_by"], each.get("on_behalf_of", "")} for each in given):
        return True
    return any(map(partial(was_asked, actor), asked))


def _after_end(routes: GraphIndex, state: RunState, command: c.Command, moment: Moment) -> Answer:
    """The answer to a command that comes when the run has ended."""
    if isinstance(command, c.CompleteStep | c.FailStep | c.TakeEvents):
        return _late_end(DecisionBuilder(routes, state, moment, kind_of), command)
    if isinstance(command, c.CancelWorkflow | c.AbortWorkflow) and command.by_parent:
        return LATE
    return already_terminal(state.status) if isinstance(command, OPERATIONS) else LATE


def _unseen(state: RunState, moment: Moment) -> Rejection:
    """Why nothing can be asked of a run that is not there, or by somebody who has seen another state of it than this one."""
    if state.status == "new":
        return refused(Refusal.NOT_STARTED, "there is no such workflow")
    return refused(Refusal.OUTDATED, f"it has {moment.version} events by now; look at it again, and say so")


def _without_document(routes: GraphIndex, state: RunState, command: c.Command, moment: Moment) -> Rejection | None:
    """Why nothing can be asked of a document that is not there, or whose life is over."""
    if state.document is None:
        return refused(Refusal.NO_DOCUMENT, f"{routes.graph.name!r} manages no documents; ask this of a document")
    return ended(DecisionBuilder(routes, state, moment, kind_of), command) if state.is_terminal else None


def _started_before(moment: Moment) -> Rejection:
    which = f"{moment.key!r} is the key of instance {moment.instance}, which" if moment.key else f"{moment.instance}"
    told = f"{which} was started before; look at that one, or give another key. A start that may be repeated has an idempotency_key"
    return refused(Refusal.ALREADY_STARTED, told)


def _frees(state: RunState, command: c.Command) -> bool:
    """Whether a command is about what a failed run could not undo: a child is undone since, or an operator goes on without it."""
    if isinstance(command, c.ResumeWorkflow | SkipStep):
        return is_halted(state)
    if not isinstance(command, c.EndChild) or state.rollback is None or not is_undone(command):
        return False
    executed = state.executed.get(command.step)
    return executed is not None and bool(executed.not_undone)


def _late_end(turn: DecisionBuilder, command: c.CompleteStep | c.FailStep | c.TakeEvents) -> Answer:
    """A call that was under way when the run ended has come back: it counts, and nothing follows from it. Events go to others."""
    if isinstance(command, c.TakeEvents):
        return decline(turn, command)
    if not is_awaited(turn, command.step):
        return LATE
    match command:
        case c.CompleteStep() if work_of(turn, command.step).transactional:  # What it wrote goes with this refusal.
            return already_terminal(turn.state.status)
        case c.CompleteStep():
            stopped(turn, command.step, came_back=True, is_done=True, output=command.output)
        case c.FailStep(was_called=True):
            stopped(turn, command.step, came_back=True)
        case c.FailStep():
            return LATE
    return turn.decision()


def _answered_before(state: RunState, command: c.AnswerStep, moment: Moment) -> Answer:
    """What a second answer to the same question comes to: the same one by the same actor is no news, and the first one stands."""
    known = state.decided[command.step]
    given = (repeated_outcome(known, command), moment.actor.id, command.data, command.document_version)
    for each in cast("list[Data]", known.get("decisions", [known])):
        said, data = each.get("said", each["status"]), each.get("given", each.get("data"))
        if (said, each["decided_by"], data, each.get("document_version", "")) == given:
            return Ignored(reason="this was answered before, in the same way and by the same actor")
    told = f"{known['status']} by {known['decided_by']!r} at {known['decided_at']}"
    return refused(Refusal.ALREADY_DECIDED, f"step {command.step} was {told}, and an answer stands")
