"""Many at once: one winner each time, nothing lost, nothing doubled, and no deadlock reaches anybody."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest

from standfast.store.ports.store import LostRaceError
from standfast.store.records.instances import InstanceHeader, InstanceQuery, StoredEffect, Wanted
from support.desks import Desk
from support.rows import (
    NOW,
    SHIP_WORDS,
    WORDS,
    born,
    by_id,
    by_key,
    effect,
    message,
    moved,
    new_id,
    new_worker,
)
from support.waiting import together

ROUNDS = 8
CALLERS = 4


def desks(desk: Desk) -> list[Desk]:
    """A desk for each caller."""
    return [desk, *(desk.another() for _ in range(CALLERS - 1))]


def by_gate(desk: Desk, head: InstanceHeader) -> None:
    """Add an event the quick way: load, write with the version as the gate, and again when somebody was first."""
    while True:
        try:
            desk.commit(moved(desk.loaded(head.id).header))
        except LostRaceError:
            continue
        return


def by_lock(desk: Desk, head: InstanceHeader) -> None:
    """Add an event the careful way: lock, look, write."""
    with desk.writer.unit() as unit:
        (found,) = unit.load([by_id(head.id)])
        assert found is not None
        unit.write([moved(found.header)], NOW)


def repeat(action: Callable[[Desk, InstanceHeader], None], desk: Desk, head: InstanceHeader) -> None:
    """The same again and again."""
    for _ in range(ROUNDS):
        action(desk, head)


@pytest.mark.row("D-073", "D-122")
@pytest.mark.parametrize("ways", [(by_gate, by_gate), (by_lock, by_lock), (by_gate, by_lock)])
def test_no_update_is_lost(desk: Desk, ways: tuple[Callable[[Desk, InstanceHeader], None], ...]) -> None:
    """Whoever adds to one instance, by gate or by lock: every event is there, numbered without gaps, in the feed too."""
    head = desk.born(born())
    each_way = [ways[place % len(ways)] for place in range(CALLERS)]
    together(*(partial(repeat, way, own, head) for way, own in zip(each_way, desks(desk), strict=True)))
    count = 1 + CALLERS * ROUNDS
    assert [event.sequence for event in desk.loaded(head.id).events] == list(range(1, count + 1))
    assert [event.sequence for event in desk.feed.read(after=0, limit=1000)] == list(range(1, count + 1))


def start(desk: Desk, key: str, won: list[str]) -> None:
    """Try to be the first with a key."""
    try:
        desk.commit(born(key=key))
    except LostRaceError:
        return
    won.append(key)


@pytest.mark.row("D-028")
def test_a_key_has_one_beginning(desk: Desk) -> None:
    """Of all that start an instance with one key at the same time, exactly one does."""
    keys, won = [f"k-{number}" for number in range(ROUNDS)], list[str]()
    everybody = desks(desk)
    for key in keys:
        together(*(partial(start, own, key, won) for own in everybody))
    assert won == keys
    assert all(found is not None for found in desk.writer.load([by_key(key) for key in keys]))


def swap(desk: Desk, first: InstanceHeader, second: InstanceHeader) -> None:
    """Write to two instances in one transaction, named in this order."""
    for _ in range(ROUNDS):
        with desk.writer.unit() as unit:
            found = [each.header for each in unit.load([by_id(first.id), by_id(second.id)]) if each is not None]
            unit.write([moved(head) for head in found], NOW)


def test_locks_are_taken_in_one_order(desk: Desk) -> None:
    """Transactions that name the same instances in opposite orders never wait for one another in a circle."""
    first, second = desk.born(born()), desk.born(born())
    pairs = [(first, second), (second, first)] * (CALLERS // 2)
    together(*(partial(swap, own, *pair) for own, pair in zip(desks(desk), pairs, strict=True)))
    assert {desk.loaded(head.id).header.version for head in (first, second)} == {1 + CALLERS * ROUNDS}


def drain(desk: Desk, taken: list[StoredEffect]) -> None:
    """Claim until there is nothing left."""
    worker = new_worker()
    while found := desk.effects.claim(worker, [Wanted("ship", 3)], 3, words=SHIP_WORDS):
        taken += found


@pytest.mark.row("E-491", "E-955")
@pytest.mark.row("D-075", "D-076", "D-080")
def test_every_effect_is_claimed_once(desk: Desk) -> None:
    """Workers that claim at the same time share the work: nobody waits, nothing is claimed twice, nothing is left."""
    identity = new_id()
    desk.commit(born(identity, issued=60, effects=[effect(identity, number) for number in range(60)]))
    taken: list[StoredEffect] = []
    together(*(partial(drain, own, taken) for own in desks(desk)))
    assert sorted(each.number for each in taken) == list(range(60))


def deliver(desk: Desk, delivered: list[str]) -> None:
    """Take and deliver messages until there are none."""
    while desk.inbox.depth():
        for one in desk.inbox.claim(NOW, words=WORDS, hold=timedelta(hours=1), limit=5):
            delivered.append(one.data.decode())
            desk.commit(finished=(one.claim,))


@pytest.mark.row("E-469", "EC-18", "EO-38")
@pytest.mark.row("D-109")
def test_every_message_is_delivered_once_and_in_order(desk: Desk) -> None:
    """However many drain the inbox, each target gets its messages once and in the order of acceptance."""
    for number in range(10):
        desk.writer.accept([message(target, f"{target}{number}") for target in "abc"], NOW)
    delivered: list[str] = []
    together(*(partial(deliver, own, delivered) for own in desks(desk)))
    for target in "abc":
        assert [text for text in delivered if text[0] == target] == [f"{target}{number}" for number in range(10)]


def look(desk: Desk, head: InstanceHeader) -> None:
    """Read while others write: what is read fits together."""
    for _ in range(ROUNDS):
        found = desk.reader.load(by_id(head.id))
        assert found is not None
        assert len(found.events) == found.header.version
        assert len(desk.reader.instances(InstanceQuery())) == 1


def test_readers_see_whole_commits(desk: Desk) -> None:
    """A reader that several threads share never sees a part of a commit."""
    head = desk.born(born())
    together(*[partial(repeat, by_gate, desk, head)] + [partial(look, desk, head)] * CALLERS)
