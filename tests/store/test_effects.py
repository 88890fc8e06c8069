"""Effects: who gets which, in what order, and that only the present owner has a say."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from standfast.kernel.ids import InstanceId
from standfast.store.records.claim_order import effective_priority, rank_of
from standfast.store.records.instances import DeadLetterRecord, EffectClaim, StoredEffect, Wanted
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

SHIP = [Wanted("ship", 100)]


def waiting(desk: Desk, *effects: StoredEffect) -> None:
    """Commit an instance with these effects; it is the first one's."""
    desk.commit(born(effects[0].instance, issued=len(effects), effects=list(effects)))


def numbered(count: int) -> tuple[InstanceId, list[StoredEffect]]:
    """An instance and effects that are ready one after the other."""
    identity = new_id()
    return identity, [effect(identity, number, ready=NOW + timedelta(seconds=number)) for number in range(count)]


def numbers(effects: Sequence[StoredEffect]) -> list[int]:
    """The numbers of effects."""
    return [each.number for each in effects]


@pytest.mark.row("D-041", "D-048")
def test_effects_are_there_with_their_commit(desk: Desk) -> None:
    """An effect is claimable once its commit stands, and comes with all that was written."""
    identity = new_id()
    wanted = effect(identity, 3, options=b"opts", priority=7)
    waiting(desk, wanted)
    worker = new_worker()
    (owned,) = desk.effects.claim(worker, SHIP, 10, words=SHIP_WORDS)
    assert (owned.instance, owned.number, owned.tenant, owned.definition) == (identity, 3, "default", "order")
    assert (owned.type, owned.version, owned.data, owned.options) == ("Ship", 1, b"effect 3", b"opts")
    assert (owned.priority, owned.rank, owned.created_at) == (7, wanted.rank, NOW)
    assert (owned.owner, owned.fence, owned.attempts) == (worker, 1, 1)


def test_the_order_is_by_rank(desk: Desk) -> None:
    """Who is ready first goes first, unless priority makes up for it: ten points are worth twenty seconds."""
    identity = new_id()
    plan = [(0, 0), (10, 0), (19, 10), (21, 10), (5, 100)]
    ready = [NOW + timedelta(seconds=seconds) for seconds, _ in plan]
    work = [
        effect(identity, number, ready=at, priority=priority)
        for number, (at, (_, priority)) in enumerate(zip(ready, plan, strict=True))
    ]
    waiting(desk, *reversed(work))
    assert numbers(desk.effects.claim(new_worker(), SHIP, 10, words=SHIP_WORDS)) == [4, 2, 0, 3, 1]


@pytest.mark.row("F-115")
@pytest.mark.parametrize("limit", [1, 9])
def test_effects_of_equal_rank_are_taken_in_the_order_of_their_numbers(desk: Desk, limit: int) -> None:
    """Instances in the order of birth, then numbers, whatever the handlers are called: the same on every store."""
    first, second = new_id(), new_id()
    names = ["z", "b", "y", "a", "z"]
    for identity in (second, first):
        rows = [effect(identity, number, handler=name) for number, name in enumerate(names)]
        desk.commit(born(identity, issued=len(names), effects=list(reversed(rows))))
    wanted = [Wanted(name, limit) for name in sorted(set(names))]
    taken: list[tuple[object, int]] = []
    while found := desk.effects.claim(new_worker(), wanted, limit, words=SHIP_WORDS):
        taken += [(each.instance, each.number) for each in found]
    assert taken == [(identity, number) for identity in (first, second) for number in range(len(names))]


def test_the_order_holds_over_claims(desk: Desk) -> None:
    """Each claim takes the most urgent of what is left, whatever its number and whenever it was written."""
    identity = new_id()
    work = [effect(identity, number, ready=NOW - timedelta(seconds=number)) for number in (2, 4, 0, 1, 3)]
    waiting(desk, *work)
    worker = new_worker()
    assert [numbers(desk.effects.claim(worker, SHIP, 2, words=SHIP_WORDS)) for _ in range(4)] == [
        [4, 3],
        [2, 1],
        [0],
        [],
    ]


def test_a_worker_takes_only_what_it_can(desk: Desk) -> None:
    """Only handlers that the worker has, at most as many of each as it has room for, and not more in all than it asked for."""
    identity = new_id()
    names = ["ship", "ship", "ship", "mail", "mail", "charge"]
    work = [
        effect(identity, number, handler=name, ready=NOW + timedelta(seconds=number))
        for number, name in enumerate(names)
    ]
    waiting(desk, *work)
    worker = new_worker()
    assert numbers(
        desk.effects.claim(worker, [Wanted("ship", 2), Wanted("mail", 1), Wanted("fax", 9)], 10, words=SHIP_WORDS)
    ) == [
        0,
        1,
        3,
    ]
    assert numbers(desk.effects.claim(worker, [Wanted("ship", 9), Wanted("mail", 9)], 1, words=SHIP_WORDS)) == [2]
    assert desk.effects.claim(worker, [], 10, words=SHIP_WORDS) == []
    assert desk.effects.claim(worker, [Wanted("charge", 0)], 10, words=SHIP_WORDS) == []


@pytest.mark.row("D-059")
def test_effects_of_other_handlers_stay_untouched(desk: Desk) -> None:
    """An effect whose handler nobody has is never claimed, so no attempt of it is burnt."""
    identity = new_id()
    waiting(desk, effect(identity, handler="fax"))
    assert desk.effects.claim(new_worker(), SHIP, 10, words=SHIP_WORDS) == []
    (left,) = desk.reader.work(identity)[0]
    assert (left.attempts, left.fence, left.owner) == (0, 0, None)


@pytest.mark.row("E-492")
@pytest.mark.row("D-075")
def test_an_effect_has_one_owner(desk: Desk) -> None:
    """What one worker holds no other gets, from whatever desk it asks."""
    _, work = numbered(3)
    waiting(desk, *work)
    assert numbers(desk.effects.claim(new_worker(), SHIP, 2, words=SHIP_WORDS)) == [0, 1]
    assert numbers(desk.another().effects.claim(new_worker(), SHIP, 10, words=SHIP_WORDS)) == [2]


def test_a_commit_can_lease_at_once(desk: Desk) -> None:
    """An effect that is written with an owner is nobody else's, and its claim is good."""
    identity, worker = new_id(), new_worker()
    waiting(desk, effect(identity, owner=worker, fence=1, attempts=1))
    assert desk.effects.claim(new_worker(), SHIP, 10, words=SHIP_WORDS) == []
    with desk.writer.unit() as unit:
        assert unit.void([EffectClaim(identity, 0, worker, 1)]) == set()


@pytest.mark.row("E-494", "ED-15")
@pytest.mark.row("D-052", "D-119")
def test_a_failed_attempt_is_kept_on_the_row(desk: Desk) -> None:
    """A retry keeps the error and the count, waits until its time, and the next claim has a new fence."""
    _, work = numbered(1)
    waiting(desk, *work)
    (first,) = desk.effects.claim(new_worker(), SHIP, 1, words=SHIP_WORDS)
    assert desk.effects.retry(first.claim, error="no stamps", until=LATER)
    (parked,) = desk.reader.work(first.instance)[0]
    assert (parked.error, parked.attempts, parked.parked_until, parked.owner) == ("no stamps", 1, LATER, None)
    assert desk.effects.claim(new_worker(), SHIP, 1, words=SHIP_WORDS) == []
    assert desk.effects.wake(LATER) == (["ship"], None)
    (second,) = desk.effects.claim(new_worker(), SHIP, 1, words=SHIP_WORDS)
    assert (second.attempts, second.error, second.parked_until) == (2, "no stamps", None)
    assert second.fence > first.fence


def test_a_retry_can_be_at_once(desk: Desk) -> None:
    """Without a time the effect is claimable again immediately."""
    _, work = numbered(1)
    waiting(desk, *work)
    (owned,) = desk.effects.claim(new_worker(), SHIP, 1, words=SHIP_WORDS)
    assert desk.effects.retry(owned.claim, error="", until=None)
    assert numbers(desk.effects.claim(new_worker(), SHIP, 1, words=SHIP_WORDS)) == [0]


def test_parked_effects_wake_when_their_time_has_come(desk: Desk) -> None:
    """Waking tells the handlers that have work now, and when the next one is due."""
    identity = new_id()
    times: list[datetime | None] = [NOW, NOW + HOUR, NOW + 2 * HOUR, None]
    work = [effect(identity, number, handler=f"h{number}", parked_until=until) for number, until in enumerate(times)]
    waiting(desk, *work)
    every = [Wanted(f"h{number}", 9) for number in range(4)]
    assert numbers(desk.effects.claim(new_worker(), every, 9, words=SHIP_WORDS)) == [3]
    assert desk.effects.wake(NOW - HOUR) == ([], NOW)
    assert desk.effects.wake(NOW + HOUR) == (["h0", "h1"], NOW + 2 * HOUR)
    assert sorted(numbers(desk.effects.claim(new_worker(), every, 9, words=SHIP_WORDS))) == [0, 1]
    assert desk.effects.wake(NOW + 9 * HOUR) == (["h2"], None)


def test_waking_goes_by_the_databases_clock(desk: Desk) -> None:
    """Without an instant the database's own clock judges."""
    past, future = desk.store.now() - HOUR, desk.store.now() + HOUR
    identity = new_id()
    waiting(desk, effect(identity, 0, parked_until=past), effect(identity, 1, parked_until=future))
    assert desk.effects.wake(None) == (["ship"], future)


def test_a_release_does_not_count(desk: Desk) -> None:
    """Effects that are given back untried have the attempt taken off again."""
    _, work = numbered(3)
    waiting(desk, *work)
    owned = desk.effects.claim(new_worker(), SHIP, 3, words=SHIP_WORDS)
    assert desk.effects.release([each.claim for each in owned[:2]]) == 2
    assert desk.effects.release([]) == 0
    again = desk.effects.claim(new_worker(), SHIP, 3, words=SHIP_WORDS)
    assert [(each.number, each.attempts) for each in again] == [(0, 1), (1, 1)]


def buried(owned: StoredEffect) -> DeadLetterRecord:
    """The dead letter of an effect."""
    return letter("effect", instance=owned.instance, number=owned.number)


@pytest.mark.row("E-373", "E-394", "E-495", "ED-15")
@pytest.mark.row("D-052")
def test_giving_up_moves_the_effect_to_the_dead_letters(desk: Desk) -> None:
    """The row goes and the letter comes, in one step; it is never claimed again."""
    _, work = numbered(1)
    waiting(desk, *work)
    (owned,) = desk.effects.claim(new_worker(), SHIP, 1, words=SHIP_WORDS)
    assert desk.effects.bury(owned.claim, buried(owned))
    assert desk.reader.work(owned.instance) == ([], [])
    (found,) = desk.reader.dead_letters(instance=owned.instance)
    assert (found.source, found.number, found.error, found.data) == ("effect", 0, "no stamps", b"payload")


@pytest.mark.row("D-083")
def test_a_late_owner_has_no_say(desk: Desk) -> None:
    """After a takeover the first owner can neither retry, release, bury nor finish the effect."""
    _, work = numbered(1)
    waiting(desk, *work)
    (late,) = desk.effects.claim(new_worker(), SHIP, 1, words=SHIP_WORDS)
    assert desk.effects.release([late.claim]) == 1
    (present,) = desk.effects.claim(new_worker(), SHIP, 1, words=SHIP_WORDS)
    assert not desk.effects.retry(late.claim, error="late", until=None)
    assert desk.effects.release([late.claim]) == 0
    assert not desk.effects.bury(late.claim, buried(late))
    desk.commit(finished=(late.claim,))
    assert desk.reader.dead_letters() == []
    with desk.writer.unit() as unit:
        assert unit.void([late.claim, present.claim]) == {late.claim}


@pytest.mark.row("D-083")
def test_owner_and_fence_must_both_be_right(desk: Desk) -> None:
    """A claim with the right owner and an old fence, or with the right fence and another owner, is void."""
    _, work = numbered(1)
    waiting(desk, *work)
    (owned,) = desk.effects.claim(new_worker(), SHIP, 1, words=SHIP_WORDS)
    good = owned.claim
    for void in (
        EffectClaim(good.instance, good.number, good.worker, good.fence - 1),
        EffectClaim(good.instance, good.number, new_worker(), good.fence),
    ):
        assert not desk.effects.retry(void, error="", until=None)
        assert not desk.effects.bury(void, buried(owned))
        assert desk.effects.release([void]) == 0
        desk.commit(finished=(void,))
    with desk.writer.unit() as unit:
        assert unit.void([good]) == set()


@pytest.mark.row("D-083")
def test_a_fence_never_comes_back(desk: Desk) -> None:
    """The same worker that gets an effect again gets another fence, so that an old call of its own is told apart."""
    _, work = numbered(1)
    waiting(desk, *work)
    worker = new_worker()
    fences = []
    for give_back in (desk.effects.release, lambda claims: desk.effects.retry(claims[0], error="", until=None)):
        (owned,) = desk.effects.claim(worker, SHIP, 1, words=SHIP_WORDS)
        fences.append(owned.fence)
        assert give_back([owned.claim])
    (owned,) = desk.effects.claim(worker, SHIP, 1, words=SHIP_WORDS)
    assert len({*fences, owned.fence}) == 3


def test_ranks_age_at_one_rate() -> None:
    """Waiting raises priority at a constant rate, so the order of two effects never changes while they wait."""
    low, high = rank_of(NOW, 10), rank_of(NOW + timedelta(seconds=100), 60)
    assert low == high
    assert rank_of(NOW, 10, ageing=0) > rank_of(NOW + timedelta(days=365), 11, ageing=0)
    assert rank_of(NOW, 100) == rank_of(NOW, 100, ageing=0)


def test_effective_priority_grows_to_the_highest() -> None:
    """For display: half a point for each second of waiting, up to a hundred."""
    assert [effective_priority(10, timedelta(seconds=wait)) for wait in (0, 1, 2, 100, 10_000)] == [10, 10, 11, 60, 100]


STRANGE = {"sqlite": ["the day before yesterday", ""], "postgresql": ["infinity", "-infinity", "12000-01-01"]}
"""Instants that something other than the engine may have written, and that no calendar of Python has."""


def test_an_effect_that_cannot_be_read_stays_with_nobody(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """A claim that meets it takes the others, owns nothing that it does not know of, and leaves it alone for a while, uncounted."""
    for instant in STRANGE[desk.store.url.partition(":")[0]]:
        identity, work = numbered(3)
        waiting(desk, *work)
        desk.run(f"update {{}}effects set created_at = '{instant}' where instance = '{identity}' and number = 0")
        taken = desk.effects.claim(new_worker(), SHIP, 3, NOW, words=SHIP_WORDS)
        owned = desk.query(f"select number from {{}}effects where instance = '{identity}' and owner is not null")
        assert sorted(number for (number,) in owned) == numbers(taken)
        assert {1, 2} <= set(numbers(taken))
        if len(taken) < 3:  # It could not be read: then it is there for whoever can.
            assert "row_unreadable" in caplog.text
            assert desk.effects.claim(new_worker(), SHIP, 3, NOW, words=SHIP_WORDS) == []
            desk.run(f"update {{}}effects set created_at = '{NOW.isoformat()}' where instance = '{identity}'")
            assert desk.effects.wake(NOW + HOUR)[0] == ["ship"]
            (left,) = desk.effects.claim(new_worker(), SHIP, 3, NOW + HOUR, words=SHIP_WORDS)
            assert (left.number, left.attempts) == (0, 1)
        desk.run("delete from {}effects")
