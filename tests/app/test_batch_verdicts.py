"""What a batch says of an item is true: what gave up again is not done, and what was refused is not so already."""

from __future__ import annotations

from typing import Literal

import pytest

from app.processes.acting import ends, process, registered
from standfast import Saga
from standfast.features.batches.views import Batch
from standfast.testing import ManualEngine
from support.engines import Place

broken: set[str] = set()


def _work(name: str) -> None:
    if name in broken:
        raise ValueError(f"{name} is down")


def followed(engine: ManualEngine, batch: Batch) -> list[tuple[str, str]]:
    """What became of the items in the end."""
    engine.advance(seconds=5)
    found = engine.batches.get(batch.id)
    told: list[tuple[str, str]] = [(each.status, each.detail) for each in engine.batches.items(batch.id)]
    assert found.is_clean == all(each[0] == "done" for each in told)
    return told


def _compensation(engine: ManualEngine) -> str:
    trade = Saga("trade").step("pay", lambda: None).on_failure("refund", lambda: _work("bank"), attempts=1)
    engine.register(trade.step("ship", lambda: _work("ship"), attempts=1).build())
    broken.add("ship")
    engine.start("trade")
    return "trade"


def _lone_branch(engine: ManualEngine) -> str:
    """Two compensations, of which the first gives up: the other one is tried behind it."""
    trade = Saga("pair").step("one", lambda: None).on_failure("undo_one", lambda: None, attempts=1)
    trade = trade.step("two", lambda: None).on_failure("undo_two", lambda: _work("bank"), attempts=1)
    engine.register(trade.step("ship", lambda: _work("ship"), attempts=1).build())
    broken.add("ship")
    engine.start("pair")
    return "pair"


def _notification(engine: ManualEngine) -> str:
    engine.handle("tell", lambda: _work("bank"))
    tell = {"id": "tell", "type": "notification", "operation": "tell", "retry": {"attempts": 1}}
    registered(engine, process(tell, *ends("done"), ways="tell completed done"))
    engine.processes.start("w", {})
    return "w"


@pytest.mark.row("EO-32")
@pytest.mark.parametrize("verb", ["requeue", "retry"])
@pytest.mark.parametrize("begun", [_compensation, _lone_branch, _notification])
def test_what_gave_up_again_has_failed_and_what_was_done_is_done(
    place: Place, begun: object, verb: Literal["requeue", "retry"]
) -> None:
    """That is asked of the compensation or the message itself, and not of the end of its run."""
    broken.clear()
    broken.add("bank")
    engine = place.engine()
    name = begun(engine)  # type: ignore[operator]
    engine.drain()
    assert engine.dead_letters.count() == 1
    runs = [each.id for each in engine.runs.list(definition=name).items]
    about = {"definition": name} if verb == "requeue" else {"runs": runs}
    batch = engine.batches.begin(verb, reason="again", **about)
    [(status, detail)] = followed(engine, batch)
    assert (status, "it gave up again" in detail, engine.dead_letters.count()) == ("failed", True, 1)
    broken.discard("bank")
    batch = engine.batches.begin(verb, reason="the bank is back", **about)
    assert followed(engine, batch) == [("done", "")]
    assert engine.dead_letters.count() == 0


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_what_waits_for_an_operator_is_neither_paused_nor_resumed(
    place: Place, verb: Literal["pause", "resume"]
) -> None:
    """A run whose step gave up refuses both, and the batch says so, with the reason."""
    broken.clear()
    broken.add("bank")
    engine = place.engine().register(Saga("lone", dlq=True).step("pay", lambda: _work("bank"), attempts=1).build())
    engine.start("lone")
    engine.drain()
    batch = engine.batches.begin(verb, definition="lone", reason="x")
    [(status, detail)] = followed(engine, batch)
    assert status == "refused"
    assert ("operator" if verb == "pause" else "requeued first") in detail


@pytest.mark.row("EO-32")
def test_a_batch_that_resumes_waives_no_compensation(place: Place) -> None:
    """Of the runs of a definition those that are paused go on; one that could not be undone is refused, and its letter stays."""
    broken.clear()
    broken.add("supplier")
    buy = Saga("buy").fork(
        "ask",
        lambda one: (
            one.step("reserve", lambda: None)
            .on_failure("release", lambda: _work("supplier"), attempts=1)
            .wait_for("late", "late")
        ),
        lambda two: two.wait_for("offer", "offer"),
    )
    engine = place.engine().register(buy.join("first", "any").build())
    first, second = engine.start("buy"), engine.start("buy")
    engine.drain()
    first.signal("offer")
    engine.drain()
    assert first.describe().reason == "compensation_failed"
    second.pause("the month is closed")
    batch = engine.batches.begin("resume", definition="buy", reason="the month is open")
    told = dict(followed(engine, batch))
    assert (set(told), "reserve" in told["refused"]) == ({"done", "refused"}, True)
    assert (first.describe().reason, engine.dead_letters.count()) == ("compensation_failed", 1)


@pytest.mark.row("EO-32")
@pytest.mark.parametrize("ask", ["role:finance", "manager"])
def test_a_run_that_waits_for_an_operator_again_is_not_resumed(place: Place, ask: str) -> None:
    """An item of a resume is open until the look for people has come back; if that finds nobody, the item has failed."""
    engine = place.engine()
    engine.directory.put("ann")
    engine.directory.grant("ann", "auditor")  # From now on roles are looked up.
    engine.directory.put("rita")
    engine.register(Saga("ask").human("ok", ask=ask).build())
    run = engine.acting("rita").start("ask", {})
    engine.drain()
    batch = engine.batches.begin("resume", runs=[run.id], reason="again")
    [(status, detail)] = followed(engine, batch)
    assert (status, "it waits for an operator: no_approver" in detail) == ("failed", True)
    engine.directory.grant("ann", "finance")
    engine.directory.set_manager("rita", "ann")
    engine.advance(minutes=1)  # The engine finds her by itself.
    engine.run(run.id).pause("wait")
    batch = engine.batches.begin("resume", runs=[run.id], reason="ann can")
    assert followed(engine, batch) == [("done", "")]
    assert engine.run(run.id).describe().status == "running"
