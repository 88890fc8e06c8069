"""What a handler gets is its own: whatever it does to its data reaches no other call, no other step and no stored row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from app.sagas.acting import BROKEN, status
from standfast import PayloadError, Saga, StepContext, WorkflowFailedError, task
from standfast.features.sagas import SagaDefinition
from support.engines import Live, Place
from support.samples import Ledger
from support.waiting import together

DATA: dict[str, object] = {"list": ["good"], "deep": {"n": 1}}


def spoil(data: Any) -> None:
    """Do to data what one should not."""
    data["list"].append("evil")
    data["deep"]["n"] += 1
    data["more"] = True


def spoiling(ledger: Ledger, *, fails: int = 0) -> Any:
    """A handler that writes down what it was given and then spoils it, in its parameters and in its context."""

    def work(data: dict[str, object], ctx: StepContext) -> None:
        ledger.add((ctx.step, repr(data), repr(ctx.input), repr(ctx.output), repr(ctx.metadata)))
        for each in (data, ctx.input):
            spoil(each)
        for given in (ctx.metadata, ctx.output):
            if isinstance(given, dict):
                given["evil"] = True
        if ctx.attempt <= fails:
            raise BROKEN

    return work


def seen(ledger: Ledger) -> set[object]:
    """What the handlers were given, without repetitions and without the names of their steps."""
    return {entry[1:] for entry in ledger.entries if isinstance(entry, tuple)}


def row(ledger: Ledger) -> SagaDefinition:
    """Steps in a row and side by side, all of which spoil what they get."""
    work = spoiling(ledger, fails=1)
    saga = Saga("s").step("a", work, attempts=2).step("b", work, attempts=2)
    return saga.parallel("p", task("c", work, attempts=2), task("d", work, attempts=2)).build()


@pytest.mark.row("F-236", "F-245")
def test_no_handler_changes_the_data_of_another(live: Live) -> None:
    """Neither the next call of a step, nor the next step, nor its sibling sees what a handler did to its data."""
    ledger = Ledger()
    engine = live.engine().register(row(ledger)).start_worker()
    one = engine.start("s", DATA).id
    engine.run(one).result(timeout=30)
    assert len(ledger.entries) == 8
    assert seen(ledger) == {(repr(DATA), repr(DATA), "None", "{}")}
    assert engine.instances.verify(one).differences == []


def test_the_engine_of_a_test_behaves_alike(place: Place) -> None:
    """What holds with threads holds without."""
    ledger = Ledger()
    engine = place.engine().register(row(ledger))
    one = engine.start("s", DATA).id
    engine.advance(minutes=1)
    assert status(engine, one) == "completed"
    assert seen(ledger) == {(repr(DATA), repr(DATA), "None", "{}")}


@pytest.mark.row("G-01")
def test_a_compensation_gets_what_the_step_had(live: Live) -> None:
    """Each call that undoes a step gets its data and its answer as they were, whatever the call before did to them."""
    ledger = Ledger()
    saga = Saga("s").step("a", lambda: {"answer": 1}).on_failure("undo", spoiling(ledger, fails=1), attempts=2)
    engine = live.engine().register(saga.step("b", "broken", attempts=1).build())

    def broken() -> None:
        raise BROKEN

    engine.handle("broken", broken).start_worker()
    one = engine.start("s", DATA).id
    with pytest.raises(WorkflowFailedError):
        engine.run(one).result(timeout=30)
    merged = {**DATA, "answer": 1}
    assert seen(ledger) == {(repr(merged), repr(DATA), repr({"answer": 1}), "{}")}
    assert len(ledger.entries) == 2


def test_metadata_are_the_definitions(live: Live) -> None:
    """A handler that changes the metadata of its step changes its own copy, and no later instance."""
    ledger = Ledger()
    saga = Saga("s").step("a", spoiling(ledger), metadata={"url": "x"}).build()
    engine = live.engine().register(saga).start_worker()
    for _ in range(3):
        engine.start("s", DATA).result(timeout=30)
    assert seen(ledger) == {(repr(DATA), repr(DATA), "None", repr({"url": "x"}))}


def test_everybody_who_waits_gets_a_result_of_his_own(live: Live) -> None:
    """Whoever is told of the end may do with the result what he likes: others and the engine do not notice."""
    engine = live.engine().register(Saga("s").step("a", "pause").build())
    one = engine.start("s", DATA).id
    waiting = [engine.futures.run(one).result() for _ in range(3)]
    engine.handle("pause", lambda: {"list": ["good"]}).start_worker()
    for reply in (*waiting, engine.futures.run(one).result()):
        result: Any = reply.result(timeout=30)
        assert result == DATA
        spoil(result)
    assert engine.instances.verify(one).differences == []


def test_definitions_never_change(place: Place) -> None:
    """Neither the one that was registered nor the one that was asked for is what the engine runs."""
    ledger = Ledger()
    saga = Saga("s").step("a", spoiling(ledger), metadata={"url": "x"}).build()
    engine = place.engine().register(saga)
    for graph in (saga.graph, engine.definitions.get("s")):
        metadata: Any = graph.nodes["a"].metadata
        metadata["url"] = "evil"
    engine.start("s", DATA)
    engine.drain()
    assert {entry[-1] for entry in ledger.entries if isinstance(entry, tuple)} == {repr({"url": "x"})}


ODD = datetime(1937, 1, 1, 12, tzinfo=timezone(timedelta(minutes=19, seconds=32)))


def test_a_time_in_the_data_keeps_its_instant(place: Place) -> None:
    """As text a time has no seconds in its offset: one that needs them is refused, and UTC always works."""
    engine = place.engine().register(Saga("s").step("a", lambda: {"at": [ODD]}, attempts=1).build())
    for wrong in ({"at": ODD}, {"deep": [{"at": (1, ODD)}]}):
        with pytest.raises(PayloadError, match="seconds in its offset"):
            engine.start("s", wrong)
    one = engine.start("s", {"at": ODD.astimezone(UTC)}).id
    engine.drain()
    with pytest.raises(WorkflowFailedError, match="seconds in its offset"):
        engine.run(one).result()


def test_callers_that_start_at_once_share_nothing(live: Live) -> None:
    """The input is copied when it is given: what the caller does to it afterwards, or at the same time, changes nothing."""
    ledger = Ledger()
    engine = live.engine().register(Saga("s").step("a", spoiling(ledger)).build()).start_worker()
    shared: dict[str, Any] = {"list": ["good"], "deep": {"n": 1}}
    started = [engine.futures.start("s", shared) for _ in range(5)]
    together(*[lambda: spoil(shared), *[lambda reply=reply: reply.result() for reply in started]])
    for reply in started:
        engine.run(reply.result().id).result(timeout=30)
    assert seen(ledger) == {(repr(DATA), repr(DATA), "None", "{}")}
