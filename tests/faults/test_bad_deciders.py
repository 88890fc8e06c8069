"""Deciders that misbehave: each failure has a code and a sentence, writes nothing, and harms nobody in the same batch."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from standfast import (
    CommandError,
    Decider,
    Decision,
    Effect,
    Ignored,
    Message,
    Moment,
    PayloadError,
    RejectedError,
    Rejection,
    StandfastError,
    Status,
    Timer,
)
from standfast.kernel.decider import Failure, StatusWord
from standfast.kernel.decision import Recall
from standfast.testing import given
from support.batching import ONE_COMMITTER, Batching
from support.engines import QUICK, Live, Place
from support.samples import END, Act, Add, Added, Answer, Counter, Do, Doll, Noted, Notes, Puppet, act, done, note
from support.waiting import eventually

BAD = "bad"
SMALL = msgspec.structs.replace(QUICK, committers=1, max_payload_bytes=1000)
SOON = timedelta(hours=1)
NEVER = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))
BEFORE = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
NAIVE = datetime(2031, 1, 1, tzinfo=UTC).replace(tzinfo=None)
NOTED = Decision.event(Noted("x"))


class Mute(BaseException):
    """An error that cannot even be shown."""

    def __repr__(self) -> str:
        raise self


def raising(error: BaseException) -> Callable[[], Answer]:
    """A choice that raises."""

    def choose() -> Answer:
        raise error

    return choose


def with_effect(**options: object) -> Callable[[], Answer]:
    """A choice with an effect."""
    return lambda: NOTED.with_effect(Act("x"), **options)


def with_timer(timer: Timer) -> Callable[[], Answer]:
    """A choice with a timer."""
    return lambda: Decision((Noted("x"),), timers=(timer,))


def timed(**times: Any) -> Answer:
    """A choice with a timer that is due at these times."""
    return Decision((Noted("x"),), timers=(Timer(command=Do("p-bad"), **times),))


def with_message(**fields: object) -> Callable[[], Answer]:
    """A choice with a message."""
    message = {"decider": "doll", "command": Do("d-1", "x")} | fields
    return lambda: NOTED.with_message(Message(**message))  # type: ignore[arg-type]


def with_recall(command: object) -> Callable[[], Answer]:
    """A choice that takes an effect back, with this news of it."""
    return lambda: msgspec.structs.replace(NOTED, recalls=(Recall(effect=0, command=command),))


MISDEEDS: dict[str, tuple[Callable[[], object], str, str]] = {
    "raises": (raising(ValueError("oops")), "decider_failed", r"raised ValueError\('oops'\) on Do"),
    "exits": (raising(SystemExit(3)), "decider_failed", "SystemExit"),
    "interrupts": (raising(KeyboardInterrupt()), "decider_failed", "KeyboardInterrupt"),
    "is cancelled": (raising(asyncio.CancelledError()), "decider_failed", "CancelledError"),
    "closes a generator": (raising(GeneratorExit()), "decider_failed", "GeneratorExit"),
    "fails a test": (raising(pytest.fail.Exception("no")), "decider_failed", "raised no on Do"),
    "cannot say why": (raising(Mute()), "decider_failed", "Mute"),
    "recurses": (raising(RecursionError("deep")), "decider_failed", "RecursionError"),
    "answers nothing": (lambda: None, "decider_failed", "answered Do with NoneType; expected a Decision"),
    "answers text": (lambda: "ok", "decider_failed", "answered Do with str"),
    "answers an event": (lambda: Noted("x"), "decider_failed", "answered Do with Noted"),
    "no event": (lambda: Decision(()), "decider_failed", "at least one event"),
    "state of its own": (
        lambda: msgspec.structs.replace(NOTED, state=("made up",)),
        "decider_failed",
        "'puppet' set the state of its Decision; leave it alone: the state is what `evolve` makes of the events",
    ),
    "strange event": (
        lambda: Decision.event(Added(1)),
        "decider_failed",
        "does not declare Added as one of its events",
    ),
    "text as event": (lambda: Decision.event("x"), "decider_failed", "does not declare str as one of its events"),
    "strange effect": (lambda: NOTED.with_effect(Added(1)), "decider_failed", "does not declare Added .* effects"),
    "strange timer": (lambda: NOTED.with_timer_after(timedelta(1), "x"), "decider_failed", "does not declare str"),
    "event too large": (
        lambda: Decision.event(Noted("x" * 2000)),
        "bad_payload",
        "takes 20.. bytes and the limit is 1000",
    ),
    "effect too large": (lambda: NOTED.with_effect(Act("x" * 2000)), "bad_payload", "effect Act of 'puppet' takes"),
    "event with no form": (lambda: Decision.event(Noted({1, 2j})), "bad_payload", "cannot be stored"),  # type: ignore[arg-type]
    "event of another type": (
        lambda: Decision.event(Noted(12)),  # type: ignore[arg-type]
        "bad_payload",
        "^Noted.what must be str, got int$",
    ),
    "effect of another type": (
        lambda: NOTED.with_effect(Act(None)),  # type: ignore[arg-type]
        "bad_payload",
        "^Act.what must be str, got None$",
    ),
    "timer of another type": (
        lambda: NOTED.with_timer_after(SOON, Do("p-bad", 1)),  # type: ignore[arg-type]
        "bad_payload",
        "^Do.what must be str, got int$",
    ),
    "message of another type": (
        with_message(command=Do("d-1", 1.5)),  # type: ignore[arg-type]
        "bad_payload",
        "^Do.what must be str, got float$",
    ),
    "recall of another type": (with_recall(Do("p-bad", b"x")), "bad_payload", "would come back as another value"),  # type: ignore[arg-type]
    "event with half a character": (lambda: Decision.event(Noted("\ud800")), "bad_payload", "Noted cannot be stored"),
    "priority": (with_effect(priority=101), "decider_failed", "priority 101 is not a whole number between"),
    "half a priority": (with_effect(priority=1.5), "decider_failed", "priority 1.5 is not a whole number between"),
    "handler as number": (
        with_effect(handler=7),
        "decider_failed",
        "'puppet' gave an Effect with handler=7; handler must be text",
    ),
    "limit as number": (with_effect(retry=3), "decider_failed", "with retry=3; retry must be a RetryPolicy or None"),
    "delay as number": (with_effect(delay=3), "decider_failed", "with delay=3; delay must be a timedelta"),
    "body among the effects": (
        lambda: msgspec.structs.replace(NOTED, effects=(Act("x"),)),
        "decider_failed",
        "'puppet' gave an Act among the effects of a Decision; give each as an Effect",
    ),
    "events from a generator": (
        lambda: Decision(Noted(each) for each in "ab"),  # type: ignore[arg-type]
        "decider_failed",
        r"'puppet' gave a generator as events of a Decision; give a tuple, or begin with Decision.event",
    ),
    "effects in a list": (
        lambda: Decision((Noted("x"),), [Effect(body=Act("x"))]),  # type: ignore[arg-type]
        "decider_failed",
        "'puppet' gave a list as effects of a Decision; give a tuple",
    ),
    "number as timer key": (
        lambda: NOTED.with_timer_after(SOON, Do("p-bad"), key=7),  # type: ignore[arg-type]
        "decider_failed",
        "'puppet' gave a Timer with key=7; key must be text",
    ),
    "number as time": (lambda: timed(after=7), "decider_failed", "with after=7; after must be a timedelta or None"),
    "number as cancelled timer": (
        lambda: NOTED.cancel_timer(7),  # type: ignore[arg-type]
        "decider_failed",
        "'puppet' cancels the timer 7; give the key of a timer, which is text",
    ),
    "text as withdrawn effect": (
        lambda: msgspec.structs.replace(NOTED, withdrawn_effects=("a",)),
        "decider_failed",
        "'puppet' takes back the effect 'a'; give the number of an effect",
    ),
    "endless withdrawn effect": (
        lambda: msgspec.structs.replace(NOTED, withdrawn_effects=(2**70,)),
        "decider_failed",
        "give the number of an effect",
    ),
    "text as recalled effect": (
        lambda: msgspec.structs.replace(NOTED, recalls=(Recall(effect="a", command=Do("p-bad")),)),  # type: ignore[arg-type]
        "decider_failed",
        "'puppet' gave a Recall with effect='a'; effect must be a whole number",
    ),
    "text as target": (
        with_message(instance="abc"),
        "decider_failed",
        "with instance='abc'; instance must be the id of an instance or None",
    ),
    "number as code": (
        lambda: Rejection(code=7, message="no"),  # type: ignore[arg-type]
        "decider_failed",
        "'puppet' gave a Rejection with code=7; code must be text",
    ),
    "endless delay": (with_effect(delay=timedelta.max), "decider_failed", "years 1 to 9999"),
    "endless haste": (with_effect(delay=timedelta.min), "decider_failed", "years 1 to 9999"),
    "no time": (with_effect(timeout=timedelta(0)), "decider_failed", "None for no limit"),
    "unkeepable handler": (with_effect(handler="\ud800"), "bad_payload", "handler"),
    "naive timer": (lambda: NOTED.with_timer_at(NAIVE, Do("p-bad")), "decider_failed", "give a time with a zone"),
    "naive instant": (with_timer(Timer(command=Do("p-bad"), due_at=NAIVE)), "decider_failed", "zone"),
    "endless timer": (with_timer(Timer(command=Do("p-bad"), after=timedelta.max)), "decider_failed", "years 1 to 9999"),
    "timer beyond the calendar": (
        lambda: NOTED.with_timer_at(NEVER, Do("p-bad")),
        "decider_failed",
        "timer at 9999-12-31 .* is due outside of the years 1 to 9999",
    ),
    "timer before the calendar": (with_timer(Timer(command=Do("p-bad"), due_at=BEFORE)), "decider_failed", "9999"),
    "timer with two times": (lambda: timed(due_at=NEVER, after=SOON), "decider_failed", "either `due_at` or `after`"),
    "timer with no time": (timed, "decider_failed", "either `due_at` or `after`"),
    "timer key of the engine": (
        with_timer(Timer(command=Do("p-bad"), after=SOON, key="#1")),
        "bad_payload",
        "begins with '#'",
    ),
    "unkeepable timer key": (
        with_timer(Timer(command=Do("p-bad"), after=SOON, key="\ud800")),
        "bad_payload",
        "timer key",
    ),
    "timer key with NUL": (
        with_timer(Timer(command=Do("p-bad"), after=SOON, key="a\x00b")),
        "bad_payload",
        "timer key",
    ),
    "unknown decider": (with_message(decider="odll"), "not_found", "no decider or workflow 'odll'"),
    "strange message": (with_message(command=Added(1)), "decider_failed", "'doll' does not declare Added"),
    "message to nobody": (with_message(command=Do("")), "bad_payload", "which instance it is for"),
    "unkeepable message key": (with_message(key="\ud800"), "bad_payload", "key"),
    "unkeepable message id": (with_message(command_id="\ud800"), "bad_payload", "command id"),
    "unkeepable version": (with_message(definition_version="\ud800"), "bad_payload", "version of a definition"),
    "strange recall": (with_recall(Added(1)), "decider_failed", "'puppet' does not declare Added"),
    "recall with half a character": (with_recall(Do("p-bad", "\ud800")), "bad_payload", "Do cannot be stored"),
}


def misbehaving(misdeed: Callable[[], object]) -> Puppet:
    """A puppet that does one thing wrong on `bad`."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return misdeed() if command.what == BAD else note(state, command, moment)  # type: ignore[return-value]

    return Puppet(choose)


@pytest.mark.row("D-005", "D-029")
@pytest.mark.parametrize("name", MISDEEDS)
def test_a_misdeed_fails_alone_with_a_code_and_a_sentence(live: Live, name: str) -> None:
    """The bad command is refused; those before and behind it, on its own instance and on others, are carried out."""
    misdeed, code, said = MISDEEDS[name]
    engine = live.engine(SMALL).register(misbehaving(misdeed)).register(Doll())
    batching = Batching(engine)
    with batching.one():
        good = [engine.futures.deciders.execute(Puppet, Do(key, "before")) for key in ("p-1", "p-bad", "p-2")]
        bad = engine.futures.deciders.execute(Puppet, Do("p-bad", BAD))
        good += [engine.futures.deciders.execute(Puppet, Do(key, "after")) for key in ("p-bad", "p-3")]
    for reply in good:
        reply.result(timeout=30)
    error = bad.exception(timeout=30)
    assert isinstance(error, StandfastError)
    assert error.code == code
    with pytest.raises(StandfastError, match=said):
        bad.result()
    assert 6 in batching.sizes, "they shared a batch"
    assert engine.deciders.state(Puppet, "p-bad") == ("before", "after")
    assert [engine.deciders.state(Puppet, key) for key in ("p-1", "p-2", "p-3")] == [("before",)] * 2 + [("after",)]
    assert engine.admin.backlog() == []


@pytest.mark.parametrize("name", ["raises", "no event", "event too large", "endless timer", "unkeepable timer key"])
def test_a_misdeed_on_the_first_command_leaves_no_instance(live: Live, name: str) -> None:
    """An instance whose first command fails was never born, and its key is free."""
    misdeed, code, _ = MISDEEDS[name]
    engine = live.engine(SMALL).register(misbehaving(misdeed))
    error = engine.futures.deciders.execute(Puppet, Do("p-bad", BAD)).exception(timeout=30)
    assert isinstance(error, StandfastError)
    assert error.code == code
    assert engine.instances.list() == []
    engine.futures.deciders.execute(Puppet, Do("p-bad", "good")).result(timeout=30)
    assert engine.deciders.state(Puppet, "p-bad") == ("good",)


# -- A state that can be changed in place, and a decider that does so.


@dataclass
class Pile:
    stones: list[str]


class Careless(Decider[Pile, Do, Noted, None]):
    """Throws stones about while it decides, and then fails or refuses."""

    type = "careless"

    def initial(self) -> Pile:
        return Pile([])

    def evolve(self, state: Pile, event: Noted) -> Pile:
        if event.what == "evolve":
            state.stones.append("lost")
            raise ValueError("evolve")
        return Pile([*state.stones, event.what])

    def decide(self, state: Pile, command: Do, moment: Moment) -> Answer:
        match command.what:
            case "raise":
                state.stones.append("lost")
                raise ValueError("raise")
            case "reject":
                return Rejection(code="no", message="no")
            case "ignore":
                return Ignored()
            case "how many":
                return Decision.event(Noted(str(len(state.stones))))
            case _:
                return Decision.event(Noted(command.what))


@pytest.mark.parametrize("how", ["raise", "evolve"])
@pytest.mark.parametrize("snapshots", [1, 100])
def test_a_state_that_was_spoilt_before_a_failure_is_not_used_again(live: Live, how: str, snapshots: int) -> None:
    """A decider that changes its state and then raises leaves no trace: neither in memory, nor in a snapshot, nor in a batch."""
    engine = live.engine(msgspec.structs.replace(QUICK, committers=1, snapshot_events=snapshots)).register(Careless())
    batching = Batching(engine)
    with batching.one():
        words = ("a", how, "how many", how, "reject", "how many")
        replies = [engine.futures.deciders.execute(Careless, Do("c-1", word)) for word in words]
    failed = [type(reply.exception(timeout=30)) for reply in replies]
    nothing = type(None)
    assert failed == [nothing, CommandError, nothing, CommandError, RejectedError, nothing]
    assert 6 in batching.sizes
    engine.futures.deciders.execute(Careless, Do("c-1", "how many")).result(timeout=30)
    assert engine.deciders.state(Careless, "c-1").stones == ["a", "1", "2", "3"]


# -- The other functions of a decider.


_STATUSES = {
    "wrong status": "fine",
    "unknown status": Status("sleeping"),  # type: ignore[arg-type]
    "number as reason": Status("running", 7),  # type: ignore[arg-type]
}


class Broken(Puppet):
    """Fails where it is told to."""

    type = "broken"

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where

    def fail(self, where: str, key: str = BAD) -> None:
        """Raise if this is the place."""
        if where == self._where.removesuffix(", badly") and key == BAD:
            raise KeyboardInterrupt(where) if self._where.endswith("badly") else ValueError(f"broken {where}")

    def initial(self) -> Notes:
        self.fail("initial")
        return ()

    def status(self, state: Notes) -> Status:
        self.fail("status", state[-1])
        if state[-1] == BAD and self._where in _STATUSES:
            return _STATUSES[self._where]  # type: ignore[return-value]
        return super().status(state)

    def is_terminal(self, state: Notes) -> bool:
        self.fail("is_terminal", state[-1] if state else "")
        return False

    def key_of(self, command: Do) -> str:
        self.fail("key_of", command.what)
        return "" if self._where == "empty key" and command.what == BAD else super().key_of(command)


PLACES = ("initial", "status", "is_terminal")


@pytest.mark.parametrize(
    "where", [*PLACES, *_STATUSES, "key_of", "empty key", *(f"{place}, badly" for place in PLACES)]
)
def test_every_function_of_a_decider_may_fail(live: Live, where: str) -> None:
    """Whatever raises, the caller gets a CommandError that names the decider, and the neighbours are carried out."""
    engine = live.engine(ONE_COMMITTER).register(Broken(where)).register(Counter())
    batching = Batching(engine)
    with batching.one():
        before = engine.futures.deciders.execute(Counter, Add("c-1"))
        bad = engine.futures.deciders.execute(Broken, Do("b-1", BAD))
        after = engine.futures.deciders.execute(Counter, Add("c-1"))
    for reply in (before, after):
        reply.result(timeout=30)
    with pytest.raises(CommandError, match="'broken'") as caught:
        bad.result(timeout=30)
    assert caught.value.code == "decider_failed"
    assert engine.deciders.state(Counter, "c-1") == 2
    assert [head.definition for head in engine.instances.list() if head.definition == "broken"] == []


_ESCAPES = {"exits", "interrupts", "is cancelled", "closes a generator", "fails a test", "cannot say why"}
"""What ends a test that has no engine around it."""


@pytest.mark.parametrize(
    "name", [name for name, (_, code, _) in MISDEEDS.items() if code == "decider_failed" and name not in _ESCAPES]
)
def test_the_kit_says_no_where_an_engine_does(name: str) -> None:
    """A decider that is refused by an engine is refused by the kit, in the same words."""
    misdeed, _, said = MISDEEDS[name]
    told = given(misbehaving(misdeed)).beside(Doll()).when(Do("p-bad", BAD)).then_error(CommandError).answer
    assert re.search(said, str(told))


@pytest.mark.parametrize("where", ["status", *_STATUSES])
def test_the_kit_takes_no_past_that_has_no_status(where: str) -> None:
    """Events after which a decider cannot say where it stands were never stored, so nothing can be given with them."""
    with pytest.raises(CommandError, match="'broken'"):
        given(Broken(where), Noted(BAD))
    given(Broken(where)).when(Do("b-1", BAD)).then_error(CommandError)


def test_a_status_is_one_of_the_words(place: Place) -> None:
    """Lists filter by six words; what else a decider has to say is the reason."""
    engine = place.engine().register(Broken("unknown status"))
    with pytest.raises(
        CommandError, match=r"'broken' gives the status 'sleeping'; give one of running, paused, .* reason"
    ):
        engine.deciders.execute(Broken, Do("b-1", BAD))


class Keyless(Doll):
    """Finds no instance for a command."""

    type = "keyless"

    def key_of(self, command: Do) -> str:
        return command.what


def test_a_command_without_a_key_is_refused_wherever_it_comes_from(place: Place) -> None:
    """`execute`, `submit`, a message of a decision and the kit alike refuse a command for which key_of gives nothing."""
    told = r"'keyless' gave '' in key_of for Do; return the key of its instance"

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted("x")).with_message(Message(decider="keyless", command=Do("k-1", "")))

    engine = place.engine().register(Keyless()).register(Puppet(choose))
    for call in (
        lambda: engine.futures.deciders.execute(Keyless, Do("k-1", "")),
        lambda: engine.futures.deciders.submit(Keyless, Do("k-1", "")),
        lambda: engine.futures.deciders.execute(Puppet, Do("p-1", "x")),
    ):
        with pytest.raises(CommandError, match=told):
            call().result()
    assert engine.instances.list() == []
    assert engine.admin.backlog() == []
    given(Keyless()).when(Do("k-1", "")).then_error(CommandError)
    given(Puppet(choose)).beside(Keyless()).when(Do("p-1", "x")).then_error(CommandError)


class Unclear(Puppet):
    """Gives a reason that no database can keep."""

    type = "unclear"

    def status(self, state: Notes) -> Status:
        return Status("running", "half\x00a word" if BAD in state else "")


def test_a_reason_that_cannot_be_kept_is_refused(live: Live) -> None:
    """A status is checked before anything is written, on both stores alike."""
    engine = live.engine().register(Unclear())
    engine.deciders.execute(Unclear, Do("u-1", "good"))
    error = engine.futures.deciders.execute(Unclear, Do("u-1", BAD)).exception(timeout=30)
    assert isinstance(error, PayloadError)
    assert "reason of a status" in str(error)
    assert engine.deciders.state(Unclear, "u-1") == ("good",)


class Contradictory(Puppet):
    """Gives a status of its own, whatever `is_terminal` says."""

    type = "contradictory"

    def __init__(self, word: StatusWord) -> None:
        super().__init__()
        self._word = word

    def status(self, state: Notes) -> Status:
        return Status(self._word)


CONTRADICTIONS: list[tuple[StatusWord, str, str]] = [
    (
        "completed",
        "x",
        "'contradictory' gives the status 'completed', which is an end, and its is_terminal says that it goes on",
    ),
    (
        "paused",
        END,
        "'contradictory' gives the status 'paused', which is no end, and its is_terminal says that it has ended",
    ),
]


@pytest.mark.parametrize(("word", "what", "said"), CONTRADICTIONS)
def test_a_status_that_contradicts_the_end_is_refused(live: Live, word: StatusWord, what: str, said: str) -> None:
    """Whether an instance has ended is said twice where a decider defines both, and has to be said alike; the kit asks for it too."""
    decider = Contradictory(word)
    engine = live.engine().register(decider)
    with pytest.raises(CommandError, match=said):
        engine.futures.deciders.execute(decider, Do("c-1", what)).result(timeout=30)
    assert engine.instances.list() == []
    told = given(decider).when(Do("c-1", what)).then_error(CommandError).answer
    assert said in str(told)
    other = END if what == "x" else "x"
    engine.futures.deciders.execute(decider, Do("c-1", other)).result(timeout=30)
    given(decider).when(Do("c-1", other)).then(Noted(other))


def test_verification_finds_a_status_that_contradicts_the_end(live: Live) -> None:
    """A later release that contradicts itself about instances that are there is told so for each of them."""
    live.must_fold = False
    engine = live.engine().register(Contradictory("paused"))
    engine.deciders.execute(Contradictory, Do("c-1", "x"))
    later = live.engine().register(Contradictory("completed"))
    (found,) = later.deciders.verify(Contradictory, "c-1").differences
    assert found.startswith("status: 'contradictory' gives the status 'completed'")


class Helpless(Puppet):
    """Fails when it is told that an effect gave up."""

    type = "helpless"

    def effect_failed(self, effect: Act, failure: Failure) -> Do | None:
        raise ValueError("and this failed too")


def test_a_decider_that_fails_on_bad_news_does_not_stop_the_worker(live: Live) -> None:
    """When `effect_failed` raises, the effect is a dead letter like any other, and other effects go on."""

    def broken(context: object, effect: object) -> Do | None:
        raise ValueError("no")

    settings = msgspec.structs.replace(QUICK, retry=msgspec.structs.replace(QUICK.retry, max_attempts=1))
    engine = live.engine(settings).register(Helpless(act), broken).register(Puppet(act), done).start_worker()
    engine.deciders.execute(Helpless, Do("h-1", "x"))
    (letter,) = eventually(engine.dead_letters.list)
    assert (letter.source, letter.error) == ("effect", "ValueError: no")
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    eventually(lambda: not engine.admin.backlog())
    assert engine.health().is_healthy


@pytest.mark.parametrize("comment", ["\x00", "half \ud800"])
def test_a_comment_that_cannot_be_kept_fails_alone(live: Live, comment: str) -> None:
    """Free text of a caller is checked like everything else."""
    engine = live.engine(ONE_COMMITTER).register(Counter())
    batching = Batching(engine)
    with batching.one():
        good = [engine.futures.deciders.execute(Counter, Add("c-1")) for _ in range(2)]
        bad = engine.futures.deciders.execute(Counter, Add("c-1"), comment=comment)
        good.append(engine.futures.deciders.execute(Counter, Add("c-2")))
    for reply in good:
        reply.result(timeout=30)
    error = bad.exception(timeout=30)
    assert isinstance(error, StandfastError)
    assert error.code == "bad_payload"
    assert engine.deciders.state(Counter, "c-1") == 2


def test_effects_have_a_priority_between_0_and_100() -> None:
    """The range is checked where the effect is made."""
    for priority in (-1, 101):
        with pytest.raises(CommandError, match="between 0 and 100"):
            Effect(body=Act("x"), priority=priority)
