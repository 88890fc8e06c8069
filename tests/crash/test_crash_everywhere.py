"""The engine is stopped at every commit boundary and around every handler call: the outcome is always the same."""

from __future__ import annotations

import hashlib
import sqlite3
from datetime import timedelta

import pytest

from standfast import Decision, EffectContext, Fail, Moment, RetryPolicy, Saga, Settings, event
from standfast.engine.common.clock import ManualClock
from standfast.store.opening import open_store
from standfast.testing import CrashScenario, ManualEngine, crash_everywhere
from standfast.testing.crashes import _Boundary, _run, histories
from support.crashing import NewStore, checked, tried
from support.inside import store_of
from support.samples import (
    PATIENCE,
    Act,
    Answer,
    Do,
    Ledger,
    Noted,
    Notes,
    Order,
    Puppet,
    Receiver,
    Send,
    Sender,
    Shop,
)
from support.samples import Place as PlaceOrder

# -- The scenarios. Clients that got no answer ask again, so what must count once carries a command id.


def placing(engine: ManualEngine) -> None:
    """One order is paid and shipped, another one times out."""
    engine.deciders.execute(Order, PlaceOrder("o-1", 5), command_id="place")
    engine.drain()


ORDER = CrashScenario(prepare=lambda engine: engine.register(Order(), Shop()), play=placing)


def waiting(engine: ManualEngine) -> None:
    """Nobody charges, so that the order times out."""
    engine.deciders.execute(Order, PlaceOrder("o-1", 5), command_id="place")
    engine.advance(PATIENCE + timedelta(minutes=1))


def idle_shop(engine: ManualEngine) -> None:
    """Effects are taken, and nothing comes of them."""
    engine.register(Order(), lambda context, effect: None)


TIMEOUT = CrashScenario(
    prepare=idle_shop,
    play=waiting,
    outcome=lambda engine: [each.type for each in engine.deciders.history(Order, "o-1")],
)


def sending(engine: ManualEngine) -> None:
    """Two senders write to one receiver, which answers."""
    for number in (1, 2):
        engine.deciders.submit(Sender, Send(f"s-{number}", "r-1", number), command_id=f"send-{number}")
    engine.drain()


def received(engine: ManualEngine) -> object:
    """What arrived; which of the two was first is not promised."""
    purse = engine.deciders.state(Receiver, "r-1")
    return purse.total, sorted(purse.senders), [engine.deciders.state(Sender, f"s-{n}") for n in (1, 2)]


MESSAGES = CrashScenario(
    prepare=lambda engine: engine.register(Sender()).register(Receiver()), play=sending, outcome=received
)

TWICE = RetryPolicy(max_attempts=2, delay=timedelta(minutes=1), jitter=0)


class Told(Puppet):
    """Asks for an effect, and notes its end."""

    def decide(self, state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        return decision.with_effect(Act("x")) if command.what == "go" else decision


def failing_first(engine: ManualEngine) -> None:
    """The effect fails until an operator has put it back."""

    def handle(context: EffectContext, effect: Act) -> Do:
        if not engine.dead_letters.list() and "mended" not in engine.deciders.state(Told, "p-1"):
            raise Fail("not yet")
        return Do("p-1", "done")

    engine.register(Told(), handle, retry=TWICE)


def requeueing(engine: ManualEngine) -> None:
    """The effect dies, somebody mends the world and puts it back to work."""
    engine.deciders.execute(Told, Do("p-1", "go"), command_id="go")
    engine.advance(hours=1)
    engine.deciders.execute(Told, Do("p-1", "mended"), command_id="mended")
    for letter in engine.dead_letters.list():
        engine.dead_letters.requeue(letter.id)
    engine.advance(hours=1)


DEAD_LETTER = CrashScenario(prepare=failing_first, play=requeueing)


class Hourly(Puppet):
    """Sets a timer, cancels it, and sets it again."""

    def decide(self, state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        match command.what:
            case "set":
                return decision.with_timer_after(timedelta(hours=1), Do("p-1", "rang"), key="k")
            case "cancel":
                return decision.cancel_timer("k")
            case _:
                return decision


def cancelling(engine: ManualEngine) -> None:
    """A timer is set, cancelled, set again and fires; each step counts once."""
    for number, what in enumerate(("set", "cancel", "set")):
        engine.deciders.execute(Hourly, Do("p-1", what), command_id=str(number))
    engine.advance(hours=2)


CANCELLED = CrashScenario(prepare=lambda engine: engine.register(Hourly()), play=cancelling)


def awaiting(engine: ManualEngine) -> None:
    """An early event is found, another one comes late, one is for one taker, and one starts a run that waits for it too."""
    engine.publish("paid", "o-1", 1, event_id="early")
    engine.publish("ticket", payload=2, event_id="single", match_one=True)
    engine.drain()
    for number in (1, 2):
        engine.start("buyer", {"order": "o-1"}, key=f"b-{number}", idempotency_key=f"buy-{number}")
    engine.drain()
    engine.publish("sent", "o-1", 3, event_id="late", ttl=60)
    engine.drain()
    engine.publish("ticket", payload=4, event_id="another", match_one=True)
    engine.advance(seconds=90)


def awaited(engine: ManualEngine) -> object:
    """What became of the runs; which of two got which ticket is not promised."""
    tickets, ends = [], []
    for each in engine.runs.list().items:
        run = engine.run(each.id)
        data = dict(run.result(timeout=0))  # type: ignore[call-overload]
        tickets.append(data.pop("ticket", None))
        told = [entry.event_type for entry in run.history()].count("event_received")
        ends.append((each.definition, each.key, sorted(data.items()), told))
    return sorted(ends), sorted(map(str, tickets)), [each.id for each in engine.events.list()]


BUYER = (
    Saga("buyer")
    .wait_for_events("both", event("paid", key="order"), event("sent", key="order"))
    .wait_for_event("ticket", "ticket")
    .build()
)
SENDING = Saga("sending").trigger("sent", input={"for": "key"}).wait_for_event("seen", "sent", key="for").build()

EVENTS = CrashScenario(prepare=lambda engine: engine.register(BUYER).register(SENDING), play=awaiting, outcome=awaited)

SCENARIOS = {
    "events": EVENTS,
    "order": ORDER,
    "timeout": TIMEOUT,
    "messages": MESSAGES,
    "dead letter": DEAD_LETTER,
    "cancelled timer": CANCELLED,
}


@pytest.mark.row("D-019", "D-048", "D-053", "D-066", "D-106")
@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.row("G-32")
def test_a_crash_anywhere_changes_nothing(new_store: NewStore, name: str) -> None:
    """Whatever boundary the process dies at, the next one comes to the same end, with nothing left over."""
    tried(SCENARIOS[name], new_store, on_server=3)


@pytest.mark.parametrize("again_after", [1, 3])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_second_crash_during_recovery_changes_nothing(new_store: NewStore, name: str, again_after: int) -> None:
    """The process that takes over dies as well, and the third one finishes."""
    tried(SCENARIOS[name], new_store, on_server=8, again_after=again_after)


class Namer(Puppet):
    """Notes its own id, which is another one in every run."""

    type = "namer"

    def decide(self, state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted(f"I am {moment.instance}"))


def test_ids_in_a_history_make_no_difference() -> None:
    """The ids of instances that a history holds are those of the run: the default outcome tells them by whose they are."""

    def play(engine: ManualEngine) -> None:
        engine.deciders.execute(Namer, Do("p-1"), command_id="name")
        engine.start("above", idempotency_key="once")
        engine.drain()
        for found in engine.runs.list(definition="below", status="running").items:
            engine.run(found.id).signal("go")
        engine.drain()

    above, below = Saga("above").call("c", "below").build(), Saga("below").wait_for("w", "go").build()
    report = crash_everywhere(
        CrashScenario(prepare=lambda engine: engine.register(Namer()).register(below).register(above), play=play)
    )
    assert report.points >= 5
    assert b"I am <namer p-1>" in repr(report.outcome).encode()


def test_a_difference_says_how_to_compare_something_else() -> None:
    """Histories that differ by nature need an outcome of the scenario's own, and the complaint tells how to give one."""
    runs: list[int] = []

    def play(engine: ManualEngine) -> None:
        runs.append(1)
        engine.deciders.execute(Puppet, Do("p-1", str(len(runs))), command_id="once")

    with pytest.raises(AssertionError, match=r"Scenario\(\.\.\., outcome=lambda engine"):
        crash_everywhere(CrashScenario(prepare=lambda engine: engine.register(Puppet()), play=play))


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("again_after", [None, 1, 2, 3, 5, 8])
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_point_of_every_scenario(new_store: NewStore, name: str, again_after: int | None) -> None:
    """The campaign: all points on both stores, alone and with a second crash."""
    report = crash_everywhere(checked(SCENARIOS[name]), new_store=new_store, again_after=again_after)
    assert report.points >= 5, "a run without crashes proves nothing"


# -- What handlers do in the world, counted outside of the engine.


def acting(**options: object) -> Puppet:
    """A puppet with one effect that carries options."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        return decision.with_effect(Act("x"), **options) if command.what == "go" else decision

    return Puppet(choose)


def going(engine: ManualEngine) -> None:
    """The one command of these scenarios."""
    engine.deciders.execute(Puppet, Do("p-1", "go"), command_id="go")
    engine.advance(hours=1)


@pytest.mark.row("D-053")
def test_a_handler_is_called_at_least_once(new_store: NewStore) -> None:
    """After every crash the effect has been called, and its result counts once."""
    calls: list[str] = []

    def prepare(engine: ManualEngine) -> None:
        def handle(context: EffectContext, effect: object) -> Do:
            calls.append(context.idempotency_key)
            return Do("p-1", "done")

        engine.register(acting(), handle)

    def outcome(engine: ManualEngine) -> object:
        assert calls, "the effect was never called"
        assert len(set(calls)) == 1, "all calls carry the same key"
        calls.clear()
        return histories(engine)

    tried(CrashScenario(prepare=prepare, play=going, outcome=outcome), new_store)


def test_an_effect_with_once_is_never_called_twice(new_store: NewStore) -> None:
    """Wherever the process dies, the handler was called at most once; if its end is unknown, there is a dead letter."""
    calls = Ledger()

    def prepare(engine: ManualEngine) -> None:
        engine.register(acting(once=True), lambda context, effect: calls.add("called"))

    def outcome(engine: ManualEngine) -> object:
        called, letters = calls.count("called"), len(engine.dead_letters.list())
        calls._entries.clear()
        assert called <= 1
        assert called or letters, "neither called nor reported"
        return histories(engine)

    tried(CrashScenario(prepare=prepare, play=going, outcome=outcome), new_store)


def test_a_transactional_effect_writes_exactly_once(new_store: NewStore) -> None:
    """What the handler writes with the engine's connection is there once, after every crash."""

    def prepare(engine: ManualEngine) -> None:
        def handle(context: EffectContext, effect: object) -> Do:
            context.connection.execute("insert into ledger values (1)")
            return Do("p-1", "done")

        engine.register(acting(transactional=True), handle)

    def play(engine: ManualEngine) -> None:
        with store_of(engine).writer().unit() as unit:
            unit.connection.execute("create table if not exists ledger (one int)")  # type: ignore[attr-defined]
        going(engine)

    def outcome(engine: ManualEngine) -> object:
        with store_of(engine).writer().unit() as unit:
            (count,) = unit.connection.execute("select count(*) from ledger").fetchone()  # type: ignore[attr-defined]
        assert count == 1
        return histories(engine)

    tried(CrashScenario(prepare=prepare, play=play, outcome=outcome), new_store)


# -- The kit itself.


@pytest.mark.parametrize("name", SCENARIOS)
def test_places_that_count_as_one_point_are_the_same_world(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing has happened since the last point, the next process would find the very same database."""
    store = open_store("sqlite://")
    file: sqlite3.Connection = store._database._writer  # type: ignore[attr-defined]
    worlds: dict[int, set[bytes]] = {}
    places = 0

    def crossed(boundary: _Boundary) -> None:
        nonlocal places
        cross(boundary)
        if boundary.is_armed and not file.in_transaction:
            places += 1
            worlds.setdefault(boundary.count, set()).add(hashlib.sha256(file.serialize()).digest())

    cross = _Boundary.cross
    monkeypatch.setattr(_Boundary, "cross", crossed)
    _run(SCENARIOS[name], store, None)
    assert [len(each) for each in worlds.values()] == [1] * len(worlds)
    assert places > 2 * len(worlds)


def test_the_kit_notices_a_difference() -> None:
    """A scenario that counts twice after a crash is caught, with the point at which it happens."""

    def play(engine: ManualEngine) -> None:
        engine.deciders.execute(Puppet, Do("p-1", "no id, so it counts again"))

    with pytest.raises(AssertionError, match=r"a crash at point \d of \d changes the outcome"):
        crash_everywhere(CrashScenario(prepare=lambda engine: engine.register(Puppet()), play=play))


def test_a_scenario_that_does_nothing_proves_nothing() -> None:
    """A run without a point at which it could be stopped is refused."""
    with pytest.raises(AssertionError, match="it does nothing"):
        crash_everywhere(CrashScenario(prepare=lambda engine: None, play=lambda engine: None))


def test_a_crash_inside_a_handler_is_the_end_of_its_process() -> None:
    """Nothing is written by an engine that has died, not even that a handler failed."""
    attempts: list[int] = []

    def prepare(engine: ManualEngine) -> None:
        engine.register(acting(), lambda context, effect: attempts.append(context.attempt))

    def outcome(engine: ManualEngine) -> object:
        assert isinstance(engine.clock, ManualClock)
        return histories(engine), engine.dead_letters.list()

    crash_everywhere(
        CrashScenario(prepare=prepare, play=going, outcome=outcome),
        settings=Settings(retry=RetryPolicy(max_attempts=2)),
    )
    assert set(attempts) == {1, 2}
