"""Health is a promise: whatever stops in an engine, it says so, in words, and within its bound; and what stopped goes on."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import timedelta
from itertools import count

import msgspec
import psycopg
import pytest

from standfast import Decision, EffectContext, Engine, Message, Moment, ProjectedEvent, Saga, StoreUnavailableError
from standfast.engine.commit.queue import CommitQueue
from standfast.engine.concurrency.loop import Chores, Loop
from standfast.engine.concurrency.replies import callbacks
from standfast.engine.concurrency.threads import Threads
from standfast.store.records.instances import DEFAULT_TENANT, Address, StoredEffect
from support.batching import Gate, Stand
from support.engines import QUICK, Live
from support.samples import Act, Answer, Counter, Do, Doll, Noted, Notes, Puppet, act
from support.samples import Add as AddOne
from support.schemas import migrated
from support.waiting import arrives, eventually

WATCHED = msgspec.structs.replace(
    QUICK, unhealthy_after=timedelta(seconds=0.5), threads=2, longest_projection_pause=timedelta(seconds=0.1)
)
WAITING = Saga("waiting").human("ask").build()


class Model:
    """A read model that fails while it is told to."""

    name = "model"

    def __init__(self) -> None:
        self.is_broken = False
        self.seen = 0

    def apply(self, events: Sequence[ProjectedEvent], connection: object) -> None:
        if self.is_broken:
            raise ConnectionError("the index is away")
        self.seen += len(events)

    def clear(self, connection: object) -> None:
        self.seen = 0


class Lonely(Puppet):
    """Only one of its effects is in hand at a time."""

    type = "lonely"


class Stage:
    """An engine with all its parts at work, and what keeps its handlers and deciders where they are."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.opened = threading.Event()
        self.gate = Gate()
        self._numbers = count()
        self.model = Model()
        engine = live.engine(WATCHED).register(Puppet(answering), self.handle).register(Doll(act), self.handle_async)
        engine.register(Lonely(act), self.handle, concurrency=1)
        self.engine = (
            engine.register(self.gate).register(Counter()).register(WAITING).project(self.model).start_worker()
        )
        self.awaited = self.engine.futures.run(engine.start("waiting").id).result()

    def handle(self, context: EffectContext, effect: Act) -> Do:
        """Do it: at once, unless it is to hang."""
        if effect.what == "hang":
            arrives(self.opened)
        return Do("", "done")

    async def handle_async(self, context: EffectContext, effect: Act) -> Do:
        """The same, on the event loop, which then stands still."""
        return self.handle(context, effect)

    def check(self) -> None:
        """All kinds of work are done."""
        name, engine = f"k-{next(self._numbers)}", self.engine
        for what in ("x", "timer", "message"):
            engine.futures.deciders.execute(Puppet, Do(f"{name}-{what}", what)).result(timeout=30)
        engine.futures.deciders.execute(Doll, Do(name, "x")).result(timeout=30)
        ended = engine.futures.start("waiting").result(timeout=30).id
        engine.run(ended).abort(timeout=30)
        eventually(lambda: not engine.admin.inbox_depth())
        eventually(lambda: engine.deciders.state(Puppet, f"{name}-x") == ("x", "done"))
        eventually(lambda: engine.deciders.state(Puppet, f"{name}-timer") == ("timer", "done"))
        eventually(lambda: engine.deciders.state(Puppet, f"{name}-message!") == ("done",))
        eventually(lambda: engine.deciders.state(Doll, name) == ("x", "done"))
        eventually(lambda: [each.lag for each in engine.projections.list()] == [0])


def answering(state: Notes, command: Do, moment: Moment) -> Answer:
    """Have it done; or tell another, or ring, if the command says so."""
    decision = Decision.event(Noted(command.what))
    if command.what == "message":
        return decision.with_message(Message(decider="puppet", command=Do(f"{command.workflow_id}!", "done")))
    if command.what == "timer":
        return decision.with_timer_after(timedelta(milliseconds=10), Do(command.workflow_id, "done"))
    return act(state, command, moment)


@pytest.fixture
def stage(live: Live) -> Iterator[Stage]:
    """An engine with all its parts at work."""
    stage = Stage(live)
    yield stage
    stage.opened.set()
    stage.gate.opened.set()


# -- how each kind of part can be stopped


@contextmanager
def blocked(loop: Loop) -> Iterator[None]:
    """A round of the loop does not come to its end."""
    opened, step = threading.Event(), loop.step

    def stand() -> float:
        arrives(opened)
        return step()

    loop.step = stand
    loop.wake()
    try:
        yield
    finally:
        loop.step = step
        opened.set()


@contextmanager
def poisoned(loop: Loop) -> Iterator[None]:
    """No round of the loop goes well; what it raises would end any other thread."""
    step = loop.step

    def fail() -> float:
        raise SystemExit("poison")

    loop.step = fail
    loop.wake()
    try:
        yield
    finally:
        loop.step = step
        loop.wake()


@contextmanager
def unable(chores: Chores) -> Iterator[None]:
    """A chore cannot be done."""
    is_over = threading.Event()

    def fail() -> None:
        if not is_over.is_set():
            raise SystemExit("poison")

    chores.add(fail)
    try:
        yield
    finally:
        is_over.set()


@contextmanager
def standing(stage: Stage, committer: CommitQueue) -> Iterator[None]:
    """A decider does not come to its end, on this very committer."""
    lanes, names = stage.engine.service.committer, (f"gate-{number}" for number in count())
    place = (Address(tenant=DEFAULT_TENANT, definition="gate", key=name) for name in names)
    address = next(each for each in place if lanes._lane_of(each) is committer)
    stage.gate.opened.clear()
    told = stage.engine.futures.deciders.execute(stage.gate, Stand(address.key))
    try:
        yield
    finally:
        stage.gate.opened.set()
        told.result(timeout=30)


@contextmanager
def cut_off(stage: Stage, committer: CommitQueue) -> Iterator[None]:
    """The database does not take what this committer brings."""
    committing, is_over = committer._committing, threading.Event()
    commit = committing.commit

    def fail(*arguments: object) -> object:
        if not is_over.is_set():
            raise StoreUnavailableError("the line is cut")
        return commit(*arguments)  # type: ignore[arg-type]

    committing.commit = fail  # type: ignore[method-assign,assignment]
    try:
        with standing(stage, committer):
            stage.gate.opened.set()
            yield
            is_over.set()
    finally:
        is_over.set()
        committing.commit = commit  # type: ignore[method-assign]


@contextmanager
def busy(threads: Threads) -> Iterator[None]:
    """All threads hang, and one more would be needed."""
    opened = threading.Event()
    for _ in range(threads._most + 1):
        threads.run(lambda: arrives(opened))
    try:
        yield
    finally:
        opened.set()


@contextmanager
def hanging(stage: Stage, kind: type[Puppet], calls: int) -> Iterator[None]:
    """So many calls of a handler hang, which has no limit."""
    stage.opened.clear()
    for number in range(calls):
        stage.engine.futures.deciders.execute(kind, Do(f"hanging-{number}", "hang")).result(timeout=30)
    try:
        yield
    finally:
        stage.opened.set()
        eventually(lambda: not stage.engine.runtime.worker.held())


@contextmanager
def locked(stage: Stage) -> Iterator[None]:
    """Another process stands still inside a transaction that writes."""
    url = stage.live.url
    with ExitStack() as stack:
        if url.startswith("sqlite"):
            other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
            stack.callback(other.close)
            other.execute("begin immediate")
        else:
            server = stack.enter_context(psycopg.connect(url))
            server.execute("lock table standfast.instances in exclusive mode")
        told = stage.engine.futures.deciders.execute(Counter, AddOne("c-1"))
        yield
    told.result(timeout=30)


@contextmanager
def broken(stage: Stage) -> Iterator[None]:
    """A projection fails on every event."""
    stage.model.is_broken = True
    stage.engine.futures.deciders.execute(Counter, AddOne("c-1")).result(timeout=30)
    try:
        yield
    finally:
        stage.model.is_broken = False


@contextmanager
def unheard(stage: Stage) -> Iterator[None]:
    """A definition tells people by a channel that nobody has brought, until somebody does."""
    stage.engine.register(Saga("calling").notify("call", to="ann", subject="Fire", channel="pigeons").build())
    yield
    stage.engine.channel("pigeons", lambda _notice: None)


def troubles(stage: Stage, part: object) -> list[AbstractContextManager[None]]:
    """All that can keep a part from its work."""
    if isinstance(part, Loop):
        return [blocked(part), poisoned(part)]
    if isinstance(part, Chores):
        return [unable(part)]
    if isinstance(part, CommitQueue):
        return [standing(stage, part), cut_off(stage, part)]
    name: str = part.name  # type: ignore[attr-defined]
    of_their_own: dict[str, Callable[[], AbstractContextManager[None]]] = {
        "handler threads": lambda: hanging(stage, Puppet, WATCHED.threads + 1),
        "reader threads": lambda: busy(part),  # type: ignore[arg-type]
        "player threads": lambda: busy(part),  # type: ignore[arg-type]
        "callback threads": lambda: busy(callbacks),
        "event loop": lambda: hanging(stage, Doll, 1),
        "slots": lambda: hanging(stage, Lonely, 2),
        "database": lambda: locked(stage),
        "channels": lambda: unheard(stage),
        "schema": lambda: migrated(stage.live.url),
        "projection 'model'": lambda: broken(stage),
    }
    return [of_their_own[name]()]


def test_whatever_stops_is_named_and_goes_on_afterwards(stage: Stage) -> None:
    """Each part of the engine in turn, as the engine lists them: health says so, and is good again when it is over."""
    engine = stage.engine
    eventually(lambda: engine.health().is_healthy)
    for part in engine.parts():
        # Postgres tells whoever waits for a lock of another process for long; until then the committer just takes its time.
        named = "committer" if part.name == "database" and "postgres" in stage.live.url else part.name
        for trouble in troubles(stage, part):
            with trouble:
                problems = eventually(lambda named=named: problems_with(engine, named))  # type: ignore[misc]
                is_timed = part.name not in {"channels", "schema"}  # What is so is so, however long.
                assert not is_timed or all(re.search(r"\d+ s", each) for each in problems), problems
            eventually(lambda: engine.health().is_healthy)
    stage.check()
    eventually(lambda: engine.health().is_healthy)


def test_each_engine_has_a_bound_of_its_own_for_the_threads_that_all_share(live: Live) -> None:
    """Callbacks of a whole process run on the same threads: an engine says that they hang after its own `unhealthy_after`."""
    impatient = live.engine(WATCHED)
    patient = live.engine(msgspec.structs.replace(QUICK, unhealthy_after=timedelta(hours=1)))
    with busy(callbacks):
        eventually(lambda: problems_with(impatient, "callback threads"))
        assert problems_with(patient, "callback threads") == []


def problems_with(engine: Engine, part: str) -> list[str]:
    """What health says about a part; nothing while it is well."""
    health = engine.health()
    assert health.is_healthy == (not health.problems)
    return [each for each in health.problems if each.startswith(part)]


def test_every_thread_is_one_of_a_part_that_is_watched(live: Live) -> None:
    """So that nothing which may stop is forgotten in the list of parts."""
    before = set(threading.enumerate())
    stage = Stage(live)
    stage.check()
    stage.engine.futures.deciders.execute(Counter, AddOne("c-1")).then(lambda _nothing: None).result(timeout=30)
    others = {f"{each} threads": each for each in ("handler", "reader", "player", "callback")}
    known = {f"standfast-{others.get(part.name, part.name).replace(' ', '-')}" for part in stage.engine.parts()}
    known |= {
        "standfast-loop",
        "standfast-loan",
        "standfast-readers-worker",
        "standfast-readers-scheduler",
    }  # A loan ends by itself, and the last two are those of psycopg's pool.
    threads = {thread.name for thread in set(threading.enumerate()) - before}
    assert {re.sub(r"(?<!committer)-\d+$", "", name) for name in threads} <= known


def test_an_engine_without_a_worker_tells_of_its_parts_too(live: Live) -> None:
    """A process that only takes commands has committers and readers that may stop."""
    gate = Gate()
    engine = live.engine(WATCHED).register(gate)
    eventually(lambda: engine.health().is_healthy)
    assert not engine.health().has_worker
    assert {"committer 1", "reader threads", "watch"} <= {part.name for part in engine.parts()}
    told = engine.futures.deciders.execute(gate, Stand())
    eventually(lambda: problems_with(engine, "committer"))
    assert engine.health().needs_restart
    gate.opened.set()
    told.result(timeout=30)
    eventually(lambda: engine.health().is_healthy)


def test_a_stopped_engine_is_not_healthy(live: Live) -> None:
    """Nor has it a worker any more."""
    engine = live.engine().start_worker()
    engine.stop()
    health = engine.health()
    assert (health.is_healthy, health.has_worker, health.problems) == (False, False, ["the engine is stopped"])
    assert health.needs_restart


@pytest.mark.parametrize("error", [SystemExit(), KeyboardInterrupt(), GeneratorExit()])
def test_a_committer_outlives_whatever_a_commit_raises(live: Live, error: BaseException) -> None:
    """The command that it hit fails, the next one is carried out, and nobody waits for ever."""
    engine = live.engine().register(Counter())
    commits = [lane.committer._committing for lane in engine.service.committer.lanes]
    originals = [each.commit for each in commits]

    def fail(*_: object) -> object:
        raise error

    for each in commits:
        each.commit = fail  # type: ignore[method-assign,assignment]
    assert engine.futures.deciders.execute(Counter, AddOne("c-1")).exception(timeout=30) is error
    for each, original in zip(commits, originals, strict=True):
        each.commit = original  # type: ignore[method-assign]
    engine.futures.deciders.execute(Counter, AddOne("c-1")).result(timeout=30)
    assert engine.health().is_healthy


def test_callers_are_answered_although_the_worker_cannot_take_what_was_written(stage: Stage) -> None:
    """What is written is written: the answer is good, and the effect, which nobody has in hand, is freed and claimed."""
    worker = stage.engine.runtime.worker
    run, failures = worker.run, [RuntimeError("can't start new thread")]

    def fail_once(effects: Sequence[StoredEffect]) -> None:
        if failures:
            raise failures.pop()
        run(effects)

    worker.run = fail_once  # type: ignore[method-assign]
    stage.engine.futures.deciders.execute(Puppet, Do("p-1", "x")).result(timeout=30)
    eventually(lambda: stage.engine.deciders.state(Puppet, "p-1") == ("x", "done"))
    stage.check()
