"""How the events of questions change the state. A question is kept from the first of them on, until its step ends.

How events about notices and about questions that nobody answers change the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from standfast.graph.index import GraphIndex
from standfast.graph.model import WITHDRAWN, HumanOp
from standfast.machine.model import events as e
from standfast.machine.model.folds.pause_fold import put_off
from standfast.machine.model.queries.eligibility import asked_in, question_of
from standfast.machine.model.queries.outputs import Data, decision_of
from standfast.machine.model.queries.voting import ALL_ABSTAINED, is_within_reach, kept_words
from standfast.machine.model.state import RunState, StepState
from standfast.machine.model.task_state import Question, Seat, TaskVote, begun, newcomers

DATA_CHANGED = "data_changed"
"""Why a question ends that is put anew, because what it is about has changed: what was decided on it is void."""


def note_decider(routes: GraphIndex, state: RunState, event: e.StepAnswered) -> None:
    """Remember who has decided a human step; those who act for others count with them."""
    step = state.open[event.step]
    if isinstance(routes.node(step.node).op, HumanOp) and event.outcome != WITHDRAWN:
        note_names(state, step.node, (event.actor, event.on_behalf_of))


def close_question(routes: GraphIndex, state: RunState, step: StepState, *, is_void: bool = False) -> None:
    """A step has ended: what its question, if it was one, has come to is in the history and in rows.

    Whoever has voted has decided it, however it ended, unless that is void.
    """
    question = state.questions.pop(step.number, None)
    if question is not None and routes.tells_deciders_apart and not is_void:
        note_names(state, step.node, (name for each in question.given for name in (each.actor, each.on_behalf_of)))


def note_passer(routes: GraphIndex, state: RunState, node: str, event: e.StepSkipped) -> None:
    """Remember who has gone past a human step: whoever does so decides it."""
    if routes.tells_deciders_apart and isinstance(routes.node(node).op, HumanOp):
        note_names(state, node, (event.by, event.on_behalf_of))


def note_names(state: RunState, node: str, names: Iterable[str]) -> None:
    """Remember people as deciders of a human step."""
    found = [name for name in dict.fromkeys(names) if name]
    if found:
        known = state.deciders.setdefault(node, [])
        known += [name for name in found if name not in known]


def note_asked(routes: GraphIndex, state: RunState, event: e.StepAnswered) -> None:
    """Remember who was asked what is answered now, and for whom it was answered."""
    step = state.open[event.step]
    node = routes.node(step.node)
    if isinstance(node.op, HumanOp):
        names = asked_in(node.op, node.capability, question_of(routes, state, step))
        if names:
            state.asked[event.step] = list(dict.fromkeys([*names, *filter(None, [event.on_behalf_of])]))


def kept_answer(routes: GraphIndex, state: RunState, event: e.StepAnswered) -> Data:
    """An answer as it is remembered in order to tell a repeated one.

    It comes with what was given, where a form has filled something in, and with the words for yes and no where they are unusual ones.
    """
    kept = decision_of(event)
    op = routes.node(state.open[event.step].node).op
    if isinstance(op, HumanOp):
        kept |= kept_words(op)
        if event.reason == ALL_ABSTAINED and not event.decisions:  # Somebody has abstained for all.
            kept["said"] = op.abstains
    if event.is_filled:
        kept["given"] = event.given
    if event.decisions:
        given = state.questions[event.step].given
        kept["decisions"] = [
            told | {"given": each.before} if each.is_filled else told
            for told, each in zip(event.decisions, given, strict=True)
        ]
    return kept


def _question(routes: GraphIndex, state: RunState, number: int) -> Question:
    question = state.questions.get(number)
    if question is None:
        op = routes.node(state.open[number].node).op
        assert isinstance(op, HumanOp)
        question = state.questions[number] = begun(op)
    return question


def _people_sought(routes: GraphIndex, state: RunState, event: e.PeopleSought) -> None:
    question = _question(routes, state, event.step)
    question.is_looking, question.trouble, question.lost = True, "", []
    question.why += event.why


def _chain_found(routes: GraphIndex, state: RunState, event: e.ChainFound) -> None:
    question = _question(routes, state, event.step)
    question.stages, question.chain_version, question.is_looking = event.stages, event.version, False
    question.why += event.why
    _to_stage(question, 1)


def _stage_passed(routes: GraphIndex, state: RunState, event: e.StagePassed) -> None:
    question = _question(routes, state, event.step)
    for seat in question.seats:
        seat.is_out = True
    question.claimed_by = ""
    _to_stage(question, event.stage + 1)


def _to_stage(question: Question, number: int) -> None:
    stage = question.stages[number - 1]
    question.stage, question.agree, question.least = number, stage.agree, stage.least


def _people_asked(routes: GraphIndex, state: RunState, event: e.PeopleAsked) -> None:
    question = _question(routes, state, event.step)
    for seat in () if event.stays else question.seats:
        seat.is_out = seat.is_out or (seat.is_free and not seat.is_extra)
    if not event.stays:
        question.claimed_by = ""
    for place in event.out:
        question.seats[place - 1].is_out = True
    left_out = set(event.left_out)
    question.seats += [Seat(person=each, is_out=place in left_out) for place, each in enumerate(event.people)]
    question.is_looking, question.trouble, question.lost = False, event.trouble, list(event.lost)
    if not event.stays:
        question.missing = event.missing
    question.why = [*question.why, *event.why] if question.stages else []


def _decided(routes: GraphIndex, state: RunState, event: e.TaskDecided) -> None:
    state.chain = 0
    question = _question(routes, state, event.step)
    question.decisions += 1
    question.claimed_by = ""  # Only whoever has claimed it decides meanwhile, and has done so.
    question.seats[event.seat - 1].given = TaskVote(
        sequence=question.decisions,
        outcome=event.outcome,
        actor=event.actor,
        at=event.at,
        on_behalf_of=event.on_behalf_of,
        comment=event.comment,
        data=event.data,
        is_filled=event.is_filled,
        before=event.given,
        document_version=event.document_version,
        guards=event.guards,
        stage=question.stage,
    )


def _withdrawn(routes: GraphIndex, state: RunState, event: e.DecisionWithdrawn) -> None:
    _question(routes, state, event.step).seats[event.seat - 1].given = None


def _claimed(routes: GraphIndex, state: RunState, event: e.TaskClaimed) -> None:
    question = _question(routes, state, event.step)
    question.claimed_by, question.claimed_role = event.by, event.role
    question.claimed_stand_in = event.stand_in


def _released(routes: GraphIndex, state: RunState, event: e.TaskReleased) -> None:
    _question(routes, state, event.step).claimed_by = ""


def _handed(routes: GraphIndex, state: RunState, event: e.Handed) -> None:
    question = _question(routes, state, event.step)
    heir = Seat(person=event.person)
    if event.seat:
        before = question.seats[event.seat - 1]
        before.is_out, heir.is_extra = True, before.is_extra
        question.lost = [each for each in question.lost if each != event.seat]
        question.claimed_by = ""
        if isinstance(event, e.TaskDelegated):
            heir.hands, heir.lent = [*before.hands, event.by], dict(before.lent)
            if event.stand_in:
                heir.lent[event.by] = event.stand_in
            elif before.person.for_ and not before.hands:
                heir.lent[before.person.for_] = event.by
        elif event.person.for_ and event.person.name in before.hands:  # Somebody in between takes it back.
            heir.hands = before.hands[: before.hands.index(event.person.name)]
            heir.lent = {name: other for name, other in before.lent.items() if name in heir.hands}
    elif question.missing:
        question.missing -= 1
    question.seats.append(heir)
    op = routes.node(state.open[event.step].node).op
    assert isinstance(op, HumanOp)
    if not question.missing and is_within_reach(op, question):
        question.trouble = ""


def _escalated(routes: GraphIndex, state: RunState, event: e.TaskEscalated) -> None:
    step = state.open[event.step]
    step.level = event.level
    put_off(step, event.shift_ms)
    if event.by and routes.tells_deciders_apart:  # To end it before its time is to decide it.
        note_names(state, step.node, (event.by, event.on_behalf_of))
    if event.people:
        question = _question(routes, state, event.step)
        question.seats += [Seat(person=each, is_extra=True) for each in newcomers(question, event.people)]
        question.trouble = question.claimed_by = ""
        question.lost = []


def _commented(routes: GraphIndex, state: RunState, event: e.TaskCommented) -> None:
    question = _question(routes, state, event.step)
    question.comments += 1
    if event.is_question:
        question.asked_back_by = event.speaker
    elif event.speaker != question.asked_back_by:
        question.asked_back_by = ""


TABLE: dict[type[e.Event], Callable[..., None]] = {
    e.PeopleSought: _people_sought,
    e.ChainFound: _chain_found,
    e.PeopleAsked: _people_asked,
    e.TaskDecided: _decided,
    e.DecisionWithdrawn: _withdrawn,
    e.StagePassed: _stage_passed,
    e.TaskClaimed: _claimed,
    e.TaskReleased: _released,
    e.TaskDelegated: _handed,
    e.TaskReassigned: _handed,
    e.ApproverAdded: _handed,
    e.TaskEscalated: _escalated,
    e.TaskCommented: _commented,
}


def _reminded(_routes: GraphIndex, state: RunState, event: e.TaskReminded) -> None:
    step = state.open[event.step]
    step.reminded = event.count
    put_off(step, event.shift_ms)


def _sent(_routes: GraphIndex, state: RunState, event: e.NotificationsSent) -> None:
    state.open[event.step].notices = list(event.keys)


def _delivered(_routes: GraphIndex, state: RunState, event: e.NotificationDelivered) -> None:
    state.open[event.step].notices.remove(event.key)


def _failed(_routes: GraphIndex, _state: RunState, _event: e.NotificationFailed) -> None:
    """If the step waited for it, that the step has failed is told by an event of its own."""


FOLDS: dict[type[e.Event], Callable[..., None]] = {
    e.TaskReminded: _reminded,
    e.NotificationsSent: _sent,
    e.NotificationDelivered: _delivered,
    e.NotificationFailed: _failed,
}
