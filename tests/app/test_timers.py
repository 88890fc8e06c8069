"""Timers: commands that an instance sends to itself later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from standfast import CommandError, Decision, Ignored, Moment, Rejection, RetryPolicy, Settings
from standfast.testing import given
from support.engines import Live, Place
from support.samples import (
    END,
    PATIENCE,
    PAYMENT,
    Answer,
    Do,
    Doll,
    Ledger,
    Noted,
    Notes,
    Order,
    Pay,
    Puppet,
)
from support.samples import Place as PlaceOrder
from support.waiting import eventually

LAST = datetime.max.replace(tzinfo=UTC)
FIRST = datetime.min.replace(tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def clockwork(delay: timedelta = HOUR, key: str = "") -> Puppet:
    """A puppet that sets a timer on `set`, cancels it on `cancel`, and notes everything else."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        match command.what:
            case "set":
                return decision.with_timer_after(delay, Do(command.workflow_id, "rang"), key=key)
            case "cancel":
                return decision.cancel_timer(key)
            case _:
                return decision

    return Puppet(choose)


@pytest.mark.row("D-061", "D-068")
def test_a_timer_delivers_its_command_when_due_and_not_before(place: Place) -> None:
    """The command is executed at the due time; a moment earlier nothing has happened."""
    engine = place.engine().register(clockwork())
    engine.deciders.execute(Puppet, Do("p-1", "set"))
    engine.advance(HOUR - timedelta(microseconds=1))
    assert engine.deciders.state(Puppet, "p-1") == ("set",)
    engine.advance(timedelta(microseconds=1))
    assert engine.deciders.state(Puppet, "p-1") == ("set", "rang")
    engine.advance(hours=24)
    assert engine.deciders.state(Puppet, "p-1") == ("set", "rang")


@pytest.mark.row("D-061")
def test_a_timer_is_part_of_the_commit(place: Place) -> None:
    """A command that fails sets no timer; a timer outlives the process that set it."""
    place.engine().register(clockwork()).deciders.execute(Puppet, Do("p-1", "set"))
    other = place.engine().register(clockwork())
    other.advance(HOUR)
    assert other.deciders.state(Puppet, "p-1") == ("set", "rang")
    assert other.admin.backlog() == []


@pytest.mark.row("D-062")
def test_a_timer_never_calls_a_handler(place: Place) -> None:
    """Timers are not effects."""
    ledger = Ledger()
    engine = place.engine().register(clockwork(), lambda context, effect: ledger.add(effect))
    engine.deciders.execute(Puppet, Do("p-1", "set"))
    engine.advance(hours=2)
    assert engine.deciders.state(Puppet, "p-1") == ("set", "rang")
    assert ledger.entries == []


@pytest.mark.row("D-063")
def test_the_state_at_the_time_of_delivery_decides(place: Place) -> None:
    """What happened between setting and firing counts: the timeout meets the order as paid."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what == "place":
            return Decision.event(Noted("placed")).with_timer_after(HOUR, Do("p-1", "timeout"))
        return Decision.event(Noted(f"{command.what} when {state[-1]}"))

    engine = place.engine().register(Puppet(choose))
    engine.deciders.execute(Puppet, Do("p-1", "place"))
    engine.deciders.execute(Puppet, Do("p-1", "pay"))
    engine.advance(HOUR)
    assert engine.deciders.state(Puppet, "p-1")[-1] == "timeout when pay when placed"


@pytest.mark.row("D-064")
def test_due_timers_fire_in_the_order_of_their_times(place: Place) -> None:
    """All that are due are fired, the earliest first, each once."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        if command.what != "set":
            return decision
        for minutes in (3, 1, 2):
            decision = decision.with_timer_after(timedelta(minutes=minutes), Do("p-1", str(minutes)))
        return decision

    engine = place.engine().register(Puppet(choose))
    engine.deciders.execute(Puppet, Do("p-1", "set"))
    place.clock.move(HOUR)
    engine.drain()
    assert engine.deciders.state(Puppet, "p-1") == ("set", "1", "2", "3")


def stubborn(failures: int) -> tuple[Puppet, Ledger]:
    """A puppet that fails so often on the timer's command, and the ledger of these failures."""
    ledger = Ledger()

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        if command.what == "set":
            return decision.with_timer_after(HOUR, Do("p-1", "rang"), key="k")
        if len({entry for entry in ledger.entries if entry != moment.now}) < failures:
            ledger.add(moment.now)
            raise ValueError("not yet")
        return decision

    return Puppet(choose), ledger


@pytest.mark.row("D-065", "D-066", "D-119")
def test_a_timer_whose_command_fails_fires_again_after_a_wait(place: Place) -> None:
    """Attempts, last error and next try are on the row, and the command is executed once in the end."""
    puppet, _ = stubborn(2)
    policy = RetryPolicy(max_attempts=3, delay=MINUTE, backoff="fixed", jitter=0)
    engine = place.engine(Settings(command_retry=policy)).register(puppet)
    engine.deciders.execute(Puppet, Do("p-1", "set"))
    engine.advance(HOUR)
    (timer,) = engine.deciders.get(Puppet, "p-1").timers
    assert (timer.attempts, timer.due_at) == (1, place.clock.now() + MINUTE)
    assert "raised ValueError('not yet')" in timer.error
    engine.advance(HOUR)
    assert engine.deciders.state(Puppet, "p-1") == ("set", "rang")


@pytest.mark.row("D-065")
def test_a_timer_that_fails_for_good_is_buried_and_can_be_put_back(place: Place) -> None:
    """After the last attempt it is a dead letter with its error; requeued it fires at once."""
    puppet, _ = stubborn(3)
    policy = RetryPolicy(max_attempts=3, delay=MINUTE, backoff="fixed", jitter=0)
    engine = place.engine(Settings(command_retry=policy)).register(puppet)
    engine.deciders.execute(Puppet, Do("p-1", "set"))
    engine.advance(hours=24)
    (letter,) = engine.dead_letters.list()
    assert (letter.source, letter.name, letter.attempts, letter.reason) == ("timer", "k", 3, "decider_failed")
    assert engine.deciders.get(Puppet, "p-1").timers == []
    engine.dead_letters.requeue(letter.id)
    engine.drain()
    assert engine.deciders.state(Puppet, "p-1") == ("set", "rang")
    assert engine.dead_letters.list() == []


@pytest.mark.row("D-066")
def test_a_timer_whose_process_died_while_firing_fires_again(place: Place) -> None:
    """A timer that was claimed and never handed in is free again after a while, and its command counts once."""
    engine = place.engine().register(clockwork())
    engine.deciders.execute(Puppet, Do("p-1", "set"))
    place.clock.move(HOUR)
    words = engine.registry.commands()
    claimed = place.store.timers().claim(place.clock.now(), words=words, hold=MINUTE, limit=10)
    assert len(claimed.timers) == 1
    engine.drain()
    assert engine.deciders.state(Puppet, "p-1") == ("set",)
    engine.advance(MINUTE)
    assert engine.deciders.state(Puppet, "p-1") == ("set", "rang")


@pytest.mark.row("D-067", "EC-27")
def test_a_timer_replaces_the_pending_one_with_its_key(place: Place) -> None:
    """Setting a key again moves the timer: one row, one firing, at the later time."""
    engine = place.engine().register(clockwork(key="k"))
    engine.deciders.execute(Puppet, Do("p-1", "set"))
    engine.advance(minutes=30)
    engine.deciders.execute(Puppet, Do("p-1", "set"))
    (timer,) = engine.deciders.get(Puppet, "p-1").timers
    assert (timer.key, timer.due_at) == ("k", place.clock.now() + HOUR)
    engine.advance(minutes=59)
    assert engine.deciders.state(Puppet, "p-1") == ("set", "set")
    engine.advance(minutes=1)
    assert engine.deciders.state(Puppet, "p-1") == ("set", "set", "rang")


@pytest.mark.row("D-067")
def test_keys_belong_to_their_instance(place: Place) -> None:
    """The same key on another instance is another timer; timers without a key never replace one another."""
    engine = place.engine().register(clockwork(key="k"))
    for key in ("p-1", "p-2"):
        engine.deciders.execute(Puppet, Do(key, "set"))
    keyless = engine.register(DollClock())
    for _ in range(2):
        keyless.deciders.execute(DollClock, Do("d-1", "set"))
    engine.advance(HOUR)
    assert [engine.deciders.state(Puppet, key) for key in ("p-1", "p-2")] == [("set", "rang")] * 2
    assert engine.deciders.state(DollClock, "d-1") == ("set", "set", "rang", "rang")


class DollClock(Doll):
    """Sets a timer without a key on `set`."""

    type = "doll-clock"

    def decide(self, state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        return decision.with_timer_after(HOUR, Do("d-1", "rang")) if command.what == "set" else decision


def test_a_timer_may_set_itself_again(place: Place) -> None:
    """A command that a timer brought can set the timer of the same key anew: that is how something happens every hour."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted(str(len(state)))).with_timer_after(HOUR, Do("p-1"), key="hourly")

    engine = place.engine().register(Puppet(choose))
    engine.deciders.execute(Puppet, Do("p-1"))
    engine.advance(hours=24)
    assert len(engine.deciders.state(Puppet, "p-1")) == 25
    assert len(engine.deciders.get(Puppet, "p-1").timers) == 1


@pytest.mark.row("D-068")
def test_a_timer_of_another_process_is_noticed_within_the_poll_interval(live: Live) -> None:
    """A process that did not set the timer fires it too: it looks as often as `timer_poll_interval` says."""
    worker = live.engine().register(clockwork(timedelta(milliseconds=300)))
    worker.start_worker()
    client = live.engine().register(clockwork(timedelta(milliseconds=300)))
    client.deciders.execute(Puppet, Do("p-1", "set"))
    eventually(lambda: client.deciders.state(Puppet, "p-1") == ("set", "rang"))
    first, second = client.deciders.history(Puppet, "p-1")
    assert second.at - first.at >= timedelta(milliseconds=300), "never early"


@pytest.mark.row("D-069", "D-070", "EC-27")
@pytest.mark.row("C-49")
def test_a_cancelled_timer_never_fires_and_leaves_an_audit_event(place: Place) -> None:
    """Cancelling by key removes the timer and records `$timer_cancelled`, which `evolve` never sees."""
    engine = place.engine().register(Order())
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    engine.deciders.execute(Order, Pay("o-1"))
    found = engine.deciders.get(Order, "o-1")
    assert found.timers == []
    assert (found.history[-1].type, found.history[-1].event) == ("$timer_cancelled", {"key": PAYMENT})
    engine.advance(PATIENCE * 2)
    assert engine.deciders.state(Order, "o-1").status == "paid"
    assert place.engine().register(Order()).deciders.state(Order, "o-1").status == "paid"


@pytest.mark.row("D-069", "D-070")
def test_cancelling_an_unknown_key_does_nothing(place: Place) -> None:
    """There is no audit event for what was not pending, neither before it was set nor after it fired."""
    engine = place.engine().register(clockwork(key="k"))
    for what in ("cancel", "set"):
        engine.deciders.execute(Puppet, Do("p-1", what))
    engine.advance(HOUR)
    engine.deciders.execute(Puppet, Do("p-1", "cancel"))
    assert [each.type for each in engine.deciders.history(Puppet, "p-1")] == ["Noted"] * 4


def test_a_timer_that_was_ignored_or_buried_is_not_pending(place: Place) -> None:
    """After a firing that led to no event, or to a dead letter, the key is free: cancelling it is no news."""
    pending: list[frozenset[str]] = []

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        pending.append(frozenset(moment.pending_timers))
        match command.what:
            case "set":
                return Decision.event(Noted("set")).with_timer_after(HOUR, Do("p-1", "ignore"), key="k")
            case "doom":
                return Decision.event(Noted("doom")).with_timer_after(HOUR, Do("p-1", "reject"), key="k")
            case "ignore":
                return Ignored()
            case "reject":
                return Rejection(code="no", message="no")
            case _:
                return Decision.event(Noted("cancel")).cancel_timer("k")

    engine = place.engine().register(Puppet(choose))
    for what in ("set", "doom"):
        engine.deciders.execute(Puppet, Do("p-1", what))
        engine.advance(hours=2)
        engine.deciders.execute(Puppet, Do("p-1", "cancel"))
        assert pending[-1] == frozenset()
    assert [each.type for each in engine.deciders.history(Puppet, "p-1")] == ["Noted"] * 4


def test_one_decision_may_cancel_and_set_the_same_key(place: Place) -> None:
    """Cancelling comes first: the new timer of the same decision stands."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        if command.what == "rang":
            return decision
        return decision.cancel_timer("k").with_timer_after(HOUR, Do("p-1", "rang"), key="k")

    engine = place.engine().register(Puppet(choose))
    for _ in range(2):
        engine.deciders.execute(Puppet, Do("p-1", "set"))
    engine.advance(HOUR)
    assert engine.deciders.state(Puppet, "p-1") == ("set", "set", "rang")


def test_one_decision_may_set_and_cancel_the_same_key(place: Place) -> None:
    """The order of the calls counts: what is cancelled after it was set is not set, and the pending one goes too."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what)).with_timer_after(HOUR, Do("p-1", "rang"), key="k")
        return decision.cancel_timer("k") if command.what == "both" else decision

    engine = place.engine().register(Puppet(choose))
    for what in ("both", "set", "both"):
        engine.deciders.execute(Puppet, Do("p-1", what))
        assert len(engine.deciders.get(Puppet, "p-1").timers) == (what == "set")
    engine.advance(HOUR)
    told = [each.type for each in engine.deciders.history(Puppet, "p-1")]
    assert told == ["Noted", "Noted", "Noted", "$timer_cancelled"]


def test_a_timer_that_fires_is_not_pending_any_more(place: Place) -> None:
    """The command that it brings may set it again if it is not set; the others still are."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(f"{command.what} by {moment.fired_timer or 'nobody'}"))
        if "late" not in moment.pending_timers and moment.fired_timer != "late":
            decision = decision.with_timer_after(HOUR * 5 / 2, Do("p-1", "end"), key="late")
        if "tick" not in moment.pending_timers:
            decision = decision.with_timer_after(HOUR, Do("p-1", "tick"), key="tick")
        return decision

    engine = place.engine().register(Puppet(choose))
    engine.deciders.execute(Puppet, Do("p-1", "start"))
    engine.advance(hours=3.5)
    ticks = ("tick by tick", "tick by tick")
    assert engine.deciders.state(Puppet, "p-1") == ("start by nobody", *ticks, "end by late", "tick by tick")
    assert sorted(each.key for each in engine.deciders.get(Puppet, "p-1").timers) == ["late", "tick"]


def test_timers_without_a_key_are_nobodys_to_ask_for(place: Place) -> None:
    """What the engine calls them by is its own; neither while they are set nor when they fire does a decision see it."""
    seen: list[tuple[frozenset[str], str]] = []

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        seen.append((frozenset(moment.pending_timers), moment.fired_timer))
        decision = Decision.event(Noted(command.what))
        return decision.with_timer_after(HOUR, Do("p-1", "rang")) if command.what == "set" else decision

    engine = place.engine().register(Puppet(choose))
    for what in ("set", "set"):
        engine.deciders.execute(Puppet, Do("p-1", what))
    engine.advance(HOUR)
    assert seen == [(frozenset(), "")] * 4


def test_a_timer_is_for_its_own_instance(place: Place) -> None:
    """One whose command names another instance is refused; one that names none, or its own, is set."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        return decision if command.what == "rang" else decision.with_timer_after(HOUR, Do(command.what, "rang"))

    engine = place.engine().register(Puppet(choose))
    for key in ("", "p-1"):
        engine.deciders.execute(Puppet, Do("p-1", key))
    with pytest.raises(CommandError, match=r"a timer of 'puppet' .* 'p-1', .* names 'p-2': .*Message"):
        engine.deciders.execute(Puppet, Do("p-1", "p-2"))
    engine.advance(HOUR)
    assert engine.deciders.state(Puppet, "p-1") == ("", "p-1", "rang", "rang")
    assert [each.key for each in engine.instances.list()] == ["p-1"]
    given(Puppet(choose)).when(Do("p-1", "p-2")).then_error(CommandError)
    given(Puppet(choose)).when(Do("p-1", "p-1")).then(Noted("p-1"))


@pytest.mark.row("D-071")
def test_timers_of_an_instance_that_ended_are_dropped(place: Place) -> None:
    """With the end of the instance its timers go; nothing is retried and nothing is buried."""
    engine = place.engine().register(clockwork())
    for what in ("set", "set", END):
        engine.deciders.execute(Puppet, Do("p-1", what))
    assert engine.deciders.get(Puppet, "p-1").timers == []
    engine.advance(hours=24)
    assert engine.deciders.state(Puppet, "p-1") == ("set", "set", END)
    assert engine.dead_letters.list() == []


@pytest.mark.row("D-072")
@pytest.mark.parametrize("delay", [timedelta(0), timedelta(seconds=-5), timedelta(days=-400)])
def test_a_delay_of_nothing_or_less_is_due_at_once(place: Place, delay: timedelta) -> None:
    """The timer fires on the next look."""
    engine = place.engine().register(clockwork(delay))
    engine.deciders.execute(Puppet, Do("p-1", "set"))
    engine.drain()
    assert engine.deciders.state(Puppet, "p-1") == ("set", "rang")


@pytest.mark.row("D-080", "D-084")
def test_a_timer_of_an_unknown_type_waits_for_a_process_that_knows_it(place: Place) -> None:
    """In a rolling deployment the old code leaves the new type's timers alone, with all their attempts."""
    new = place.engine().register(clockwork())
    new.deciders.execute(Puppet, Do("p-1", "set"))
    old = place.engine().register(Doll())
    old.advance(hours=2)
    assert new.dead_letters.list() == []
    (timer,) = new.deciders.get(Puppet, "p-1").timers
    assert timer.attempts == 0
    new.drain()
    assert new.deciders.state(Puppet, "p-1") == ("set", "rang")


def test_a_refused_timer_is_buried_at_once(place: Place) -> None:
    """A decider that rejects the timer's command will reject it again: the letter carries its code."""
    engine = place.engine().register(Order())
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))

    class Stern(Order):
        def decide(self, state: object, command: object, moment: Moment) -> Answer:
            return Rejection(code="no_way", message="never")

    stern = place.engine().register(Stern())
    stern.advance(PATIENCE)
    (letter,) = stern.dead_letters.list()
    assert (letter.reason, letter.attempts, letter.type) == ("no_way", 1, "TimeOut")


@pytest.mark.row("D-009")
def test_every_instant_of_the_calendar_can_be_waited_for(place: Place) -> None:
    """The first instant in UTC is long over and the last one is waited for; neither is in the way of the others."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        if command.what != "set":
            return decision
        for at, what in ((LAST, "last"), (FIRST, "first"), (moment.now + HOUR, "soon")):
            decision = decision.with_timer_at(at, Do("p-1", what), key=what)
        return decision

    engine = place.engine().register(Puppet(choose))
    engine.deciders.execute(Puppet, Do("p-1", "set"))
    engine.advance(hours=2)
    assert engine.deciders.state(Puppet, "p-1") == ("set", "first", "soon")
    assert [timer.due_at for timer in engine.deciders.get(Puppet, "p-1").timers] == [LAST]
