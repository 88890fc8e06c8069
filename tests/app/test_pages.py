"""Pages: how much to show and from where on, given in a way that both databases understand alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from standfast import Actor, Decision, Engine, Moment, NotFoundError, PayloadError, Rejection, Reply, Saga
from standfast.features.runs.views import HistoryEntry
from standfast.testing import ManualEngine
from support.engines import Place
from support.samples import Answer, Do, Noted, Notes, Puppet

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


# -- pages while others write

Row = tuple[object, Any]
"""What tells a row apart, and what is given for the page behind it."""


class Walk(NamedTuple):
    """A list, and how its rows come and go."""

    page: Callable[[Engine, Any, int], Sequence[Row]]
    """The rows behind a place, or the first ones; at most so many."""
    bear: Callable[[ManualEngine], None]
    end: Callable[[ManualEngine, Any], None]
    """Have a row vanish from the list."""
    is_oldest_first: bool = True


def _ask(engine: ManualEngine) -> None:
    engine.start("ask")


def _submit(engine: ManualEngine) -> None:
    engine.deciders.submit(Puppet, Do("p-2", "wait"))


def _give_up(engine: ManualEngine) -> None:
    engine.deciders.submit(Puppet, Do("p-1", "refuse"))


def _answer(engine: ManualEngine, run: Any) -> None:
    (task,) = engine.run(run).tasks()
    engine.tasks.approve(task)


def _delete(engine: ManualEngine, run: Any) -> None:
    _answer(engine, run)
    engine.drain()
    engine.run(run).delete()


def _runs(engine: Engine, last: Any, limit: int, **filters: Any) -> list[Row]:
    return [(each.id, each.id) for each in engine.runs.list(**filters, cursor=last, limit=limit).items]


def _instances(engine: Engine, last: Any, limit: int, **filters: Any) -> list[Row]:
    return [(each.id, each.id) for each in engine.instances.list(**filters, before=last, limit=limit)]


def _tasks(engine: Engine, last: Any, limit: int, role: str | None = None) -> list[Row]:
    return [(each.instance, each) for each in engine.tasks.list(role=role, after=last, limit=limit)]


def _inbox(engine: Engine, last: Any, limit: int) -> list[Row]:
    clerk = engine.acting(Actor(id="ann", roles=frozenset({"clerk", "boss"})))
    return [(each.instance, each) for each in clerk.tasks.list(mine=True, after=last, limit=limit)]


def _letters(engine: Engine, last: Any, limit: int, **filters: Any) -> list[Row]:
    return [(each.id, each.id) for each in engine.dead_letters.list(**filters, after=last or 0, limit=limit)]


def _messages(engine: Engine, last: Any, limit: int) -> list[Row]:
    return [(each.id, each.id) for each in engine.inbox.list(definition="puppet", after=last or 0, limit=limit)]


def _discard(engine: ManualEngine, letter: Any) -> None:
    engine.dead_letters.discard(letter)


def _bury(engine: ManualEngine, message: Any) -> None:
    engine.inbox.bury(message)


WALKS = {
    "runs": Walk(_runs, _ask, _delete, is_oldest_first=False),
    "active runs": Walk(
        lambda engine, last, limit: _runs(engine, last, limit, is_active=True), _ask, _answer, is_oldest_first=False
    ),
    "runs of a status": Walk(
        lambda engine, last, limit: _runs(engine, last, limit, definition="ask", status=["running", "dlq"]),
        _ask,
        _answer,
        is_oldest_first=False,
    ),
    "instances": Walk(_instances, _ask, _delete, is_oldest_first=False),
    "instances of a status": Walk(
        lambda engine, last, limit: _instances(engine, last, limit, definition="ask", status="running"),
        _ask,
        _answer,
        is_oldest_first=False,
    ),
    "tasks": Walk(_tasks, _ask, _answer),
    "tasks of a role": Walk(lambda engine, last, limit: _tasks(engine, last, limit, "clerk"), _ask, _answer),
    "tasks of mine": Walk(_inbox, _ask, _answer),
    "dead letters": Walk(_letters, _give_up, _discard),
    "dead letters of a key": Walk(
        lambda engine, last, limit: _letters(engine, last, limit, definition="puppet", source="inbox", key="p-1"),
        _give_up,
        _discard,
    ),
    "inbox": Walk(_messages, _submit, _bury),
}


def _choose(state: Notes, command: Do, moment: Moment) -> Answer:
    if command.what == "refuse":
        return Rejection(code="no", message="not this")
    return Decision.event(Noted(command.what))


@pytest.mark.row("EO-33")
@pytest.mark.parametrize("name", WALKS)
def test_pages_are_exact_while_others_write(place: Place, name: str) -> None:
    """Between two pages rows come, and go: before the place, at it, behind it. Whatever stays is shown, once and in order."""
    walk = WALKS[name]
    engine = place.engine().register(Saga("ask").human("ask", role="clerk").build())
    if walk.bear is not _submit:  # Without its decider what is submitted waits.
        engine.register(Puppet(_choose))
    sender = place.engine().register(Puppet(_choose))

    def bear() -> None:
        walk.bear(sender if walk.bear is _submit else engine)
        engine.advance(seconds=1)

    for _ in range(9):
        bear()
    whole = [each for each, _ in walk.page(engine, None, 100)]
    assert len(whole) == 9
    seen: list[object] = []
    last: Any = None
    gone = iter([(0, 1, 3), (4, 5), ()])
    while len(seen) < 40 and (rows := walk.page(engine, last, 2)):
        assert len(rows) <= 2
        seen += [each for each, _ in rows]
        last = rows[-1][1]
        for number in next(gone, ()):
            walk.end(engine, whole[number])
        if len(seen) < 8:
            bear()
    assert len(seen) == len(set(seen))
    assert [each for each in seen if each in whole] == [whole[number] for number in (0, 1, 2, 4, 6, 7, 8)]
    behind = [each for each in seen if each not in whole]
    assert seen[7:] == behind
    assert bool(behind) == walk.is_oldest_first


def test_the_last_page_of_runs_says_so_whatever_ends_meanwhile(place: Place) -> None:
    """`next` leads from page to page; it is given where more follows, also if what follows ends before it is asked for."""
    engine = place.engine().register(Saga("ask").human("ask").build())
    for _ in range(5):
        engine.start("ask")
        engine.advance(seconds=1)
    first = engine.runs.list(is_active=True, limit=3)
    assert first.next == first.items[-1].id
    for item in engine.runs.list(cursor=first.next).items:
        _answer(engine, item.id)
    engine.drain()
    rest = engine.runs.list(is_active=True, cursor=first.next, limit=3)
    assert (list(rest.items), rest.next) == ([], None)


def test_pages_of_a_history_are_exact_while_it_grows(place: Place) -> None:
    """Whatever is appended between two pages comes at the end; the pages are the whole history, each event once."""
    engine = place.engine().register(Puppet()).register(Saga("ask").human("one").human("two").human("three").build())
    run = engine.start("ask")
    for number in range(5):
        engine.deciders.execute(Puppet, Do("p-1", str(number)))
    notes: list[int] = []
    told_in_pages: list[HistoryEntry] = []
    while page := engine.deciders.history(Puppet, "p-1", after=notes[-1] if notes else 0, limit=2):
        notes += [each.sequence for each in page]
        if len(notes) < 8:
            engine.deciders.execute(Puppet, Do("p-1", "more"))
    engine.drain()
    while told := run.history(after=told_in_pages[-1].sequence if told_in_pages else 0, limit=2):
        told_in_pages += told
        for task in engine.tasks.list():
            engine.tasks.approve(task)
        engine.drain()
    assert notes == [each.sequence for each in engine.deciders.history(Puppet, "p-1")]
    assert told_in_pages == run.history()
    assert len(notes) > 7
