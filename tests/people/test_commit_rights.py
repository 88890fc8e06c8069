"""What a commit finds out about who acts: whether they still stand in for somebody, whatever was found when they asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import pytest

from standfast import Actor, ForbiddenError, RequestContext
from standfast.calls.fact_source import EngineFacts
from standfast.engine.commit.facts import Asking, StandsIn
from standfast.people import access_facts as access
from standfast.people.rejections import PeopleRefusal
from standfast.store.ports.facts import FactLook
from standfast.store.ports.store import StoreParts
from standfast.testing import ManualEngine
from support.engines import Place

T = TypeVar("T")
HOUR = timedelta(hours=1)
FINANCE = frozenset({"finance"})


def asking(giver: str, roles: frozenset[str] = frozenset(), definition: str = "leave") -> Asking:
    """Dan wants to decide in somebody's place."""
    request = RequestContext(actor=Actor(id="dan"))
    return Asking(
        request=request, tenant="default", definition=definition, stands_in=StandsIn(giver, roles)
    )  # fmt: skip


def facts_of(engine: ManualEngine) -> EngineFacts:
    """What an engine knows of people."""
    facts = engine._desk.service.around.facts
    assert isinstance(facts, EngineFacts)
    return facts


def looked(engine: ManualEngine, read: Callable[[FactLook], T]) -> T:
    """What is read in a transaction."""

    def work(parts: StoreParts) -> T:
        with parts.together() as look:
            return read(look)

    return engine._desk.service.operate(work)


def found(engine: ManualEngine, wanted: Asking) -> Actor | str:
    """Who acts, as the commit finds it, from memory too; or the refusal."""
    facts, now = facts_of(engine), engine._desk.service.shared.clock.now()
    try:
        read = looked(engine, lambda look: facts.authorise(look, wanted, now, may_remember=True))
        known = facts.authorised(wanted, now)
    except ForbiddenError as refused:
        return refused.reason
    assert known is not None
    assert known.request.actor == read.request.actor
    return read.request.actor


@pytest.mark.row("E-664")
def test_a_commit_lets_nobody_act_for_somebody_without_a_delegation_that_covers_it(place: Place) -> None:
    """It must be of the one that is named, hold now, and cover the workflow and the roles by which that one is asked."""
    engine = place.engine()
    for name in ("ann", "bob", "cat", "dan"):
        engine.directory.put(name)
        engine.directory.grant(name, "finance" if name != "dan" else "clerk")
    engine.directory.grant("ann", "boss")
    engine.directory.delegate("ann", "dan", role="finance")
    engine.directory.delegate("bob", "dan", definition="leave")
    engine.directory.delegate("cat", "dan", ends_at=place.clock.now() + HOUR)
    refused = PeopleRefusal.NOT_STANDING_IN

    by_role = found(engine, asking("ann", FINANCE))
    assert isinstance(by_role, Actor)
    assert (by_role.on_behalf_of, by_role.roles) == ("ann", frozenset({"finance", "clerk"}))
    assert found(engine, asking("ann")) == refused  # By name: only a delegation of everything covers that.
    assert found(engine, asking("ann", frozenset({"boss"}))) == refused
    by_name = found(engine, asking("bob"))
    assert isinstance(by_name, Actor)
    assert (by_name.on_behalf_of, by_name.roles) == ("bob", frozenset({"clerk", "finance"}))
    assert found(engine, asking("bob", definition="order")) == refused
    assert found(engine, asking("bob", frozenset({"boss"}))) == refused
    assert isinstance(found(engine, asking("cat")), Actor)
    place.clock.move(2 * HOUR)
    assert found(engine, asking("cat")) == refused  # Also if it is remembered from before.
    assert found(engine, asking("eve")) == refused


def test_people_of_few_tenants_are_remembered(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the tenant that was read first are forgotten for those of another one."""
    monkeypatch.setattr(access, "_MOST_TENANTS", 2)
    engine = place.engine()
    people = facts_of(engine).accesses

    def read(*tenants: str, may_remember: bool = True) -> list[str]:
        for each in tenants:
            looked(engine, lambda look, tenant=each: people.read(look, tenant, may_remember=may_remember))  # type: ignore[misc]
        return [each for each in ("a", "b", "c") if people.known(each) is not None]

    assert read("a", "b") == ["a", "b"]
    assert read("c") == ["b", "c"]
    assert read("a", may_remember=False) == ["b", "c"]
    people.forget("b")
    assert read("a") == ["a", "c"]
