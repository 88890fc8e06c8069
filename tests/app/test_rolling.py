"""Old and new code on one database: a process does what it can read, and leaves the rest alone until somebody comes who can."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from datetime import timedelta

import psycopg
import pytest

from standfast import (
    CommandError,
    Decider,
    Decision,
    EffectContext,
    Message,
    Moment,
    NotFoundError,
    RetryPolicy,
    Saga,
    UnknownEventError,
    message,
)
from standfast.engine.common.telemetry import (
    HandlerMissingObserved,
    Happening,
    HistoryUnreadable,
    WorkUnreadable,
)
from standfast.kernel.codec.codecs import JsonCodec
from standfast.kernel.codec.message_types import MessageTypeSet
from standfast.store.records.instances import SHARED_TENANT
from standfast.testing import ManualEngine
from support.engines import Live, Place
from support.samples import Act, Answer, Counter, Do, Ledger, Noted, Puppet, act
from support.waiting import LONG_SECONDS, eventually

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Warn:
    workflow_id: str


@dataclass(frozen=True)
class Warned:
    pass


@dataclass(frozen=True)
class Fax:
    what: str


@dataclass(frozen=True)
class Acted:
    workflow_id: str
    what: str


class Newer(Decider[tuple[str, ...], Do | Warn | Acted, Noted | Warned, Fax]):
    """The puppet of tomorrow: another command, another event, another effect."""

    type = "puppet"

    def initial(self) -> tuple[str, ...]:
        return ()

    def evolve(self, state: tuple[str, ...], event: Noted | Warned) -> tuple[str, ...]:
        return (*state, event.what if isinstance(event, Noted) else "warned")

    def decide(self, state: tuple[str, ...], command: Do | Warn | Acted, moment: Moment) -> Answer:
        match command:
            case Warn():
                return Decision.event(Warned())
            case Acted(_, what):
                return Decision.event(Noted(f"acted {what}"))
            case Do(key, "remind"):
                return Decision.event(Noted("set")).with_timer_after(HOUR, Warn(key))
            case Do(_, "fax"):
                return Decision.event(Noted("asked")).with_effect(Fax("hello"))
            case Do(_, what):
                return Decision.event(Noted(what))


def state(place: Place, key: str = "p-1") -> tuple[str, ...]:
    """What the newest code makes of an instance."""
    return place.engine().register(Newer()).deciders.state(Newer, key)


@pytest.mark.row("D-080", "D-085")
def test_an_old_process_leaves_timers_that_it_cannot_read(place: Place) -> None:
    """A timer whose command it does not know stays untouched, however long; a process that knows it fires it."""
    place.must_fold = False
    new, old = place.engine().register(Newer()), place.engine().register(Puppet())
    new.deciders.execute(Newer, Do("p-1", "remind"))
    old.advance(hours=5)
    assert old.dead_letters.list() == []
    assert [(each.attempts, each.error) for each in new.deciders.get(Newer, "p-1").timers] == [(0, "")]
    new.drain()
    assert state(place) == ("set", "warned")


@pytest.mark.row("D-080", "D-085")
def test_an_old_process_leaves_messages_that_it_cannot_read(place: Place) -> None:
    """Such a message waits, and those of its target behind it; other targets go on."""
    place.must_fold = False
    new, old = place.engine().register(Newer()), place.engine().register(Puppet())
    new.deciders.submit(Newer, Do("p-1", "first"))
    new.deciders.submit(Newer, Warn("p-1"))
    new.deciders.submit(Newer, Do("p-1", "last"))
    new.deciders.submit(Newer, Do("p-2", "other"))
    old.advance(hours=5)
    assert (state(place), state(place, "p-2")) == (("first",), ("other",))
    assert (old.admin.inbox_depth(), old.dead_letters.list()) == (2, [])
    new.drain()
    assert state(place) == ("first", "warned", "last")


@pytest.mark.row("D-080", "D-085")
def test_an_old_process_leaves_effects_that_it_cannot_read(place: Place) -> None:
    """Such an effect loses no attempt; a process that knows it runs it."""
    ledger = Ledger()
    new = place.engine().register(Newer())
    old = place.engine().register(Puppet(act), lambda context, effect: ledger.add("old"))
    new.deciders.execute(Newer, Do("p-1", "fax"))
    old.advance(hours=5)
    (waiting,) = new.deciders.get(Newer, "p-1").effects
    assert (waiting.attempts, waiting.error, ledger.entries) == (0, "", [])

    def fax(context: EffectContext, effect: Fax) -> None:
        ledger.add((effect, context.attempt))

    place.engine().register(Newer(), fax).drain()
    assert ledger.entries == [(Fax("hello"), 1)]


@pytest.mark.row("D-089")
def test_work_that_nobody_reads_is_reported(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """A timer, a message and an effect that a process cannot read are named, once in a while and only if they wait for long."""
    new = place.engine().register(Newer())
    new.deciders.execute(Newer, Do("p-1", "remind"))
    new.deciders.execute(Newer, Do("p-2", "fax"))
    new.deciders.submit(Newer, Warn("p-3"))
    old = place.engine().register(Puppet(act), lambda context, effect: None)
    heard: list[Happening] = []
    old.listen(heard.append)
    for wait in (timedelta(0), timedelta(minutes=1, seconds=1), HOUR):
        place.clock.move(wait)
        with caplog.at_level(logging.WARNING, "standfast"):
            assert len(old.runtime.housekeeping.unread.look()) == len(old.runtime.housekeeping.unread.look())
    told = [(each.kind, each.language, each.type) for each in heard if isinstance(each, WorkUnreadable)]
    both = [("effect", "puppet", "Fax"), ("inbox", "puppet", "Warn")]
    assert told == [*both, *both, ("timer", "puppet", "Warn")]
    assert "type='Warn' version=1" in caplog.text
    assert new.runtime.housekeeping.unread.look() == []


def unreadable(place: Place) -> None:
    """An instance whose history holds an event of newer code."""
    place.must_fold = False
    place.engine().register(Newer()).deciders.execute(Newer, Warn("p-1"))


@pytest.mark.row("D-088")
def test_a_message_to_an_unreadable_instance_waits_for_newer_code(place: Place) -> None:
    """It is given back uncounted as often as need be, and never gives up; that is said once in a while."""
    unreadable(place)
    heard: list[Happening] = []
    old = place.engine().register(Puppet())
    old.listen(heard.append)
    old.deciders.submit(Puppet, Do("p-1", "hello"))
    old.advance(minutes=10)
    assert (old.admin.inbox_depth(), old.dead_letters.list()) == (1, [])
    told = [each for each in heard if isinstance(each, HistoryUnreadable)]
    assert 9 <= len(told) <= 11, "once a minute"
    assert told[0].definition == "puppet"
    assert "does not know event 'Warned'" in told[0].error
    place.engine().register(Newer()).advance(minutes=1)
    assert state(place) == ("warned", "hello")


@pytest.mark.row("D-088")
def test_a_timer_of_an_unreadable_instance_waits_for_newer_code(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """It does not count as an attempt that this process cannot read the history."""

    def ring(state: tuple[str, ...], command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        return decision.with_timer_after(HOUR, Do("p-1", "rang")) if command.what == "set" else decision

    place.must_fold = False
    old = place.engine().register(Puppet(ring))
    old.deciders.execute(Puppet, Do("p-1", "set"))
    place.engine().register(Newer()).deciders.execute(Newer, Warn("p-1"))
    with caplog.at_level(logging.WARNING, "standfast"):
        old.advance(hours=1, minutes=10)
    assert old.dead_letters.list() == []
    assert 9 <= caplog.text.count("work_left_to_newer_code definition='puppet'") <= 11
    place.engine().register(Newer()).advance(minutes=1)
    assert state(place) == ("set", "warned", "rang")


@pytest.mark.row("D-088")
@pytest.mark.parametrize("once", [False, True])
def test_what_a_handler_did_is_handed_on_to_newer_code(place: Place, *, once: bool) -> None:
    """Its instance became unreadable while it ran: its result is kept for a process that can read it, and it is not called again."""
    place.must_fold = False
    ledger = Ledger()

    def choose(state: tuple[str, ...], command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        return decision.with_effect(Act("x"), once=once) if command.what == "go" else decision

    def work(context: EffectContext, effect: Act) -> Do:
        ledger.add(context.attempt)
        place.engine().register(Newer()).deciders.execute(Newer, Warn("p-1"))
        return Do("p-1", "worked")

    old = place.engine().register(Puppet(choose), work)
    old.deciders.execute(Puppet, Do("p-1", "go"))
    old.advance(minutes=1)
    assert (ledger.entries, old.dead_letters.list()) == ([1], [])
    place.engine().register(Newer()).advance(minutes=1)
    assert state(place) == ("go", "warned", "worked")


@pytest.mark.row("D-088")
def test_a_direct_call_says_that_the_history_cannot_be_read(place: Place) -> None:
    """Whoever waits for an answer gets one."""
    unreadable(place)
    with pytest.raises(UnknownEventError):
        place.engine().register(Puppet()).deciders.execute(Puppet, Do("p-1", "x"))


# -- sagas that a process has never met


def slow_saga(name: str = "slow") -> Saga:
    """A saga that waits for an hour and then calls a handler."""
    return Saga(name).wait("rest", HOUR).step("work", "work")


def test_a_worker_fires_timers_of_sagas_that_it_has_not_met(place: Place) -> None:
    """A process that has only handlers runs every published saga, from its first timer on."""
    instance = place.engine().register(slow_saga().build()).start("slow").id
    calls = Ledger()
    worker = place.engine().handle("work", lambda ctx: calls.add(ctx.workflow))
    worker.advance(hours=2)
    assert (worker.run(instance).describe().status, calls.entries) == ("completed", ["slow"])


def test_a_worker_delivers_messages_to_sagas_that_it_has_not_met(place: Place) -> None:
    """The end of a child is told to its parent by whoever is there."""
    starter = place.engine().register(Saga("child").step("work", "work").build())
    starter.register(Saga("parent").call("begin", "child").build())
    instance = starter.start("parent").id
    worker = place.engine().handle("work", lambda ctx: None)
    worker.drain()
    assert worker.run(instance).describe().status == "completed"


def test_an_instance_of_an_unmet_saga_hears_that_its_handler_is_missing(place: Place) -> None:
    """Whoever looks for missing handlers tells every instance, not only those of definitions that it knows."""
    instance = place.engine().register(Saga("fax").step("send", "fax").build()).start("fax").id
    watcher = place.engine()
    heard: list[Happening] = []
    watcher.listen(heard.append)
    place.clock.move(HOUR)
    watcher.runtime.housekeeping.step()
    assert HandlerMissingObserved(handler="fax", waiting=1) in heard
    assert "step_skipped_missing_handler" in [each.event_type for each in watcher.run(instance).history()]


def test_a_graph_of_newer_code_is_left_to_it(place: Place) -> None:
    """A definition in a form that this code does not know holds nothing up, and none of its work gives up."""
    starter = place.engine().register(slow_saga("next").build()).register(slow_saga("plain").build())
    newer, plain = starter.start("next").id, starter.start("plain").id
    newest = b'{"name": "next", "ir_version": 99}'
    stored = place.store.definitions().get(SHARED_TENANT, "next", "1")
    assert stored is not None
    place.must_fold = False
    _rewrite(place, newest)
    worker = place.engine().handle("work", lambda ctx: None)
    worker.advance(hours=1, minutes=1)
    assert worker.run(plain).describe().status == "completed"
    assert worker.dead_letters.list() == []
    assert [each.event_type for each in worker.run(newer).history()][:2] == ["workflow_started", "step_started"]
    _rewrite(place, stored.compiled)
    worker.advance(minutes=1)
    assert worker.run(newer).describe().status == "completed"


def _rewrite(place: Place, compiled: bytes) -> None:
    """Put another graph in the place of one, which only a test can do."""
    with place.store.writer().unit() as unit, unit.lend() as connection:
        run = connection.execute  # type: ignore[attr-defined]
        if place.url.startswith("postgresql"):
            run("alter table standfast.definitions disable trigger definitions_immutable")
            run("update standfast.definitions set compiled = %s where name = 'next'", [compiled])
            run("alter table standfast.definitions enable trigger definitions_immutable")
        else:
            (text,) = run("select sql from sqlite_master where name = 'definitions_immutable'").fetchone()
            run("drop trigger definitions_immutable")
            run("update definitions set compiled = ? where name = 'next'", [compiled])
            run(text)


@pytest.mark.parametrize("role", ["standfast_engine", "standfast_tenant"])
def test_a_command_from_sql_reaches_a_saga(postgres_dsn: str, role: str) -> None:
    """A definition that is published is a graph, also for a role that sees one tenant only; a process that never met it does it."""
    starter = ManualEngine(postgres_dsn).register(Saga("asking").wait_for("answer", "said").build())
    instance = starter.start("asking").id
    with psycopg.connect(postgres_dsn) as connection:
        connection.execute(f"set role {role}")
        connection.execute("set standfast.tenant = 'default'")
        connection.execute(
            "select standfast.submit('asking', 'SendSignal', '{\"name\": \"said\"}', instance => %s)", [instance]
        )
    worker = ManualEngine(postgres_dsn, seed=7)
    worker.drain()
    assert worker.run(instance).describe().status == "completed"
    for engine in (worker, starter):
        engine.stop()


# -- deciders of other services


@message(name="Add")
@dataclass(frozen=True)
class TheirAdd:
    """The command of a decider whose class is elsewhere."""

    workflow_id: str
    by: int


def send(state: tuple[str, ...], command: Do, moment: Moment) -> Answer:
    """Tell a counter that lives in another service."""
    key = "" if command.what == "nobody" else "c-1"
    return Decision.event(Noted(command.what)).with_message(
        Message(decider="counter", key=key, command=TheirAdd("c-1", 5), elsewhere=command.what != "here")
    )


def test_a_message_can_go_to_a_decider_of_another_service(place: Place) -> None:
    """The sender needs no class of it, only the name and the form of the command; it waits for a process that has the decider."""
    sender = place.engine().register(Puppet(send))
    sender.deciders.execute(Puppet, Do("p-1", "tell"))
    sender.advance(hours=1)
    assert (sender.admin.inbox_depth(), sender.dead_letters.list()) == (1, [])
    other = place.engine().register(Counter())
    other.drain()
    assert other.deciders.state(Counter, "c-1") == 5


def test_a_message_to_another_service_names_its_target(place: Place) -> None:
    """Without the class nobody can ask the command whom it is for."""
    sender = place.engine().register(Puppet(send))
    with pytest.raises(CommandError, match="must name its target"):
        sender.deciders.execute(Puppet, Do("p-1", "nobody"))
    with pytest.raises(NotFoundError, match="no decider or workflow 'counter'"):
        sender.deciders.execute(Puppet, Do("p-1", "here"))


# -- which words can be read


def test_older_words_can_be_read_where_upcasters_lead_on() -> None:
    """A chain of upcasters makes all its versions readable; one with a gap only those behind the gap."""
    upcasters = {("Noted", 1): dict, ("Noted", 3): dict}
    noted: type = message(name="Noted", version=4)(type("Noted", (), {}))
    words = MessageTypeSet([noted], kind="event", decider="d", codec=JsonCodec(), upcasters=upcasters)
    assert words.readable() == {("Noted", 3), ("Noted", 4)}


def test_a_definition_is_met_while_others_wait_for_the_database(live: Live) -> None:
    """A committer that meets a definition inside its transaction waits for nobody who waits for that transaction."""
    live.engine().register(Saga("unmet").step("work", "work").build())
    engine = live.engine().register(Puppet())
    met: list[str] = []

    def meet() -> None:
        with engine.service.store.writer().unit() as unit:
            unit.accept([], engine.service.shared.clock.now())
            waiting = engine.futures.deciders.submit(Puppet, Do("p-1", "x"))
            taken = engine.service.committer.lanes[0].committer._acceptances
            eventually(lambda: waiting.done() or not taken.waiting)
            met.append(engine.registry.get("default", "unmet").type)
        waiting.result(LONG_SECONDS)

    thread = threading.Thread(target=meet, daemon=True)
    thread.start()
    thread.join(LONG_SECONDS)
    assert met == ["unmet"]


@pytest.mark.row("D-088")
def test_what_a_transactional_handler_did_is_kept_and_handed_on(place: Place) -> None:
    """Its instance cannot be read here: what the handler wrote stands with its answer, once, and newer code decides on that."""
    place.must_fold = False
    heard: list[Happening] = []
    with place.store.writer().unit() as unit, unit.lend() as connection:
        connection.execute("create table ledger (attempt integer)")  # type: ignore[attr-defined]

    def work(context: EffectContext, effect: Act) -> Do:
        context.connection.execute(f"insert into ledger values ({context.attempt})")
        return Do("p-1", "worked")

    def choose(state: tuple[str, ...], command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        return decision.with_effect(Act("x"), transactional=True) if command.what == "go" else decision

    old = place.engine().register(Puppet(choose), work).listen(heard.append)
    old.deciders.execute(Puppet, Do("p-1", "go"))
    place.engine().register(Newer()).deciders.execute(Newer, Warn("p-1"))
    old.advance(minutes=1)
    newer = place.engine().register(Newer())
    assert newer.deciders.get(Newer, "p-1").effects == []
    assert (newer.admin.inbox_depth(), old.dead_letters.list()) == (1, [])
    assert any(isinstance(each, HistoryUnreadable) for each in heard)
    newer.advance(minutes=1)
    assert state(place) == ("go", "warned", "worked")
    with place.store.writer().unit() as unit, unit.lend() as connection:
        assert [tuple(row) for row in connection.execute("select attempt from ledger")] == [(1,)]  # type: ignore[attr-defined]


@pytest.mark.row("D-088")
@pytest.mark.parametrize("answer", ["no command", Do("p-1", "x" * 2_000_000)], ids=["no command", "too large"])
def test_an_answer_that_cannot_be_handed_on_undoes_a_transactional_call(place: Place, answer: object) -> None:
    """What the handler wrote goes with the answer that nobody could take, and the effect gives up as anywhere else."""
    place.must_fold = False
    calls = Ledger()

    def choose(state: tuple[str, ...], command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted(command.what)).with_effect(Act("x"), transactional=True)

    def work(context: EffectContext, effect: Act) -> object:
        calls.add(context.attempt)
        return answer

    old = place.engine().register(Puppet(choose), work, retry=RetryPolicy(max_attempts=2, delay=timedelta(0)))  # type: ignore[arg-type]
    old.deciders.execute(Puppet, Do("p-1", "go"))
    place.engine().register(Newer()).deciders.execute(Newer, Warn("p-1"))
    old.drain()
    assert (calls.entries, len(old.dead_letters.list()), old.admin.inbox_depth()) == ([1], 1, 0)


@pytest.mark.parametrize(
    ("answer", "attempts"), [("no command", [1]), (UnknownEventError(decider="d", event_type="e", version=1), [1, 2])]
)
def test_what_a_handler_itself_does_wrong_counts(place: Place, answer: object, attempts: list[int]) -> None:
    """An answer that is no command, which is final, and an error of the handler's own calls, are failures of the call."""
    place.must_fold = False
    calls = Ledger()

    def work(context: EffectContext, effect: Act) -> object:
        calls.add(context.attempt)
        if isinstance(answer, Exception):
            raise answer
        place.engine().register(Newer()).deciders.execute(Newer, Warn("p-1"))
        return answer

    old = place.engine().register(Puppet(act), work, retry=RetryPolicy(max_attempts=2, delay=timedelta(0)))  # type: ignore[arg-type]
    old.deciders.execute(Puppet, Do("p-1", "go"))
    old.drain()
    assert calls.entries == attempts
    assert len(old.dead_letters.list()) == 1
