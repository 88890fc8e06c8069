"""Looking again at questions that are open: those who are asked may have lost their roles, or may have got them back, since they were asked.

Nothing is found out here. Whoever has looked says who of those that are asked cannot decide now, and the run waits for an operator, or goes on.
"""

from __future__ import annotations

from collections.abc import Sequence

from standfast.graph.index import GraphIndex
from standfast.graph.model import HumanOp
from standfast.graph.values.approver_rules import CHAIN, Ask
from standfast.kernel.decision import Answer, Ignored
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.commands.run_commands import AskAgain, PeopleReviewed
from standfast.machine.model.engine_tasks import Person, ReviewPeople
from standfast.machine.model.events import PeopleAsked
from standfast.machine.model.queries.eligibility import barred_names, is_open_to_all, question_of
from standfast.machine.model.queries.voting import verdict, votes_of
from standfast.machine.model.state import Data, RunState, StepState
from standfast.machine.model.task_state import Question, Seat, shown
from standfast.machine.tasks.assignment import NO_APPROVER, ask, can_do_without, notes_of
from standfast.machine.tasks.entitlement import is_left_out

_LATE = Ignored(reason="nobody is asked this any more, or those who are are still being looked for")
_SAME = Ignored(reason="whether somebody can decide is as it was")


def review_of(routes: GraphIndex, state: RunState, step: StepState) -> ReviewPeople | None:
    """What has to be found out about those whom an open question asks; None if nothing can be."""
    op = routes.node(step.node).op
    if step.of is not None or not isinstance(op, HumanOp):
        return None
    question = question_of(routes, state, step)
    free = [seat for _, seat in question.asked if seat.is_free]
    if not state.looks_up:  # Roles may be the host's own then, and the directory knows nothing of them.
        free = [each for each in free if each.person.kind == "user"]
    if not free or question.is_looking:
        return None
    return ReviewPeople(
        step=step.number,
        node=step.node,
        people=[each.person for each in free],
        hands=[each.hands for each in free] if any(each.hands for each in free) else [],
        lent=[each.lent for each in free] if any(each.lent for each in free) else [],
        decided=[seat.decider for _, seat in question.asked if seat.given],
        requester=state.requester,
        barred=barred_names(routes, state, step),
        in_person=not op.delegable,
    )


def review(turn: DecisionBuilder, step: StepState) -> None:
    """Have it found out whether those can decide who are asked now."""
    errand = review_of(turn.routes, turn.state, step) if turn.state.looks_up else None
    if errand is not None:
        turn.send_out(errand)


def look_again(turn: DecisionBuilder, step: StepState) -> None:
    """Look for people again if nobody could decide a question: a role may have a holder by now, or somebody a manager.

    Those whom the definition names keep their places, so that whoever comes to be able to decide meanwhile can. Others are sought anew.
    """
    question = turn.state.questions.get(step.number)
    if question is None or not question.trouble:
        return
    if not _keeps_places(turn.routes, question, step):
        ask(turn, step)
        return
    turn.emit(PeopleAsked(step=step.number, stays=True))
    errand = None if _is_barred(turn, step) else review_of(turn.routes, turn.state, step)
    if errand is not None:
        turn.send_out(errand)


def people_reviewed(turn: DecisionBuilder, command: PeopleReviewed) -> Answer | None:
    """It was found out who of those that are asked cannot decide now."""
    step = turn.state.open.get(command.step)
    op = None if step is None or step.of is not None else turn.routes.node(step.node).op
    if step is None or not isinstance(op, HumanOp) or command.error:
        return _LATE
    question = question_of(turn.routes, turn.state, step)
    if question.is_looking:
        return _LATE
    anew = _outdated(turn, step, command)
    if anew is not None:
        turn.send_out(anew)
        return None
    places = _lost(turn, step, question, command.lost)
    lost = [question.seats[place - 1].person for place in places]
    is_decidable = _is_decidable(op, question, lost)
    if is_decidable != bool(question.trouble):
        return _SAME
    if is_decidable:
        turn.emit(PeopleAsked(step=step.number, why=command.why, stays=True))
        return None
    names = ", ".join(shown(each) for each in lost) or "those who are asked"
    _give_up(turn, step, f"{names} cannot any more{notes_of(command.why)}", places, why=command.why)
    return None


def _outdated(turn: DecisionBuilder, step: StepState, command: PeopleReviewed) -> ReviewPeople | None:
    """The look that has to be taken anew, because others are asked now than when the engine went: a decision was withdrawn, or a place handed on."""
    errand = None if command.looked_at is None else review_of(turn.routes, turn.state, step)
    if errand is None or {shown(each) for each in errand.people} <= set(command.looked_at or ()):
        return None
    return errand


def look_at_others(turn: DecisionBuilder) -> None:
    """Somebody has decided, or has written what others decide on: they may have been the last one for a question that is still open.

    What follows from the run alone is found out here. If they have a role that is asked, the engine is sent to find out who else has it; and
    if somebody is asked by name in whose place they might have decided, whether anybody else stands in.
    """
    for step in list(turn.state.open.values()):
        op = turn.routes.node(step.node).op if step.of is None else None
        if not isinstance(op, HumanOp) or not _is_touched(turn, step, op):
            continue
        question = question_of(turn.routes, turn.state, step)
        if question.is_looking or question.trouble or is_open_to_all(op, question):
            continue
        if not _is_barred(turn, step) and any(
            seat.is_free and (seat.person.kind == "user" or _has(turn, seat)) for _, seat in question.asked
        ):
            review(turn, step)


def _is_barred(turn: DecisionBuilder, step: StepState) -> bool:
    """Whether four eyes leave nobody who can complete a question: then the run waits for an operator."""
    op, question = turn.routes.node(step.node).op, question_of(turn.routes, turn.state, step)
    assert isinstance(op, HumanOp)
    places = _lost(turn, step, question, ())
    lost = [question.seats[place - 1].person for place in places]
    if not lost or _is_decidable(op, question, lost):
        return False
    told = "they brought it about, wrote it, or decided another step"
    _give_up(turn, step, f"{', '.join(map(shown, lost))} may not, because {told}", places)
    return True


def _keeps_places(routes: GraphIndex, question: Question, step: StepState) -> bool:
    """Whether the definition itself says who is asked, by users and roles, and they all have places still."""
    is_direct = all(each.is_direct for each in asks_of(routes, question, step))
    return is_direct and not question.missing and any(True for _ in question.counted)


def _is_touched(turn: DecisionBuilder, step: StepState, op: HumanOp) -> bool:
    """Whether a decision or a change can keep somebody from deciding a question."""
    if turn.routes.apart(step.node) or op.distinct_approvers:
        return True
    if not op.self_approval and (turn.state.document is not None or turn.state.involved):
        return True
    return bool(question_of(turn.routes, turn.state, step).given)


def _has(turn: DecisionBuilder, seat: Seat) -> bool:
    return seat.person.name in turn.moment.actor.roles


def _give_up(
    turn: DecisionBuilder, step: StepState, told: str, places: list[int], *, why: list[Data] | None = None
) -> None:
    """The run waits for an operator, because nobody can decide a question."""
    trouble = f"nobody can decide {step.node!r}: {told}"
    turn.emit(PeopleAsked(step=step.number, why=why or [], trouble=trouble, stays=True, lost=places))
    turn.pause(NO_APPROVER, trouble)


def ask_again(turn: DecisionBuilder, command: AskAgain) -> Answer | None:
    """Somebody would be found now for a question that nobody could decide: look for them anew.

    Where the definition itself says who is asked, those who are asked stay so, until an operator says otherwise.
    """
    step = turn.state.open.get(command.step)
    question = turn.state.questions.get(command.step)
    if step is None or question is None or not question.trouble:
        return _SAME
    if _keeps_places(turn.routes, question, step):
        return _SAME
    ask(turn, step)
    return None


def asks_of(routes: GraphIndex, question: Question, step: StepState) -> Sequence[Ask]:
    """How those are found whom a question asks: as its definition says, or the stage that its chain is at."""
    if question.stages:
        return question.stages[question.stage - 1].asks
    op = routes.node(step.node).op
    assert isinstance(op, HumanOp)
    return [Ask(by=CHAIN, of=op.chain)] if op.chain else op.all_asks


def _lost(turn: DecisionBuilder, step: StepState, question: Question, lost: Sequence[Person]) -> list[int]:
    """The places of those who cannot decide: as was found out, and because they are kept apart."""
    named = {(each.kind, each.name) for each in lost}
    free = [(place, seat) for place, seat in question.asked if seat.is_free]
    return [
        place for place, each in free if (each.person.kind, each.person.name) in named or is_left_out(turn, step, each)
    ]


def _is_decidable(op: HumanOp, question: Question, lost: Sequence[Person]) -> bool:
    if is_open_to_all(op, question):
        return True
    if any(seat.is_extra and seat.is_free and seat.person not in lost for _, seat in question.asked):
        return True
    if question.missing or not any(True for _ in question.counted):  # Somebody has to be found for a place first.
        return False
    if lost:
        return can_do_without(op, question, lost)
    return verdict([*votes_of(op, question)], question.agree, question.least) != "against"
