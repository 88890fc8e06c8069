"""Projections: read models that are fed with every event, once and in order, and that can never harm a workflow."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from standfast import (
    ConfigurationError,
    Engine,
    NotFoundError,
    ProjectedEvent,
    Reply,
    Saga,
    Settings,
    StoppedError,
    UnknownEventError,
)
from standfast.machine.model.events import WorkflowStarted
from standfast.store.ports.store import Store
from standfast.store.sqlite.store import SQLiteStore
from standfast.testing import ManualEngine
from support.engines import QUICK, Live, Place
from support.inside import store_of
from support.samples import Add, Added, Counter, Do, Order, Puppet, Shop
from support.samples import Place as PlaceOrder
from support.waiting import LONG_SECONDS, arrives, eventually, together


class Totals:
    """A read model in the same database: how many events there are of each type."""

    name = "totals"

    def __init__(self) -> None:
        self.is_broken = False

    def apply(self, events: Sequence[ProjectedEvent], connection: object) -> None:
        for event in events:
            connection.execute(f"insert into totals values ('{event.type}', {event.position})")  # type: ignore[attr-defined]
        if self.is_broken:
            raise ValueError("broken after its writes")

    def clear(self, connection: object) -> None:
        connection.execute("delete from totals")  # type: ignore[attr-defined]


def prepared(store: Store) -> Totals:
    """The read model with its table."""
    with store.writer().unit() as unit, unit.lend() as connection:
        connection.execute("create table totals (type text, position bigint)")  # type: ignore[attr-defined]
    return Totals()


def read(store: Store) -> list[tuple[str, int]]:
    """The read model's rows, in the order of the events."""
    with store.writer().unit() as unit, unit.lend() as connection:
        rows = connection.execute("select type, position from totals order by position").fetchall()  # type: ignore[attr-defined]
    return [(row[0], row[1]) for row in rows]


@pytest.mark.row("D-093", "G-17")
def test_a_projection_sees_every_event_once_and_in_order(place: Place) -> None:
    """The model and its checkpoint are one commit, so feeding it in pieces and by several engines adds up."""
    totals = prepared(place.store)
    for _ in range(3):
        engine = place.engine().register(Counter()).project(totals)
        for number in range(3):
            engine.deciders.execute(Counter, Add(f"c-{number}"))
        engine.drain()
    rows = read(place.store)
    assert [row[0] for row in rows] == ["Added"] * 9
    assert len({row[1] for row in rows}) == 9


@pytest.mark.row("D-093")
def test_a_failing_projection_harms_nobody(place: Place) -> None:
    """Workflows and other projections go on; nothing of the failed stretch stays; afterwards nothing is missing."""
    totals, other = prepared(place.store), Seen()
    totals.is_broken = True
    engine = place.engine().register(Order(), Shop()).project(totals).project(other)
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    engine.drain()
    assert engine.deciders.state(Order, "o-1").status == "shipped"
    assert other.types == ["Placed", "Paid", "$timer_cancelled", "Shipped"]
    assert read(place.store) == []
    totals.is_broken = False
    later = place.engine().register(Order()).project(totals)
    later.drain()
    assert [row[0] for row in read(place.store)] == ["Placed", "Paid", "$timer_cancelled", "Shipped"]


class Seen:
    """A read model in memory."""

    name = "seen"

    def __init__(self) -> None:
        self.types: list[str] = []

    def apply(self, events: Sequence[ProjectedEvent], connection: object) -> None:
        self.types += [event.type for event in events]

    def clear(self, connection: object) -> None:
        self.types.clear()


@pytest.mark.row("D-093")
def test_a_rebuild_gives_the_same_model(place: Place) -> None:
    """A projection that forgets everything and reads all events again comes to the same rows."""
    totals = prepared(place.store)
    engine = place.engine().register(Counter()).project(totals)
    for number in range(5):
        engine.deciders.execute(Counter, Add(f"c-{number}"))
    engine.drain()
    before = read(place.store)
    engine.projections.rebuild("totals")
    assert read(place.store) == []
    engine.drain()
    assert read(place.store) == before
    with pytest.raises(NotFoundError, match="projection"):
        engine.projections.rebuild("nothing")


@pytest.mark.row("D-093")
def test_two_processes_feed_one_projection_without_doubling(live: Live) -> None:
    """Whoever moves the checkpoint applies the events; while many write, none is skipped and none is seen twice."""
    engines = [live.engine().register(Counter()) for _ in range(2)]
    totals = prepared(store_of(engines[0]))
    for engine in engines:
        engine.project(totals).start_worker()

    def write(number: int) -> None:
        for step in range(15):
            engines[number % 2].deciders.execute(Counter, Add(f"c-{number}-{step % 3}"))

    together(*[partial(write, number) for number in range(4)])
    eventually(lambda: len(read(store_of(engines[0]))) >= 60)
    rows = read(store_of(engines[0]))
    assert len(rows) == len(set(rows)) == 60


@pytest.mark.row("D-040")
def test_a_reader_never_skips_an_event_that_commits_late(live: Live) -> None:
    """A transaction that began early and commits late is not overtaken: the feed waits for it."""
    engine = live.engine().register(Counter())
    engine.deciders.execute(Counter, Add("c-0"))
    feed, writer = store_of(engine).feed(), store_of(engine).writer()
    inside, gate = threading.Event(), threading.Event()

    def linger() -> None:
        with writer.unit() as unit:
            with unit.lend() as connection:
                connection.execute("create table if not exists lingering (x int)")  # type: ignore[attr-defined]
            inside.set()
            gate.wait(20)

    thread = threading.Thread(target=linger)
    thread.start()
    assert inside.wait(20)
    pending = engine.futures.deciders.execute(Counter, Add("c-1"))
    before = {event.position for event in feed.read(after=0, limit=100)}
    gate.set()
    thread.join()
    pending.result(timeout=20)
    eventually(lambda: len(feed.read(after=0, limit=100)) == 2)
    after = {event.position for event in feed.read(after=0, limit=100)}
    assert before <= after
    assert all(position > max(before, default=0) for position in after - before)


def test_a_projection_has_a_name_of_its_own(place: Place) -> None:
    """Two projections under one name would share a checkpoint."""
    engine = place.engine().project(Seen())
    with pytest.raises(ConfigurationError, match="already a projection 'seen'"):
        engine.project(Seen())


# -- what a projection gets


class Kept:
    """A read model that keeps the events."""

    name = "kept"

    def __init__(self) -> None:
        self.events: list[ProjectedEvent] = []

    def apply(self, events: Sequence[ProjectedEvent], connection: object) -> None:
        self.events += events

    def clear(self, connection: object) -> None:
        self.events.clear()


@pytest.mark.row("D-093")
def test_events_come_in_the_words_of_their_decider(place: Place) -> None:
    """Decoded, and with the definition, key and tenant of their instance, for deciders and for workflows."""
    kept = Kept()
    engine = place.engine().register(Counter()).register(Saga("s").step("work", "work").build()).project(kept)
    engine.deciders.execute(Counter, Add("c-1", 7), comment="because")
    instance = engine.as_tenant("rival", actor="ann").start("s", {"n": 1}, key="o-1").id
    engine.drain()
    first, second = kept.events[:2]
    assert (first.event, first.definition, first.key, first.tenant) == (Added(7), "counter", "c-1", "default")
    assert (first.type, first.version, first.sequence, first.comment) == ("Added", 1, 1, "because")
    assert (second.event, second.key, second.tenant, second.actor) == (
        WorkflowStarted(input={"n": 1}, requester="ann"),
        "o-1",
        "rival",
        "ann",
    )
    assert (second.definition, second.definition_version, second.instance) == ("s", "1", instance)
    assert first.data == b'{"by":7}'
    assert first.position < second.position
    assert first.at == place.clock.now()
    assert first.cause
    assert repr(first) == "ProjectedEvent(counter c-1 1: Added)"


@pytest.mark.row("D-093")
def test_events_of_unknown_deciders_are_not_decoded(place: Place) -> None:
    """A projection may pass over what belongs to other services; the engine's own events are plain data."""
    place.engine().register(Counter()).deciders.execute(Counter, Add("c-1"))
    kept = Kept()
    engine = place.engine().register(Order(), Shop()).project(kept)
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    engine.drain()
    assert (kept.events[0].definition, kept.events[0].event) == ("counter", None)
    assert [each.event for each in kept.events if each.type == "$timer_cancelled"] == [{"key": "payment"}]


class Impatient(Kept):
    """It looks at every event."""

    def apply(self, events: Sequence[ProjectedEvent], connection: object) -> None:
        for each in events:
            assert each.event is not None
        super().apply(events, connection)


@pytest.mark.row("D-088", "D-093")
def test_an_old_process_does_not_pass_over_events_of_newer_code(place: Place) -> None:
    """A projection that looks at an event which its process cannot read stands still there, for a process that can."""
    place.must_fold = False
    place.engine().register(Puppet()).deciders.execute(Puppet, Do("p-1", "x"))
    old, kept = Impatient(), Impatient()
    engine = place.engine().register(_Older()).project(old)
    engine.drain()
    (state,) = engine.projections.list()
    assert (old.events, state.lag, "does not know event 'Noted'" in state.error) == ([], 1, True)
    place.engine().register(Puppet()).project(kept).drain()
    assert [each.type for each in kept.events] == ["Noted"]
    with pytest.raises(UnknownEventError):
        assert place.engine().register(_Older()).deciders.state(_Older, "p-1")


class _Older(Counter):
    """A decider under the puppet's name that does not know its events."""

    type = "puppet"


# -- what is no projection


class Nameless:
    """A read model that forgot its name."""

    def apply(self, events: object, connection: object) -> None: ...


class Idle:
    """A read model that takes nothing in."""

    name = "idle"


class Forever(Nameless):
    """A read model that cannot forget, such as one in a place that is only ever added to."""

    def __init__(self, name: object = "forever") -> None:
        self.name = name


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        (object(), r"object object has no text `name`, .*; a projection has `name`, `apply\(events, connection\)` and"),
        (Nameless(), "Nameless .* has no text `name`, under which its checkpoint is kept"),
        (Forever(7), "Forever .* has no text `name`"),
        (Forever(""), "Forever .* has no text `name`"),
        (Forever("a\x00b"), "the name .* of a projection holds a character that cannot be printed"),
        (Idle(), r"Idle .* has no method `apply\(events, connection\)`"),
        (Seen, r"project\(Seen\(\)\)"),
    ],
)
def test_what_is_no_projection_is_refused_with_what_it_lacks(wrong: Any, remedy: str) -> None:
    """Whoever registers one learns it there, and not from a loop that fails later."""
    with ManualEngine() as engine, pytest.raises(ConfigurationError, match=remedy):
        engine.project(wrong)


def test_only_a_rebuild_needs_a_projection_to_clear(place: Place) -> None:
    """A read model that cannot forget is fed like any other; who asks for a rebuild is told what it lacks."""
    endless: Any = Forever()
    engine = place.engine().register(Counter()).project(endless)
    engine.deciders.execute(Counter, Add("c-1"))
    engine.drain()
    with pytest.raises(ConfigurationError, match=r"'forever' has no method `clear\(connection\)`"):
        engine.projections.rebuild("forever")
    (state,) = engine.projections.list()
    assert (state.lag, state.error) == (0, "")


# -- looking at projections


@pytest.mark.row("D-093")
def test_the_lag_and_the_error_of_a_projection_can_be_seen(place: Place) -> None:
    """How far it is, how much is left, why it stands still and since when; all of it goes when it goes on."""
    seen = Moody()
    engine = place.engine(Settings(projection_batch=2)).register(Counter()).project(seen)
    (new,) = engine.projections.list()
    assert (new.name, new.position, new.lag, new.updated_at, new.error) == ("moody", 0, 0, None, "")
    for _ in range(3):
        engine.deciders.execute(Counter, Add("c-1"))
    engine.drain()
    (well,) = engine.projections.list()
    assert (well.lag, well.error, well.failed_at, well.updated_at) == (0, "", None, place.clock.now())
    seen.failure = ValueError("out of paint")
    engine.deciders.execute(Counter, Add("c-1"))
    engine.drain()
    first = place.clock.now()
    place.engine().project(seen).advance(minutes=5)
    (bad,) = engine.projections.list()
    assert (bad.position, bad.lag, bad.error) == (well.position, 1, "ValueError: out of paint")
    assert (bad.failed_at, bad.updated_at) == (first, place.clock.now())
    seen.failure = None
    place.engine().project(seen).drain()
    (again,) = engine.projections.list()
    assert (again.lag, again.error, again.failed_at) == (0, "", None)


class Moody:
    """A read model that fails when it is told to."""

    name = "moody"

    def __init__(self, name: str = "moody") -> None:
        self.name = name
        self.failure: BaseException | None = None
        self.failures = 0
        self.seen = 0

    def apply(self, events: Sequence[ProjectedEvent], connection: object) -> None:
        if self.failure is not None:
            self.failures += 1
            raise self.failure
        self.seen += len(events)

    def clear(self, connection: object) -> None:
        self.seen = 0


def test_a_projection_rests_by_the_clock_of_the_engine(place: Place) -> None:
    """After a failure it is left alone for its pause, which is twice as long after the next one, in the time of the test."""
    moody = Moody()
    pauses = Settings(projection_pause=timedelta(hours=1), longest_projection_pause=timedelta(hours=3))
    engine = place.engine(pauses).register(Counter()).project(moody)
    moody.failure = ValueError("no")
    engine.deciders.execute(Counter, Add("c-1"))
    engine.drain()
    engine.advance(hours=1)
    assert moody.failures == 2
    engine.advance(hours=1).advance(minutes=59)
    assert moody.failures == 2
    moody.failure = None
    engine.advance(minutes=1)
    assert moody.seen == 1


@pytest.mark.row("D-093")
@pytest.mark.parametrize("failure", [SystemExit(3), GeneratorExit(), ValueError("no")], ids=repr)
def test_whatever_a_projection_raises_it_stands_still_alone(live: Live, failure: BaseException) -> None:
    """Other projections are fed, the loop lives, and after its pause it goes on where it was."""
    moody, steady = Moody(), Moody("steady")
    moody.failure = failure
    settings = Settings(
        projection_pause=timedelta(milliseconds=10), longest_projection_pause=timedelta(milliseconds=20)
    )
    engine = live.engine(settings).register(Counter()).project(moody).project(steady).start_worker()
    for _ in range(3):
        engine.deciders.execute(Counter, Add("c-1"))
    eventually(lambda: steady.seen == 3)
    assert moody.seen == 0
    moody.failure = None
    eventually(lambda: moody.seen >= 3)
    assert (moody.seen, steady.seen) == (3, 3)
    assert engine.health().is_healthy


@pytest.mark.row("D-093")
def test_health_names_a_projection_that_only_fails(live: Live) -> None:
    """Once it has failed for as long as a part may, and until it goes on; the others are well."""
    moody = Moody()
    moody.failure = ValueError("no index")
    settings = Settings(unhealthy_after=timedelta(seconds=1), longest_projection_pause=timedelta(milliseconds=20))
    engine = live.engine(settings).register(Counter()).project(moody).project(Moody("steady")).start_worker()
    engine.deciders.execute(Counter, Add("c-1"))
    (problem,) = eventually(lambda: [each for each in engine.health().problems if "projection '" in each])
    assert problem.startswith("projection 'moody': has not gone on for ")
    assert problem.endswith("ValueError: no index")
    moody.failure = None
    eventually(lambda: engine.health().is_healthy)


class Slow(Moody):
    """A read model whose statement the database gives up on."""

    def apply(self, events: Sequence[ProjectedEvent], connection: object) -> None:
        connection.execute("set local statement_timeout = 1")  # type: ignore[attr-defined]
        connection.execute("select pg_sleep(5)")  # type: ignore[attr-defined]


def test_a_projection_that_the_database_gives_up_on_stands_still_alone(postgres_dsn: str) -> None:
    """That a statement took too long is its own trouble, not that of the database."""
    steady = Moody("steady")
    with Engine(postgres_dsn).register(Counter()).project(Slow()).project(steady) as engine:
        engine.deciders.execute(Counter, Add("c-1"))
        eventually(lambda: steady.seen == 1)
        (slow,) = eventually(lambda: [each for each in engine.projections.list() if each.error])
        assert (slow.name, slow.lag) == ("moody", 1)
        assert "statement timeout" in slow.error
        assert engine.health().is_healthy


# -- rebuilding


@pytest.mark.row("D-093")
def test_a_rebuild_while_events_come_loses_and_doubles_nothing(live: Live) -> None:
    """It is done by the loop that feeds the projection, between two stretches."""
    engine = live.engine().register(Counter())
    totals = prepared(engine.service.store)
    engine.project(totals).start_worker()
    for number in range(300):
        engine.deciders.execute(Counter, Add(f"c-{number % 9}"))
        if number % 30 == 29:
            engine.projections.rebuild("totals")
    eventually(lambda: len(read(engine.service.store)) >= 300)
    rows = read(engine.service.store)
    assert len(rows) == len(set(rows)) == 300
    (state,) = engine.projections.list()
    assert (state.lag, state.error) == (0, "")


@pytest.mark.row("D-093")
def test_a_rebuild_by_a_process_without_a_worker(live: Live) -> None:
    """It has a connection of its own, and the loop of another process goes on from the beginning."""
    engine = live.engine().register(Counter())
    totals = prepared(engine.service.store)
    engine.project(totals).start_worker()
    other = live.engine().project(Totals())
    for number in range(100):
        engine.deciders.execute(Counter, Add(f"c-{number % 9}"))
        if number % 20 == 19:
            other.projections.rebuild("totals")
    eventually(lambda: len(read(engine.service.store)) >= 100)
    rows = read(engine.service.store)
    assert len(rows) == len(set(rows)) == 100
    with pytest.raises(NotFoundError, match="projection"):
        other.projections.rebuild("nothing")
    with pytest.raises(NotFoundError, match="projection"):
        engine.projections.rebuild("nothing")


class Stuck(Moody):
    """A read model that takes its time."""

    def __init__(self) -> None:
        super().__init__("stuck")
        self.inside, self.gate = threading.Event(), threading.Event()

    def apply(self, events: Sequence[ProjectedEvent], connection: object) -> None:
        self.inside.set()
        self.gate.wait(20)


class Endless(Moody):
    """A read model that does not come back, from one of its two methods."""

    def __init__(self, method: str) -> None:
        super().__init__("endless")
        self.inside, self.gate = threading.Event(), threading.Event()
        setattr(self, method, self.hang)

    def hang(self, *_: object) -> None:
        """Until the test opens the gate."""
        self.inside.set()
        arrives(self.gate)


@pytest.mark.parametrize("method", ["apply", "clear"])
def test_a_projection_that_hangs_keeps_nobody_from_writing(
    tmp_path: Path, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It has the only writer of a file no longer than others wait for it; what it did is undone, and it stands still alone."""
    store = SQLiteStore(str(tmp_path / "store.db"), codec="json", patience=0.3)
    endless = Endless(method)
    engine = Engine(store=store, settings=QUICK).register(Counter()).project(endless).start_worker()
    engine.deciders.execute(Counter, Add("c-1"))
    reply = engine.futures.projections.rebuild("endless")
    arrives(endless.inside)
    engine.futures.deciders.execute(Counter, Add("c-1")).result(LONG_SECONDS)
    endless.gate.set()
    if method == "clear":
        with pytest.raises(TimeoutError, match="held the file's only writer"):
            reply.result(LONG_SECONDS)
    else:
        eventually(lambda: "held the file's only writer" in caplog.text)
        reply.result(LONG_SECONDS)  # It begins anew, and goes on.
    engine.stop()
    store.close()


def test_whoever_waits_for_a_rebuild_hears_that_the_engine_was_stopped(live: Live) -> None:
    """The reply always comes."""
    stuck = Stuck()
    engine = live.engine().register(Counter()).project(stuck).start_worker()
    engine.deciders.execute(Counter, Add("c-1"))
    arrives(stuck.inside)
    reply: Reply[None] = engine.futures.projections.rebuild("stuck")
    stopping = threading.Thread(target=engine.stop)
    stopping.start()
    error = reply.exception(20)
    stuck.gate.set()
    stopping.join()
    assert isinstance(error, StoppedError)


def test_a_rebuild_that_fails_says_so(live: Live) -> None:
    """Whatever `clear` raises goes to whoever asked, and the loop goes on."""
    broken = Broken("broken")
    engine = live.engine().register(Counter()).project(broken).start_worker()
    with pytest.raises(SystemExit):
        engine.projections.rebuild("broken")
    engine.deciders.execute(Counter, Add("c-1"))
    eventually(lambda: broken.seen == 1)


class Broken(Moody):
    """A read model that cannot forget."""

    def clear(self, connection: object) -> None:
        raise SystemExit(1)


def test_nobody_is_woken_for_events_that_nobody_reads(place: Place) -> None:
    """A commit wakes the thread that feeds projections only where there is one to feed."""
    engine = place.engine().register(Counter())
    hint = engine.runtime.projecting.chores.hint
    engine.deciders.execute(Counter, Add("c-1"))
    assert not hint.is_set()

    class Reader:
        name = "reader"

        def apply(self, events: object, connection: object) -> None: ...

        def clear(self, connection: object) -> None: ...

    engine.project(Reader())
    assert hint.is_set()  # There may be events already.
    hint.clear()
    engine.deciders.execute(Counter, Add("c-1"))
    assert hint.is_set()
