"""What operators do: maintenance, settings, retention, and calls on behalf of tenants."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, get_type_hints

import msgspec
import pytest

from standfast import (
    Actor,
    ConfigurationError,
    Decision,
    EffectContext,
    Engine,
    Fail,
    Failure,
    Message,
    MissingHandler,
    Moment,
    NotFoundError,
    PayloadError,
    Reply,
    RetryPolicy,
    Saga,
    Settings,
    StoppedError,
)
from standfast.app.api.namespaces import FutureEngineCalls
from standfast.engine.common.telemetry import HandlerMissingObserved, Happening
from standfast.store.records.claim_order import rank_of
from standfast.store.records.instances import DEFAULT_TENANT, Maintenance
from support.engines import AT_ONCE, QUICK, Live, Place
from support.samples import (
    END,
    Act,
    Add,
    Answer,
    Counter,
    Do,
    Doll,
    Ledger,
    Noted,
    Notes,
    Order,
    Puppet,
    Shop,
    act,
    done,
)
from support.samples import Place as PlaceOrder
from support.waiting import eventually

MINUTE = timedelta(minutes=1)


@pytest.mark.row("D-091")
def test_maintenance_pauses_all_processing(place: Place) -> None:
    """While paused no effect, timer or message is touched; commands are still taken; afterwards work goes on."""
    shop = Shop()
    engine = place.engine().register(Order(), shop)
    engine.admin.pause_processing()
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    engine.deciders.submit(Order, PlaceOrder("o-2", 5))
    place.engine().register(Order(), shop).advance(hours=2)
    engine.advance(hours=2)
    assert shop.ledger.entries == []
    assert {(each.kind, each.count) for each in engine.admin.backlog()} == {
        ("effect", 1),
        ("timer", 1),
        ("inbox", 1),
    }
    engine.admin.resume_processing()
    engine.drain()
    assert engine.deciders.state(Order, "o-2").status == "shipped"


@pytest.mark.row("D-091")
def test_maintenance_may_refuse_commands_as_well(place: Place) -> None:
    """When commands are refused, every call for a change is answered by a retryable error; reading goes on."""
    engine = place.engine().register(Counter())
    engine.deciders.execute(Counter, Add("c-1"))
    engine.admin.refuse_commands()
    engine.drain()
    for call in (engine.deciders.execute, engine.deciders.submit):
        with pytest.raises(StoppedError, match="maintenance") as caught:
            call(Counter, Add("c-1"))
        assert (caught.value.code, caught.value.retryable) == ("stopped", True)
    assert engine.deciders.state(Counter, "c-1") == 1
    engine.admin.resume_processing()
    engine.drain()
    engine.deciders.execute(Counter, Add("c-1"))
    assert engine.deciders.state(Counter, "c-1") == 2


@pytest.mark.row("D-091")
@pytest.mark.parametrize("mode", ["pause", "refuse"])
def test_health_says_that_maintenance_holds_work_back(live: Live, mode: Maintenance) -> None:
    """In every process, for as long as it lasts; it is what operators asked for, and no problem."""
    engines = [live.engine().register(Counter()), live.engine().register(Counter()).start_worker()]
    assert [engine.health().maintenance for engine in engines] == ["", ""]
    (engines[0].admin.pause_processing if mode == "pause" else engines[0].admin.refuse_commands)()
    for engine in engines:
        eventually(lambda engine=engine: engine.health().maintenance == mode)  # type: ignore[misc]
        assert engine.health().is_healthy
    engines[0].admin.resume_processing()
    for engine in engines:
        eventually(lambda engine=engine: engine.health().maintenance == "")  # type: ignore[misc]


@pytest.mark.row("D-091")
def test_maintenance_reaches_running_processes(live: Live) -> None:
    """The switch is in the database: another process pauses, and goes on by itself when it is over."""
    ledger = Ledger()
    worker = live.engine().register(Puppet(act), lambda context, effect: ledger.add(effect)).start_worker()
    operator = live.engine().register(Puppet(act))
    operator.admin.refuse_commands()
    eventually(lambda: isinstance(worker.futures.deciders.execute(Puppet, Do("p-0", "x")).exception(), StoppedError))
    operator.admin.pause_processing()
    eventually(lambda: worker.futures.deciders.execute(Puppet, Do("p-1", "x")).exception() is None)
    noted = len(ledger.entries)
    operator.deciders.execute(Puppet, Do("p-2", "paused"))
    (waiting,) = operator.deciders.get(Puppet, "p-2").effects
    assert waiting.attempts == 0
    operator.admin.resume_processing()
    eventually(lambda: not operator.admin.backlog())
    assert len(ledger.entries) > noted


@pytest.mark.row("D-091")
def test_maintenance_reaches_processes_without_a_worker(live: Live) -> None:
    """A process that only takes commands hears of it too, whether it has threads or not, and of its end."""
    operator, caller = live.engine().register(Counter()), live.engine().register(Counter())
    driven = Engine(live.url, threads=False).register(Counter())
    operator.admin.refuse_commands()
    assert isinstance(operator.futures.deciders.execute(Counter, Add("c-1")).exception(), StoppedError)
    for engine in (caller, driven):
        for call in (engine.futures.deciders.execute, engine.futures.deciders.submit):
            eventually(lambda call=call: isinstance(call(Counter, Add("c-1")).exception(), StoppedError))  # type: ignore[misc]
    operator.admin.resume_processing()
    for engine in (caller, driven):
        eventually(lambda engine=engine: engine.futures.deciders.execute(Counter, Add("c-2")).exception() is None)  # type: ignore[misc]
    driven.stop()


@pytest.mark.row("D-091")
def test_maintenance_reaches_engines_that_are_driven_by_hand(place: Place) -> None:
    """They look when a command comes, unless they have looked just now."""
    operator, caller = place.engine().register(Counter()), place.engine().register(Counter())
    caller.deciders.execute(Counter, Add("c-1"))
    operator.admin.refuse_commands()
    place.clock.move(timedelta(seconds=1))
    with pytest.raises(StoppedError):
        caller.deciders.execute(Counter, Add("c-1"))


@pytest.mark.row("D-120")
def test_the_defaults_are_sane() -> None:
    """A first program sets nothing: quick enough to notice a dead worker, patient enough not to lose work."""
    settings = Settings()
    assert settings.lease <= timedelta(seconds=10)
    assert settings.lease >= 3 * settings.beat_interval
    assert settings.retry.max_attempts == 5
    assert settings.timer_poll_interval <= timedelta(seconds=1)
    assert settings.max_payload_bytes == 1024 * 1024
    assert not settings.observe_inputs


DURATIONS = [name for name, given in get_type_hints(Settings).items() if given in {timedelta, timedelta | None}]
MAY_BE_NONE = {name for name in DURATIONS if getattr(Settings(), name) is None} | {
    "resume_worker_interval",
    "compress_after",
}


@pytest.mark.row("D-120")
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"concurrency": 0}, "concurrency must be at least 1"),
        ({"threads": 0}, "threads must be at least 1"),
        ({"batch_limit": 0}, "batch_limit must be at least 1"),
        ({"snapshot_events": 0}, "snapshot_events must be at least 1"),
        ({"max_payload_bytes": 0}, "max_payload_bytes must be at least 1"),
        ({"lease": timedelta(seconds=1)}, "lease .* must be at least three beat_intervals"),
        ({"patience": timedelta(seconds=-1)}, "patience must not be negative"),
        ({"poll_interval": timedelta(seconds=-1)}, "poll_interval must not be negative"),
        ({"keep_finished": timedelta(days=-1)}, "keep_finished must not be negative"),
        ({"handler_timeout": timedelta(0)}, "handler_timeout 0:00:00 is no time"),
        *[
            ({name: number}, f"{name} must be")
            for name in (
                "concurrency",
                "threads",
                "batch_limit",
                "committers",
                "readers",
                "cache_size",
                "snapshot_events",
                "max_payload_bytes",
                "missing_handler_jitter",
            )
            for number in (float("nan"), float("inf"))
        ],
        ({"ageing": float("nan")}, "ageing must not be negative: it is 0 or from 1e-09, not nan"),
        ({"ageing": float("inf")}, "ageing must not be negative: it is 0 or from 1e-09, not inf"),
        ({"ageing": 5e-324}, "ageing must not be negative: it is 0 or from 1e-09"),
        ({"timer_poll_interval": timedelta(seconds=-1)}, "timer_poll_interval must not be negative"),
        ({"shutdown_timeout": timedelta(seconds=-1)}, "shutdown_timeout must not be negative"),
        ({"keep_receipts": timedelta.max}, "keep_receipts must not be longer than a hundred years"),
        ({"keep_finished": timedelta(seconds=-1)}, "keep_finished must not be negative"),
        ({"ageing": -1.0}, "ageing must not be negative"),
        *[
            ({name: least, "lease": timedelta(minutes=1)}, f"{name} must be at least 0.001 s, or its loop never rests")
            for name in ("beat_interval", "poll_interval", "timer_poll_interval")
            for least in (timedelta(0), timedelta(microseconds=999))
        ],
        ({"lease": timedelta(0), "beat_interval": timedelta(seconds=1)}, "lease .* must be at least three"),
        ({"unhealthy_after": timedelta(0)}, "unhealthy_after must be more than zero"),
        *[
            ({name: number}, f"{name} must be a timedelta, not {number}")
            for name in DURATIONS
            for number in (0, 1.5, float("nan"), float("inf"), float("-inf"))
        ],
        *[({name: timedelta(microseconds=-1)}, f"{name} ") for name in DURATIONS],
        *[({name: None}, f"{name} must be a timedelta, not None") for name in DURATIONS if name not in MAY_BE_NONE],
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, object], said: str) -> None:
    """A wrong setting is named at once, not when it first hurts."""
    with pytest.raises(ConfigurationError, match=said):
        Settings(**wrong)  # type: ignore[arg-type]


@pytest.mark.row("D-120")
@pytest.mark.parametrize(
    "settings",
    [
        msgspec.structs.replace(QUICK, poll_interval=timedelta(milliseconds=20)),
        msgspec.structs.replace(QUICK, timer_poll_interval=timedelta(milliseconds=20)),
        msgspec.structs.replace(QUICK, threads=1, concurrency=1, batch_limit=1, cache_size=0, snapshot_events=1),
        msgspec.structs.replace(QUICK, beat_interval=timedelta(milliseconds=20), lease=timedelta(milliseconds=400)),
    ],
    ids=["poll", "timers", "smallest", "lease"],
)
def test_every_setting_leads_to_the_same_end(live: Live, settings: Settings) -> None:
    """Settings change when and how many at a time, never what happens."""
    engine = live.engine(settings).register(Order(), Shop()).start_worker()
    for number in range(5):
        engine.deciders.execute(Order, PlaceOrder(f"o-{number}", number))
    eventually(lambda: not engine.admin.backlog())
    assert [engine.deciders.state(Order, f"o-{number}").status for number in range(5)] == ["shipped"] * 5


@pytest.mark.row("D-120")
def test_the_retry_setting_counts_for_handlers_without_a_policy(place: Place) -> None:
    """`retry` of the settings bounds the attempts of every effect that has no policy of its own."""
    calls = Ledger()

    def broken(context: EffectContext, effect: object) -> None:
        calls.add(context.attempt)
        raise ValueError("no")

    engine = place.engine(Settings(retry=AT_ONCE)).register(Puppet(act), broken)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    assert calls.entries == [1, 2, 3]


def test_a_policy_that_cannot_work_is_refused() -> None:
    """Every reason is named."""
    with pytest.raises(ConfigurationError, match=r"max_attempts .*; .*jitter"):
        RetryPolicy(max_attempts=-1, jitter=2)


@pytest.mark.row("D-059")
def test_a_missing_handler_is_reported_now_and_then(place: Place) -> None:
    """Work that no live worker can do is shown, once in a while and not at every look."""
    heard: list[Happening] = []
    missing = HandlerMissingObserved(handler="puppet", waiting=1)
    engine = place.engine(Settings(missing_handler_throttle=MINUTE)).register(Puppet(act)).listen(heard.append)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(seconds=5)
    for _ in range(3):
        engine.runtime.housekeeping.missing.look()
    assert [each for each in heard if isinstance(each, HandlerMissingObserved)] == [missing]
    engine.advance(MINUTE)
    engine.runtime.housekeeping.step()
    assert [each for each in heard if isinstance(each, HandlerMissingObserved)] == [missing, missing]
    helper = place.engine().register(Puppet(act), done)
    helper.runtime.heartbeat.step()
    assert engine.runtime.housekeeping.missing.look() == []


@pytest.mark.row("D-059")
def test_operators_see_which_handlers_are_missing(place: Place) -> None:
    """A handler that no live worker has is named with the work that waits for it, until somebody has it."""
    engine = place.engine().register(Puppet(act))
    assert engine.admin.missing_handlers() == []
    since = place.clock.now()
    for key in ("p-1", "p-2"):
        engine.deciders.execute(Puppet, Do(key, "x"))
        engine.advance(MINUTE)
    assert engine.admin.missing_handlers() == [MissingHandler(handler="puppet", waiting=2, since=since)]
    place.engine().register(Puppet(act), done).runtime.heartbeat.step()
    assert engine.admin.missing_handlers() == []


@pytest.mark.parametrize(("dlq", "source", "calls"), [(True, "step", 3), (False, "compensation", 2)])
def test_a_dead_letter_says_how_many_calls_were_made(place: Place, *, dlq: bool, source: str, calls: int) -> None:
    """An operator sees how often the step, or what should undo it, was tried in vain."""

    def broken() -> None:
        raise ValueError("no")

    saga = Saga("s", dlq=dlq).step("a", broken, attempts=3).on_failure("undo a", broken, attempts=2)
    engine = place.engine().register(saga.build())
    engine.start("s")
    engine.advance(hours=1)
    (letter,) = engine.dead_letters.list()
    assert (letter.source, letter.attempts) == (source, calls)


@pytest.mark.parametrize("settings", [Settings(), Settings(ageing=2.0), Settings(ageing_enabled=False)])
def test_what_is_put_back_to_work_ages_as_the_settings_say(place: Place, settings: Settings) -> None:
    """A requeued effect stands in the queue where a new one would stand."""

    def broken(_context: EffectContext, _effect: object) -> None:
        raise Fail("no")

    engine = place.engine(settings).register(Puppet(act), broken)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    (letter,) = engine.dead_letters.list()
    engine.dead_letters.requeue(letter.id)
    (row,), _ = place.store.reader(DEFAULT_TENANT).work(engine.deciders.get(Puppet, "p-1").id)
    assert row.rank == rank_of(place.clock.now(), row.priority, ageing=settings.ageing_rate)


def test_finished_instances_are_deleted_whole_and_others_never(place: Place) -> None:
    """Deletion is for instances that have ended: all of it goes, and its key is free for a new one."""
    engine = place.engine().register(Puppet(act), done)
    for what in ("x", END):
        engine.deciders.execute(Puppet, Do("p-1", what))
    engine.deciders.execute(Puppet, Do("p-2", "x"))
    engine.drain()
    ended, running = (engine.deciders.get(Puppet, key).id for key in ("p-1", "p-2"))
    engine.instances.delete(ended)
    for identity in (ended, running):
        with pytest.raises(NotFoundError, match="finished instance"):
            engine.instances.delete(identity)
    assert engine.futures.deciders.history(Puppet, "p-1").exception() is not None
    engine.deciders.execute(Puppet, Do("p-1", "anew"))
    assert engine.deciders.state(Puppet, "p-1") == ("anew",)


@pytest.mark.row("G-16")
def test_retention_deletes_what_ended_long_ago(place: Place) -> None:
    """With `keep_finished` housekeeping removes instances that long after their end."""
    engine = place.engine(Settings(keep_finished=timedelta(hours=1))).register(Puppet())
    for key in ("p-1", "p-2"):
        engine.deciders.execute(Puppet, Do(key, END))
        engine.advance(minutes=45)
    assert [head.key for head in engine.instances.list()] == ["p-2"]


def test_tenants_do_not_see_one_another(place: Place) -> None:
    """The same type and key for two tenants are two instances, and each tenant's calls find its own only."""
    engine = place.engine().register(Counter())
    ann = Actor(id="ann", capabilities=frozenset({"execution:*"}))
    acme, bolt = engine.as_tenant("acme", actor=ann), engine.as_tenant("bolt")
    acme.deciders.execute(Counter, Add("c-1", 1))
    bolt.deciders.execute(Counter, Add("c-1", 10))
    assert acme.deciders.state(Counter, "c-1") == 1
    assert bolt.deciders.state(Counter, "c-1") == 10
    assert engine.futures.deciders.state(Counter, "c-1").exception() is not None
    assert [head.tenant for head in acme.instances.list()] == ["acme"]
    assert acme.deciders.history(Counter, "c-1")[0].actor == "ann"


class Told(Puppet):
    """Hears when an effect of it gives up."""

    type = "told"

    def effect_failed(self, effect: Act, failure: Failure) -> Do:
        return Do("p-1", "it failed")


def test_all_that_follows_stays_with_its_tenant(place: Place) -> None:
    """Results of effects, news of their failure, timers and messages reach instances of the tenant that they come from."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        if command.what != "go":
            return decision
        decision = decision.with_effect(Act("good")).with_effect(Act("bad"))
        decision = decision.with_timer_after(timedelta(hours=1), Do("p-1", "rang"))
        return decision.with_message(Message(decider="doll", command=Do("d-1", "heard")))

    def handle(context: EffectContext, effect: Act) -> Do:
        if effect.what == "bad":
            raise Fail("no luck")
        return Do("p-1", f"done for {context.tenant}")

    engine = place.engine().register(Told(choose), handle).register(Doll())
    red = engine.as_tenant("red")
    red.deciders.execute(Told, Do("p-1", "go"))
    engine.advance(hours=2)
    notes = red.deciders.state(Told, "p-1")
    assert sorted(notes) == ["done for red", "go", "it failed", "rang"]
    assert red.deciders.state(Doll, "d-1") == ("heard",)
    assert {head.definition for head in red.instances.list()} == {"told", "doll"}
    assert engine.instances.list() == []


@pytest.mark.parametrize("name", ["", "x" * 600, "\x00", "\ud800"])
def test_tenants_and_actors_have_names_that_can_be_kept(place: Place, name: str) -> None:
    """A name that no database can keep is refused when it is given."""
    engine = place.engine()
    calls: list[Callable[[], object]] = [lambda: engine.as_tenant(name), lambda: engine.as_tenant("t", actor=name)]
    for call in calls:
        with pytest.raises(PayloadError):
            call()


def test_instances_are_listed_newest_first_in_pages(place: Place) -> None:
    """A list can be narrowed by type, status and key, and goes on from the last id of the page before."""
    engine = place.engine().register(Puppet()).register(Counter())
    for number in range(5):
        place.clock.move(MINUTE)
        engine.deciders.execute(Puppet, Do(f"p-{number}", END if number % 2 else "x"))
    engine.deciders.execute(Counter, Add("c-1"))
    first = engine.instances.list(definition="puppet", limit=2)
    assert [head.key for head in first] == ["p-4", "p-3"]
    rest = engine.instances.list(definition="puppet", before=first[-1].id)
    assert [head.key for head in rest] == ["p-2", "p-1", "p-0"]
    ended = engine.instances.list(status=("completed",))
    assert [head.key for head in ended] == ["p-3", "p-1"]
    assert [head.definition for head in engine.instances.list(key="c-1")] == ["counter"]


def test_a_stopped_engine_says_so(live: Live) -> None:
    """Every call after the end is answered by the same retryable error; stopping twice does no harm."""
    engine = live.engine().register(Counter()).register(Saga("s").human("ask").build()).start_worker()
    engine.deciders.execute(Counter, Add("c-1"))
    graph = engine.definitions.data("s")
    for _ in range(2):
        engine.stop()
    calls: list[Callable[[Engine], object]] = [
        lambda each: each.deciders.execute(Counter, Add("c-1")),
        lambda each: each.deciders.submit(Counter, Add("c-1")),
        lambda each: each.deciders.state(Counter, "c-1"),
        lambda each: each.admin.backlog(),
        lambda each: each.register(Saga("s").human("ask").build()),
        lambda each: each.register(Doll()),
        lambda each: each.definitions.publish(graph),
        lambda each: each.handle("work", lambda: None),
        lambda each: each.project(_Nothing()),
    ]
    for call in calls:
        with pytest.raises(StoppedError, match="stopped"):
            call(engine)


class _Nothing:
    """A projection."""

    name = "nothing"

    def apply(self, events: object, connection: object) -> None: ...

    def clear(self, connection: object) -> None: ...


LOOKS: dict[str, Callable[[FutureEngineCalls], Reply[Any]]] = {
    "backlog": lambda calls: calls.admin.backlog(),
    "missing_handlers": lambda calls: calls.admin.missing_handlers(),
    "inbox_depth": lambda calls: calls.admin.inbox_depth(),
    "workers": lambda calls: calls.admin.workers(),
    "inbox": lambda calls: calls.inbox.list(),
    "projections": lambda calls: calls.projections.list(),
    "definitions": lambda calls: calls.definitions.get("hello"),
    "start": lambda calls: calls.start("hello"),
}


@pytest.mark.parametrize("name", LOOKS)
def test_whoever_only_looks_does_not_wait_for_those_who_operate(live: Live, name: str) -> None:
    """A dashboard is answered while an operator's work is under way, and definitions are met."""
    live.engine().register(Saga("hello").step("greet", lambda: None).build())
    engine = live.engine()
    with engine.service._at_desk:
        LOOKS[name](engine.futures).result(timeout=30)
