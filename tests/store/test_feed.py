"""The feed: all events in one order that never goes back and never skips one, and how far each projection has read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pytest

from standfast.kernel.history import StoredEvent
from standfast.store.opening import open_store
from standfast.store.ports.reading import Feed
from standfast.store.records.instances import InstanceChange, InstanceHeader
from standfast.store.records.queries import FedEvent, Headline
from support.desks import Desk
from support.rows import (
    LATER,
    NOW,
    OTHER_TENANT,
    born,
    by_id,
    moved,
)
from support.waiting import together


def seen(events: Sequence[StoredEvent]) -> list[tuple[object, int]]:
    """Events as instance and number."""
    return [(event.instance, event.sequence) for event in events]


def ignore(events: Sequence[StoredEvent], connection: object) -> None:
    """A projection that keeps nothing."""


@pytest.mark.row("D-040", "D-093")
def test_the_order_is_that_of_the_commits(desk: Desk) -> None:
    """Events of all tenants come in the order of their commits, in a commit as written; positions grow strictly."""
    first, second = born(events=2), born(tenant=OTHER_TENANT)
    desk.commit(first, second)
    desk.commit(moved(first.header), now=LATER)
    events = desk.feed.read(after=0, limit=10)
    assert seen(events) == [
        (first.header.id, 1),
        (first.header.id, 2),
        (second.header.id, 1),
        (first.header.id, 3),
    ]
    positions = [event.position for event in events]
    assert positions == sorted(set(positions))
    assert [(event.tenant, event.data) for event in events[2:]] == [(OTHER_TENANT, b'{"n":1}'), ("default", b'{"n":3}')]
    assert desk.feed.headlines(after=0, limit=10) == [headline(event) for event in events]


def headline(event: FedEvent) -> Headline:
    """An event without what it says."""
    return Headline(
        event.position, event.tenant, event.instance, event.sequence, event.type, definition=event.definition
    )


def pages(feed: Feed, limit: int) -> Iterator[list[FedEvent]]:
    """The whole feed, a page at a time."""
    after = 0
    while page := feed.read(after=after, limit=limit):
        yield page
        after = page[-1].position


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_join_without_a_seam(desk: Desk, limit: int) -> None:
    """Whatever the size of the pages, they hold every event once and in order."""
    head = desk.born(born(events=3))
    for _ in range(3):
        change = moved(head)
        desk.commit(change, born(events=2))
        head = change.header
    whole = desk.feed.read(after=0, limit=1000)
    assert [event for page in pages(desk.feed, limit) for event in page] == whole
    assert desk.feed.headlines(after=whole[2].position, limit=limit) == [
        headline(event) for event in desk.feed.read(after=whole[2].position, limit=limit)
    ]
    assert len(whole) == 12


def test_positions_are_the_same_for_all_readers(desk: Desk) -> None:
    """An event has one position, wherever it is read."""
    head = desk.born(born(events=2))
    fed = [event.position for event in desk.feed.read(after=0, limit=9)]
    assert fed == [event.position for event in desk.reader.events(head.id)]
    assert fed == [event.position for event in desk.loaded(head.id).events]


@pytest.mark.row("D-093")
def test_a_projection_moves_with_what_it_applies(desk: Desk) -> None:
    """A new projection begins at zero; each step applies the next events and moves the checkpoint to the last of them."""
    head = desk.born(born(events=3))
    applied: list[StoredEvent] = []
    assert desk.feed.checkpoint("totals") == 0
    steps = [
        desk.feed.advance("totals", limit=2, apply=lambda events, _: applied.extend(events), now=NOW) for _ in range(3)
    ]
    assert (steps, [event.sequence for event in applied]) == ([2, 1, 0], [1, 2, 3])
    assert desk.feed.checkpoint("totals") == applied[-1].position == desk.loaded(head.id).events[-1].position
    assert desk.feed.checkpoint("others") == 0


@pytest.mark.row("D-093")
def test_what_a_projection_writes_commits_with_its_checkpoint(desk: Desk) -> None:
    """If applying fails, neither the projection's rows nor the checkpoint are written; then it starts from there again."""
    desk.born(born(events=2))
    desk.run("create table model (number integer primary key)")

    def apply(events: Sequence[StoredEvent], connection: Any) -> None:
        for event in events:
            connection.execute(f"insert into model (number) values ({event.sequence})")

    def fail(events: Sequence[StoredEvent], connection: Any) -> None:
        apply(events, connection)
        raise RuntimeError("the projection has a mistake")

    with pytest.raises(RuntimeError, match="mistake"):
        desk.feed.advance("model", limit=9, apply=fail, now=NOW)
    assert (desk.feed.checkpoint("model"), desk.query("select number from model")) == (0, [])
    assert desk.feed.advance("model", limit=9, apply=apply, now=NOW) == 2
    assert sorted(desk.query("select number from model")) == [(1,), (2,)]


@pytest.mark.row("D-093")
def test_a_projection_can_be_built_anew(desk: Desk) -> None:
    """Rewinding clears the model and the checkpoint in one transaction; the same events then give the same model."""
    desk.born(born(events=3))
    desk.run("create table model (number integer primary key)")

    def apply(events: Sequence[StoredEvent], connection: Any) -> None:
        for event in events:
            connection.execute(f"insert into model (number) values ({event.sequence})")

    def clear(connection: Any) -> None:
        connection.execute("delete from model")

    def clear_badly(connection: Any) -> None:
        clear(connection)
        raise RuntimeError("no")

    desk.feed.advance("model", limit=9, apply=apply, now=NOW)
    with pytest.raises(RuntimeError):
        desk.feed.rewind("model", clear=clear_badly, now=NOW)
    assert len(desk.query("select number from model")) == 3
    desk.feed.rewind("model", clear=clear, now=NOW)
    assert (desk.feed.checkpoint("model"), desk.query("select number from model")) == (0, [])
    assert desk.feed.advance("model", limit=9, apply=apply, now=NOW) == 3


def test_a_failure_is_noted_and_goes_with_the_next_success(desk: Desk) -> None:
    """Why a projection stands still can be read beside its checkpoint, which stays where it was."""
    desk.born(born())
    desk.feed.advance("totals", limit=9, apply=ignore, now=NOW)
    at = desk.feed.checkpoint("totals")
    desk.feed.fail("totals", error="out of paint", now=LATER)
    desk.feed.fail("new", error="never began", now=LATER)
    told = dict(desk.query("select name, error from {}projections"))
    assert told == {"totals": "out of paint", "new": "never began"}
    assert (desk.feed.checkpoint("totals"), desk.feed.checkpoint("new")) == (at, 0)
    desk.born(born())
    desk.feed.advance("totals", limit=9, apply=ignore, now=LATER)
    assert desk.query("select error from {}projections where name = 'totals'") == [("",)]


@pytest.mark.row("D-093")
def test_every_event_is_applied_once_by_any_number_of_readers(desk: Desk) -> None:
    """Two processes that run one projection share its checkpoint: each event is applied once, in order."""
    for _ in range(10):
        desk.born(born(events=2))
    expected = seen(desk.feed.read(after=0, limit=100))
    applied: list[StoredEvent] = []

    def read(feed: Feed) -> None:
        while feed.advance("shared", limit=3, apply=lambda events, _: applied.extend(events), now=NOW):
            pass

    together(*(partial(read, each.feed) for each in (desk, desk.another(), desk.another())))
    assert seen(applied) == expected


@pytest.fixture
def pair(postgres_dsn: str) -> Iterator[tuple[Desk, Desk]]:
    """Two desks on one Postgres database, whose transactions can overlap."""
    store = open_store(postgres_dsn)
    yield Desk(store), Desk(store)
    store.close()


@pytest.mark.row("D-040")
def test_a_late_commit_is_not_skipped(pair: tuple[Desk, Desk]) -> None:
    """While a transaction runs, the feed ends below it; what commits late is read before what committed early."""
    slow, quick = pair
    late, early = born(), born()
    with slow.writer.unit() as unit:
        unit.write([late], NOW)
        unit.causes([late.header.id], [])  # Whatever is asked, what was written is sent before it.
        quick.commit(early)
        assert quick.feed.read(after=0, limit=9) == []
        assert quick.feed.advance("totals", limit=9, apply=ignore, now=NOW) == 0
    assert seen(quick.feed.read(after=0, limit=9)) == [(late.header.id, 1), (early.header.id, 1)]
    assert quick.feed.advance("totals", limit=9, apply=ignore, now=NOW) == 2


def overtaken_and_undone(slow: Desk, quick: Desk, early: InstanceChange) -> None:
    """A transaction writes, another one commits, and then the first one fails."""
    with slow.writer.unit() as unit:
        unit.write([born()], NOW)
        quick.commit(early)
        raise RuntimeError("undone")


@pytest.mark.row("D-040")
def test_a_transaction_that_is_undone_holds_nobody_back(pair: tuple[Desk, Desk]) -> None:
    """After a rollback the feed goes on with what others have written."""
    slow, quick = pair
    early = born()
    with pytest.raises(RuntimeError, match="undone"):
        overtaken_and_undone(slow, quick, early)
    assert seen(quick.feed.read(after=0, limit=9)) == [(early.header.id, 1)]


def overtaken(slow: Desk, quick: Desk, head: InstanceHeader) -> None:
    """A transaction begins, another one writes to the instance and commits, and then the first one writes to it too."""
    elsewhere = slow.born(born())
    with slow.writer.unit() as unit:
        unit.load([by_id(elsewhere.id)])
        quick.commit(moved(head, events=2), born(), born())
        (found,) = unit.load([by_id(head.id)])
        assert found is not None
        unit.write([moved(found.header, events=2), moved(elsewhere)], NOW)


@pytest.mark.row("D-040", "D-045")
def test_an_instance_is_in_order_however_old_the_transaction(pair: tuple[Desk, Desk]) -> None:
    """A transaction that began before the instance's last commit still comes after it in the feed."""
    slow, quick = pair
    head = quick.born(born())
    overtaken(slow, quick, head)
    order = [event.sequence for event in quick.feed.read(after=0, limit=99) if event.instance == head.id]
    assert order == [1, 2, 3, 4, 5]


@pytest.mark.row("D-040")
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_overtaken_transactions_leave_no_seam(pair: tuple[Desk, Desk], limit: int) -> None:
    """Pages hold every event once, also where transactions have overtaken one another."""
    slow, quick = pair
    head = quick.born(born())
    overtaken(slow, quick, head)
    whole = quick.feed.read(after=0, limit=1000)
    assert len(whole) == 9
    assert [event for page in pages(quick.feed, limit) for event in page] == whole
