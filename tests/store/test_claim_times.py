"""When a worker took an effect: known for as long as it has it, and forgotten with every way of giving it back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from standfast.kernel.ids import InstanceId
from standfast.store.records.instances import StoredEffect, Wanted
from support.desks import Desk
from support.rows import (
    HOUR,
    LATER,
    NOW,
    SHIP_WORDS,
    born,
    effect,
    letter,
    new_id,
    new_worker,
)

SHIP = [Wanted("ship", 9)]
LEASE = timedelta(seconds=10)


def claim_times(desk: Desk, instance: InstanceId) -> list[datetime | None]:
    """What the rows of an instance say."""
    return [each.claimed_at for each in desk.reader.work(instance)[0]]


def claimed(desk: Desk, now: datetime | None = NOW) -> StoredEffect:
    """An effect in the hands of a worker that is alive until its lease ends."""
    identity, worker = new_id(), new_worker()
    desk.commit(born(identity, issued=1, effects=[effect(identity)]))
    desk.workers.beat(worker, [], name="w", handlers=["ship"], lease=LEASE, now=NOW)
    (owned,) = desk.effects.claim(worker, SHIP, 9, now, words=SHIP_WORDS)
    return owned


@pytest.mark.row("F-099")
def test_a_claim_says_when(desk: Desk) -> None:
    """Nothing while the effect waits; then the time of the claim, for whoever claimed it and for whoever looks."""
    identity = new_id()
    desk.commit(born(identity, issued=3, effects=[effect(identity, number) for number in range(3)]))
    assert claim_times(desk, identity) == [None] * 3
    assert [each.claimed_at for each in desk.effects.waiting("ship", waited=HOUR, now=NOW + HOUR, limit=9)] == [
        None
    ] * 3
    taken = desk.effects.claim(new_worker(), SHIP, 2, LATER, words=SHIP_WORDS)
    assert [each.claimed_at for each in taken] == [LATER, LATER]
    assert [each.created_at for each in taken] == [NOW, NOW]
    assert sorted(at is None for at in claim_times(desk, identity)) == [False, False, True]


@pytest.mark.row("F-099")
def test_a_claim_goes_by_the_databases_clock(desk: Desk) -> None:
    """Without an instant it is the database's own."""
    before = desk.store.now()
    owned = claimed(desk, None)
    assert owned.claimed_at is not None
    assert before <= owned.claimed_at <= desk.store.now()


@pytest.mark.row("F-099")
def test_what_is_handed_over_is_claimed_with_its_commit(desk: Desk) -> None:
    """An effect that is written with an owner was taken when it was written; one without was not."""
    identity, worker = new_id(), new_worker()
    work = [effect(identity, 0, owner=worker, fence=1, attempts=1), effect(identity, 1)]
    desk.commit(born(identity, issued=2, effects=work), now=LATER)
    first, second = desk.reader.work(identity)[0]
    assert (first.claimed_at, first.created_at) == (LATER, LATER)
    assert (second.claimed_at, second.created_at) == (None, LATER)


def taken_over(desk: Desk, _owned: StoredEffect) -> None:
    """The lease ends, and somebody else's heart beats; housekeeping finds what is left on its own."""
    desk.workers.beat(new_worker(), [], name="heir", handlers=["ship"], lease=LEASE, now=NOW + 2 * LEASE)


def orphaned(desk: Desk, _owned: StoredEffect) -> None:
    """The row of the worker is lost; housekeeping or the next beat finds its work."""
    desk.run("delete from {}workers")
    desk.workers.beat(new_worker(), [], name="heir", handlers=["ship"], lease=LEASE, now=NOW)
    desk.keeper.tidy(NOW)


WAYS_BACK: dict[str, Callable[[Desk, StoredEffect], object]] = {
    "retry": lambda desk, owned: desk.effects.retry(owned.claim, error="no", until=None),
    "retry later": lambda desk, owned: desk.effects.retry(owned.claim, error="no", until=LATER),
    "release": lambda desk, owned: desk.effects.release([owned.claim]),
    "disown": lambda desk, owned: desk.writer.disown(owned.claim.worker, []),
    "retire": lambda desk, owned: desk.workers.retire(owned.claim.worker),
    "takeover": taken_over,
    "orphan": orphaned,
}


@pytest.mark.row("F-099")
@pytest.mark.parametrize("way", WAYS_BACK)
def test_what_is_given_back_is_not_claimed(desk: Desk, way: str) -> None:
    """However an effect comes back, nobody has it; whoever takes it then took it then."""
    owned = claimed(desk)
    assert claim_times(desk, owned.instance) == [NOW]
    WAYS_BACK[way](desk, owned)
    assert claim_times(desk, owned.instance) == [None]
    desk.effects.wake(LATER)
    (again,) = desk.effects.claim(new_worker(), SHIP, 9, LATER, words=SHIP_WORDS)
    assert again.claimed_at == LATER
    assert claim_times(desk, owned.instance) == [LATER]


@pytest.mark.row("F-099")
def test_a_revived_effect_is_not_claimed(desk: Desk) -> None:
    """An effect that comes back from the dead letters waits like a new one."""
    owned = claimed(desk)
    assert desk.effects.bury(owned.claim, letter("effect", instance=owned.instance, number=owned.number))
    (found,) = desk.reader.dead_letters(instance=owned.instance)
    assert desk.keeper.requeue(found, now=LATER)
    assert claim_times(desk, owned.instance) == [None]
