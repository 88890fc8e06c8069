"""Several callers of one process at the same time, and workers that come and go."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from app.processes.acting import ANN, BOB, INPUT, asking, published
from holdfast import ProcessInstance, RejectedError
from support.engines import Live, Place


@pytest.mark.row("P-055")
def test_simultaneous_starts_with_one_key_are_one(live: Live) -> None:
    """All callers get the same instance, and it began once."""
    engine = live.engine()
    published(engine)
    with engine, ThreadPoolExecutor(8) as pool:
        calls = asking(engine, ANN).processes
        found = list(pool.map(lambda _: calls.start("orders.approval", INPUT, idempotency_key="k").id, range(8)))
        assert len(set(found)) == 1
        assert [each.event for each in engine.processes.events(found[0])] == ["step_entered"]
        assert engine.processes.list().total == 1


@pytest.mark.row("P-077", "P-078", "C-26")
def test_of_simultaneous_advances_one_counts(live: Live) -> None:
    """The others are judged by what it led to, each event is there once, and the backend was called once."""
    engine = live.engine()
    backend = published(engine)
    with engine, ThreadPoolExecutor(8) as pool:
        instance = asking(engine, ANN).processes.start("orders.approval", INPUT).id
        calls = asking(engine, BOB).processes

        def advance(_number: int) -> ProcessInstance | str:
            try:
                return calls.advance(instance, "approved")
            except RejectedError as error:
                return error.reason

        answers = list(pool.map(advance, range(8)))
        assert sum(isinstance(each, ProcessInstance) for each in answers) == 1
        refused = {each for each in answers if isinstance(each, str)}
        assert refused <= {"WORKFLOW_NOT_ACTIVE", "INVALID_TRANSITION", "VERSION_CONFLICT"}
        assert backend.calls == ["confirm", "notify"]
        events = [each.event for each in engine.processes.events(instance)]
        assert events.count("approved") == 1


def test_a_caller_without_patience_is_answered_at_once(live: Live) -> None:
    """The automatic steps are left to the workers, here to nobody; whoever looks later finds them done."""
    engine, worker = live.engine(), live.engine()
    published(engine)
    backend = published(worker)
    instance = asking(engine, ANN).processes.start("orders.approval", INPUT).id
    seen = asking(engine, BOB).processes.advance(instance, "approved", patience=0)
    assert (seen.status, seen.current_step) == ("active", "process")
    with worker:
        assert worker.run(instance).result(timeout=30) is not None
    assert backend.calls == ["confirm", "notify"]


def test_a_call_hears_of_what_another_process_does(live: Live) -> None:
    """An engine without a worker waits for the automatic steps too."""
    engine, worker = live.engine(), live.engine()
    published(engine)
    published(worker)
    with worker:
        instance = asking(engine, ANN).processes.start("orders.approval", INPUT).id
        seen = asking(engine, BOB).processes.advance(instance, "approved", patience=60)
    assert (seen.status, seen.current_step) == ("completed", "approved")


@pytest.mark.row("P-081", "P-096", "C-26")
def test_a_system_step_that_nobody_confirmed_stays_current(place: Place) -> None:
    """The way to it was committed before it is called: another process finds it there, active, and does it."""
    first = place.engine()
    published(first)
    instance = asking(first, ANN).processes.start("orders.approval", INPUT).id
    asking(first, BOB).processes.advance(instance, "approved")
    second = place.engine()
    backend = published(second)
    seen = second.processes.get(instance).instance
    assert (seen.status, seen.current_step) == ("active", "process")
    with pytest.raises(RejectedError) as refused:
        asking(second, BOB).processes.advance(instance, "approved")
    assert refused.value.reason == "INVALID_TRANSITION"
    second.drain()
    assert backend.calls == ["confirm", "notify"]
    assert second.processes.get(instance).instance.status == "completed"
