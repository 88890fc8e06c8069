"""Handlers that raise, hang or answer with nonsense: each is an attempt that failed, and nobody else notices."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from datetime import timedelta

import msgspec
import pytest

from standfast import Decision, EffectContext, Moment, Retry, RetryPolicy, Settings
from standfast.engine.common.telemetry import EffectEnded, Happening
from standfast.engine.worker.failures import FailurePolicy
from standfast.kernel.decider import Failure
from standfast.kernel.retry import LONGEST_TIMEOUT
from standfast.store.ports.store import Store
from standfast.store.records.instances import StoredEffect
from support.engines import AT_ONCE, QUICK, Live, Place
from support.samples import Act, Add, Answer, Do, Doll, Ledger, Noted, Notes, Puppet, act, done
from support.waiting import arrives, eventually

MINUTE = timedelta(minutes=1)
SOON = timedelta(milliseconds=150)
ONCE = RetryPolicy(max_attempts=1)
PATIENT = RetryPolicy(max_attempts=20, delay=timedelta(0), jitter=0)
"""For calls with a short limit: on a busy machine even one that ends at once may be late."""


class Unspeakable(Exception):  # noqa: N818 - it cannot even say what it is
    """Fails when it is asked what happened."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


FAILURES: dict[str, tuple[BaseException, str]] = {
    "exception": (ValueError("no"), "ValueError: no"),
    "silent": (ValueError(), "ValueError: ValueError"),
    "exit": (SystemExit(3), "SystemExit: 3"),
    "interrupt": (KeyboardInterrupt(), "KeyboardInterrupt"),
    "generator": (GeneratorExit(), "GeneratorExit"),
    "recursion": (RecursionError("deep"), "RecursionError: deep"),
    "NUL": (ValueError("a\x00b"), "ValueError: ab"),
    "half a character": (ValueError("\ud800"), "ValueError: ?"),
    "endless": (ValueError("x" * 100_000), "ValueError: " + "x" * 100),
    "unspeakable": (Unspeakable(), "Unspeakable"),
}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("name", FAILURES)
def test_whatever_a_handler_raises_is_a_failed_attempt(live: Live, name: str, *, is_async: bool) -> None:
    """The error is kept as text, the policy decides, the neighbours are handled, and the worker lives on."""
    error, said = FAILURES[name]

    def broken(context: EffectContext, effect: object) -> None:
        raise error

    async def broken_async(context: EffectContext, effect: object) -> None:
        raise error

    good = Ledger()
    engine = live.engine().register(Puppet(act), broken_async if is_async else broken, retry=AT_ONCE)
    engine.register(Doll(act), lambda context, effect: good.add(effect)).start_worker()
    for number in range(3):
        engine.deciders.execute(Doll, Do(f"d-{number}", str(number)))
        engine.deciders.execute(Puppet, Do(f"p-{number}", "x"))
    eventually(lambda: len(engine.dead_letters.list()) == 3)
    letters = engine.dead_letters.list()
    assert {(letter.source, letter.attempts, letter.reason) for letter in letters} == {("effect", 3, "handler_failed")}
    assert all(letter.error.startswith(said) and len(letter.error) <= 4000 for letter in letters)
    eventually(lambda: len(good.entries) == 3)
    assert engine.runtime.worker.held() == []
    assert engine.health().is_healthy


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("result", [42, "done", Add("c-1"), Noted("x"), [Do("p-1", "done")]], ids=repr)
def test_an_answer_that_is_no_command_gives_up_at_once(live: Live, result: object, *, is_async: bool) -> None:
    """It is a mistake in the program, which no other call mends: the letter names what came and what may come; nothing is written."""
    calls = Ledger()

    def wrong(context: EffectContext, effect: object) -> object:
        calls.add(context.attempt)
        return result

    async def wrong_async(context: EffectContext, effect: object) -> object:
        return wrong(context, effect)

    engine = live.engine().register(Puppet(act), wrong_async if is_async else wrong, retry=AT_ONCE).start_worker()  # type: ignore[arg-type]
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    (letter,) = eventually(engine.dead_letters.list)
    assert (calls.entries, letter.attempts, letter.reason) == ([1], 1, "handler_failed")
    kind = type(result).__name__
    assert letter.error == (
        "Fail: the handler 'puppet' must return a command or None: "
        f"'puppet' does not declare {kind} as one of its commands; it has Do"
    )
    assert engine.deciders.state(Puppet, "p-1") == ("x",)


class Sorry(Puppet):
    """Notes what became of its effects."""

    type = "sorry"

    def effect_failed(self, effect: Act, failure: Failure) -> Do | None:
        return Do("s-1", f"done {failure.is_final} {failure.was_called} {failure.error}")


@pytest.mark.parametrize("is_plain", [False, True])
def test_an_instance_is_told_of_an_answer_that_is_no_command(place: Place, *, is_plain: bool) -> None:
    """The decider hears of it as of any failure that is final, also one that promises plain values."""
    decider = Sorry(act)
    decider.is_plain = is_plain  # type: ignore[misc]
    engine = place.engine(Settings(retry=AT_ONCE)).register(decider, lambda context, effect: 42)  # type: ignore[arg-type]
    engine.deciders.execute(Sorry, Do("s-1", "x"))
    engine.drain()
    (_, told) = engine.deciders.state(Sorry, "s-1")
    assert told.startswith("done True True Fail: the handler 'sorry' must return a command or None: ")
    assert engine.dead_letters.list() == []


@pytest.mark.parametrize("after", [1e12, timedelta(days=3_000_000), timedelta.max])
def test_an_absurd_wait_is_an_ordinary_failure(live: Live, after: timedelta | float) -> None:
    """What a handler asks for lies beyond the calendar: the policy says when to try again, and other effects are claimed."""
    calls = Ledger()

    def handle(context: EffectContext, effect: Act) -> None:
        calls.add((effect.what, context.attempt))
        if effect.what == "bad":
            raise Retry("429", after=after)

    client = live.engine().register(Puppet(act))
    engine = live.engine().register(Puppet(act), handle).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "bad"))
    (letter,) = eventually(engine.dead_letters.list)
    assert (letter.error, letter.reason) == ("Retry: 429", "handler_failed")
    client.deciders.execute(Puppet, Do("p-2", "good"))
    eventually(lambda: ("good", 1) in calls.entries)
    assert calls.entries[:3] == [("bad", 1), ("bad", 2), ("bad", 3)]


def test_an_absurd_policy_stops_nothing(live: Live) -> None:
    """The longest wait that a policy may have ends on a day of the calendar; other effects are claimed."""
    calls = Ledger()
    endless = RetryPolicy(delay=LONGEST_TIMEOUT, cap=LONGEST_TIMEOUT, jitter=1)

    def handle(context: EffectContext, effect: Act) -> None:
        calls.add(effect.what)
        if effect.what == "bad":
            raise ValueError("no")

    client = live.engine().register(Puppet(act))
    engine = live.engine().register(Puppet(act), handle, retry=endless).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "bad"))
    (effect,) = eventually(lambda: [each for each in engine.deciders.get(Puppet, "p-1").effects if each.error])
    assert (effect.error, effect.worker) == ("ValueError: no", None)
    assert effect.next_attempt_at is not None
    assert effect.next_attempt_at.year > 2100
    client.deciders.execute(Puppet, Do("p-2", "good"))
    eventually(lambda: calls.entries == ["bad", "good"])


def test_a_failure_that_cannot_be_dealt_with_is_buried(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect in the judging of one effect neither loses it nor stops the claiming of others."""
    judge = FailurePolicy.retry_effect_at

    def broken(self: FailurePolicy, effect: StoredEffect, *rest: object) -> object:
        if b"bad" in effect.data:
            raise KeyboardInterrupt
        return judge(self, effect, *rest)  # type: ignore[arg-type]

    def handle(context: EffectContext, effect: Act) -> None:
        if effect.what == "bad" or context.attempt == 1:
            raise ValueError("no")

    monkeypatch.setattr(FailurePolicy, "retry_effect_at", broken)
    client = live.engine().register(Puppet(act))
    engine = live.engine().register(Puppet(act), handle).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "bad"))
    client.deciders.execute(Puppet, Do("p-2", "good"))
    eventually(lambda: not engine.deciders.get(Puppet, "p-2").effects)
    (letter,) = eventually(engine.dead_letters.list)
    assert letter.error == "ValueError: no"
    assert engine.health().is_healthy


def test_a_plain_handler_that_hangs_is_given_up(live: Live) -> None:
    """After its time limit the call counts as failed and is told so; what it brings back later counts for nothing."""
    gate, calls, ends = threading.Event(), Ledger(), threading.Event()

    def hang(context: EffectContext, effect: object) -> Do | None:
        calls.add(context.attempt)
        if context.attempt == 1:
            arrives(gate)
            ends.set()
            return Do("p-1", "done too late")
        return Do("p-1", "done")

    engine = live.engine().register(Puppet(act), hang, timeout=SOON, retry=PATIENT).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    eventually(lambda: engine.deciders.state(Puppet, "p-1") == ("x", "done"))
    gate.set()
    arrives(ends)
    eventually(lambda: not engine.runtime.worker.held())
    assert calls.entries[:2] == [1, 2]
    assert engine.deciders.state(Puppet, "p-1") == ("x", "done")


def test_a_coroutine_that_hangs_is_cancelled(live: Live) -> None:
    """After its time limit the coroutine is cancelled, may clean up, and the call counts as failed."""
    cleaned = threading.Event()

    async def hang(context: EffectContext, effect: object) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    engine = live.engine().register(Puppet(act), hang, timeout=SOON, retry=ONCE).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    (letter,) = eventually(engine.dead_letters.list)
    assert (letter.reason, letter.error) == ("handler_failed", "TimeoutError: no answer within 0.15 s")
    assert cleaned.is_set()


def test_a_hanging_plain_handler_says_how_long_it_took(live: Live) -> None:
    """The dead letter of a call that was given up names the limit."""
    gate = threading.Event()
    engine = (
        live.engine()
        .register(Puppet(act), lambda context, effect: arrives(gate), timeout=SOON, retry=ONCE)
        .start_worker()
    )
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    (letter,) = eventually(engine.dead_letters.list)
    gate.set()
    assert letter.error.startswith("TimeoutError: no answer within")


def test_an_effect_may_have_a_limit_of_its_own(live: Live) -> None:
    """The effect's limit counts before the handler's, and the handler's before the engine's."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted("x")).with_effect(Act("x"), timeout=SOON)

    async def hang(context: EffectContext, effect: object) -> None:
        await asyncio.Event().wait()

    settings = msgspec.structs.replace(QUICK, handler_timeout=timedelta(hours=1))
    engine = live.engine(settings).register(Puppet(choose), hang, timeout=MINUTE, retry=ONCE).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    (letter,) = eventually(engine.dead_letters.list)
    assert letter.error == "TimeoutError: no answer within 0.15 s"


def test_hanging_handlers_do_not_starve_the_others(live: Live) -> None:
    """Slots of one handler may all be stuck; those of another go on."""
    gate, good = threading.Event(), Ledger()
    engine = live.engine().register(Puppet(act), lambda context, effect: arrives(gate), concurrency=2)
    engine.register(Doll(act), lambda context, effect: good.add(effect)).start_worker()
    for number in range(4):
        engine.deciders.execute(Puppet, Do(f"p-{number}", "x"))
    for number in range(4):
        engine.deciders.execute(Doll, Do(f"d-{number}", str(number)))
    eventually(lambda: len(good.entries) == 4)
    assert {Act(str(number)) for number in range(4)} == set(good.entries)
    puppets = [f"p-{number}" for number in range(4)]
    stuck = [each.attempts for key in puppets for each in engine.deciders.get(Puppet, key).effects]
    assert sorted(stuck) == [0, 0, 1, 1]  # Whose turn comes first among instances is nobody's promise.
    gate.set()


def test_an_old_attempt_that_ends_does_not_hide_the_new_one(live: Live) -> None:
    """While the second attempt runs, the end of the first, which was given up, leaves it in hand."""
    gates, inside = [threading.Event(), threading.Event()], [threading.Event(), threading.Event()]

    def hang(context: EffectContext, effect: object) -> None:
        number = context.attempt - 1
        inside[number].set()
        arrives(gates[number])

    twice = RetryPolicy(max_attempts=2, delay=timedelta(0), jitter=0)
    engine = live.engine().register(Puppet(act), hang, timeout=timedelta(seconds=2), retry=twice).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside[0])
    first = engine.runtime.worker.held()[0].fence
    arrives(inside[1])
    gates[0].set()
    eventually(lambda: engine.runtime.worker._slots._total == 1)
    assert [claim.fence for claim in engine.runtime.worker.held()] == [first + 1]
    gates[1].set()


@pytest.mark.row("D-059")
def test_an_effect_that_cannot_be_read_is_not_touched(place: Place) -> None:
    """An effect of a type that the code no longer has waits for code that has it, with all its attempts, and that is reported."""

    class Other(Puppet):
        """The same type after a deployment that removed the effect."""

    place.engine().register(Puppet(act)).deciders.execute(Puppet, Do("p-1", "x"))
    with place.store.writer().unit() as unit, unit.lend() as connection:
        prefix = "" if place.url.startswith("sqlite") else "standfast."
        connection.execute(f"update {prefix}effects set type = 'Gone'")  # type: ignore[attr-defined]
    ledger = Ledger()
    engine = place.engine().register(Other(act), lambda context, effect: ledger.add(effect))
    engine.advance(seconds=30)
    (waiting,) = engine.deciders.get(Other, "p-1").effects
    assert (waiting.type, waiting.attempts, engine.dead_letters.list(), ledger.entries) == ("Gone", 0, [], [])
    assert [each.word.type for each in engine.runtime.housekeeping.unread.look()] == ["Gone"]


# -- Handlers inside a transaction.


def transactional(**options: object) -> Puppet:
    """A puppet whose effects run inside the commit that records them."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        if command.what.startswith("done"):
            return decision
        return decision.with_effect(Act(command.what), transactional=True, **options)

    return Puppet(choose)


def prepared(store: Store) -> None:
    """A table of the user's own."""
    with store.writer().unit() as unit, unit.lend() as connection:
        connection.execute("create table ledger (what text primary key)")  # type: ignore[attr-defined]


def written(store: Store) -> list[str]:
    """What the handlers wrote into it."""
    with store.writer().unit() as unit, unit.lend() as connection:
        rows = connection.execute("select what from ledger order by what").fetchall()  # type: ignore[attr-defined]
    return [row[0] for row in rows]


def writing(context: EffectContext, effect: Act) -> Do:
    """A handler that writes a row."""
    context.connection.execute(f"insert into ledger values ('{effect.what}')")
    return Do("p-1", "done")


def test_a_statement_that_fails_in_a_transactional_handler_fails_the_attempt(place: Place) -> None:
    """A unique key that the handler's own statement violates is no race of the engine: it is tried again and given up."""
    prepared(place.store)
    engine = place.engine(Settings(retry=AT_ONCE)).register(transactional(), writing)
    engine.deciders.execute(Puppet, Do("p-1", "same"))
    engine.drain()
    engine.deciders.execute(Puppet, Do("p-1", "same"))
    engine.drain()
    (letter,) = engine.dead_letters.list()
    assert (letter.attempts, letter.reason) == (3, "handler_failed")
    assert letter.error.startswith(("IntegrityError: ", "UniqueViolation: "))
    assert written(place.store) == ["same"]
    assert engine.deciders.state(Puppet, "p-1") == ("same", "done", "same")


def test_a_refused_result_undoes_what_the_handler_wrote(place: Place) -> None:
    """When the decider fails on the result, the handler's rows are gone with it."""

    def wrong(context: EffectContext, effect: Act) -> Do:
        writing(context, effect)
        return "nonsense"  # type: ignore[return-value]

    prepared(place.store)
    engine = place.engine(Settings(retry=AT_ONCE)).register(transactional(), wrong)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    (letter,) = engine.dead_letters.list()
    assert letter.attempts == 1
    assert "must return a command or None: 'puppet' does not declare str as one of its commands" in letter.error
    assert written(place.store) == []


def test_a_transactional_handler_may_return_nothing(place: Place) -> None:
    """Its rows and the end of the effect are one commit."""

    def silent(context: EffectContext, effect: Act) -> None:
        writing(context, effect)

    prepared(place.store)
    engine = place.engine().register(transactional(), silent)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    assert written(place.store) == ["x"]
    assert engine.admin.backlog() == []


def test_a_transactional_handler_may_be_a_coroutine(live: Live) -> None:
    """It runs to its end inside the transaction."""

    async def waiting(context: EffectContext, effect: Act) -> Do:
        await asyncio.sleep(0)
        return writing(context, effect)

    engine = live.engine().register(transactional(), waiting)
    prepared(engine.service.store)
    engine.start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    eventually(lambda: engine.deciders.state(Puppet, "p-1") == ("x", "done"))
    assert written(engine.service.store) == ["x"]


def test_a_transactional_handler_that_hangs_writes_nothing(live: Live) -> None:
    """At its time limit the call has failed, while it still hangs; when it comes back and would commit, it is undone."""
    gate, inside = threading.Event(), threading.Event()
    heard: list[Happening] = []

    def hang(context: EffectContext, effect: Act) -> Do:
        done_ = writing(context, effect)
        inside.set()
        arrives(gate)
        return done_

    engine = live.engine().register(transactional(timeout=SOON), hang, retry=ONCE).listen(heard.append)
    prepared(engine.service.store)
    engine.start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside)
    (letter,) = eventually(engine.dead_letters.list)
    assert "no answer within" in letter.error
    gate.set()
    eventually(lambda: [each for each in heard if isinstance(each, EffectEnded)])
    assert written(engine.service.store) == []
    assert engine.deciders.state(Puppet, "p-1") == ("x",)


SCRIPT = """
    import sys, threading, time
    from datetime import timedelta
    sys.path.insert(0, "tests")
    from standfast import Engine
    from support.samples import Do, Puppet, act

    inside = threading.Event()

    def hang(context, effect):
        inside.set()
        time.sleep(3600)

    engine = Engine(sys.argv[1]).register(Puppet(act), hang).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    assert inside.wait(20)
    engine.stop(timedelta(seconds=0.1))
    print("stopped", flush=True)
"""


def test_a_process_can_end_although_a_plain_handler_hangs(live: Live) -> None:
    """After the time limit of the stop nothing keeps the process alive, and the effect is free for others; the call counts."""
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), live.url]
    ended = subprocess.run(command, timeout=30, check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "stopped\n"), ended.stderr
    engine = live.engine().register(Puppet(act), done)
    (effect,) = engine.deciders.get(Puppet, "p-1").effects
    assert (effect.attempts, effect.worker) == (1, None)


def test_handlers_are_called_with_what_was_asked_for(place: Place) -> None:
    """The neighbours of a failing effect get their own bodies and contexts."""
    seen = Ledger()

    def sometimes(context: EffectContext, effect: Act) -> None:
        seen.add((effect.what, context.attempt))
        if effect.what == "bad":
            raise ValueError("no")

    engine = place.engine(Settings(retry=AT_ONCE)).register(Puppet(act), sometimes)
    for what in ("good", "bad", "fine"):
        engine.deciders.execute(Puppet, Do(f"p-{what}", what))
    engine.drain()
    assert set(seen.entries) == {("good", 1), ("bad", 1), ("bad", 2), ("bad", 3), ("fine", 1)}
