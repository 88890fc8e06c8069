"""Who is alive: a heartbeat is the lease on everything a worker holds."""

from __future__ import annotations

from datetime import timedelta
from typing import get_args

import pytest

from standfast.kernel.ids import WorkerId
from standfast.store.records.instances import Maintenance, StoredEffect, Wanted
from standfast.store.records.queries import Beat
from support.desks import Desk
from support.rows import (
    HOUR,
    NOW,
    SHIP_WORDS,
    born,
    effect,
    moved,
    new_id,
    new_worker,
    recall,
)

LEASE = timedelta(seconds=10)


def beat(desk: Desk, worker: WorkerId, *held: StoredEffect, at: timedelta = timedelta(0)) -> Beat:
    """A heartbeat of a worker that believes to hold these effects."""
    claims = [each.claim for each in held]
    return desk.workers.beat(worker, claims, name="host-1", handlers=["ship", "mail"], lease=LEASE, now=NOW + at)


def working(desk: Desk, count: int = 2) -> tuple[WorkerId, list[StoredEffect]]:
    """A live worker with effects in hand."""
    identity, worker = new_id(), new_worker()
    desk.commit(born(identity, issued=count, effects=[effect(identity, number) for number in range(count)]))
    beat(desk, worker)
    return worker, desk.effects.claim(worker, [Wanted("ship", count)], count, words=SHIP_WORDS)


def test_a_beat_says_who_is_there(desk: Desk) -> None:
    """A worker is listed with its name, its handlers and the time it has, from its first beat on."""
    worker = new_worker()
    beat(desk, worker)
    beat(desk, worker, at=timedelta(seconds=5))
    (info,) = desk.workers.live(NOW)
    assert (info.id, info.name, info.handlers) == (worker, "host-1", ["ship", "mail"])
    assert (info.started_at, info.alive_until) == (NOW, NOW + timedelta(seconds=15))


def test_handlers_may_change_and_be_none(desk: Desk) -> None:
    """The newest beat tells what a worker can do; a worker without handlers is a worker too."""
    worker = new_worker()
    beat(desk, worker)
    desk.workers.beat(worker, [], name="host-1", handlers=[], lease=LEASE, now=NOW)
    assert [info.handlers for info in desk.workers.live(NOW)] == [[]]


def test_the_dead_are_not_listed(desk: Desk) -> None:
    """A worker lives to the end of its lease."""
    beat(desk, new_worker())
    assert len(desk.workers.live(NOW + LEASE)) == 1
    assert desk.workers.live(NOW + LEASE + timedelta(microseconds=1)) == []


@pytest.mark.row("E-492", "E-786", "ED-15")
@pytest.mark.row("D-078")
def test_a_dead_workers_work_is_free(desk: Desk) -> None:
    """Whoever beats next takes the work from those whose time ran out, and hears of which handlers there is work."""
    worker, _ = working(desk)
    heir = new_worker()
    assert beat(desk, heir, at=LEASE).revived == []
    assert desk.effects.claim(heir, [Wanted("ship", 9)], 9, words=SHIP_WORDS) == []
    found = beat(desk, heir, at=LEASE + timedelta(seconds=1))
    assert (found.revived, found.now) == (["ship"], NOW + LEASE + timedelta(seconds=1))
    taken = desk.effects.claim(heir, [Wanted("ship", 9)], 9, words=SHIP_WORDS)
    assert sorted(each.attempts for each in taken) == [2, 2]
    assert worker not in {info.id for info in desk.workers.live(NOW)}


@pytest.mark.row("D-078", "D-083")
def test_a_worker_that_comes_back_hears_what_it_lost(desk: Desk) -> None:
    """A worker that was taken for dead learns which of its claims are void; they stay void."""
    worker, held = working(desk)
    beat(desk, new_worker(), at=LEASE * 2)
    late = beat(desk, worker, *held, at=LEASE * 2)
    assert set(late.lost) == {each.claim for each in held}
    assert not desk.effects.retry(held[0].claim, error="late", until=None)


def test_a_late_beat_that_nobody_noticed_is_in_time(desk: Desk) -> None:
    """A worker that is late keeps its work if nobody has taken it away."""
    worker, held = working(desk)
    late = beat(desk, worker, *held, at=LEASE * 3)
    assert (late.lost, late.revived) == ([], [])


def test_a_beat_tells_apart_what_is_lost(desk: Desk) -> None:
    """Only the claims that are void are reported as lost."""
    worker, (first, second) = working(desk)
    desk.effects.release([first.claim])
    assert beat(desk, worker, first, second).lost == [first.claim]


def test_a_beat_tells_what_has_to_stop(desk: Desk) -> None:
    """Of the claims that are good, those whose instances want them stopped are named, with every beat."""
    worker, (first, second) = working(desk)
    head = desk.loaded(first.instance).header
    desk.commit(moved(head, recalls=[recall(head.id, second.number, stop=True)]))
    for _ in range(2):
        found = beat(desk, worker, first, second)
        assert (found.lost, found.stopping) == ([], [second.claim])
    desk.effects.release([second.claim])
    assert beat(desk, worker, first, second).stopping == []


def test_a_beat_tells_what_nobody_waits_for(desk: Desk) -> None:
    """Of those that have to stop, the ones whose instances have ended."""
    worker, (first, second) = working(desk)
    head = desk.loaded(first.instance).header
    desk.commit(moved(head, recalls=[recall(head.id, second.number, stop=True)]))
    found = beat(desk, worker, first, second)
    assert (found.stopping, found.unawaited) == ([second.claim], [])
    desk.commit(moved(desk.loaded(head.id).header, ends=True))
    found = beat(desk, worker, first, second)
    assert (found.lost, found.stopping, found.unawaited) == ([], [second.claim], [second.claim])


@pytest.mark.row("F-110")
def test_one_speaks_for_all(desk: Desk) -> None:
    """Of all processes that find a handler missing, one at a time says so, and again when enough time has gone by."""
    minute = timedelta(minutes=1)
    desks = [desk, desk.another()]

    def spoken(at: timedelta, handler: str = "ship") -> list[bool]:
        return [each.workers.announce(handler, every=minute, now=NOW + at) for each in desks]

    assert spoken(timedelta(0)) == [True, False]
    assert spoken(timedelta(0), "mail") == [True, False]
    assert spoken(minute - timedelta(microseconds=1)) == [False, False]
    assert spoken(minute) == [True, False]
    assert desk.workers.announce("fax", every=minute, now=None)
    assert not desk.workers.announce("fax", every=minute, now=None)


def test_a_worker_that_retires_frees_its_work_at_once(desk: Desk) -> None:
    """Leaving gives everything back, without waiting for the lease to end."""
    worker, held = working(desk)
    desk.workers.retire(worker)
    assert desk.workers.live(NOW) == []
    taken = desk.effects.claim(new_worker(), [Wanted("ship", 9)], 9, words=SHIP_WORDS)
    assert sorted(each.number for each in taken) == [0, 1]
    with desk.writer.unit() as unit:
        assert unit.void([each.claim for each in held]) == {each.claim for each in held}
    desk.workers.retire(new_worker())


def test_orphans_are_found(desk: Desk) -> None:
    """Work of a worker that never was, or whose row was lost, does not wait for ever: housekeeping and beats free it."""
    identity = new_id()
    desk.commit(born(identity, issued=1, effects=[effect(identity, owner=new_worker(), fence=1, attempts=1)]))
    heir = new_worker()
    beat(desk, heir)
    desk.keeper.tidy(NOW)
    assert [each.number for each in desk.effects.claim(heir, [Wanted("ship", 9)], 9, words=SHIP_WORDS)] == [0]


def test_housekeeping_leaves_the_living_alone(desk: Desk) -> None:
    """What a live worker holds is not taken away."""
    worker, held = working(desk)
    desk.keeper.tidy(NOW)
    assert beat(desk, worker, *held).lost == []


@pytest.mark.row("D-091")
def test_a_beat_tells_of_maintenance(desk: Desk) -> None:
    """Every worker learns of maintenance mode, and of its end, with its next beat."""
    worker = new_worker()
    for mode in get_args(Maintenance):
        desk.keeper.maintain(mode)
        assert beat(desk, worker).maintenance == mode
    desk.keeper.maintain("")
    assert not beat(desk, worker).maintenance


def test_leases_go_by_the_databases_clock(desk: Desk) -> None:
    """Without an instant the database's own clock counts the lease, and tells its time."""
    worker = new_worker()
    found = desk.workers.beat(worker, [], name="host", handlers=[], lease=HOUR, now=None)
    (info,) = desk.workers.live(None)
    assert info.alive_until == found.now + HOUR
    assert abs(found.now - desk.store.now()) < HOUR
