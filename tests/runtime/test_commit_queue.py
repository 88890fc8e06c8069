"""The group committer: one transaction for what is waiting, every caller answered once, nobody harmed by a neighbour."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from queue import SimpleQueue
from typing import Any

import msgspec
import psycopg
import pytest

from standfast import (
    ConflictError,
    Decider,
    Decision,
    Engine,
    Moment,
    RejectedError,
    Rejection,
    RetryPolicy,
    ReusedIdError,
    Settings,
    StoppedError,
)
from standfast.engine.commit.batch import CommandBatch
from standfast.engine.commit.submission import Submission
from standfast.engine.common.handlers import EffectContext
from standfast.engine.common.telemetry import CommandRefused, Committed, Happening
from standfast.errors import StoreError, StoreUnavailableError
from standfast.kernel.ids import InstanceId
from standfast.store.ports.store import LostRaceError
from standfast.store.records.instances import Address, Claim, InstanceChange, Wanted
from support.batching import ONE_COMMITTER, Batching
from support.engines import QUICK, Live, Place
from support.samples import Act, Add, Answer, Counter, Do, Ledger, Noted, Notes, Puppet, act, note
from support.waiting import eventually, together


def test_what_is_waiting_is_one_transaction(live: Live) -> None:
    """Commands of many instances and many of one instance share a commit, and each instance keeps their order."""
    engine = live.engine(ONE_COMMITTER).register(Puppet())
    batching = Batching(engine)
    with batching.one():
        replies = [engine.futures.deciders.execute(Puppet, Do(f"p-{step % 3}", str(step))) for step in range(30)]
    for reply in replies:
        reply.result(timeout=30)
    assert batching.sizes == [1, 30]
    for number in range(3):
        assert engine.deciders.state(Puppet, f"p-{number}") == tuple(map(str, range(number, 30, 3)))


@pytest.mark.row("E-496")
def test_a_batch_is_bounded(live: Live) -> None:
    """`batch_limit` is the most that share a transaction."""
    engine = live.engine(msgspec.structs.replace(QUICK, committers=1, batch_limit=7)).register(Counter())
    batching = Batching(engine)
    with batching.one():
        replies = [engine.futures.deciders.execute(Counter, Add(f"c-{number}")) for number in range(20)]
    for reply in replies:
        reply.result(timeout=30)
    assert batching.sizes == [1, 7, 7, 6]


def test_a_repeated_command_in_one_batch_counts_once(live: Live) -> None:
    """The second command with the same id in the same transaction is answered like the first, and not even decided."""
    decided: list[str] = []

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decided.append(command.what)
        return Decision.event(Noted(command.what))

    engine = live.engine(ONE_COMMITTER).register(Puppet(choose))
    batching = Batching(engine)
    with batching.one():
        replies = [engine.futures.deciders.execute(Puppet, Do("p-1", "x"), command_id="k") for _ in range(3)]
        replies.append(engine.futures.deciders.execute(Puppet, Do("p-1", "y")))
    for reply in replies:
        reply.result(timeout=30)
    assert (engine.deciders.state(Puppet, "p-1"), decided) == (("x", "y"), ["x", "y"])
    assert batching.sizes == [1, 4]


def test_an_id_stands_for_one_command_in_a_batch_too(live: Live) -> None:
    """Two commands with one id in one transaction: the first is carried out, the other refused."""
    engine = live.engine(ONE_COMMITTER).register(Counter())
    batching = Batching(engine)
    with batching.one():
        replies = [engine.futures.deciders.execute(Counter, Add("c-1", by), command_id="k") for by in (1, 2, 1)]
    assert [type(reply.exception(30)) for reply in replies] == [type(None), ReusedIdError, type(None)]
    assert engine.deciders.state(Counter, "c-1") == 1


POISON = "poison"


def poisoned(live: Live) -> None:
    """Have the database refuse whatever comes with this command id: no check of the engine's can foresee it."""
    if live.url.startswith("sqlite"):
        connection = sqlite3.connect(live.url.removeprefix("sqlite:///"), isolation_level=None)
        connection.execute(
            f"create trigger stop before insert on receipts when new.key = '{POISON}' begin select raise(abort, 'no'); end"
        )
        connection.close()
        return
    with psycopg.connect(live.url, autocommit=True) as server:
        server.execute(
            f"create trigger stop before insert on standfast.receipts for each row when (new.key = '{POISON}') "
            "execute function standfast.refuse('HF999', 'no')"
        )


@pytest.mark.parametrize("place", [0, 4, 8])
def test_a_command_that_the_database_refuses_fails_alone(live: Live, place: int) -> None:
    """One command spoils the transaction of nine: it is found out, and the other eight are carried out, once and in order."""
    engine = live.engine(ONE_COMMITTER).register(Puppet())
    batching = Batching(engine)
    poisoned(live)
    with batching.one():
        replies = [
            engine.futures.deciders.execute(
                Puppet, Do(f"p-{number % 3}", str(number)), command_id=POISON if number == place else ""
            )
            for number in range(9)
        ]
    errors = {number: reply.exception(timeout=30) for number, reply in enumerate(replies)}
    assert {number: type(error) for number, error in errors.items() if error is not None} == {place: StoreError}
    assert 9 in batching.sizes
    for key in range(3):
        kept = tuple(str(number) for number in range(key, 9, 3) if number != place)
        assert engine.deciders.state(Puppet, f"p-{key}") == kept


class Heap(Decider[list[str], Do, Noted, None]):
    """Its state is changed in place."""

    type = "heap"

    def initial(self) -> list[str]:
        return []

    def evolve(self, state: list[str], event: Noted) -> list[str]:
        state.append(event.what)
        return state

    def decide(self, state: list[str], command: Do, moment: Moment) -> Decision:
        return Decision.event(Noted(str(len(state)) if command.what == "how many" else command.what))


def test_what_could_not_be_written_is_forgotten(live: Live) -> None:
    """A commit that failed leaves no trace in the memory either: the next command is decided on what is stored."""
    engine = live.engine(ONE_COMMITTER).register(Heap())
    engine.deciders.execute(Heap, Do("h-1", "a"))
    poisoned(live)
    assert isinstance(
        engine.futures.deciders.execute(Heap, Do("h-1", "b"), command_id=POISON).exception(timeout=30), StoreError
    )
    engine.futures.deciders.execute(Heap, Do("h-1", "how many")).result(timeout=30)
    assert engine.deciders.state(Heap, "h-1") == ["a", "1"]


def test_a_command_does_not_overtake_one_that_is_looked_at_again(live: Live) -> None:
    """A refusal is checked on the stored state before what came behind it is carried out."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what == "use" and "open" not in state:
            return Rejection(code="closed", message="open it first")
        return note(state, command, moment)

    engine = live.engine(ONE_COMMITTER).register(Puppet(choose))
    batching = Batching(engine)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    with batching.one():
        use, opened = (
            engine.futures.deciders.execute(Puppet, Do("p-1", "use")),
            engine.futures.deciders.execute(Puppet, Do("p-1", "open")),
        )
    assert isinstance(use.exception(timeout=30), RejectedError)
    opened.result(timeout=30)
    assert engine.deciders.state(Puppet, "p-1") == ("x", "open")


def test_rows_are_written_in_the_order_of_their_ids(live: Live) -> None:
    """Two committers that write the same instances cannot wait for one another: both begin with the same one."""
    engine = live.engine(ONE_COMMITTER).register(Counter())
    batching = Batching(engine)
    for number in range(6):
        engine.deciders.execute(Counter, Add(f"c-{number}"))
    found = sorted((head for head in engine.instances.list() if head.definition == "counter"), key=lambda head: head.id)
    committing = engine.service.committer.lanes[0].committer._committing
    written: list[list[InstanceId]] = []
    write = committing._writer.write

    def noted(changes: Sequence[InstanceChange], **rest: Any) -> None:
        written.append([change.header.id for change in changes])
        write(changes, **rest)

    committing._writer.write = noted  # type: ignore[method-assign]
    with batching.one():
        replies = [engine.futures.deciders.execute(Counter, Add(head.key)) for head in reversed(found)]
    for reply in replies:
        reply.result(timeout=30)
    assert [head.id for head in found] in written


def test_the_result_of_an_effect_that_was_withdrawn_in_the_same_batch_counts_for_nothing(place: Place) -> None:
    """Whoever is first in a batch decides: what came back for an effect that nobody wants any more leads to nothing."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        if command.what == "drop":
            return msgspec.structs.replace(decision, withdrawn_effects=(0,))
        return decision.with_effect(Act("x")) if command.what == "ask" else decision

    engine = place.engine().register(Puppet(choose), lambda context, effect: None)
    engine.deciders.execute(Puppet, Do("p-1", "ask"))
    engine.runtime.heartbeat.step()
    (effect,) = engine.runtime.intake.claim([Wanted("puppet", 1)], 1)
    where = Address(tenant="default", definition="puppet", key="p-1")
    dropped, returned = (
        Submission(address=where, command=Do("p-1", what), cause=what, claim=claim, settled=lambda *_answer: None)
        for what, claim in (("drop", None), ("done", effect.claim))
    )
    batch = engine.service.committer.lanes[0].committer._committing.commit([dropped, returned], [])
    told = [(each.cause, outcome and outcome.ignored, error) for each, outcome, error in batch.answers]
    assert told == [("drop", "", None), ("done", "the claim is void", None)]
    assert engine.deciders.state(Puppet, "p-1") == ("ask", "drop")
    assert engine.admin.backlog() == []


@pytest.mark.parametrize("losses", [7, 8])
def test_a_race_may_be_lost_several_times(place: Place, losses: int) -> None:
    """Each round somebody else has won; after eight of them the caller is told, and nothing of his was written."""
    first, second = (place.engine().register(Counter()) for _ in range(2))
    first.deciders.execute(Counter, Add("c-1"))
    second.deciders.execute(Counter, Add("c-1"))  # From here on what the first one remembers is outdated.
    committing = first.service.committer.lanes[0].committer._committing
    locked, left = committing._locked, [losses]

    def losing(submissions: Sequence[Submission]) -> CommandBatch:
        left[0] -= 1
        if left[0] >= 0:
            raise LostRaceError("an instance has moved on")
        return locked(submissions)

    committing._locked = losing  # type: ignore[method-assign]
    error = first.futures.deciders.execute(Counter, Add("c-1")).exception()
    assert isinstance(error, ConflictError) is (losses == 8)
    assert second.deciders.state(Counter, "c-1") == (2 if error else 3)


def test_a_lost_race_is_decided_again_on_the_new_state(live: Live) -> None:
    """A commit on an outdated state is undone, and every command of the batch is carried out on what is there now."""
    first, second = live.engine(ONE_COMMITTER).register(Counter()), live.engine().register(Counter())
    first.deciders.execute(Counter, Add("c-1"))
    second.deciders.execute(Counter, Add("c-1"))
    batching = Batching(first)
    with batching.one():
        replies = [first.futures.deciders.execute(Counter, Add(f"c-{number}")) for number in (1, 2, 1, 3)]
    for reply in replies:
        reply.result(timeout=30)
    assert [first.deciders.state(Counter, f"c-{number}") for number in (1, 2, 3)] == [4, 1, 1]


def test_work_that_ended_is_used_up_although_its_batch_lost_a_race(live: Live) -> None:
    """An effect that ended without a command shares a batch with a loser, and is gone all the same."""
    ended = Ledger()
    worker = (
        live.engine(ONE_COMMITTER).register(Puppet(act), lambda context, effect: ended.add(effect)).register(Counter())
    )
    batching = Batching(worker)
    worker.start_worker()
    rival = live.engine().register(Counter())
    worker.deciders.execute(Counter, Add("c-1"))
    worker.deciders.execute(Puppet, Do("p-0", "first"))
    eventually(lambda: not worker.admin.backlog())
    with batching.one():
        rival.deciders.execute(Counter, Add("c-1"))
        lost = worker.futures.deciders.execute(Counter, Add("c-1"))
        finished = worker.runtime.worker
        rival_effect(live, "p-1")
        eventually(lambda: len(ended.entries) == 2)
        eventually(lambda: not finished.held())
    lost.result(timeout=30)
    eventually(lambda: not worker.admin.backlog(), within=10)


def rival_effect(live: Live, key: str) -> None:
    """Have another process ask for an effect."""
    engine = live.engine().register(Puppet(act))
    engine.deciders.execute(Puppet, Do(key, "second"))


def test_refusals_decided_on_an_old_state_are_checked(live: Live) -> None:
    """A refusal that memory suggests is decided again on what is stored before the caller hears of it."""

    def choose(state: Notes, command: Do, moment: object) -> object:
        if command.what == "use" and "open" not in state:
            raise ValueError("closed")
        return note(state, command, moment)  # type: ignore[arg-type]

    first, second = (live.engine().register(Puppet(choose)) for _ in range(2))  # type: ignore[arg-type]
    first.deciders.execute(Puppet, Do("p-1", "x"))
    second.deciders.execute(Puppet, Do("p-1", "open"))
    first.futures.deciders.execute(Puppet, Do("p-1", "use")).result(timeout=30)
    assert second.deciders.state(Puppet, "p-1") == ("x", "open", "use")


def test_every_caller_is_answered_when_the_engine_stops(live: Live) -> None:
    """While many call, the engine stops: each call ends, with success or with StoppedError, and successes are stored."""
    engine = live.engine().register(Counter())
    counts, begun = Ledger(), threading.Event()

    def call() -> None:
        while True:
            error = engine.futures.deciders.execute(Counter, Add("c-1")).exception(timeout=30)
            if error is not None:
                assert isinstance(error, StoppedError)
                return
            counts.add("done")
            begun.set()

    def stop() -> None:
        begun.wait(20)
        engine.stop()

    together(*[call] * 8, stop)
    assert live.engine().register(Counter()).deciders.state(Counter, "c-1") == len(counts.entries)


class LateQueue(SimpleQueue[Any]):
    """A queue into which somebody puts a last thing just after the committer found it empty."""

    last: Submission | None = None

    def empty(self) -> bool:
        """It is; and then it is not."""
        if self.last is not None:
            self.put(self.last)
            self.last = None
        return True


def test_whoever_calls_at_the_moment_of_the_end_is_answered(place: Place) -> None:
    """What comes between the committer's last look and its end is refused: nobody waits for ever."""
    answers: list[BaseException | None] = []
    queue = LateQueue()
    queue.last = Submission(
        address=Address(tenant="default", definition="counter", key="c-1"),
        command=Add("c-1"),
        cause="late",
        settled=lambda _outcome, error: answers.append(error),
    )
    committer = place.engine().register(Counter()).service.committer.lanes[0].committer
    committer._queue, committer._is_stopped = queue, True
    committer._run()
    assert [type(answer) for answer in answers] == [StoppedError]


def test_a_caller_that_fails_on_its_answer_harms_nobody(place: Place) -> None:
    """What a callback raises is its own trouble: the next command is carried out."""
    engine = place.engine().register(Counter())

    def failing() -> None:
        raise ValueError("in a callback")

    reply = engine.futures.deciders.execute(Counter, Add("c-1"))
    with pytest.raises(ValueError, match="callback"):
        reply.when_done(failing)
    engine.deciders.execute(Counter, Add("c-1"))
    assert engine.deciders.state(Counter, "c-1") == 2


def test_a_callback_that_raises_does_not_stop_the_committer(live: Live) -> None:
    """On the committer's own thread an exception of a callback is logged, and its neighbours are told."""
    engine = live.engine(ONE_COMMITTER).register(Counter())
    batching = Batching(engine)

    def failing() -> None:
        raise ValueError("in a callback")

    with batching.one():
        first = engine.futures.deciders.execute(Counter, Add("c-1"))
        first.when_done(failing)
        second = engine.futures.deciders.execute(Counter, Add("c-1"))
    assert second.result(timeout=30) is None
    assert engine.futures.deciders.execute(Counter, Add("c-1")).exception(timeout=30) is None


def test_commits_and_refusals_are_told_to_listeners(place: Place) -> None:
    """Telemetry hears how much each commit carried out, and what was refused; a listener that fails is no harm."""
    heard: list[Happening] = []

    def broken(happening: Happening) -> None:
        raise ValueError("deaf")

    engine = place.engine().register(Counter()).register(Puppet(lambda s, c, m: None))  # type: ignore[arg-type,return-value]
    engine.listen(broken).listen(heard.append)
    engine.deciders.execute(Counter, Add("c-1"))
    assert engine.futures.deciders.execute(Puppet, Do("p-1")).exception() is not None
    committed = [each for each in heard if isinstance(each, Committed)]
    assert [(each.commands, each.instances, each.events) for each in committed] == [(1, 1, 1), (1, 0, 0)]
    (refused,) = [each for each in heard if isinstance(each, CommandRefused)]
    assert (refused.definition, refused.command, refused.code) == ("puppet", "Do", "decider_failed")


@pytest.mark.parametrize("way", ["execute", "submit", "effect", "transactional"])
def test_a_rejected_command_is_told_with_its_code(place: Place, way: str) -> None:
    """Whichever way it came, listeners hear once which command was rejected, by the code that its decider gave."""
    heard: list[Happening] = []

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what == "no":
            return Rejection(code="out_of_turn", message="not now")
        return Decision.event(Noted(command.what)).with_effect(Act("x"), transactional=way == "transactional")

    engine = place.engine(Settings(retry=RetryPolicy(max_attempts=1)))
    engine.register(Puppet(choose), lambda context, effect: Do("p-1", "no")).listen(heard.append)
    if way == "execute":
        assert engine.futures.deciders.execute(Puppet, Do("p-1", "no")).exception() is not None
    elif way == "submit":
        engine.deciders.submit(Puppet, Do("p-1", "no"))
    else:
        engine.deciders.execute(Puppet, Do("p-1", "go"))
    engine.drain()
    (refused,) = [each for each in heard if isinstance(each, CommandRefused)]
    assert (refused.definition, refused.command, refused.code) == ("puppet", "Do", "out_of_turn")
    assert "not now" in refused.error


def test_contenders_do_not_give_up_on_one_another(live: Live) -> None:
    """Four processes hammer one instance with groups of commands: nobody is told of a conflict, and nothing is lost."""
    engines = [live.engine().register(Counter()) for _ in range(4)]

    def hammer(engine: Engine) -> None:
        for _ in range(5):
            replies = [engine.futures.deciders.execute(Counter, Add("c-1")) for _ in range(5)]
            for reply in replies:
                assert not isinstance(reply.exception(timeout=60), ConflictError)

    together(*[partial(hammer, engine) for engine in engines])
    assert engines[0].deciders.state(Counter, "c-1") == 100


def test_an_instance_that_was_deleted_is_not_remembered(place: Place) -> None:
    """After a deletion by another process the key belongs to a new instance, whatever this process remembers."""
    first, second = (place.engine().register(Puppet()) for _ in range(2))
    first.deciders.execute(Puppet, Do("p-1", "end"))
    second.instances.delete(second.deciders.get(Puppet, "p-1").id)
    first.deciders.execute(Puppet, Do("p-1", "anew"))
    assert second.deciders.state(Puppet, "p-1") == ("anew",)


class Commits:
    """Notes on which thread each commit is carried out, and may spoil one."""

    def __init__(self, engine: Engine) -> None:
        self.threads: list[str] = []
        self.spoils = ""
        """Name of a thread whose next commit gets no answer."""
        self._committer = engine.service.committer.lanes[0].committer
        self._commit = self._committer._committing.commit
        self._committer._committing.commit = self._noted  # type: ignore[method-assign]

    async def answer(self, context: EffectContext, effect: Act) -> Do:
        """Be done when the commit that asked for it is, or never."""
        if effect.what == "slow":
            await asyncio.Event().wait()
        await asyncio.to_thread(self._at_rest)
        return Do(f"p-{effect.what}", f"done {effect.what}")

    def _at_rest(self) -> None:
        with self._committer._turn:
            pass

    def _noted(self, submissions: Sequence[Submission], finished: Sequence[Claim]) -> CommandBatch:
        name = threading.current_thread().name
        self.threads.append(name)
        batch = self._commit(submissions, finished)
        if name == self.spoils:
            self.spoils = ""
            raise StoreUnavailableError("the answer got lost")
        return batch


LOOP, COMMITTER = "standfast-loop", "standfast-committer-1"


def committing(live: Live) -> tuple[Engine, Commits]:
    """A worker with one committer."""
    engine = live.engine(ONE_COMMITTER)
    commits = Commits(engine)
    return engine.register(Puppet(act), commits.answer).start_worker(), commits


def test_a_lone_result_is_committed_by_the_thread_that_brings_it(live: Live) -> None:
    """With nobody else in hand; a thread that others need hands it in."""
    engine, commits = committing(live)
    engine.deciders.execute(Puppet, Do("p-one", "one"))
    eventually(lambda: engine.deciders.state(Puppet, "p-one") == ("one", "done one"))
    assert commits.threads == [COMMITTER, LOOP]
    engine.deciders.execute(Puppet, Do("p-slow", "slow"))
    engine.deciders.execute(Puppet, Do("p-two", "two"))
    eventually(lambda: engine.deciders.state(Puppet, "p-two") == ("two", "done two"))
    assert commits.threads[2:] == [COMMITTER] * 3
    engine.stop(timedelta(0))


def test_an_answer_that_got_lost_there_is_found_out_by_the_committer(live: Live) -> None:
    """The result was committed and nobody knows: it counts once, and the worker goes on."""
    engine, commits = committing(live)
    commits.spoils = LOOP
    engine.deciders.execute(Puppet, Do("p-one", "one"))
    eventually(lambda: commits.threads[:3] == [COMMITTER, LOOP, COMMITTER])
    engine.deciders.execute(Puppet, Do("p-two", "two"))
    eventually(lambda: engine.deciders.state(Puppet, "p-two") == ("two", "done two"))
    assert engine.deciders.state(Puppet, "p-one") == ("one", "done one")
    assert not engine.admin.backlog()
    eventually(lambda: engine.service.committer.claims() == [])
