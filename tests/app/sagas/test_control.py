"""Starting, listing, asking for results, keeping tenants apart, and proving that what is stored is what happened."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
import weakref
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Protocol

import pytest

from app.sagas.acting import BROKEN, Gate, Stage, history, person, run, status, step
from standfast import (
    Actor,
    Calls,
    NotFoundError,
    Page,
    PayloadError,
    RejectedError,
    Reply,
    ReusedIdError,
    Saga,
    SagaDefinition,
    StandfastError,
    StoppedError,
    WorkflowFailedError,
)
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.desks import Desk
from support.engines import Live, Place
from support.waiting import LONG_SECONDS, arrives, eventually, together

NOBODY = "00000000-0000-7000-8000-000000000000"


def simple(stage: Stage, name: str = "simple", version: int = 1) -> SagaDefinition:
    """One step that can be undone, and a question."""
    return (
        Saga(name, version)
        .step("work", stage.does("work"))
        .on_failure("undo", stage.does("undo"))
        .human("ask", role="clerk")
        .build()
    )


# -- starting


@pytest.mark.row("G-24")
def test_a_business_key_names_one_instance_ever(place: Place) -> None:
    """A second start with the same key is refused, also after the first one has ended; another definition has keys of its own."""
    stage = Stage()
    engine = place.engine().register(simple(stage)).register(simple(stage, "other"))
    first = engine.start("simple", key="o-1").id
    for _ in range(2):
        with pytest.raises(RejectedError) as caught:
            engine.start("simple", key="o-1")
        assert caught.value.reason == "already_started"
        assert f"'o-1' is the key of instance {first}, which was started before; " in str(caught.value)
        assert "give another key" in str(caught.value)
        engine.acting("ann").futures.run(first).abort("over")
    assert engine.start("other", key="o-1").id != first
    assert engine.run(first).describe().key == "o-1"
    assert [each.id for each in engine.runs.list(key="o-1", definition="simple").items] == [first]


@pytest.mark.row("EC-26")
def test_an_idempotency_key_gives_the_same_instance(place: Place) -> None:
    """Asking again is safe: the same instance, started once, also from another process and together with a business key."""
    stage = Stage()
    engine = place.engine().register(simple(stage))
    first = engine.start("simple", {"n": 1}, idempotency_key="click", key="o-1").id
    assert engine.start("simple", {"n": 1}, idempotency_key="click", key="o-1").id == first
    other = place.engine().register(simple(stage))
    assert other.start("simple", {"n": 1}, idempotency_key="click", key="o-1").id == first
    assert other.start("simple", idempotency_key="other click").id != first
    engine.drain()
    assert engine.run(first).describe().input == {"n": 1}
    assert stage.count("work") == 2


@pytest.mark.parametrize("other", [{"input": {"n": 2}}, {"key": "o-2"}, {"key": ""}, {"delay": 60}])
def test_an_idempotency_key_stands_for_one_start(place: Place, other: dict[str, Any]) -> None:
    """The same key with another input, business key or delay is a mistake, and refused instead of answered with the first instance."""
    engine = place.engine().register(simple(Stage()))
    asked: dict[str, Any] = {"input": {"n": 1, "m": 2}, "key": "o-1", "idempotency_key": "click"}
    first = engine.start("simple", **asked).id
    with pytest.raises(ReusedIdError, match="'click' was used before"):
        engine.start("simple", **(asked | other))
    assert engine.start("simple", **(asked | {"input": {"m": 2, "n": 1}})).id == first
    assert [each.id for each in engine.runs.list().items] == [first]


def test_many_starts_with_one_idempotency_key_at_once(live: Live) -> None:
    """All callers get the same instance, and its first step is called once."""
    stage = Stage()
    engines = [live.engine().register(simple(stage)).start_worker() for _ in range(2)]
    found: list[InstanceId] = []

    def start(number: int) -> None:
        found.append(engines[number % 2].futures.start("simple", idempotency_key="click").result(LONG_SECONDS).id)

    together(*(partial(start, number) for number in range(8)))
    assert len(set(found)) == 1
    eventually(engines[0].tasks.list)
    assert stage.count("work") == 1


def test_many_starts_with_one_business_key_at_once(live: Live) -> None:
    """One of them starts the instance, the others are refused."""
    engines = [live.engine().register(simple(Stage())) for _ in range(2)]
    errors: list[BaseException | None] = []

    def start(number: int) -> None:
        errors.append(engines[number % 2].futures.start("simple", key="o-1").exception(LONG_SECONDS))

    together(*(partial(start, number) for number in range(8)))
    assert errors.count(None) == 1
    assert len(engines[0].runs.list().items) == 1


@pytest.mark.parametrize("given", [[1], "text", 7, True])
def test_an_input_must_be_an_object(place: Place, given: object) -> None:
    """Data has names; anything else is refused, and nothing is started."""
    engine = place.engine().register(simple(Stage()))
    with pytest.raises(PayloadError):
        engine.start("simple", given)
    assert engine.runs.list().items == []


def test_an_unknown_definition_cannot_be_started(place: Place) -> None:
    """Neither by name nor by version."""
    engine = place.engine().register(simple(Stage()))
    for name, version in (("nothing", ""), ("simple", "7"), ("simple-v7", "")):
        with pytest.raises(NotFoundError):
            engine.start(name, version=version)


# -- results


def ending(engine: ManualEngine, stage: Stage, how: str) -> InstanceId:
    """An instance on its way to this end, with the last push still to come from `drain`."""
    instance = engine.start("simple", {"n": 1}).id
    if how == "failed":
        stage.does("work", BROKEN)
        return instance
    engine.drain()
    where = step(engine, instance, "ask").id
    match how:
        case "completed":
            engine.acting(person("ann", "clerk")).tasks.decide(where, "confirmed")
        case "cancelled":
            engine.acting("ann").futures.run(instance).cancel("no more")
        case _:
            engine.acting(person("ann", "clerk")).tasks.decide(where, "rejected")
    return instance


@pytest.mark.parametrize(
    ("how", "reason"),
    [("failed", "'work' failed: ValueError: broken"), ("cancelled", "no more"), ("aborted", "'ask' was rejected")],
)
def test_an_instance_that_did_not_end_well_has_no_result(place: Place, how: str, reason: str) -> None:
    """Asking for it raises an error that says how it ended and why, whether one asks before or after the end."""
    stage = Stage()
    engine = place.engine().register(simple(stage))
    instance = ending(engine, stage, how)
    early = engine.futures.run(instance).result()
    engine.drain()
    for reply in (early, engine.futures.run(instance).result()):
        with pytest.raises(WorkflowFailedError) as caught:
            reply.result(1)
        assert (caught.value.status, caught.value.reason) == (how, reason)
        assert caught.value.instance == str(instance)


def test_the_result_of_an_instance_that_ended_well(place: Place) -> None:
    """Its data: what it was started with, and what its steps have answered."""
    stage = Stage()
    stage.does("work", {"done": True})
    engine = place.engine().register(simple(stage))
    instance = ending(engine, stage, "completed")
    result = engine.run(instance).result(1)
    assert engine.run(instance).describe().result == result
    assert isinstance(result, dict)
    assert result.pop("ask")["status"] == "confirmed"
    assert result == {"n": 1, "done": True}


def test_a_result_is_waited_for(live: Live) -> None:
    """The reply comes with the end, also to a process that does not work itself; an instance that waits has none yet."""
    stage, gate = Stage(), Gate()
    stage.does("work", gate)
    saga = Saga("short").step("work", stage.does("work")).build()
    live.engine().register(saga).start_worker()
    asking = live.engine().register(saga)
    instance = asking.start("short").id
    reply = asking.futures.run(instance).result()
    gate.entered()
    assert not reply.done()
    gate.open()
    assert reply.result(LONG_SECONDS) == {}


def test_a_result_is_found_however_many_others_are_asked_for(live: Live) -> None:
    """Another process ends the instance while this one is asked for results all the time."""
    there, here = (live.engine().register(Saga("s").human("ask").build()) for _ in range(2))
    one, other = there.start("s").id, there.start("s").id
    reply = here.futures.run(one).result()
    there.run(one).abort()
    deadline = time.monotonic() + LONG_SECONDS
    while not reply.done() and time.monotonic() < deadline:
        here.futures.run(other).result()
    with pytest.raises(WorkflowFailedError):
        reply.result(timeout=0)


def test_nobody_is_remembered_who_does_not_wait_any_more(live: Live) -> None:
    """An instance may take weeks: replies that were given up, at a limit or by a task that was cancelled, are gone before it ends."""
    gate, stage = Gate(), Stage()
    stage.does("work", gate)
    engine = live.engine().register(Saga("s").step("work", stage.does("work")).build()).start_worker()
    instance = engine.start("s").id
    gate.entered()
    replies = list[weakref.ref[Reply[Any]]]()

    def ask() -> Reply[Any]:
        reply = engine.futures.run(instance).result()
        replies.append(weakref.ref(reply))
        return reply

    async def ask_impatiently() -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_awaited(ask()), 0.01)

    for _ in range(3):
        with pytest.raises(TimeoutError):
            ask().result(0)
        asyncio.run(ask_impatiently())
    eventually(lambda: gc.collect() is not None and not any(reply() for reply in replies))
    gate.open()


async def _awaited(reply: Reply[Any]) -> object:
    return await reply


def test_whoever_is_to_be_called_back_is_remembered(live: Live) -> None:
    """A reply that nobody holds is not forgotten while something is to be done with it; one that is held can be looked at."""
    gate, stage = Gate(), Stage()
    stage.does("work", gate)
    engine = live.engine().register(Saga("s").step("work", stage.does("work")).build()).start_worker()
    instance = engine.start("s").id
    called, changed = threading.Event(), threading.Event()
    engine.futures.run(instance).result().when_done(called.set)
    engine.futures.run(instance).result().then(lambda _result: changed.set())
    held = engine.futures.run(instance).result()
    gc.collect()
    gate.entered()
    gate.open()
    for event in (called, changed):
        arrives(event)
    eventually(held.done)


def test_a_stopped_engine_gives_no_result(live: Live) -> None:
    """Whoever asks it is told, and no thread is started for him."""
    engine = live.engine().register(Saga("s").human("ask").build())
    one = engine.start("s").id
    engine.stop()
    threads = set(threading.enumerate())
    with pytest.raises(StoppedError):
        engine.run(one).result(timeout=30)
    assert set(threading.enumerate()) <= threads


def test_nobody_has_no_result(place: Place) -> None:
    """An unknown instance is an error at once."""
    engine = place.engine().register(simple(Stage()))
    with pytest.raises(NotFoundError):
        engine.run(NOBODY).result(1)
    with pytest.raises(PayloadError):
        engine.run("nonsense").result(1)


# -- lists


def gathered(engine: Calls, **filters: object) -> list[InstanceId]:
    """All instances of a list, a page of two at a time."""
    ask: Callable[..., Page] = engine.runs.list
    found: list[InstanceId] = []
    cursor = None
    while True:
        page = ask(**filters, cursor=cursor, limit=2)
        found += [each.id for each in page.items]
        cursor = page.next
        if cursor is None:
            return found


@pytest.mark.row("G-10")
def test_lists_are_filtered_and_paged(place: Place) -> None:
    """By definition, version, status, key and time; newest first; following the cursor gives each instance once."""
    stage = Stage()
    engine = place.engine().register(simple(stage)).register(simple(stage, version=2)).register(simple(stage, "other"))
    begun = place.clock.now()
    old = [engine.start("simple", version=1, key=f"o-{number}").id for number in range(3)]
    engine.drain()
    engine.advance(hours=1)
    middle = place.clock.now()
    new = [engine.start("simple").id for _ in range(2)]
    other = engine.start("other").id
    engine.acting("ann").run(old[0]).abort("no")
    engine.acting("ann").run(other).abort("no")
    everything = gathered(engine)
    assert sorted(everything) == sorted([*old, *new, other])
    assert set(everything[:3]) == {*new, other}
    assert set(gathered(engine, definition="simple", version=1)) == set(old)
    assert set(gathered(engine, definition="simple")) == {*old, *new}
    assert set(gathered(engine, status="aborted")) == {old[0], other}
    assert set(gathered(engine, status="running")) == set(old[1:])
    assert set(gathered(engine, status="pending")) == set(new)
    assert set(gathered(engine, status=("pending", "aborted"))) == {*new, old[0], other}
    assert gathered(engine, key="o-1") == [old[1]]
    assert set(gathered(engine, created_before=middle)) == set(old)
    assert set(gathered(engine, created_after=middle)) == {*new, other}
    assert gathered(engine, created_before=begun) == []
    assert {each.id for each in engine.runs.list(is_active=True).items} == {*old[1:], *new}


def test_a_nonsensical_cursor_is_refused(place: Place) -> None:
    """It is an error, not an empty list."""
    with pytest.raises(PayloadError):
        place.engine().register(simple(Stage())).runs.list(cursor="nonsense")


# -- tenants


EVE = Actor(id="eve", capabilities=frozenset({"execution:*"}))
"""Somebody who may do everything in a tenant of her own."""


class Theirs:
    """What belongs to tenant `a`: an instance that waits for a person, one with a dead letter, one that could not be undone."""

    def __init__(self, engine: ManualEngine) -> None:
        stage = Stage()
        stage.does("bad", BROKEN)
        engine.register(simple(stage))
        engine.register(Saga("dead", dlq=True).step("bad", stage.does("bad"), attempts=1).build())
        stuck = Saga("stuck").step("bad", stage.does("bad"), attempts=1)
        engine.register(stuck.on_failure("worse", stage.does("worse", BROKEN), attempts=1).build())
        self.owner = engine.as_tenant("a", actor=Actor(id="ann", capabilities=frozenset({"execution:*"})))
        self.waiting = self.owner.start("simple", key="o-1", idempotency_key="click").id
        self.dead = self.owner.start("dead").id
        self.stuck = self.owner.start("stuck").id
        engine.drain()
        self.question = step(self.owner, self.waiting, "ask").id
        self.letters = {each.source: each.id for each in self.owner.dead_letters.list()}
        assert set(self.letters) == {"step", "compensation"}


class Answer(Protocol):
    """What every call gives."""

    def result(self, timeout: float | None = None) -> object:
        """The answer, or the error."""
        ...


TOUCHES: dict[str, Callable[[Calls, Theirs], Answer]] = {
    "get": lambda calls, them: calls.futures.run(them.waiting).describe(),
    "steps": lambda calls, them: calls.futures.run(them.waiting).steps(),
    "events": lambda calls, them: calls.futures.run(them.waiting).history(),
    "tasks": lambda calls, them: calls.futures.run(them.waiting).tasks(),
    "result": lambda calls, them: calls.futures.run(them.waiting).result(),
    "verify": lambda calls, them: calls.futures.instances.verify(them.waiting),
    "diagram": lambda calls, them: calls.futures.run(them.waiting).diagram(),
    "cancel": lambda calls, them: calls.acting("eve").futures.run(them.waiting).cancel("mine"),
    "abort": lambda calls, them: calls.acting("eve").futures.run(them.waiting).abort("mine"),
    "decide": lambda calls, them: calls.acting("eve").futures.tasks.decide(them.question, "rejected"),
    "signal": lambda calls, them: calls.futures.run(them.waiting).signal("go"),
    "resume": lambda calls, them: calls.futures.run(them.dead).resume(),
    "dead_letter": lambda calls, them: calls.futures.dead_letters.get(them.letters["step"]),
    "requeue": lambda calls, them: calls.futures.dead_letters.requeue(them.letters["step"]),
    "retry_compensation": lambda calls, them: calls.futures.dead_letters.retry_compensation(
        them.letters["compensation"]
    ),
    "discard": lambda calls, them: calls.futures.dead_letters.discard(them.letters["compensation"]),
    "delete": lambda calls, them: calls.futures.instances.delete(them.stuck),
}
"""Every call that names something, aimed at what belongs to another tenant."""


@pytest.mark.parametrize("what", TOUCHES)
def test_nobody_touches_what_belongs_to_another_tenant(place: Place, what: str) -> None:
    """For tenant `b`, and for the engine's own, the things of tenant `a` do not exist, and nothing of them changes."""
    engine = place.engine()
    them = Theirs(engine)
    before = [history(them.owner, each) for each in (them.waiting, them.dead, them.stuck)]
    for stranger in (engine.as_tenant("b", actor=EVE), engine):
        with pytest.raises(NotFoundError):
            TOUCHES[what](stranger, them).result(1)
    engine.drain()
    assert [history(them.owner, each) for each in (them.waiting, them.dead, them.stuck)] == before
    assert len(them.owner.dead_letters.list()) == 2


def test_a_tenant_does_not_see_others_in_lists(place: Place) -> None:
    """Instances, questions and dead letters of others are in no list; keys are each tenant's own."""
    engine = place.engine()
    them = Theirs(engine)
    stranger = engine.as_tenant("b", actor=EVE)
    assert stranger.runs.list().items == []
    assert stranger.runs.list(key="o-1").items == []
    assert stranger.runs.list(is_active=True).items == []
    assert stranger.tasks.list() == []
    assert stranger.dead_letters.list() == []
    assert stranger.dead_letters.list(instance=them.dead) == []
    mine = stranger.start("simple", key="o-1", idempotency_key="click").id
    assert mine != them.waiting
    engine.drain()
    assert [each.instance for each in stranger.tasks.list()] == [mine]
    assert [each.instance for each in them.owner.tasks.list()] == [them.waiting]
    assert stranger.run(mine).describe().tenant == "b"


def test_a_handler_knows_for_whom_it_works(place: Place) -> None:
    """The context of a call names the tenant, and so do a child's and a compensation's."""
    stage = Stage()
    engine = place.engine()
    engine.register(Saga("child").step("below", stage.does("below")).on_failure("undo", stage.does("undo")).build())
    engine.register(
        Saga("parent")
        .call("sub", "child")
        .step("bad", stage.does("bad", BROKEN), attempts=1)
        .on_failure("worse", stage.does("worse"))
        .build()
    )
    owner = engine.as_tenant("a")
    instance = owner.start("parent").id
    engine.drain()
    assert owner.run(instance).describe().status == "failed"
    assert {stage.contexts(name)[0].tenant for name in ("below", "bad", "worse")} == {"a"}
    (below,) = owner.runs.list(parent=instance).items
    assert owner.run(below.id).describe().tenant == "a"
    assert engine.runs.list().items == []


# -- proof


def witnessed(engine: ManualEngine) -> InstanceId:
    """An instance with a bit of everything: calls, a question, a wait for a signal, a dead letter."""
    stage = Stage()
    stage.does("work", {"done": True})
    stage.does("bad", BROKEN)
    saga = (
        Saga("witnessed", dlq=True)
        .step("work", stage.does("work"))
        .fork(
            "fork",
            lambda branch: branch.human("ask"),
            lambda branch: branch.wait_for("wait", "go"),
            lambda branch: branch.step("bad", stage.does("bad"), attempts=2),
        )
        .join("join")
        .build()
    )
    engine.register(saga)
    return run(engine, "witnessed", {"n": 1})


def test_what_is_stored_is_what_the_history_says(place: Place) -> None:
    """Folding the whole history again gives the state, the steps, the questions, the dead letters and the instance's own row."""
    engine = place.engine()
    instance = witnessed(engine)
    found = engine.instances.verify(instance)
    assert found.is_sound
    assert found.differences == []
    assert found.version == len(history(engine, instance))


@pytest.mark.row("EC-23")
@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("update {}steps set attempts = 9 where node = 'work'", "step 1"),
        ("update {}steps set error = 'forged' where node = 'bad'", "step 5"),
        ("update {}steps set outcome = 'error' where node = 'work'", "step 1"),
        ("update {}steps set output = input where node = 'work'", "step 1"),
        ("update {}steps set input = output where node = 'work'", "step 1"),
        ("update {}steps set wait_kind = '' where node = 'ask'", "step 3"),
        ("update {}human_tasks set subject = 'forged'", "task 3"),
        ("update {}human_tasks set role = 'forged'", "task 3"),
        ("update {}subscriptions set signal = 'forged'", "subscription 4 0"),
        ("delete from {}subscriptions", "subscription 4 0"),
        ("update {}dead_letters set error = 'forged'", "letter step 5"),
        ("update {}dead_letters set name = 'forged'", "letter step 5"),
        ("update {}dead_letters set attempts = 9", "letter step 5"),
        ("update {}dead_letters set reason = 'forged'", "letter step 5"),
        ("delete from {}dead_letters", "letter step 5"),
        ("update {}instances set status = 'running'", "status"),
        ("update {}instances set reason = 'forged'", "reason"),
    ],
)
def test_a_row_that_was_tampered_with_is_found(place: Place, statement: str, what: str) -> None:
    """Any difference between a stored row and the history is named."""
    place.must_fold = False
    engine = place.engine()
    instance = witnessed(engine)
    Desk(place.store).run(statement)
    found = engine.instances.verify(instance)
    assert not found.is_sound
    assert [each.partition(":")[0] for each in found.differences] == [what]


def test_rows_of_others_do_not_matter(place: Place) -> None:
    """Only the instance that was tampered with is unsound."""
    place.must_fold = False
    engine = place.engine()
    first = witnessed(engine)
    second = run(engine.register(Saga("other").human("ask", role="clerk").build()), "other")
    Desk(place.store).run("update {}human_tasks set subject = 'forged' where role = ''")
    assert not engine.instances.verify(first).is_sound
    assert engine.instances.verify(second).is_sound


def test_nobody_cannot_be_verified(place: Place) -> None:
    """An unknown instance is an error, not sound."""
    with pytest.raises(NotFoundError):
        place.engine().register(simple(Stage())).instances.verify(NOBODY)


# -- deletion and what remains


@pytest.mark.row("EC-34")
def test_only_what_has_ended_can_be_deleted(place: Place) -> None:
    """A running instance stays; one that has ended goes with its steps, questions and history."""
    stage = Stage()
    engine = place.engine().register(simple(stage))
    instance = run(engine, "simple")
    with pytest.raises(StandfastError):
        engine.instances.delete(instance)
    engine.acting("ann").run(instance).abort("over")
    engine.instances.delete(instance)
    answers: list[Answer] = [
        engine.futures.run(instance).describe(),
        engine.futures.run(instance).steps(),
        engine.futures.run(instance).history(),
    ]
    for gone in answers:
        with pytest.raises(NotFoundError):
            gone.result()
    assert engine.runs.list().items == []


def test_a_history_is_read_in_pages(place: Place) -> None:
    """Give the last sequence as `after`: the pages together are the whole."""
    engine = place.engine().register(simple(Stage()))
    instance = run(engine, "simple")
    whole = engine.run(instance).history()
    assert len(whole) > 3
    first = engine.run(instance).history(limit=2)
    rest = engine.run(instance).history(after=first[-1].sequence)
    assert [*first, *rest] == whole
    assert status(engine, instance) == "running"
    assert whole[-1].timestamp - whole[0].timestamp == timedelta(0)


def test_a_page_of_a_history_is_read_alone_if_nothing_before_it_matters(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What happened earlier is read only for steps whose handlers were called before the page, and for those that gave up."""
    stage = Stage()
    saga = (
        Saga("waits").step("one", stage.does("one")).wait_for("w", signal="go").step("two", stage.does("two")).build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "waits")
    engine.run(instance).signal("go")
    engine.drain()
    whole = engine.run(instance).history()
    begins = {each.step_name: each.sequence for each in reversed(whole) if each.step_name}
    with engine._desk.reader.look() as reader:
        kind = type(reader)
    read, asked = kind.events, []

    def counted(self: object, *given: object, **more: object) -> object:
        asked.append(more)
        return read(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "events", counted)
    assert engine.run(instance).history(after=begins["w"]) == [each for each in whole if each.sequence > begins["w"]]
    assert len(asked) == 1
    assert engine.run(instance).history(after=begins["one"])[0].step_name == "one"
    assert len(asked) == 3
