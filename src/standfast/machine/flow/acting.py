"""In whose name the steps of a document's workflow act, and what these may do when they act."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from standfast.kernel.actor import SYSTEM, Actor, late_text
from standfast.kernel.facts import SERVICES_FACT, PersonFact, RightsFact, person_fact, rights_fact
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.document_state import Intent
from standfast.machine.model.events import TransitionRequested
from standfast.machine.model.queries.edit_windows import document_of

AS_SYSTEM = "system"


class Present(NamedTuple):
    """Whoever a step acts as, with what they may do in this commit."""

    actor: Actor
    objection: str = ""
    """Why they may not act at all."""
    is_elsewhere: bool = False
    """Whether only a directory of the host can tell that they are active."""
    version: int = 0
    """The version of the directory by which this was judged; 0 if it was not asked."""


def acting(turn: DecisionBuilder, run_as: str) -> Actor:
    """As whom a step acts: whoever asked for the transition, the engine, or a service account, whose step its publishers have allowed."""
    if run_as == AS_SYSTEM:
        return SYSTEM
    if run_as:
        return Actor(id=run_as, kind="service", capabilities=frozenset({"*"}))
    intent = document_of(turn.state).intent
    return turn.moment.actor if intent is None else intent.actor


def principal(turn: DecisionBuilder, run_as: str) -> str:
    """On whose behalf a step acts: a lent name does so for whoever asked for the transition, and for whom they did."""
    cause = acting(turn, "")
    if cause.on_behalf_of or not run_as:
        return cause.on_behalf_of
    return "" if cause.kind == "system" else cause.id


def present(turn: DecisionBuilder, run_as: str) -> Present:
    """Returns as whom a step acts, with the rights of this commit. Rights that were lost since the transition was asked for do not count."""
    actor, intent = acting(turn, run_as), document_of(turn.state).intent
    if actor.kind == "system":
        return Present(actor)
    if run_as:
        return _account(turn, actor)
    if intent is None or _is_here(turn, intent, actor):
        return Present(actor)
    if not intent.asked:
        return _by_name(turn, actor)
    fact = turn.fact(rights_fact(intent.asked))
    assert isinstance(fact.value, RightsFact)
    found = fact.value
    if found.actor is None:
        return Present(actor, found.refusal, version=fact.version)
    now = replace(found.actor, on_behalf_of=intent.on_behalf_of)
    return Present(now, is_elsewhere=found.is_elsewhere, version=fact.version)


def _is_here(turn: DecisionBuilder, intent: Intent, asked: Actor) -> bool:
    """Whether whoever asked for the transition asks for it by this very command: their rights are those of this commit."""
    actor = turn.moment.actor
    if actor.id != intent.by or actor.kind != intent.kind:
        return False
    bare = replace(actor, key="", until=None) if actor.key or actor.until is not None else actor
    return asked == bare


def _by_name(turn: DecisionBuilder, actor: Actor) -> Present:
    """Somebody whose request was not kept: their rights are those of then, unless they are deactivated."""
    fact = turn.fact(person_fact(actor.id))
    assert isinstance(fact.value, PersonFact)
    told = "" if fact.value.is_active else f"{actor.id!r} is deactivated and cannot act; somebody else has to"
    return Present(actor, told, is_elsewhere=fact.value.is_elsewhere, version=fact.version)


def _account(turn: DecisionBuilder, actor: Actor) -> Present:
    """A service account acts unless it is deactivated, or the directory has service accounts and does not have this one."""
    fact = turn.fact(person_fact(actor.id))
    assert isinstance(fact.value, PersonFact)
    known = fact.value
    if not known.is_active:
        told = f"the service account {actor.id!r} is deactivated; activate it, or publish a body that names another"
        return Present(actor, told, version=fact.version)
    if known.is_kept and not known.is_known and turn.fact(SERVICES_FACT).value:
        told = f"the service account {actor.id!r} is not in the directory; put it there with kind `service`, or publish a body that names another"
        return Present(actor, told, version=fact.version)
    return Present(actor, version=fact.version)


def take_over(turn: DecisionBuilder) -> None:
    """Have the way of the document gone in the name of whoever acts now: they may do what was denied to whoever asked for it."""
    intent, actor = document_of(turn.state).intent, turn.moment.actor
    turn.emit(
        TransitionRequested(
            transition="" if intent is None else intent.transition,
            by=actor.id,
            kind=actor.kind,
            on_behalf_of=actor.on_behalf_of,
            roles=sorted(actor.roles),
            capabilities=sorted(actor.capabilities),
            asked=late_text(turn.moment.asked, actor.roles),
            reason="" if intent is None else intent.reason,
            again=True,
        )
    )
