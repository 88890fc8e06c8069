"""Whether those who are asked may still decide: their role, whoever handed the question to them, and whoever has claimed it.

People are asked when a question is put, and decide later. What entitles them is read in the commit that takes their decision.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from standfast.graph.model import HumanOp
from standfast.kernel.actor import Actor, RequestContext
from standfast.kernel.decision import Rejection
from standfast.kernel.facts import PersonFact, person_fact
from standfast.machine.flow.decision_builder import DeciderFound, DecisionBuilder, SeatFound
from standfast.machine.model.engine_tasks import Person, picked_by
from standfast.machine.model.queries.authorization import answer_refusal, capability_refusal
from standfast.machine.model.queries.eligibility import (
    candidates_of,
    claim_refusal,
    givers_of,
    is_open_to_all,
    may_all,
    name_refusal,
    person,
    place_refusal,
    question_of,
    separation_refusal,
)
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import StepState
from standfast.machine.model.task_state import Question, Seat


def decider_refusal(turn: DecisionBuilder, step: StepState) -> Rejection | None:
    """Why the actor may not decide an open step now: not asked, or not entitled any more."""
    known = turn.decider_found
    if known is not None and known.step is step and known.moment is turn.moment and known.events == turn.count:
        return known.barred
    barred = _decider_refusal(turn, step)
    turn.decider_found = DeciderFound(step, turn.moment, turn.count, barred)
    return barred


def _decider_refusal(turn: DecisionBuilder, step: StepState) -> Rejection | None:
    actor = turn.moment.actor
    barred = answer_refusal(turn.routes, turn.state, step, actor)
    if barred is not None or not isinstance(turn.routes.node(step.node).op, HumanOp) or may_all(actor):
        return barred
    question = question_of(turn.routes, turn.state, step)
    if seat_for(turn, question, actor):
        return None
    lapses = [lapse_of(turn, each, actor) for _, each in candidates_of(question, actor)]
    if not lapses:
        return None  # They are no candidate by a seat: they have decided before, or anybody may.
    told = "another one who is asked has to decide it, or it has to be reassigned"
    return refused(Refusal.NOT_ALLOWED, f"{actor.id!r} may not answer {step.node!r}: {lapses[0]}; {told}")


def asked_refusal(turn: DecisionBuilder, step: StepState) -> Rejection | None:
    """Return why the actor is not asked an open question now. To have decided it, or to have been asked, is not enough."""
    actor, op = turn.moment.actor, turn.routes.node(step.node).op
    assert isinstance(op, HumanOp)
    question = question_of(turn.routes, turn.state, step)
    barred = decider_refusal(turn, step)
    if barred is not None or may_all(actor) or is_open_to_all(op, question):
        return barred
    if not question.is_looking and seat_for(turn, question, actor):
        return None
    return place_refusal(question, step, actor)


def speaker_refusal(turn: DecisionBuilder, step: StepState) -> Rejection | None:
    """Return why the actor has no part in what is said about an open question.

    Those have one who are asked, who have decided in this stage, or who have handed their place on, as long as the place entitles. The requester has
    one too.
    """
    actor, who = turn.moment.actor, person(turn.moment.actor)
    if turn.state.requester and who == turn.state.requester:
        return None
    barred = asked_refusal(turn, step)
    if barred is None:
        return None
    question = question_of(turn.routes, turn.state, step)
    own = [
        seat
        for _, seat in question.asked
        if who in {seat.decider, *seat.hands} and not (lapse_of(turn, seat, actor) or role_lapse(seat, actor))
    ]
    if own:
        return capability_refusal(turn.routes.node(step.node), actor)
    told = f"{actor.id!r} may not comment on {step.node!r}: those who are asked may, and who started the workflow"
    return refused(Refusal.NOT_ALLOWED, told)


def role_lapse(seat: Seat, actor: Actor) -> str:
    """Return why the place of a role does not entitle an actor; empty if they have the role, or it is no place of a role."""
    asked = seat.person
    if asked.kind != "role" or may_all(actor) or asked.name in actor.roles:
        return ""
    return f"{person(actor)!r} does not have the role {asked.name!r} any more"


def apart_refusal(turn: DecisionBuilder, step: StepState) -> Rejection | None:
    """Why the actor may not decide an open question although asked: four eyes hold for them, and for those whose place they have."""
    actor = turn.moment.actor
    if actor.kind == "system":
        return None
    question = question_of(turn.routes, turn.state, step)
    place = seat_for(turn, question, actor)
    seat = question.seats[place - 1] if place else None
    return separation_refusal(turn.routes, turn.state, step, actor, seat=seat)


def is_left_out(turn: DecisionBuilder, step: StepState, seat: Seat) -> bool:
    """Whether somebody may not decide although asked; of those who have a role, nobody knows yet."""
    person, names = seat.person, {seat.person.name, *givers_of(seat)}
    return person.kind == "user" and name_refusal(turn.routes, turn.state, step, names) is not None


def seat_for(turn: DecisionBuilder, question: Question, actor: Actor) -> int:
    """The place from which the actor can decide now, counted from one; 0 if there is none. Their own comes before that of a role."""
    known = turn.seat_found
    if known is not None and known.question is question and known.actor is actor and known.events == turn.count:
        return known.place
    found = candidates_of(question, actor)
    if found and may_all(actor):
        place = found[0][0]
    else:
        place = next((place for place, seat in found if not lapse_of(turn, seat, actor)), 0)
    turn.seat_found = SeatFound(question, actor, turn.count, place)
    return place


def lapse_of(turn: DecisionBuilder, seat: Seat, actor: Actor) -> str:
    """Why a place does not entitle any more; empty if it does."""
    asked = seat.person
    told = lent_lapse(turn, asked, actor)
    if told or asked.kind == "role":
        return told
    owner = asked.for_ or asked.name
    if asked.role and not _has_role(turn, owner, asked.role, actor):
        return f"{owner!r} was asked as holder of the role {asked.role!r}, and does not have it any more"
    return given_lapse(seat, turn.routes.graph.name, partial(_known, turn))


def lent_lapse(turn: DecisionBuilder, asked: Person, actor: Actor) -> str:
    """Why a place is not among what somebody was lent for whom the actor stands in by the directory; empty if it is, or if they do not.

    A delegation for a role is about places that somebody has by this role, and about no other; and it lends the places of its giver, and none of the
    actor's own. For whom a request says that it acts, its front end vouches.
    """
    giver = actor.on_behalf_of
    if not giver or turn.moment.asked.actor.on_behalf_of:
        return ""
    known = _known(turn, giver)
    if known is None:
        return ""
    role = asked.name if asked.kind == "role" else picked_by(asked)
    if asked.kind == "role" and role not in known.roles:
        return f"{giver!r}, for whom {actor.id!r} stands in, does not have the role {role!r}"
    name = turn.routes.graph.name
    if any(
        each.to == actor.id and each.role in {"", role} and each.definition in {"", name} for each in known.stand_ins
    ):
        return ""
    return f"{actor.id!r} stands in for {giver!r} in other matters alone"


def given_lapse(seat: Seat, definition: str, known: Callable[[str], PersonFact | None]) -> str:
    """Why a place does not entitle any more that somebody has from others; empty if it does. `known` is what the directory has of a person."""
    asked = seat.person
    for giver in seat.hands:
        found = known(giver)
        if giver not in seat.lent and found is not None and not found.is_active:
            return f"{giver!r} has delegated it, and is deactivated by now"
    for giver, other in seat.lent.items():
        found = known(other)
        if (found is not None and not found.is_active) or not _stands_in(asked, known(giver), other, definition):
            return f"{other!r} has delegated it in the place of {giver!r}, and does not stand in for them any more"
    if asked.for_ and not seat.hands and not _stands_in(asked, known(asked.for_), asked.name, definition):
        return f"{asked.name!r} was asked in the place of {asked.for_!r}, and does not stand in for them any more"
    return ""


def unclaimed_refusal(turn: DecisionBuilder, step: StepState) -> Rejection | None:
    """Why the actor cannot decide what another has claimed. A claim of somebody who cannot decide any more keeps nobody out."""
    question = question_of(turn.routes, turn.state, step)
    barred = claim_refusal(question, step.node, turn.moment.actor)
    return None if barred is not None and _has_lapsed(turn, step, question) else barred


def claimant(turn: DecisionBuilder, step: StepState) -> str:
    """Return who has claimed an open question and keeps others out; empty if nobody does."""
    question = question_of(turn.routes, turn.state, step)
    return "" if not question.claimed_by or _has_lapsed(turn, step, question) else question.claimed_by


def role_of(turn: DecisionBuilder, question: Question) -> str:
    """The role that the directory grants to whom the actor acts for and by which they are asked.

    Empty if they are asked by name, or the request alone says the role: what it brings need not be known when somebody looks again.
    """
    actor = turn.moment.actor
    place = seat_for(turn, question, actor)
    asked = question.seats[place - 1].person if place else None
    if asked is None:
        return ""
    role = asked.name if asked.kind == "role" else asked.role
    if not role or role not in brought_roles(turn.moment.asked):
        return role
    known = _known(turn, person(actor))
    return role if known is not None and role in known.roles else ""


def _has_lapsed(turn: DecisionBuilder, step: StepState, question: Question) -> bool:
    if name_refusal(turn.routes, turn.state, step, {question.claimed_by}) is not None:
        return True  # They have decided something since that one person does not decide together with this.
    known = _known(turn, question.claimed_by)
    if known is None or known.is_elsewhere:
        return False
    if question.claimed_role and question.claimed_role not in known.roles:
        return True
    if question.claimed_stand_in:  # They have claimed nothing themselves, so the claim is no longer theirs than lent.
        lent = Person(name=question.claimed_by, role=question.claimed_role)
        return not _stands_in(lent, known, question.claimed_stand_in, turn.routes.graph.name, is_here=True)
    is_here = known.is_active and not known.is_away
    return not is_here and not any(
        each.is_here and each.role in {"", question.claimed_role} and each.definition in {"", turn.routes.graph.name}
        for each in known.stand_ins
    )


def _has_role(turn: DecisionBuilder, owner: str, role: str, actor: Actor) -> bool:
    if owner == actor.id:
        return role in actor.roles
    known = _known(turn, owner)
    return known is None or role in known.roles


def _stands_in(asked: Person, giver: PersonFact | None, other: str, definition: str, *, is_here: bool = False) -> bool:
    return giver is None or any(
        each.to == other
        and each.role in {"", asked.role}
        and each.definition in {"", definition}
        and (each.is_here or not is_here)
        for each in giver.stand_ins
    )


def brought_roles(request: RequestContext) -> frozenset[str]:
    """The roles that came with a request; a directory of the host may grant them too."""
    return request.actor.roles - request.vouched


def relied_on(question: Question, actor: Actor, brought: frozenset[str]) -> set[str]:
    """Besides an actor, those on whom it depends whether they may decide: for whom they stand in, who has claimed it, and whose places they have.

    A directory of the host is asked about them before the command, and about the actor where the request brings the role that is asked.
    """
    names = {actor.id, person(actor)}
    own = [each for _, each in question.asked if each.is_free and each.person.name in names]
    people = {name for each in own for name in (*givers_of(each), *each.lent, *each.lent.values())}
    people |= {each.person.name for each in own if each.person.role and each.person.name != actor.id}
    roles = {seat.person.name for _, seat in question.asked if seat.is_free and seat.person.kind == "role"}
    if brought & {*roles, *(each.person.role for each in own)}:
        people.add(person(actor))
    return {question.claimed_by, actor.on_behalf_of, *people} - {""}


def _known(turn: DecisionBuilder, name: str) -> PersonFact | None:
    """What the directory has of a person; None if it has nobody. Whoever a directory of the host was not asked about has no right."""
    found = turn.fact(person_fact(name)).value
    assert isinstance(found, PersonFact)
    if found.is_elsewhere:
        return replace(found, is_active=False)
    return found if found.is_kept else None
