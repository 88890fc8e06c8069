"""Pages: how much to show and from where on, given in a way that both databases understand alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Engine, NotFoundError, PayloadError, Reply, Saga
from support.engines import Place
from support.samples import Do, Puppet

LIMITS: dict[str, Callable[[Engine, int], Reply[Any]]] = {
    "load_events": lambda engine, limit: engine.futures.deciders.history(Puppet, "p-1", limit=limit),
    "events": lambda engine, limit: engine.futures.run(_saga(engine)).history(limit=limit),
    "dead_letters": lambda engine, limit: engine.futures.dead_letters.list(limit=limit),
    "tasks": lambda engine, limit: engine.futures.tasks.list(limit=limit),
    "list_instances": lambda engine, limit: engine.futures.runs.list(limit=limit),
    "active_instances": lambda engine, limit: engine.futures.runs.list(is_active=True, limit=limit),
    "instances": lambda engine, limit: engine.futures.instances.list(limit=limit),
}
PLACES: dict[str, Callable[[Engine, int], Reply[Any]]] = {
    "load_events": lambda engine, after: engine.futures.deciders.history(Puppet, "p-1", after=after),
    "events": lambda engine, after: engine.futures.run(_saga(engine)).history(after=after),
    "dead_letters": lambda engine, after: engine.futures.dead_letters.list(after=after),
}


def _saga(engine: Engine) -> str:
    return str(engine.runs.list().items[0].id)


def prepared(place: Place) -> Engine:
    """An engine with an instance of each kind."""
    engine = place.engine().register(Puppet()).register(Saga("ask").human("ask").build())
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.start("ask")
    engine.drain()
    return engine


@pytest.mark.parametrize("name", LIMITS)
def test_a_page_has_room_for_something(place: Place, name: str) -> None:
    """A limit is a whole number from one on: anything else is refused, with the same words on every database."""
    engine, ask = prepared(place), LIMITS[name]
    for wrong in (-1, 0, 2**31, 1.5, "3", True):
        with pytest.raises(PayloadError, match=r"^the limit must be a whole number from 1 to 2147483647, not "):
            ask(engine, wrong).result()  # type: ignore[arg-type]
    for right in (1, 2**31 - 1):
        ask(engine, right).result()


@pytest.mark.parametrize("name", PLACES)
def test_a_page_begins_somewhere(place: Place, name: str) -> None:
    """What a page comes after is a whole number from zero on; beyond the end there is nothing."""
    engine, ask = prepared(place), PLACES[name]
    for wrong in (-1, 2**63, 1.5, "3", None):
        with pytest.raises(PayloadError, match=r"^`after` must be a whole number from 0 to \d+, not "):
            ask(engine, wrong).result()  # type: ignore[arg-type]
    assert ask(engine, 2**31 - 1).result() == []


@pytest.mark.parametrize("number", [-1, 2**63, 10**30])
def test_a_letter_with_an_impossible_number_is_not_found(place: Place, number: int) -> None:
    """Whatever number it is, there is no such letter."""
    engine = place.engine()
    letters = engine.dead_letters
    for call in (letters.get, letters.requeue, letters.discard):
        with pytest.raises(NotFoundError, match="dead letter"):
            call(number)
