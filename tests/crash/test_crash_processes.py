"""Processes whose engine is stopped at every commit boundary and around every call: they come to the same end, and each step counts once."""

from __future__ import annotations

import pytest

from app.processes.acting import ANN, BOB, INPUT, ORDERS, asking, published
from standfast import RejectedError
from standfast.testing import CrashScenario, ManualEngine
from support.crashing import NewStore, tried


def prepared(engine: ManualEngine) -> None:
    """The definition, and its handlers; a call that was lost with its worker counts, so there must be another one."""
    published(engine, ORDERS.replace("attempts: 1", "attempts: 3"))


def begun(engine: ManualEngine) -> object:
    """An order that was started, however often whoever started it had to ask."""
    return asking(engine, ANN).processes.start("orders.approval", INPUT, idempotency_key="k").id


def approving(engine: ManualEngine) -> None:
    """Somebody approves, and asks again if there was no answer: it may have counted."""
    instance = begun(engine)
    try:
        asking(engine, BOB).processes.advance(instance, "approved", expected_version=1)  # type: ignore[arg-type]
    except RejectedError as error:
        assert error.reason in {"VERSION_CONFLICT", "WORKFLOW_NOT_ACTIVE"}  # noqa: PT017 - both are answers
    engine.drain()


def cancelling(engine: ManualEngine) -> None:
    """Somebody cancels, and asks again if there was no answer."""
    instance = begun(engine)
    try:
        asking(engine, BOB).processes.cancel(instance, "not wanted")  # type: ignore[arg-type]
    except RejectedError as error:
        assert error.reason == "WORKFLOW_NOT_ACTIVE"  # noqa: PT017 - it had counted
    engine.drain()


def told(engine: ManualEngine) -> object:
    """Status, step and trail; status and trail must agree whenever somebody looks."""
    (found,) = engine.processes.list().items
    seen = engine.processes.get(found.id).instance
    events = [(each.step_id, each.event, each.actor_id) for each in engine.processes.events(found.id)]
    assert (seen.status == "cancelled") == (events[-1][1] == "cancelled")
    return seen.status, seen.current_step, events


@pytest.mark.row("P-096", "P-160", "C-26", "C-41")
def test_an_approval_survives_a_crash_anywhere(new_store: NewStore) -> None:
    """Also in the middle of a system step: it is still current, and is called again by whoever comes next."""
    tried(CrashScenario(prepare=prepared, play=approving, outcome=told), new_store)


@pytest.mark.row("P-169")
def test_a_cancellation_is_one_commit(new_store: NewStore) -> None:
    """Status and event are there together, or neither is."""
    tried(CrashScenario(prepare=prepared, play=cancelling, outcome=told), new_store)
