"""The row of an instance: what lists find it by, who started it, since when it rests and when it must have ended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from standfast import Actor, Decision, Engine, InstanceInfo, Moment, PayloadError, RequestContext, Saga
from standfast.testing.manual import START
from support.engines import Place
from support.samples import Answer, Do, Doll, Noted, Notes, Puppet

HOUR = timedelta(hours=1)


def labelled(**labels: Any) -> Puppet:
    """A puppet that is found by what its commands name."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted(command.what)).with_attributes(**labels[command.what])

    return Puppet(choose)


def found(engine: Engine, **attributes: Any) -> list[str]:
    """The keys of those that have these values, newest first."""
    return [each.key for each in engine.instances.list(attributes=attributes)]


def row(engine: Engine, key: str) -> InstanceInfo:
    """The row of an instance."""
    (header,) = engine.instances.list(key=key)
    return header


def test_instances_are_found_by_what_a_decision_says(place: Place) -> None:
    """By one value or by several, and only by those that are equal, kind of value included."""
    engine = place.engine().register(
        labelled(
            red={"colour": "red", "size": 3, "rush": True},
            blue={"colour": "blue", "size": 3, "rush": False},
            odd={"colour": "3", "size": 2.5, "rush": 1},
        )
    )
    for what in ("red", "blue", "odd"):
        engine.deciders.execute(Puppet, Do(what, what))
        engine.advance(seconds=1)
    assert found(engine, size=3) == ["blue", "red"]
    assert found(engine, size=3, colour="red") == ["red"]
    assert found(engine, size=2.5) == ["odd"]
    assert found(engine, rush=True) == ["red"]
    assert found(engine, colour="3") == ["odd"]
    assert found(engine, colour="green") == found(engine, shade="red") == []
    assert row(engine, "red").attributes == {"colour": "red", "size": 3, "rush": True}


def test_values_are_laid_over_one_another(place: Place) -> None:
    """A later decision changes what it names and takes away what it names None; the rest stays, also in another process."""
    puppet = labelled(first={"a": 1, "b": 1}, second={"b": 2, "c": 2}, third={"a": None})
    for what in ("first", "second", "third"):
        place.engine().register(puppet).deciders.execute(Puppet, Do("p-1", what))
    engine = place.engine().register(puppet)
    assert row(engine, "p-1").attributes == {"b": 2, "c": 2}
    assert found(engine, a=1) == found(engine, b=1) == []
    assert found(engine, b=2, c=2) == ["p-1"]


def test_a_page_is_cut_after_the_filter(place: Place) -> None:
    """The page is full as long as there is enough that has the value, however much younger there is without it."""
    engine = place.engine().register(labelled(yes={"is": "yes"}, no={"is": "no"})).register(Doll())
    for number in range(3):
        engine.deciders.execute(Puppet, Do(f"yes-{number}", "yes"))
        engine.advance(seconds=1)
    for number in range(5):
        engine.deciders.execute(Puppet, Do(f"no-{number}", "no"))
        engine.deciders.execute(Doll, Do(f"bare-{number}", ""))
    page = engine.instances.list(attributes={"is": "yes"}, limit=2)
    assert [each.key for each in page] == ["yes-2", "yes-1"]
    rest = engine.instances.list(attributes={"is": "yes"}, limit=2, before=page[-1].id)
    assert [each.key for each in rest] == ["yes-0"]


def test_values_are_not_found_by_other_tenants(place: Place) -> None:
    """A list shows the instances of one tenant, whatever it is asked for."""
    engine = place.engine().register(labelled(a={"is": "a"}))
    engine.deciders.execute(Puppet, Do("p-1", "a"))
    assert engine.as_tenant("rival").instances.list(attributes={"is": "a"}) == []
    assert engine.instances.list(attributes={"is": "a"}, key="p-2") == []
    assert [each.key for each in engine.instances.list(attributes={"is": "a"}, key="p-1")] == ["p-1"]


@pytest.mark.parametrize(
    "labels",
    [
        {"a": "nul\x00"},
        {"a": float("nan")},
        {"a": 2**63},
        {"a": ["list"]},
        {"a": "x" * 2000},
        {f"n{number}": 1 for number in range(51)},
    ],
)
def test_values_that_no_database_could_find_are_refused(place: Place, labels: Mapping[str, Any]) -> None:
    """The command is refused with a sentence, and nothing is written."""
    engine = place.engine().register(labelled(bad=labels))
    with pytest.raises(PayloadError, match="search attribute"):
        engine.deciders.execute(Puppet, Do("p-1", "bad"))
    assert engine.instances.list() == []


def test_an_instance_has_only_so_many_values(place: Place) -> None:
    """However many decisions they come from; those that are taken away do not count."""
    many = {f"n{number}": number for number in range(50)}
    engine = place.engine().register(labelled(many=many, more={"one": 1}, other={"one": 1, "n0": None}))
    engine.deciders.execute(Puppet, Do("p-1", "many"))
    with pytest.raises(PayloadError, match="51 search attributes"):
        engine.deciders.execute(Puppet, Do("p-1", "more"))
    engine.deciders.execute(Puppet, Do("p-1", "other"))
    assert row(engine, "p-1").attributes.keys() == {*many, "one"} - {"n0"}


def test_a_row_says_who_started_it_and_where(place: Place) -> None:
    """The actor and the part of the tenant of the first command; later commands change neither."""
    engine = place.engine().register(Puppet())
    first = RequestContext(actor=Actor(id="ada"), partition="berlin")
    engine.acting(first).deciders.execute(Puppet, Do("p-1", "a"))
    second = RequestContext(actor=Actor(id="bob"), partition="berlin")
    place.engine().register(Puppet()).acting(second).deciders.execute(Puppet, Do("p-1", "b"))
    assert (row(engine, "p-1").started_by, row(engine, "p-1").partition) == ("ada", "berlin")


def test_a_row_says_since_when_it_is_paused(place: Place) -> None:
    """From the commit that pauses it on, until it goes on."""
    is_broken = True

    def work() -> None:
        if is_broken:
            raise ValueError("broken")

    engine = place.engine().register(Saga("order", dlq=True).step("a", work, attempts=1).build())
    engine.start("order", {}, key="o-1")
    engine.drain()
    paused = row(engine, "o-1")
    assert (paused.status, paused.paused_at) == ("paused", paused.updated_at)
    engine.advance(hours=1)
    assert row(engine, "o-1").paused_at == paused.paused_at
    is_broken = False
    (letter,) = engine.dead_letters.list()
    engine.dead_letters.requeue(letter.id)
    engine.drain()
    assert (row(engine, "o-1").status, row(engine, "o-1").paused_at) == ("completed", None)


def test_a_row_says_when_it_must_have_ended(place: Place) -> None:
    """While the deadline is ahead; not before there is one, nor after the end or the deadline itself."""
    engine = place.engine()
    engine.register(Saga("slow", deadline=HOUR).wait("rest", timedelta(minutes=30)).step("a", lambda: None).build())
    engine.register(Saga("late", deadline=HOUR).wait("rest", timedelta(hours=3)).build())
    for name in ("slow", "late"):
        engine.start(name, {}, key=name)
    assert [row(engine, name).deadline_at for name in ("slow", "late")] == [START + HOUR] * 2
    engine.advance(minutes=31)
    assert row(engine, "slow").deadline_at is None
    assert row(engine, "late").deadline_at == START + HOUR
    engine.advance(minutes=31)
    assert row(engine, "late").deadline_at is None
