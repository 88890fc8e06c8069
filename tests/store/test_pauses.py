"""Pauses in a store: which there are, and the walk that has effects and timers follow them."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import PauseClock
from standfast.store.ports.pauses import LAG, HeldTimer, PausedEffect, PauseRecord, PauseScope
from standfast.store.records.instances import InstanceChange, Wanted
from standfast.store.sql.pause_propagation import AGAIN
from support.desks import Desk
from support.rows import HOUR, NOW, OTHER_TENANT, SHIP_WORDS, WORDS, born, effect, moved, new_id, new_worker, timer

AFTER = NOW + LAG


def pause(desk: Desk, *scope: str, at: datetime = NOW, clock: PauseClock = "run_on", **rest: Any) -> PauseRecord:
    """Pause orders, or what is named."""
    asked = PauseRecord(
        scope=PauseScope(*(scope or ("default", "order"))), clock=clock, paused_by="ada", paused_at=at, **rest
    )
    return desk.pauses.begin(asked)


def no_step(_effect: PausedEffect) -> str:
    """Nothing is of a step."""
    return ""


def walk(desk: Desk, now: datetime = NOW, limit: int = 100) -> tuple[int, int]:
    """Walk until nothing is left to do; how many rows were held and let go."""
    held = released = 0
    while not (stride := desk.pauses.stride(no_step, now=now, limit=limit)).is_over:
        held, released = held + stride.held, released + stride.released
    return held, released


def working(identity: InstanceId | None = None, *, version: str = "", **rest: Any) -> InstanceChange:
    """An instance with an effect and a timer that waits."""
    identity = identity or new_id()
    change = born(
        identity, issued=2, effects=[effect(identity, **rest)], timers=[timer(identity, number=1, **rest)], **rest
    )
    change.header = msgspec.structs.replace(change.header, definition_version=version)
    return change


def claimed(desk: Desk, now: datetime = NOW) -> tuple[int, int]:
    """How many effects and timers can be had."""
    effects = desk.effects.claim(new_worker(), [Wanted("ship", 100)], 100, now, words=SHIP_WORDS)
    return len(effects), len(desk.timers.claim(now, words=WORDS, hold=timedelta(0), limit=100).timers)


def test_a_walk_holds_what_is_covered_and_the_next_lets_it_go(desk: Desk) -> None:
    """Once for each change of a pause, and once more when every process must have heard of it."""
    desk.commit(working(), working(), working(tenant=OTHER_TENANT))
    begun = pause(desk)
    assert walk(desk) == (4, 0)
    assert claimed(desk) == (1, 1)
    assert [each.walks for each in desk.pauses.standing()] == [1]
    assert walk(desk) == (0, 0)
    assert walk(desk, AFTER) == (0, 0)
    assert [each.walks for each in desk.pauses.standing()] == [2]
    assert desk.pauses.end(begun.id, by="bob", why="done", at=AFTER)
    assert walk(desk, AFTER) == (0, 4)
    assert claimed(desk) == (2, 3)
    assert walk(desk, AFTER + LAG) == (0, 0)
    assert desk.pauses.standing() == []


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_a_walk_misses_nothing_however_short_its_strides(desk: Desk, limit: int) -> None:
    """Each stride is a transaction of its own, and another process may take the next one."""
    desk.commit(*(working() for _ in range(3)))
    pause(desk)
    other, held = desk.another(), 0
    for walker in [desk, other] * 20:
        held += walker.pauses.stride(no_step, now=NOW, limit=limit).held
    assert (held, claimed(desk)) == (6, (0, 0))


@pytest.mark.parametrize(
    ("scope", "held"),
    [
        (("default",), 4),
        (("*",), 6),
        (("*", "order"), 6),
        (("default", "order"), 4),
        (("default", "order", "2"), 2),
        (("default", "other"), 0),
        ((OTHER_TENANT, "order", "2"), 0),
    ],
)
def test_a_pause_covers_its_scope_and_nothing_else(desk: Desk, scope: tuple[str, ...], held: int) -> None:
    """A tenant or all, a definition or all, a version or all."""
    desk.commit(working(version="1"), working(version="2"), working(version="1", tenant=OTHER_TENANT))
    pause(desk, *scope)
    assert walk(desk) == (held, 0)
    assert sum(each.effects + each.timers for each in desk.pauses.counts()) == held


def test_a_pause_of_a_step_is_about_calls_of_that_step_alone(desk: Desk) -> None:
    """Which step an effect is of, whoever can read it says; timers are of none."""
    one, two = working(), working()
    desk.commit(one, two)
    pause(desk, "default", "order", "", "charge")
    asked: list[bytes] = []

    def step_of(found: PausedEffect) -> str:
        asked.append(found.data)
        return "charge" if found.instance == two.header.id else "other"

    while not desk.pauses.stride(step_of, now=NOW, limit=10).is_over:
        pass
    assert asked == [b"effect 0", b"effect 0"]
    assert [each.instance for each in desk.pauses.held_effects("default", "order")] == [two.header.id]
    assert claimed(desk) == (1, 2)


def test_what_a_commit_writes_as_held_is_not_claimed(desk: Desk) -> None:
    """Neither effects nor timers; the rest of the commit is."""
    identity = new_id()
    change = born(
        identity,
        issued=4,
        effects=[effect(identity, 0), effect(identity, 1)],
        timers=[timer(identity, "a", 2), timer(identity, "b", 3)],
        held_effects=[1],
        held_timers=[("b", True)],
    )
    desk.commit(change)
    assert claimed(desk) == (1, 1)
    assert desk.query("select held_at is not null, frozen_at is not null from {}timers order by key") == [
        (0, 0),
        (1, 1),
    ]


def test_what_somebody_has_in_hand_is_held_when_it_is_given_back(desk: Desk) -> None:
    """Its owner may end it; if it fails, or its owner dies, nobody takes it before the pause has ended."""
    change = working()
    desk.commit(change)
    (taken,) = desk.effects.claim(new_worker(), [Wanted("ship", 1)], 1, NOW, words=SHIP_WORDS)
    begun = pause(desk)
    walk(desk)
    assert desk.effects.retry(taken.claim, error="no", until=NOW + HOUR)
    assert desk.effects.wake(NOW + HOUR)[0] == ["ship"]
    assert claimed(desk, NOW + HOUR) == (0, 0)
    desk.pauses.end(begun.id, by="bob", why="", at=AFTER)
    walk(desk, AFTER)
    assert claimed(desk, NOW + HOUR) == (1, 1)


def test_a_held_effect_can_be_recalled_withdrawn_and_ended(desk: Desk) -> None:
    """A pause holds calls back, not what their instance wants of them."""
    first = working()
    desk.commit(first)
    pause(desk)
    walk(desk)
    desk.commit(moved(first.header, withdrawn=[0], cancelled=["reminder"]))
    assert desk.pauses.counts() == []


def test_claimed_work_is_put_back_as_held(desk: Desk) -> None:
    """Untried: the attempt does not count, and a claim that is void changes nothing."""
    desk.commit(working())
    (taken,) = desk.effects.claim(new_worker(), [Wanted("ship", 1)], 1, NOW, words=SHIP_WORDS)
    (due,) = desk.timers.claim(NOW, words=WORDS, hold=HOUR, limit=1).timers
    void = msgspec.structs.replace(taken.claim, fence=9)
    desk.pauses.hold_back([void], at=NOW)
    assert desk.pauses.counts() == []
    desk.pauses.hold_back([taken.claim], at=NOW)
    desk.pauses.hold_timers([HeldTimer(due.claim, NOW)], at=NOW)
    assert desk.query("select attempts, owner is null from {}effects") == [(0, 1)]
    assert [(each.effects, each.timers) for each in desk.pauses.counts()] == [(1, 1)]
    assert claimed(desk) == (0, 0)


def test_timers_that_stood_still_are_moved_by_as_long(desk: Desk) -> None:
    """From the beginning of the pause to its end, whenever the walk came by."""
    desk.commit(working())
    begun = pause(desk, clock="stand_still")
    walk(desk, NOW + timedelta(minutes=5))
    desk.pauses.end(begun.id, by="bob", why="", at=NOW + HOUR)
    walk(desk, NOW + 2 * HOUR)
    assert claimed(desk, NOW + HOUR - timedelta(microseconds=1))[1] == 0
    assert claimed(desk, NOW + HOUR)[1] == 1


def test_the_same_scope_is_paused_once(desk: Desk) -> None:
    """Whoever pauses it again is given the pause that stands; after its end there may be another one."""
    first = pause(desk, reason="one")
    assert pause(desk, reason="two") == first
    assert desk.pauses.end(first.id, by="bob", why="", at=AFTER)
    assert not desk.pauses.end(first.id, by="bob", why="", at=AFTER)
    assert pause(desk).id != first.id


def test_a_pause_that_ends_during_a_walk_is_walked_for_again(desk: Desk) -> None:
    """What the walk had held before it heard of the end is let go."""
    desk.commit(*(working() for _ in range(4)))
    begun = pause(desk)
    desk.pauses.stride(no_step, now=AFTER, limit=2)
    desk.pauses.end(begun.id, by="bob", why="", at=AFTER)
    walk(desk, AFTER)
    assert claimed(desk) == (4, 4)
    assert [each.walks for each in desk.pauses.standing()] == [1]


def test_what_is_held_by_mistake_is_found(desk: Desk) -> None:
    """A process that had not heard of the end for long wrote it; without any pause, that is enough for a walk."""
    assert not desk.pauses.is_astray()
    identity = new_id()
    desk.commit(born(identity, issued=1, effects=[effect(identity)], held_effects=[0]))
    assert desk.pauses.is_astray()
    assert walk(desk) == (0, 1)
    assert not desk.pauses.is_astray()


def test_a_walk_is_repeated_while_a_pause_stands(desk: Desk) -> None:
    """So what somebody wrote who knew nothing is held in the end."""
    pause(desk)
    walk(desk, AFTER)
    desk.commit(working())
    assert walk(desk, AFTER + AGAIN - timedelta(seconds=1)) == (0, 0)
    assert walk(desk, AFTER + AGAIN) == (2, 0)


def test_ended_pauses_are_listed_until_they_are_pruned(desk: Desk) -> None:
    """Newest first, those of a tenant with those of all; only what has ended and is settled goes."""
    ours, theirs, all_ = pause(desk), pause(desk, OTHER_TENANT), pause(desk, "*")
    assert [each.id for each in desk.pauses.listed("default", before=None, limit=9)] == [all_.id, ours.id]
    assert [each.id for each in desk.pauses.listed("*", before=all_.id, limit=1)] == [theirs.id]
    desk.pauses.end(ours.id, by="bob", why="done", at=AFTER)
    assert desk.pauses.prune(before=NOW + HOUR, limit=9) == 0
    walk(desk, AFTER)
    walk(desk, AFTER + LAG)
    assert desk.pauses.prune(before=AFTER, limit=9) == 0
    assert desk.pauses.prune(before=NOW + HOUR, limit=9) == 1
    assert desk.pauses.get(ours.id) is None
    assert desk.pauses.get(theirs.id) == msgspec.structs.replace(theirs, walks=2)
