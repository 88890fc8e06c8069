"""Taking effects back: what nobody has begun is not begun any more, what is under way is told to stop and still counts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import msgspec
import pytest

from standfast import (
    CommandError,
    ConflictError,
    Decision,
    EffectContext,
    Engine,
    Moment,
    NotFoundError,
    RetryPolicy,
    Settings,
)
from standfast.engine.commit.submission import Submission
from standfast.engine.common.work_errors import RecalledError
from standfast.engine.worker.call import key_of
from standfast.engine.worker.failures import failure_of
from standfast.kernel.decider import Failure
from standfast.kernel.decision import Recall
from standfast.store.records.instances import Address, StoredEffect, Wanted
from standfast.testing import CrashScenario, ManualEngine, crash_everywhere
from standfast.testing.manual import START
from support.batching import ONE_COMMITTER, Batching
from support.engines import AT_ONCE, QUICK, Live, Place
from support.samples import END, Act, Answer, Do, Ledger, Noted, Notes, Puppet, done
from support.waiting import arrives, eventually

STOP, TAKE, DROP, BOTH = "stop", "take", "drop", "both"
PATIENT = RetryPolicy(max_attempts=20, delay=timedelta(0), jitter=0)


def choose(state: Notes, command: Do, moment: Moment) -> Answer:
    """`do …` asks for an effect; the words above take the first one back, in their ways."""
    noted = Decision.event(Noted(command.what))
    back = Do(command.workflow_id, "taken back")
    match command.what:
        case "stop" | "take":
            return msgspec.structs.replace(noted, recalls=(Recall(effect=0, command=back, stop=command.what == STOP),))
        case "drop":
            return msgspec.structs.replace(noted, withdrawn_effects=(0,))
        case "both":
            asked = noted.with_effect(Act("never")).with_effect(Act("stays"))
            return msgspec.structs.replace(asked, recalls=(Recall(effect=moment.issued, command=back),))
        case what if what.startswith("do"):
            return noted.with_effect(Act(what))
        case _:
            return noted


class Frail(Puppet):
    """Notes what it is told about effects that gave up."""

    def __init__(self) -> None:
        super().__init__(choose)

    def effect_failed(self, effect: Act, failure: Failure) -> Do:
        return Do("p-1", f"failed, {'called' if failure.was_called else 'not called'}")


def tell(engine: Engine, what: str, key: str = "p-1") -> None:
    """Have a command carried out."""
    engine.deciders.execute(Puppet, Do(key, what))


def notes(engine: Engine, key: str = "p-1") -> Notes:
    """What was noted."""
    return engine.deciders.state(Puppet, key)


# -- What gave up.


def dead(place: Place) -> tuple[ManualEngine, int, Ledger]:
    """An engine whose first effect gave up, its letter, and the calls that were made."""
    calls = Ledger()

    def fail(context: EffectContext, effect: Act) -> None:
        calls.add(effect.what)
        raise ValueError("no")

    engine = place.engine(Settings(retry=RetryPolicy(max_attempts=1))).register(Puppet(choose), fail)
    tell(engine, "do it")
    engine.drain()
    (letter,) = engine.dead_letters.list()
    return engine, letter.id, calls


@pytest.mark.parametrize("what", [DROP, TAKE, STOP])
def test_a_dead_effect_that_its_instance_takes_back_cannot_be_requeued(place: Place, what: str) -> None:
    """It goes with its letter; a recall is answered, as for any effect that nobody has in hand."""
    engine, letter, calls = dead(place)
    tell(engine, what)
    assert engine.dead_letters.list() == []
    with pytest.raises(NotFoundError, match="dead letter"):
        engine.dead_letters.requeue(letter)
    engine.drain()
    assert notes(engine) == (("do it", what) if what == DROP else ("do it", what, "taken back"))
    assert calls.entries == ["do it"]


def test_only_the_letter_of_that_effect_goes(place: Place) -> None:
    """Other effects of the instance, effects of other instances, and other letters with its number stay."""
    engine, *_ = dead(place)
    tell(engine, "do more")
    tell(engine, "do it", key="p-2")
    engine.drain()
    tell(engine, DROP)
    first, second = (engine.deciders.get(Puppet, key).id for key in ("p-1", "p-2"))
    left = {(letter.instance, letter.number) for letter in engine.dead_letters.list()}
    assert left == {(first, 1), (second, 0)}


def test_an_effect_that_was_told_to_stop_and_gave_up_stays_dead(place: Place) -> None:
    """Its instance asked for its end while it ran, and it failed: the letter says so, and nobody can have it called again."""

    def stopped(context: EffectContext, effect: Act) -> None:
        tell(engine, STOP)
        raise ValueError("stopped in the middle")

    engine = place.engine(Settings(retry=PATIENT)).register(Puppet(choose), stopped)
    tell(engine, "do it")
    engine.drain()
    (letter,) = engine.dead_letters.list()
    assert (letter.reason, letter.error) == ("recalled", "ValueError: stopped in the middle")
    with pytest.raises(ConflictError, match=r"its instance took it back .* discard it"):
        engine.dead_letters.requeue(letter.id)
    engine.dead_letters.discard(letter.id)
    assert engine.dead_letters.list() == []


def test_the_last_words_of_an_instance_can_be_said_again(place: Place) -> None:
    """What an instance asked for as it ended is wanted still: its letter can be requeued."""
    calls = Ledger()

    def fail_once(context: EffectContext, effect: Act) -> None:
        calls.add(effect.what)
        if calls.count(effect.what) == 1:
            raise ValueError("no")

    def end(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted(END)).with_effect(Act("farewell"))

    engine = place.engine(Settings(retry=RetryPolicy(max_attempts=1))).register(Puppet(end), fail_once)
    tell(engine, "go")
    engine.drain()
    engine.dead_letters.requeue(engine.dead_letters.list()[0].id)
    engine.drain()
    assert (calls.entries, engine.dead_letters.list()) == (["farewell", "farewell"], [])


# -- What nobody has begun.


@pytest.mark.parametrize("how", [TAKE, STOP])
def test_an_effect_that_nobody_began_is_taken_back(place: Place, how: str) -> None:
    """The instance is told by the command that it gave, its handler is never called, and the neighbour's is."""
    calls = Ledger()
    engine = place.engine().register(Puppet(choose), lambda context, effect: calls.add(effect.what))
    for what in ("do one", "do two", how):
        tell(engine, what)
    engine.drain()
    assert notes(engine) == ("do one", "do two", how, "taken back")
    assert calls.entries == ["do two"]


def test_what_is_taken_back_is_told_to_its_own_instance(place: Place) -> None:
    """A recall whose command names another instance is refused."""

    def astray(state: Notes, command: Do, moment: Moment) -> Answer:
        recall = Recall(effect=0, command=Do("p-2", "taken back"))
        return msgspec.structs.replace(Decision.event(Noted(command.what)), recalls=(recall,))

    engine = place.engine().register(Puppet(astray))
    with pytest.raises(CommandError, match=r"a recall of 'puppet' .* names 'p-2'"):
        tell(engine, TAKE)


def test_an_effect_that_has_ended_is_not_taken_back(place: Place) -> None:
    """Nothing happens, and nothing is told."""
    engine = place.engine().register(Puppet(choose), done)
    tell(engine, "do")
    engine.drain()
    tell(engine, STOP)
    engine.drain()
    assert notes(engine) == ("do", STOP)


def test_an_effect_that_waits_for_another_attempt_is_taken_back(place: Place) -> None:
    """It is in nobody's hands while it waits."""

    def broken(context: EffectContext, effect: Act) -> None:
        raise ValueError("no")

    engine = place.engine().register(Puppet(choose), broken)
    tell(engine, "do")
    engine.drain()
    tell(engine, TAKE)
    engine.advance(hours=1)
    assert notes(engine) == ("do", TAKE, "taken back")
    assert engine.dead_letters.list() == []


def test_an_effect_of_the_same_decision_is_taken_back(live: Live) -> None:
    """It is never written, its slot is free again, and the command comes."""
    calls = Ledger()
    engine = live.engine().register(Puppet(choose), lambda context, effect: calls.add(effect.what))
    engine.start_worker()
    tell(engine, BOTH)
    eventually(lambda: notes(engine) == (BOTH, "taken back"))
    eventually(lambda: calls.entries == ["stays"])
    eventually(lambda: not engine.runtime.worker._slots._total)


BATCHES: dict[tuple[str, ...], Notes] = {
    ("do", TAKE): ("do", TAKE, "taken back"),
    ("do", TAKE, TAKE, STOP): ("do", TAKE, TAKE, STOP, "taken back"),
    ("do", TAKE, DROP): ("do", TAKE, DROP, "taken back"),
    ("do", DROP, TAKE): ("do", DROP, TAKE),
}


@pytest.mark.parametrize("words", BATCHES)
@pytest.mark.parametrize("is_one_batch", [False, True])
def test_commands_of_one_batch_take_back_as_those_of_many_do(
    live: Live, words: tuple[str, ...], *, is_one_batch: bool
) -> None:
    """Recalled twice an effect is taken back once; one that is withdrawn first is not."""
    engine = live.engine(ONE_COMMITTER).register(Puppet(choose))
    if is_one_batch:
        batching = Batching(engine)
        with batching.one():
            replies = [engine.futures.deciders.execute(Puppet, Do("p-1", word)) for word in words]
        for reply in replies:
            reply.result(timeout=30)
    else:
        for word in words:
            tell(engine, word)
    engine.start_worker()
    eventually(lambda: notes(engine) == BATCHES[words])
    eventually(lambda: not engine.admin.backlog())


@pytest.mark.parametrize("words", [(STOP, DROP), (TAKE, STOP), (STOP, TAKE)])
def test_a_written_effect_is_taken_back_once_by_one_batch(live: Live, words: tuple[str, ...]) -> None:
    """Several commands of a batch about one effect leave one message at most, and no effect."""
    engine = live.engine(ONE_COMMITTER).register(Puppet(choose))
    tell(engine, "do")
    batching = Batching(engine)
    with batching.one():
        replies = [engine.futures.deciders.execute(Puppet, Do("p-1", word)) for word in words]
    for reply in replies:
        reply.result(timeout=30)
    engine.start_worker()
    expected = ("do", *words) if DROP in words else ("do", *words, "taken back")
    eventually(lambda: notes(engine) == expected)
    assert engine.admin.backlog() == []


def test_a_result_and_the_wish_to_stop_may_share_a_batch(place: Place) -> None:
    """The handler came back in time: its result counts, and nothing of the effect lingers."""
    engine = place.engine().register(Puppet(choose), done)
    tell(engine, "do")
    engine.runtime.heartbeat.step()
    (claimed,) = engine.runtime.intake.claim([Wanted("puppet", 1)], 1)
    address = Address(tenant="default", definition="puppet", instance=claimed.instance)
    errors: list[BaseException | None] = []

    def submission(what: str, effect: StoredEffect | None = None) -> Submission:
        claim = None if effect is None else effect.claim
        settled = lambda _outcome, error: errors.append(error)  # noqa: E731
        return Submission(address=address, command=Do("p-1", what), cause=what, claim=claim, settled=settled)

    engine.service.committer.lanes[0].committer._work([submission(STOP), submission("came back", claimed)])
    assert errors == [None, None]
    assert notes(engine) == ("do", STOP, "came back")
    assert engine.admin.backlog() == []


# -- What is under way.


def test_a_plain_handler_is_told_to_stop_and_its_result_counts(live: Live) -> None:
    """It sees that it should come to an end; what it brings back is carried out as always."""
    inside = threading.Event()

    def patient(context: EffectContext, effect: Act) -> Do:
        inside.set()
        while not context.wait_cancelled(0.01):
            pass
        return Do("p-1", "half done")

    engine = live.engine().register(Frail(), patient).start_worker()
    tell(engine, "do")
    arrives(inside)
    tell(engine, STOP)
    eventually(lambda: notes(engine) == ("do", STOP, "half done"))
    eventually(lambda: not engine.admin.backlog())


def test_a_coroutine_that_is_stopped_has_failed_and_is_not_tried_again(live: Live) -> None:
    """It is cancelled and may clean up; its instance hears of the failure at once, whatever the policy says."""
    inside, cleaned, calls = threading.Event(), threading.Event(), Ledger()

    async def hang(context: EffectContext, effect: Act) -> None:
        calls.add(context.attempt)
        inside.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    engine = live.engine().register(Frail(), hang, retry=PATIENT).start_worker()
    tell(engine, "do")
    arrives(inside)
    tell(engine, STOP)
    eventually(lambda: notes(engine) == ("do", STOP, "failed, called"))
    assert (calls.entries, cleaned.is_set()) == ([1], True)


def test_a_handler_is_disturbed_once(live: Live) -> None:
    """However often it is repeated that it should stop, a coroutine can clean up in peace."""
    inside, cleaning, gate = threading.Event(), threading.Event(), threading.Event()

    async def tidy(context: EffectContext, effect: Act) -> Do:
        inside.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cleaning.set()
            await asyncio.to_thread(arrives, gate)
        return Do("p-1", "cleaned")

    engine = live.engine().register(Frail(), tidy).start_worker()
    tell(engine, "do")
    arrives(inside)
    tell(engine, STOP)
    arrives(cleaning)
    for claim in engine.runtime.worker.held():
        engine.runtime.worker.interrupt([key_of(claim.instance, claim.number)])
    gate.set()
    eventually(lambda: notes(engine) == ("do", STOP, "cleaned"))


def test_a_recall_without_stop_lets_the_handler_be(live: Live) -> None:
    """What is under way comes to its end undisturbed."""
    inside, gate, cancelled = threading.Event(), threading.Event(), Ledger()

    def busy(context: EffectContext, effect: Act) -> Do:
        inside.set()
        arrives(gate)
        cancelled.add(context.cancelled)
        return Do("p-1", "all done")

    engine = live.engine().register(Frail(), busy).start_worker()
    tell(engine, "do")
    arrives(inside)
    tell(engine, TAKE)
    gate.set()
    eventually(lambda: notes(engine) == ("do", TAKE, "all done"))
    assert cancelled.entries == [False]


@pytest.mark.row("F-171", "F-251")
@pytest.mark.parametrize("how", [STOP, DROP])
def test_a_handler_in_another_process_is_told(live: Live, how: str) -> None:
    """On Postgres a hint has its worker ask at once, however rarely it beats; on a file the next beat tells it."""
    slow = msgspec.structs.replace(QUICK, beat_interval=timedelta(minutes=2), lease=timedelta(minutes=6))
    inside, told = threading.Event(), threading.Event()

    def patient(context: EffectContext, effect: Act) -> None:
        inside.set()
        while not context.wait_cancelled(0.01):
            pass
        told.set()

    settings = QUICK if live.url.startswith("sqlite") else slow
    live.engine(settings).register(Puppet(choose), patient).start_worker()
    client = live.engine().register(Puppet(choose))
    tell(client, "do")
    arrives(inside)
    tell(client, how)
    arrives(told)
    eventually(lambda: not client.admin.backlog())


# -- What is claimed and not yet begun.


@contextmanager
def only_thread_taken(engine: Engine) -> Iterator[None]:
    """The one thread for plain handlers is busy inside the block."""
    inside, gate = threading.Event(), threading.Event()

    def task() -> None:
        inside.set()
        arrives(gate)

    engine.runtime.worker._threads.run(task)
    arrives(inside)
    try:
        yield
    finally:
        gate.set()


@contextmanager
def loop_taken(engine: Engine) -> Iterator[None]:
    """The event loop of coroutines is busy inside the block."""
    inside, gate = threading.Event(), threading.Event()

    def task() -> None:
        inside.set()
        arrives(gate)

    assert engine.runtime.worker._loop is not None
    engine.runtime.worker._loop.call_soon(task)
    arrives(inside)
    try:
        yield
    finally:
        gate.set()


def called(calls: Ledger, *, is_async: bool) -> Callable[[EffectContext, Act], object]:
    """A handler that writes its calls down."""

    def handle(context: EffectContext, effect: Act) -> None:
        calls.add(effect.what)

    async def handle_async(context: EffectContext, effect: Act) -> None:
        calls.add(effect.what)

    return handle_async if is_async else handle


@pytest.mark.row("F-260")
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("how", [STOP, DROP])
def test_a_call_that_was_not_begun_is_not_made(live: Live, how: str, *, is_async: bool) -> None:
    """Queued for a thread or for the loop when it is called off, a handler is not called, and its slot is free again."""
    calls = Ledger()
    engine = live.engine(msgspec.structs.replace(QUICK, threads=1))
    engine.register(Frail(), called(calls, is_async=is_async), retry=PATIENT).start_worker()  # type: ignore[arg-type]
    with loop_taken(engine) if is_async else only_thread_taken(engine):
        tell(engine, "do")
        eventually(engine.runtime.worker.held)
        tell(engine, how)
    expected = ("do", how, "failed, not called") if how == STOP else ("do", how)
    eventually(lambda: notes(engine) == expected)
    eventually(lambda: not engine.runtime.worker.held() and not engine.runtime.worker._slots._total)
    assert calls.entries == []
    assert engine.admin.backlog() == []


@pytest.mark.row("F-260")
@pytest.mark.parametrize("how", [STOP, DROP])
def test_a_call_that_is_on_its_way_is_not_made(place: Place, how: str) -> None:
    """Called off between the claim in the database and the worker's hands, a handler is not called either."""
    calls = Ledger()
    engine = place.engine().register(Frail(), lambda context, effect: calls.add(effect.what))
    claim = engine.runtime.intake.claim

    def slow(wanted: list[Wanted], limit: int) -> list[StoredEffect]:
        found = claim(wanted, limit)
        if found:
            tell(engine, how)
        return found

    engine.runtime.intake.claim = slow  # type: ignore[method-assign]
    tell(engine, "do")
    engine.drain()
    assert calls.entries == []
    assert notes(engine) == (("do", how, "failed, not called") if how == STOP else ("do", how))
    assert engine.admin.backlog() == []


@pytest.mark.parametrize("is_dead", [True, False])
def test_an_effect_to_be_stopped_is_not_called_again(place: Place, *, is_dead: bool) -> None:
    """Its worker died, or gave it back: whoever gets it next reports its end, and says whether it may have begun."""
    calls = Ledger()
    first = place.engine().register(Frail(), done)
    tell(first, "do")
    first.runtime.heartbeat.step()
    (held,) = first.runtime.intake.claim([Wanted("puppet", 1)], 1)
    second = place.engine(Settings(retry=PATIENT)).register(Frail(), lambda context, effect: calls.add(effect.what))
    tell(second, STOP)
    if is_dead:
        place.clock.move(timedelta(seconds=7))
    else:
        first.service.store.effects().release([held.claim])
    second.drain()
    assert notes(second) == ("do", STOP, f"failed, {'called' if is_dead else 'not called'}")
    assert (calls.entries, second.admin.backlog()) == ([], [])


def test_a_recalled_effect_of_a_decider_that_does_not_listen_is_a_dead_letter(place: Place) -> None:
    """Nobody is told otherwise, so the letter says what happened."""
    first = place.engine().register(Puppet(choose), done)
    tell(first, "do")
    first.runtime.heartbeat.step()
    first.runtime.intake.claim([Wanted("puppet", 1)], 1)
    tell(first, STOP)
    place.clock.move(timedelta(seconds=7))
    second = place.engine(Settings(retry=AT_ONCE)).register(Puppet(choose), done)
    second.drain()
    (letter,) = second.dead_letters.list()
    assert (letter.reason, letter.source) == ("recalled", "effect")


def test_a_failure_tells_whether_the_handler_may_have_begun() -> None:
    """A call that is not made says so; one after an earlier attempt cannot know, and neither can any other failure."""
    told = [failure_of(error, START).was_called for error in (RecalledError(1), RecalledError(2), ValueError("no"))]
    assert told == [False, True, True]


def test_an_effect_that_is_called_once_is_not_given_back_uncounted(live: Live) -> None:
    """A worker that stops in the middle of a call must not have it made again by another."""
    inside, gate, calls = threading.Event(), threading.Event(), Ledger()

    def once(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted(command.what)).with_effect(Act(command.what), once=True)

    def hang(context: EffectContext, effect: Act) -> None:
        calls.add("first")
        inside.set()
        arrives(gate)

    first = live.engine().register(Puppet(once), hang).start_worker()
    tell(first, "x")
    arrives(inside)
    first.stop(timedelta(0))
    second = live.engine().register(Puppet(once), lambda context, effect: calls.add("second")).start_worker()
    (letter,) = eventually(second.dead_letters.list)
    gate.set()
    assert (letter.reason, calls.entries) == ("attempts_spent", ["first"])


def test_a_crash_anywhere_leaves_the_effect_taken_back_once() -> None:
    """Whenever the process dies, the effect is not called in the end, and its instance is told exactly once."""

    def play(engine: ManualEngine) -> None:
        for what in ("do", TAKE):
            engine.deciders.execute(Puppet, Do("p-1", what), command_id=what)
        engine.advance(timedelta(minutes=1))

    report = crash_everywhere(
        CrashScenario(prepare=lambda engine: engine.register(Frail(), lambda c, e: Do("p-1", "came back")), play=play)
    )
    assert report.points > 5
    assert str(report.outcome).count("taken back") == 1
