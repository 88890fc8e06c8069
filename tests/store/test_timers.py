"""Timers: keyed per instance, never early, with one holder at a time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from standfast.kernel.ids import InstanceId
from standfast.store.ports.store import LostRaceError
from standfast.store.records.instances import StoredTimer, TimerClaim, Word
from standfast.store.records.queries import DueWorkRecord
from support.desks import Desk
from support.rows import (
    HOUR,
    NOW,
    WORDS,
    born,
    letter,
    moved,
    new_id,
    timer,
)

HOLD = timedelta(seconds=10)


def setting(desk: Desk, *timers: StoredTimer) -> InstanceId:
    """Commit an instance with these timers."""
    identity = timers[0].instance
    desk.commit(born(identity, issued=len(timers), timers=list(timers)))
    return identity


def due(desk: Desk, at: timedelta = timedelta(0), limit: int = 10) -> list[str]:
    """The keys of the timers that are claimed at an instant, in order."""
    return [each.key for each in desk.timers.claim(NOW + at, words=WORDS, hold=HOLD, limit=limit).timers]


@pytest.mark.row("E-352", "E-464")
@pytest.mark.row("D-042", "D-061")
def test_a_timer_is_never_early(desk: Desk) -> None:
    """A timer is claimable from its very instant on, and comes with all that was written."""
    identity = new_id()
    setting(desk, timer(identity, "k", 4, due=NOW))
    assert due(desk, -timedelta(microseconds=1)) == []
    (found,) = desk.timers.claim(NOW, words=WORDS, hold=HOLD, limit=9).timers
    assert found == timer(identity, "k", 4, due=NOW)
    assert found.claim == TimerClaim(identity, "k", 4)


@pytest.mark.row("D-067")
def test_an_instance_has_one_timer_for_each_key(desk: Desk) -> None:
    """A change that sets a key which is set loses, unless it cancels the timer that is there: nobody can make two of them."""
    head = desk.born(born(identity := new_id(), issued=1, timers=[timer(identity, "k", 0)]))
    with pytest.raises(LostRaceError):
        desk.commit(moved(head, issued=1, timers=[timer(identity, "k", 1)]))
    desk.commit(moved(head, issued=1, cancelled=["k"], timers=[timer(identity, "k", 1)]))
    assert desk.loaded(identity).timers["k"].number == 1


@pytest.mark.row("D-064")
def test_timers_come_in_the_order_of_their_time(desk: Desk) -> None:
    """The earliest comes first, at most as many as were asked for, and the time of the next future one is told."""
    identity = new_id()
    setting(desk, *(timer(identity, f"{hour}", hour, due=NOW + hour * HOUR) for hour in (3, 1, 0, 2, 5)))
    first = desk.timers.claim(NOW + 3 * HOUR, words=WORDS, hold=HOLD, limit=2)
    assert ([each.key for each in first.timers], first.next_at) == (["0", "1"], NOW + 5 * HOUR)
    assert due(desk, 3 * HOUR) == ["2", "3"]
    assert desk.timers.claim(NOW + 9 * HOUR, words=WORDS, hold=HOLD, limit=9).next_at is None


@pytest.mark.row("D-075")
def test_a_timer_has_one_holder_for_a_while(desk: Desk) -> None:
    """Nobody else gets a timer that is held; when the hold is over and it has not fired, it is there again."""
    setting(desk, timer(new_id()))
    assert due(desk) == ["reminder"]
    assert due(desk.another(), HOLD - timedelta(microseconds=1)) == []
    assert due(desk.another(), HOLD) == ["reminder"]


@pytest.mark.row("D-067")
def test_a_key_replaces_the_pending_timer(desk: Desk) -> None:
    """The new timer stands instead of the old one, whose claim is void from then on."""
    identity = setting(desk, timer(new_id(), "k", 0, due=NOW))
    (old,) = desk.timers.claim(NOW, words=WORDS, hold=HOLD, limit=9).timers
    head = desk.loaded(identity).header
    desk.commit(moved(head, issued=1, cancelled=["k"], timers=[timer(identity, "k", 1, due=NOW + HOUR)]))
    assert desk.loaded(identity).timers["k"].number == 1
    assert due(desk, HOLD) == []
    with desk.writer.unit() as unit:
        assert unit.void([old.claim]) == {old.claim}
    assert due(desk, HOUR) == ["k"]


@pytest.mark.row("D-067")
def test_a_fired_timer_can_set_its_key_again(desk: Desk) -> None:
    """The commit that a timer leads to may set a timer with the same key."""
    identity = setting(desk, timer(new_id(), "k", 0))
    (fired,) = desk.timers.claim(NOW, words=WORDS, hold=HOLD, limit=9).timers
    again = timer(identity, "k", 1, due=NOW + HOUR)
    desk.commit(moved(desk.loaded(identity).header, issued=1, consumed=[fired.claim], timers=[again]))
    assert desk.loaded(identity).timers["k"].number == 1


@pytest.mark.row("D-069")
def test_a_cancelled_timer_never_fires(desk: Desk) -> None:
    """Cancelling removes the timer of this instance with this key, and no other."""
    identity, other = new_id(), new_id()
    setting(desk, timer(identity, "k", 0), timer(identity, "other", 1))
    setting(desk, timer(other, "k", 0))
    desk.commit(moved(desk.loaded(identity).header, cancelled=["k"]))
    assert sorted(due(desk)) == ["k", "other"]
    assert desk.loaded(other).timers["k"].number == 0


@pytest.mark.row("D-070")
def test_a_timer_that_is_gone_cannot_be_cancelled(desk: Desk) -> None:
    """A change that cancels a timer which has fired meanwhile does not stand: its history would tell what never happened."""
    identity = setting(desk, timer(new_id(), "k", 0))
    (fired,) = desk.timers.claim(NOW, words=WORDS, hold=HOLD, limit=9).timers
    desk.commit(finished=(fired.claim,))
    with pytest.raises(LostRaceError):
        desk.commit(moved(desk.loaded(identity).header, cancelled=["k"]))
    assert desk.loaded(identity).header.version == 1


def test_timers_of_unknown_definitions_stay_untouched(desk: Desk) -> None:
    """A process takes only the timers that it can read, and waits only for those; none at all if it can read none."""
    first, second = new_id(), new_id()
    setting(desk, timer(first, "ours"))
    theirs = [timer(second, "theirs", language="refund"), timer(second, "later", 1, due=NOW + HOUR, language="refund")]
    desk.commit(born(second, definition="refund", issued=2, timers=theirs))
    assert desk.timers.claim(NOW, words=[], hold=HOLD, limit=9).timers == []
    refund = [Word("refund", "Remind", 1), Word("fax", "Remind", 1)]
    found = desk.timers.claim(NOW, words=refund, hold=HOLD, limit=9)
    assert ([each.key for each in found.timers], found.next_at) == (["theirs"], NOW + HOUR)
    newer = [Word("order", "Remind", 2), Word("order", "Warn", 1)]
    assert desk.timers.claim(NOW, words=newer, hold=HOLD, limit=9) == DueWorkRecord([], None)
    assert due(desk) == ["ours"]


@pytest.mark.row("D-065", "D-119")
def test_a_timer_can_be_tried_again(desk: Desk) -> None:
    """A retry keeps the error and the count, and lets go of the hold."""
    setting(desk, timer(new_id()))
    (found,) = desk.timers.claim(NOW, words=WORDS, hold=HOLD, limit=9).timers
    assert desk.timers.retry(found.claim, error="not now", until=NOW + timedelta(seconds=1))
    assert due(desk) == []
    (again,) = desk.timers.claim(NOW + timedelta(seconds=1), words=WORDS, hold=HOLD, limit=9).timers
    assert (again.attempts, again.error, again.claim) == (1, "not now", found.claim)


@pytest.mark.row("D-065")
def test_a_timer_can_give_up(desk: Desk) -> None:
    """The row goes and the letter comes, in one step."""
    identity = setting(desk, timer(new_id()))
    (found,) = desk.timers.claim(NOW, words=WORDS, hold=HOLD, limit=9).timers
    dead = letter("timer", instance=identity, name="reminder", number=0)
    assert desk.timers.bury(found.claim, dead)
    assert due(desk, HOUR) == []
    assert [each.source for each in desk.reader.dead_letters(instance=identity)] == ["timer"]


def test_a_timer_that_is_gone_stays_gone(desk: Desk) -> None:
    """What was cancelled, replaced or fired can neither be tried again nor buried."""
    identity = setting(desk, timer(new_id(), "k", 0))
    gone = TimerClaim(identity, "k", 7)
    assert not desk.timers.retry(gone, error="", until=NOW)
    assert not desk.timers.bury(gone, letter("timer"))
    assert desk.reader.dead_letters() == []
    assert due(desk) == ["k"]


def test_timers_go_by_the_databases_clock(desk: Desk) -> None:
    """Without an instant the database's own clock judges what is due."""
    now, identity = desk.store.now(), new_id()
    setting(desk, timer(identity, "past", 0, due=now - HOUR), timer(identity, "future", 1, due=now + HOUR))
    found = desk.timers.claim(None, words=WORDS, hold=HOLD, limit=9)
    assert ([each.key for each in found.timers], found.next_at) == (["past"], now + HOUR)
    assert desk.timers.claim(None, words=WORDS, hold=HOLD, limit=9).timers == []
