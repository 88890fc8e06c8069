"""The clockwork: timers, messages and parked effects come in when they are due, and failures of one do not stop the others."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from holdfast import Decision, EffectContext, Moment, RetryPolicy, Settings
from holdfast.runtime.telemetry import Happening, TimerFired
from support.engines import AT_ONCE, QUICK, Live, Place
from support.samples import Act, Answer, Do, Ledger, Noted, Notes, Puppet, act
from support.waiting import eventually

SHORT = timedelta(milliseconds=80)


def timing(delay: timedelta) -> Puppet:
    """A puppet that rings after a while."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        return decision.with_timer_after(delay, Do(command.workflow_id, "rang")) if command.what == "set" else decision

    return Puppet(choose)


def test_a_timer_of_this_process_needs_no_poll(live: Live) -> None:
    """The process that set a timer knows when it is due, however rarely it looks for those of others."""
    settings = msgspec.structs.replace(QUICK, timer_poll_interval=timedelta(hours=1), poll_interval=timedelta(hours=1))
    engine = live.engine(settings).register(timing(SHORT)).start_worker()
    for number in range(3):
        engine.execute(Puppet, Do(f"p-{number}", "set")).result()
    for number in range(3):
        eventually(lambda number=number: engine.load_state(Puppet, f"p-{number}").result()[-1] == "rang")  # type: ignore[misc]


def test_a_parked_effect_of_this_process_needs_no_poll(live: Live) -> None:
    """A retry that is due in a while is remembered by the process that parked it."""
    settings = msgspec.structs.replace(QUICK, timer_poll_interval=timedelta(hours=1), poll_interval=timedelta(hours=1))
    ledger = Ledger()

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted("x")).with_effect(Act("x"), delay=SHORT)

    engine = live.engine(settings).register(Puppet(choose), lambda context, effect: ledger.add(effect)).start_worker()
    engine.execute(Puppet, Do("p-1", "x")).result()
    eventually(lambda: ledger.entries)


def test_a_retry_of_this_process_needs_no_poll(live: Live) -> None:
    """An effect that failed and is parked comes back by itself."""
    settings = msgspec.structs.replace(QUICK, timer_poll_interval=timedelta(hours=1), poll_interval=timedelta(hours=1))
    ledger = Ledger()

    def once_broken(context: EffectContext, effect: object) -> None:
        ledger.add(context.attempt)
        if context.attempt == 1:
            raise ValueError("no")

    policy = RetryPolicy(max_attempts=2, delay=SHORT, jitter=0)
    engine = live.engine(settings).register(Puppet(act), once_broken, retry=policy).start_worker()
    engine.execute(Puppet, Do("p-1", "x")).result()
    eventually(lambda: ledger.entries == [1, 2])


def test_firing_is_told_with_its_delay(place: Place) -> None:
    """Telemetry hears how late a timer was handed in."""
    heard: list[Happening] = []
    engine = place.engine().register(timing(timedelta(hours=1))).listen(heard.append)
    engine.execute(Puppet, Do("p-1", "set")).result()
    place.clock.move(timedelta(hours=2))
    engine.drain()
    assert [each.late_by for each in heard if isinstance(each, TimerFired)] == [timedelta(hours=1)]


def test_many_due_timers_are_fired_in_rounds(place: Place) -> None:
    """More timers than fit into one claim are due at once: all of them fire."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        for _ in range(500 if command.what == "set" else 0):
            decision = decision.with_timer_after(timedelta(hours=1), Do("p-1", "rang"))
        return decision

    engine = place.engine().register(Puppet(choose))
    engine.execute(Puppet, Do("p-1", "set")).result()
    engine.advance(hours=1)
    assert len(engine.load_state(Puppet, "p-1").result()) == 501


def test_a_timer_that_cannot_be_read_does_not_stop_the_others(place: Place) -> None:
    """Bytes that are no command are buried with a reason; the timer beside it fires."""
    engine = place.engine(Settings(command_retry=AT_ONCE)).register(timing(timedelta(hours=1)))
    for key in ("p-1", "p-2"):
        engine.execute(Puppet, Do(key, "set")).result()
    spoilt = engine.get(Puppet, "p-1").result().id
    prefix = "" if place.url.startswith("sqlite") else "holdfast."
    with place.store.writer().unit() as unit:
        nonsense = "x'ff'" if not prefix else "'\\xff'::bytea"
        unit.connection.execute(f"update {prefix}timers set data = {nonsense} where instance = '{spoilt}'")  # type: ignore[attr-defined]
    engine.advance(hours=2)
    assert engine.load_state(Puppet, "p-2").result() == ("set", "rang")
    (letter,) = engine.dead_letters().result()
    assert (letter.source, letter.reason) == ("timer", "bad_payload")
