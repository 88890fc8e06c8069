"""Due work: timers, messages and parked effects come in when they are due, and failures of one do not stop the others."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from standfast import Decision, EffectContext, Message, Moment, RetryPolicy, Settings
from standfast.engine.common.telemetry import Happening, TimerFired
from support.batching import ONE_COMMITTER, Batching
from support.engines import AT_ONCE, QUICK, Live, Place
from support.samples import Act, Answer, Do, Doll, Ledger, Noted, Notes, Puppet, act
from support.waiting import eventually

SHORT = timedelta(milliseconds=80)
HOUR = timedelta(hours=1)


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
        engine.deciders.execute(Puppet, Do(f"p-{number}", "set"))
    for number in range(3):
        eventually(lambda number=number: engine.deciders.state(Puppet, f"p-{number}")[-1] == "rang")  # type: ignore[misc]


def test_a_parked_effect_of_this_process_needs_no_poll(live: Live) -> None:
    """A retry that is due in a while is remembered by the process that parked it."""
    settings = msgspec.structs.replace(QUICK, timer_poll_interval=timedelta(hours=1), poll_interval=timedelta(hours=1))
    ledger = Ledger()

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted("x")).with_effect(Act("x"), delay=SHORT)

    engine = live.engine(settings).register(Puppet(choose), lambda context, effect: ledger.add(effect)).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
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
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    eventually(lambda: ledger.entries == [1, 2])


POLL = msgspec.structs.replace(QUICK, timer_poll_interval=timedelta(seconds=7))


def test_a_far_timer_does_not_hide_what_is_due(place: Place) -> None:
    """That it is time to look stays true when something is set that is due much later."""
    engine = place.engine(POLL).register(Puppet())
    due_work = engine.runtime.due_work
    due_work.step()
    engine.deciders.submit(Puppet, Do("p-1", "told"))
    due_work.look()
    due_work.expect(place.clock.now() + timedelta(days=14))
    due_work.step()
    assert engine.deciders.state(Puppet, "p-1") == ("told",)


def test_a_message_and_a_far_timer_of_one_commit(live: Live) -> None:
    """The message is delivered at once, also if the timer is told of behind it."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        if command.what == "tell":
            return decision.with_message(Message(decider="puppet", command=Do("target", "told")))
        if command.what == "far":
            return decision.with_timer_after(timedelta(days=200_000), Do(command.workflow_id, "rang"))
        return decision

    settings = msgspec.structs.replace(ONE_COMMITTER, timer_poll_interval=timedelta(hours=1))
    engine = live.engine(settings).register(Puppet(choose))
    batching = Batching(engine)
    engine.start_worker()
    with batching.one():
        replies = [engine.futures.deciders.execute(Puppet, Do(f"p-{what}", what)) for what in ("tell", "far")]
    for reply in replies:
        reply.result(timeout=30)
    eventually(lambda: not engine.admin.inbox_depth())
    assert engine.deciders.state(Puppet, "target") == ("told",)
    assert engine.health().is_healthy


@pytest.mark.parametrize("ahead", [timedelta(seconds=3), timedelta(days=1), timedelta(days=2_900_000)])
def test_nobody_waits_longer_than_the_poll_interval(place: Place, ahead: timedelta) -> None:
    """Not even if the next timer that is known is far away: another process may set one that is due before."""
    engine = place.engine(POLL).register(timing(ahead))
    due_work = engine.runtime.due_work
    assert due_work.step() == 7.0
    engine.deciders.execute(Puppet, Do("p-1", "set"))
    assert due_work.step() == min(7.0, ahead.total_seconds())


@pytest.mark.row("D-068")
def test_a_timer_of_another_process_is_found_within_the_poll_interval(place: Place) -> None:
    """Without any hint."""
    waiting, other = (place.engine(POLL).register(timing(timedelta(seconds=1))) for _ in range(2))
    assert waiting.runtime.due_work.step() == 7.0
    other.deciders.execute(Puppet, Do("p-1", "set"))
    place.clock.move(timedelta(seconds=6))
    assert waiting.runtime.due_work.step() == 1.0
    assert waiting.deciders.state(Puppet, "p-1") == ("set",)
    place.clock.move(timedelta(seconds=1))
    waiting.runtime.due_work.step()
    assert waiting.deciders.state(Puppet, "p-1") == ("set", "rang")


def test_a_clock_that_is_set_back_stops_nothing(place: Place) -> None:
    """What was planned by the old time is looked at by the new one."""
    engine = place.engine(POLL).register(Puppet())
    engine.runtime.due_work.step()
    place.clock._now -= timedelta(days=1)
    engine.deciders.submit(Puppet, Do("p-1", "told"))
    assert engine.runtime.due_work.step() == 7.0
    assert engine.deciders.state(Puppet, "p-1") == ("told",)


@pytest.mark.parametrize("broken", ["fire", "deliver", "unpark"])
def test_trouble_with_one_kind_of_work_does_not_stop_the_others(
    place: Place, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """Timers, messages and retries do not wait for one another; the round counts as failed, and the next one looks again."""
    engine = place.engine().register(timing(timedelta(hours=1)))
    parked = place.engine().register(Doll(lambda *_: Decision.event(Noted("x")).with_effect(Act("x"), delay=HOUR)))
    engine.deciders.execute(Puppet, Do("p-timer", "set"))
    parked.deciders.execute(Doll, Do("d-1", "x"))
    place.clock.move(timedelta(hours=2))
    engine.deciders.submit(Puppet, Do("p-message", "told"))

    def fail() -> None:
        raise SystemExit("no")

    due_work = engine.runtime.due_work
    monkeypatch.setattr(due_work, broken, fail)
    with pytest.raises(SystemExit):
        due_work.step()

    def what_was_done() -> dict[str, bool]:
        return {
            "fire": engine.deciders.state(Puppet, "p-timer") == ("set", "rang"),
            "deliver": engine.admin.inbox_depth() == 0,
            "unpark": parked.deciders.get(Doll, "d-1").effects[0].next_attempt_at is None,
        }

    assert what_was_done() == {name: name != broken for name in ("fire", "deliver", "unpark")}
    monkeypatch.undo()
    due_work.step()
    assert all(what_was_done().values())


@pytest.mark.parametrize("when", ["too late", "too early"])
def test_a_timer_beyond_the_calendar_stops_nobody(place: Place, when: str) -> None:
    """A row that something else wrote and nobody can read leaves the other timers and the messages alone."""
    engine = place.engine().register(timing(timedelta(hours=1)))
    for key in ("p-1", "p-2"):
        engine.deciders.execute(Puppet, Do(key, "set"))
    spoilt = engine.deciders.get(Puppet, "p-1").id
    is_sqlite = place.url.startswith("sqlite")
    instant = {"too late": "12000-01-01", "too early": "0044-03-15 BC"}[when] if not is_sqlite else f"{when[4]} never"
    with place.store.writer().unit() as unit:
        table = "timers" if is_sqlite else "standfast.timers"
        unit.connection.execute(f"update {table} set due_at = '{instant}' where instance = '{spoilt}'")  # type: ignore[attr-defined]
    engine.deciders.submit(Puppet, Do("p-3", "told"))
    engine.advance(hours=2)
    engine.runtime.due_work.step()
    assert engine.deciders.state(Puppet, "p-2") == ("set", "rang")
    assert engine.deciders.state(Puppet, "p-3") == ("told",)


def test_firing_is_told_with_its_delay(place: Place) -> None:
    """Telemetry hears how late a timer was handed in."""
    heard: list[Happening] = []
    engine = place.engine().register(timing(timedelta(hours=1))).listen(heard.append)
    engine.deciders.execute(Puppet, Do("p-1", "set"))
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
    engine.deciders.execute(Puppet, Do("p-1", "set"))
    engine.advance(hours=1)
    assert len(engine.deciders.state(Puppet, "p-1")) == 501


def test_a_timer_that_cannot_be_read_does_not_stop_the_others(place: Place) -> None:
    """Bytes that are no command are buried with a reason; the timer beside it fires."""
    engine = place.engine(Settings(command_retry=AT_ONCE)).register(timing(timedelta(hours=1)))
    for key in ("p-1", "p-2"):
        engine.deciders.execute(Puppet, Do(key, "set"))
    spoilt = engine.deciders.get(Puppet, "p-1").id
    prefix = "" if place.url.startswith("sqlite") else "standfast."
    with place.store.writer().unit() as unit:
        nonsense = "x'ff'" if not prefix else "'\\xff'::bytea"
        unit.connection.execute(f"update {prefix}timers set data = {nonsense} where instance = '{spoilt}'")  # type: ignore[attr-defined]
    engine.advance(hours=2)
    assert engine.deciders.state(Puppet, "p-2") == ("set", "rang")
    (letter,) = engine.dead_letters.list()
    assert (letter.source, letter.reason) == ("timer", "bad_payload")
