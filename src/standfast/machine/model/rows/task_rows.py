"""The rows of questions to people: the question itself, who is asked, what they decide and say. They are made from events alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

import msgspec
from msgspec.structs import replace

from standfast.graph.index import GraphIndex
from standfast.graph.model import ERROR, TIMEOUT, WITHDRAWN, HumanOp
from standfast.graph.values.approver_rules import Stage, agreement_in_words
from standfast.kernel.durations import later
from standfast.kernel.row_kinds.steps import TaskChanged, TaskStatus
from standfast.kernel.row_kinds.tasks import (
    CommentMade,
    DecisionGiven,
    DecisionMoved,
    PersonAsked,
    PersonMoved,
)
from standfast.kernel.rows import Record
from standfast.machine.model import events as e
from standfast.machine.model.engine_tasks import Person
from standfast.machine.model.queries.business_time import reached_ms
from standfast.machine.model.queries.eligibility import barred_names, question_of
from standfast.machine.model.state import RunState, StepState
from standfast.machine.model.task_state import Question, begun, newcomers, stage_label

_encode = msgspec.json.Encoder().encode

OVERRIDDEN = "overridden"
"""What a question came to that somebody has gone past."""

_STATUSES: dict[str, TaskStatus] = {
    "cancelled": "cancelled",
    "failed": "failed",
    ERROR: "failed",
    OVERRIDDEN: "overridden",
}
"""What becomes of a question that nobody answered; if it comes to anything else, its time has passed."""


class TaskRowSource(Protocol):
    """A run as it was before an event."""

    routes: GraphIndex
    state: RunState


def asked_at_once(op: HumanOp, number: int) -> list[Record]:
    """Those whom the definition itself names."""
    return [_person(number, place, seat.person) for place, seat in enumerate(begun(op).seats, 1)]


def kept_out(view: TaskRowSource, step: StepState, more: Iterable[str] = ()) -> bytes | None:
    """Who may not decide a question although they may be asked, besides who wants the run; what is decided on it itself is not told here."""
    unvoted = replace(step, number=0)
    names = {*barred_names(view.routes, view.state, unvoted), *more} - {view.state.requester}
    return _encode(sorted(names)) if names else None


def agreement_of(op: HumanOp) -> str:
    """What has to be agreed, in words, where several are asked."""
    return agreement_in_words(op.agreement, op.least) if len(op.all_asks) > 1 or op.agreement != "any" else ""


def answered(routes: GraphIndex, state: RunState, event: e.StepAnswered) -> list[Record]:
    """The question is answered: the answer rests on all decisions that stand, and nobody is asked any more."""
    question, number = question_of(routes, state, state.open[event.step]), event.step
    closed = TaskChanged(
        number=number,
        status=_answered_status(event),
        outcome=OVERRIDDEN if event.overridden else event.outcome,
        actor=event.actor,
        comment=event.comment,
    )
    if event.decisions:
        applied: list[Record] = [
            DecisionMoved(number=number, sequence=given.sequence, is_applied=True) for given in question.given
        ]
        return [closed, *applied, *_closing(question, number)]
    if event.outcome == WITHDRAWN or event.overridden:
        return [closed, *_closing(question, number)]
    decision = _decision(event, question.decisions + 1, is_applied=True)
    decided = event.outcome if sum(1 for _ in question.asked) == 1 else None
    return [closed, decision, *_closing(question, number, decided=decided)]


def _answered_status(event: e.StepAnswered) -> TaskStatus:
    if event.overridden:
        return "overridden"
    return "withdrawn" if event.outcome == WITHDRAWN else "decided"


def ended(routes: GraphIndex, state: RunState, number: int, outcome: str) -> list[Record]:
    """Nobody answered, and nobody is asked any more."""
    step = state.open.get(number) or state.frozen.get(number)
    question = None if step is None else question_of(routes, state, step)
    outcome = TIMEOUT if step is not None and step.is_late else outcome
    closed = TaskChanged(number=number, status=_STATUSES.get(outcome, "expired"), outcome=outcome)
    return [closed] if question is None else [closed, *_closing(question, number)]


def _closing(
    question: Question, number: int, *, decided: str | None = None, keeps_extra: bool = False
) -> Iterable[Record]:
    """Those who are still asked are not any more; `decided` is what the only one of them has decided."""
    for place, seat in question.asked:
        if seat.is_free and not (seat.is_extra and keeps_extra):
            yield PersonMoved(number=number, place=place, is_open=False, decided=decided)


def _person(number: int, place: int, person: Person, *, stage: int = 0, is_open: bool = True) -> PersonAsked:
    return PersonAsked(
        number=number,
        place=place,
        kind=person.kind,
        name=person.name,
        via=person.via,
        stands_for=person.for_,
        weight=person.weight,
        stage=stage,
        is_open=is_open,
    )


def _decision(event: e.TaskDecided | e.StepAnswered, sequence: int, *, is_applied: bool = False) -> DecisionGiven:
    return DecisionGiven(
        number=event.step,
        sequence=sequence,
        actor=event.actor,
        on_behalf_of=event.on_behalf_of,
        outcome=event.outcome,
        comment=event.comment,
        data=None if event.data is None else _encode(event.data),
        document_version=event.document_version or None,
        is_applied=is_applied,
    )


def _resolution(question: Question, why: list[dict[str, object]]) -> bytes | None:
    """How those were found who are or were asked, stage by stage; None if that is nothing new."""
    known = [*question.why, *why]
    return _encode(known) if known else None


def _of(view: TaskRowSource, number: int) -> Question:
    return question_of(view.routes, view.state, view.state.open[number])


def _chain_found(view: TaskRowSource, event: e.ChainFound) -> list[Record]:
    return [_at_stage(event.step, event.stages, 1, resolution=_resolution(_of(view, event.step), event.why))]


def _stage_passed(view: TaskRowSource, event: e.StagePassed) -> list[Record]:
    question = _of(view, event.step)
    return [
        _at_stage(event.step, question.stages, event.stage + 1),
        *_unclaimed(question, event.step),
        *_closing(question, event.step),
    ]


def _at_stage(number: int, stages: list[Stage], place: int, *, resolution: bytes | None = None) -> TaskChanged:
    stage = stages[place - 1]
    return TaskChanged(
        number=number,
        stage=stage_label(stages, place),
        agreement=agreement_in_words(stage.agree, stage.least),
        resolution=resolution,
    )


def _unclaimed(question: Question, number: int) -> list[Record]:
    """Whoever had taken it for himself has it no longer: others are asked, or he has decided."""
    return [TaskChanged(number=number, claimed_by="")] if question.claimed_by else []


def _people_asked(view: TaskRowSource, event: e.PeopleAsked) -> list[Record]:
    question = _of(view, event.step)
    first = len(question.seats) + 1
    people: list[Record] = [
        _person(event.step, first + place, each, stage=question.stage, is_open=place not in event.left_out)
        for place, each in enumerate(event.people)
    ]
    resolution = _resolution(question, event.why)
    why: list[Record] = [TaskChanged(number=event.step, resolution=resolution)] if resolution else []
    if event.stays:
        out = (PersonMoved(number=event.step, place=place, is_open=False) for place in event.out)
        return [*why, *out, *people]
    return [*why, *_unclaimed(question, event.step), *_closing(question, event.step, keeps_extra=True), *people]


def _decided(view: TaskRowSource, event: e.TaskDecided) -> list[Record]:
    question = _of(view, event.step)
    return [
        *_unclaimed(question, event.step),
        _decision(event, question.decisions + 1),
        PersonMoved(number=event.step, place=event.seat, is_open=False, decided=event.outcome),
    ]


def _withdrawn(view: TaskRowSource, event: e.DecisionWithdrawn) -> list[Record]:
    given = _of(view, event.step).seats[event.seat - 1].given
    assert given is not None
    return [
        DecisionMoved(number=event.step, sequence=given.sequence, is_withdrawn=True),
        PersonMoved(number=event.step, place=event.seat, is_open=True, decided=""),
    ]


def _claimed(_view: TaskRowSource, event: e.TaskClaimed) -> list[Record]:
    return [TaskChanged(number=event.step, claimed_by=event.by)]


def _released(_view: TaskRowSource, event: e.TaskReleased) -> list[Record]:
    return [TaskChanged(number=event.step, claimed_by="")]


def _handed(view: TaskRowSource, event: e.Handed) -> list[Record]:
    question = _of(view, event.step)
    opened = _person(event.step, len(question.seats) + 1, event.person, stage=question.stage)
    if not event.seat:
        return [opened]
    closed = PersonMoved(number=event.step, place=event.seat, is_open=False)
    return [*_unclaimed(question, event.step), closed, opened]


def _escalated(view: TaskRowSource, event: e.TaskEscalated) -> list[Record]:
    question = _of(view, event.step)
    first = len(question.seats) + 1
    people: list[Record] = [
        _person(event.step, place, each, stage=question.stage)
        for place, each in enumerate(newcomers(question, event.people), first)
    ]
    claim = _unclaimed(question, event.step) if event.people else []
    ended = [TaskChanged(number=event.step, actor=event.by, comment=event.reason)] if event.by else []
    return [*claim, *people, *ended, *_due_later(view, view.state.open[event.step], event.shift_ms)]


def _reminded(view: TaskRowSource, event: e.TaskReminded) -> list[Record]:
    return _due_later(view, view.state.open[event.step], event.shift_ms)


def put_off(view: TaskRowSource, shift_ms: int) -> list[Record]:
    """The clocks of a run have stood still: what is due is due as much later."""
    return [record for step in view.state.open.values() for record in _due_later(view, step, shift_ms)]


def _due_later(view: TaskRowSource, step: StepState, shift_ms: int) -> list[Record]:
    op = view.routes.node(step.node).op
    if not shift_ms or not isinstance(op, HumanOp) or op.times is None or op.times.due_ms is None:
        return []
    since = datetime.fromisoformat(step.asked_at)
    due_ms = reached_ms(view.state, op.times.calendar, since, op.times.due_ms)
    due_at = later(since, timedelta(milliseconds=due_ms + shift_ms))
    return [TaskChanged(number=step.number, due_at=due_at)]


def _people_involved(view: TaskRowSource, event: e.PeopleInvolved) -> list[Record]:
    """More people may not decide what is open, where those may not whose matter the run is."""
    own = [each for each in view.state.open.values() if _keeps_own_out(view.routes, each)]
    return [TaskChanged(number=each.number, kept_out=kept_out(view, each, event.names)) for each in own]


def _keeps_own_out(routes: GraphIndex, step: StepState) -> bool:
    op = routes.node(step.node).op
    return step.of is None and isinstance(op, HumanOp) and not op.self_approval


def _commented(view: TaskRowSource, event: e.TaskCommented) -> list[Record]:
    question = _of(view, event.step)
    comment = CommentMade(
        number=event.step,
        sequence=question.comments + 1,
        actor=event.by,
        on_behalf_of=event.on_behalf_of,
        text=event.text,
        is_question=event.is_question,
    )
    if event.is_question:
        return [comment, TaskChanged(number=event.step, status="info_requested")]
    is_answer = bool(question.asked_back_by) and event.speaker != question.asked_back_by
    return [comment, TaskChanged(number=event.step, status="open")] if is_answer else [comment]


TABLE: dict[type[e.Event], Callable[..., Sequence[Record]]] = {
    e.ChainFound: _chain_found,
    e.StagePassed: _stage_passed,
    e.PeopleAsked: _people_asked,
    e.TaskDecided: _decided,
    e.DecisionWithdrawn: _withdrawn,
    e.TaskClaimed: _claimed,
    e.TaskReleased: _released,
    e.TaskDelegated: _handed,
    e.TaskReassigned: _handed,
    e.ApproverAdded: _handed,
    e.TaskReminded: _reminded,
    e.TaskEscalated: _escalated,
    e.TaskCommented: _commented,
    e.PeopleInvolved: _people_involved,
}
