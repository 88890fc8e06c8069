"""Who may decide an open question: those who are asked, as far as nothing keeps the people apart who are to control one another."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from standfast.graph.index import GraphIndex
from standfast.graph.model import HumanOp
from standfast.kernel.actor import Actor, Needed
from standfast.kernel.decision import Rejection
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import RunState, StepState
from standfast.machine.model.task_state import Question, Seat, TaskVote, begun, shown

_EVERYTHING = "*"
_ROLE, _MAY = "role:", "may:"
_AND = "\n"
"""Between capabilities that are needed together; no name of one has it."""


def question_of(routes: GraphIndex, state: RunState, step: StepState) -> Question:
    """An open question as it stands, to look at; one that nothing has happened to is as its definition has it."""
    known = state.questions.get(step.number) or routes.questions.get(step.node)
    if isinstance(known, Question):
        return known
    op = routes.node(step.node).op
    assert isinstance(op, HumanOp)
    question = routes.questions[step.node] = begun(op)
    return question


def may_all(actor: Actor) -> bool:
    """Whether somebody may decide whatever is asked of others."""
    return actor.kind == "system" or actor.may(_EVERYTHING)


def person(actor: Actor) -> str:
    """For whom an actor acts."""
    return actor.on_behalf_of or actor.id


def acting_names(actor: Actor) -> list[str]:
    """Under which names somebody acts: their own, and that of whom they act for. The engine is nobody."""
    return [] if actor.kind == "system" else [name for name in (actor.id, actor.on_behalf_of) if name]


def seat_of(question: Question, actor: Actor) -> int:
    """The place from which an actor is asked, counted from one; 0 if there is none. His own comes before that of a role."""
    found = candidates_of(question, actor)
    return found[0][0] if found else 0


def candidates_of(question: Question, actor: Actor) -> list[tuple[int, Seat]]:
    """The free places from which an actor is asked, his own before those of roles. Whether they still entitle him, `entitlement` says."""
    name = person(actor)
    own, by_role = list[tuple[int, Seat]](), list[tuple[int, Seat]]()
    for place, seat in enumerate(question.seats, 1):
        if seat.given is None and not seat.is_out:
            asked = seat.person
            if asked.kind == "user":
                if asked.name == name:
                    own.append((place, seat))
            elif _has_role(seat, actor):
                by_role.append((place, seat))
    return own + by_role


def decision_by(question: Question, actor: Actor) -> TaskVote | None:
    """What an actor, or whoever he acts for, has decided among those who are asked now."""
    who = person(actor)
    return next((seat.given for _, seat in question.asked if seat.decider == who), None)


def last_decision(question: Question, actor: Actor, stages: Collection[int] | None = None) -> TaskVote | None:
    """Return what an actor has decided last, be it in a stage that is over; in one of `stages`, if they are given."""
    own = [each for each in question.given if each.actor == actor.id and actor.on_behalf_of in {"", each.on_behalf_of}]
    return next((each for each in reversed(own) if stages is None or each.stage in stages), None)


def is_open_to_all(op: HumanOp, question: Question) -> bool:
    """Whether anybody may answer who has the capability of the node."""
    return not op.all_asks and not op.chain and all(seat.is_extra for seat in question.seats)


def asked_in(op: HumanOp, capability: Needed, question: Question) -> list[str]:
    """All who have a part in a question, to be remembered: names, `role:<name>`, and `may:<capability>` where anybody may answer who has one, or all of several."""
    seats = question.seats
    names = [name for seat in seats for name in (shown(seat.person), seat.person.for_, *seat.hands) if name]
    if is_open_to_all(op, question):
        wanted = capability if isinstance(capability, str) else _AND.join(capability)
        names = [*names, f"{_MAY}{wanted}"] if wanted else []
    return list(dict.fromkeys(names))


def was_asked(actor: Actor, asked: str) -> bool:
    """Whether an actor is one of those who are remembered so."""
    if asked.startswith(_MAY):
        return all(map(actor.may, asked.removeprefix(_MAY).split(_AND)))
    if asked.startswith(_ROLE):
        return asked.removeprefix(_ROLE) in actor.roles
    return asked in {actor.id, person(actor)}


def candidate_refusal(routes: GraphIndex, state: RunState, step: StepState, actor: Actor) -> Rejection | None:
    """Why an actor is none of those who can decide a question now."""
    op = routes.node(step.node).op
    assert isinstance(op, HumanOp)
    question = question_of(routes, state, step)
    if may_all(actor) or is_open_to_all(op, question):
        return None
    if decision_by(question, actor) is not None or last_decision(question, actor) is not None:
        return None  # They are told what they decided.
    return place_refusal(question, step, actor)


def place_refusal(question: Question, step: StepState, actor: Actor) -> Rejection | None:
    """Return why an actor has no place among those who are asked now. A decision that they gave before is no place."""
    if question.is_looking:
        told = f"the people whom {step.node!r} asks are still being looked for; try again when it is in an inbox"
        return refused(Refusal.NOT_ASKED_YET, told)
    if seat_of(question, actor):
        return None
    return _decided_by_other(question, step, actor) or refused(
        Refusal.NOT_ALLOWED,
        f"{actor.id!r} may not answer {step.node!r}, which asks others; they can reassign it, or delegate it",
    )


def claim_refusal(question: Question, node: str, actor: Actor) -> Rejection | None:
    """Why an actor cannot decide what another has taken for himself."""
    holder = question.claimed_by
    if holder in {"", person(actor)} or actor.kind == "system" or actor.may(_EVERYTHING):
        return None
    told = (
        f"{holder!r} has claimed {node!r}, and decides alone; they can release it, and so can whoever may reassign it"
    )
    return refused(Refusal.CLAIMED, told)


def separation_refusal(
    routes: GraphIndex, state: RunState, step: StepState, actor: Actor, *, seat: Seat | None = None
) -> Rejection | None:
    """Why an actor may not decide although asked: a right to everything does not make one person two. The engine is nobody.

    From a place that others have handed on, these decide too.
    """
    if actor.kind == "system":
        return None
    op = routes.node(step.node).op
    assert isinstance(op, HumanOp)
    if not op.delegable and actor.on_behalf_of:
        return not_delegable(step.node)
    return name_refusal(routes, state, step, {actor.id, person(actor), *givers_of(seat)})


def givers_of(seat: Seat | None) -> set[str]:
    """From whom somebody has a place, and who has handed it on for them: all these decide by whatever is decided there."""
    return set() if seat is None else {seat.person.for_, *seat.hands, *seat.lent.values()} - {""}


def ending_refusal(routes: GraphIndex, state: RunState, steps: Iterable[StepState], actor: Actor) -> Rejection | None:
    """Why an actor may not end these steps: one of them is a question that they may not decide, and to end it is to decide it."""
    refusals = (separation_refusal(routes, state, step, actor) for step in questions_among(routes, steps))
    return next(filter(None, refusals), None)


def questions_among(routes: GraphIndex, steps: Iterable[StepState]) -> list[StepState]:
    """The questions to people among some open steps."""
    return [step for step in steps if step.of is None and isinstance(routes.node(step.node).op, HumanOp)]


def not_delegable(node: str) -> Rejection:
    """Nobody decides in the place of those who are asked."""
    return refused(
        Refusal.NOT_DELEGABLE,
        f"{node!r} is decided by those themselves who are asked; have it reassigned if they cannot",
    )


def name_refusal(routes: GraphIndex, state: RunState, step: StepState, names: Iterable[str]) -> Rejection | None:
    """Why these people, who are one, may not decide a question."""
    op = routes.node(step.node).op
    assert isinstance(op, HumanOp)
    own = set() if op.self_approval else whose_matter(state, op.covers)
    for name in sorted(names):
        if name in own:
            told = f"{name!r} {_part_of(state, name)} and may not decide {step.node!r} too; somebody else has to"
            return refused(Refusal.SELF_APPROVAL, told)
        decided = _decided_before(routes, state, step, name)
        if decided:
            again = f"{step.node!r} too" if decided != step.node else "it twice, for whomever"
            told = f"{name!r} has decided {decided!r} and may not decide {again}; somebody else has to"
            return refused(Refusal.NOT_DISTINCT, told)
    return None


def barred_names(routes: GraphIndex, state: RunState, step: StepState) -> list[str]:
    """Those who may not decide a question, whatever their roles are."""
    op = routes.node(step.node).op
    assert isinstance(op, HumanOp)
    question = state.questions.get(step.number)
    if op.self_approval and question is None and not (op.distinct_approvers or routes.apart(step.node)):
        return []
    given = () if question is None else question.given
    known = {*whose_matter(state), *(name for names in state.deciders.values() for name in names)}
    known |= {name for each in given for name in _names(each)}
    if routes.apart(step.node):
        known |= {name for each in state.questions.values() for answer in each.given for name in _names(answer)}
    known -= {""}
    return [name for name in sorted(known) if name_refusal(routes, state, step, {name}) is not None]


def whose_matter(state: RunState, covers: Sequence[str] = ()) -> set[str]:
    """Whose matter a run is, so that they do not decide it: who wants it, and whoever else has brought it about.

    These have started it for another, forked it, had its schedule fire, or given it other data, or they have done so to the run that it is a
    part of. Of a document, they have written these fields of it, or asked for its transition.
    """
    written = set[str]() if state.document is None else state.document.authors(covers)
    return {state.requester, *state.involved, *written} - {""}


def involved_in(state: RunState) -> list[str]:
    """Whose matter a run is besides that of who wants it: theirs are also the runs that it starts."""
    return [*state.involved, *sorted(whose_matter(state) - {state.requester, *state.involved})]


def _part_of(state: RunState, name: str) -> str:
    """What somebody has to do with a run whose matter it is."""
    if state.document is not None:
        return "wrote this document or asked for its transition,"
    return "started this workflow" if name == state.requester else "has brought this workflow about, or its data,"


def _decided_before(routes: GraphIndex, state: RunState, step: StepState, name: str) -> str:
    """The step that somebody has decided who is to be another one than the decider of this one; empty if there is none.

    Whichever of the two is decided first, the other one is for somebody else. What somebody has decided among several counts at once, and for
    nobody else among them.
    """
    op = routes.node(step.node).op
    assert isinstance(op, HumanOp)
    others = routes.apart(step.node)
    question = state.questions.get(step.number)
    if question is not None and any(name in _names(each) for each in _votes(op, question)):
        return step.node
    if op.distinct_approvers:
        others |= {
            each for each in state.deciders if each != step.node
        }  # A version that it was moved from may have had others.
    for each in sorted(others):
        if name in state.deciders.get(each, ()):
            return each
    for number, question in state.questions.items() if others else ():
        other = state.open.get(number)
        if other is not None and other.node in others and any(name in _names(each) for each in question.given):
            return other.node
    return ""


def _votes(op: HumanOp, question: Question) -> list[TaskVote]:
    """The decisions of which each has to be another one's: those of the stage that is asked, or of all stages."""
    if op.distinct_approvers:
        return question.given
    return [seat.given for _, seat in question.asked if seat.given]


def _names(given: TaskVote) -> set[str]:
    return {given.actor, given.on_behalf_of}


def _has_role(seat: Seat, actor: Actor) -> bool:
    return seat.person.kind == "role" and actor.is_one_of(frozenset((seat.person.name,)))


def _decided_by_other(question: Question, step: StepState, actor: Actor) -> Rejection | None:
    """A colleague was faster."""
    for _, seat in question.asked:
        if seat.given is not None and _has_role(seat, actor):
            given = seat.given
            told = f"{given.outcome} by {given.actor!r} at {given.at} for the role {seat.person.name!r}"
            return refused(Refusal.ALREADY_DECIDED, f"step {step.number} was {told}, and a decision stands")
    return None
