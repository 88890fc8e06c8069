"""Calendars of an organisation: due dates, reminders, escalations, timeouts and waits of its documents count working time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.documents.acting import asking
from app.documents.orders import GIVEN, SELLER, body, register
from standfast import Actor, PayloadError, RequestContext
from standfast.features.documents.body.checks import read_body
from standfast.features.documents.compiler.compiler import check_body
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.library import ready_contract
from standfast.testing import ManualEngine
from support.engines import Place

SLOT = '"slot:submitted_to_approved"'
OFFICE = {
    "zone": "Europe/Berlin",
    "hours": {day: ["09:00-17:00"] for day in ("mon", "tue", "wed", "thu", "fri")},
    "holidays": ["2030-01-02"],
}
ASK = (
    "{id: sign, type: approval, approvers: [{user: ann}], due: 1d, remind: [4h], escalate_to: boss, timeout: 2d1h, calendar: office, "
    "channels: [in_app]}"
)


def opened(place: Place, node: str, **calendars: object) -> ManualEngine:
    """An engine with an order that was submitted on Tuesday at one, by the clock of the office; the day after is a holiday."""
    engine = place.engine()
    engine.charters.publish_settings({"calendars": calendars or {"office": OFFICE}})
    register(engine, "sales_order", body(SLOT, node))
    mine = asking(engine, SELLER).documents
    mine.create("sales_order", GIVEN, id="O-1")
    mine.transition("sales_order", "O-1", "submit")
    engine.drain()
    return engine


def stood(engine: ManualEngine) -> tuple[str, str]:
    """How the order stands."""
    seen = engine.documents.get("sales_order", "O-1")
    return seen.status, seen.run_status


def until(place: Place, engine: ManualEngine, at: datetime) -> None:
    """Let time go by."""
    engine.advance(at - place.clock.now())


@pytest.mark.row("EO-20")
def test_times_of_a_question_count_working_time(place: Place) -> None:
    """A working day later is after the holiday, four hours end with the day; a newer calendar changes nothing that was set."""
    engine = opened(place, ASK)
    (task,) = engine.tasks.list()
    assert task.due_at == datetime(2030, 1, 3, 12, tzinfo=UTC)
    engine.charters.publish_settings({"calendars": {"office": {**OFFICE, "holidays": []}}})
    ann = engine.acting(RequestContext(actor=Actor(id="ann")))
    for at, notices, asked in (
        (datetime(2030, 1, 1, 15, 59, tzinfo=UTC), 1, 1),
        (datetime(2030, 1, 1, 16, 1, tzinfo=UTC), 2, 1),
        (datetime(2030, 1, 3, 11, 59, tzinfo=UTC), 2, 1),
        (datetime(2030, 1, 3, 12, 1, tzinfo=UTC), 2, 2),
    ):
        until(place, engine, at)
        assert (len(ann.notifications.mine()), len(engine.tasks.get(task).people)) == (notices, asked)
    until(place, engine, datetime(2030, 1, 4, 12, 59, tzinfo=UTC))
    assert stood(engine) == ("submitted", "running")
    until(place, engine, datetime(2030, 1, 4, 13, 1, tzinfo=UTC))
    assert engine.tasks.list() == []


@pytest.mark.row("EO-20")
def test_a_wait_counts_working_time(place: Place) -> None:
    """Five hours from one o'clock: four today, and one after the holiday."""
    engine = opened(place, "{id: rest, type: wait_timer, duration: 5h, calendar: office}")
    until(place, engine, datetime(2030, 1, 3, 8, 59, tzinfo=UTC))
    assert stood(engine)[0] == "submitted"
    until(place, engine, datetime(2030, 1, 3, 9, 1, tzinfo=UTC))
    assert stood(engine)[0] == "active"


@pytest.mark.parametrize("node", [ASK, "{id: rest, type: wait_timer, duration: 5h, calendar: office}"])
def test_a_calendar_that_is_not_there_stops_the_run(place: Place, node: str) -> None:
    """Nobody guesses: the run waits for an operator, and says what is missing."""
    engine = opened(place, node, plant=OFFICE)
    assert stood(engine) == ("submitted", "paused")
    run = engine.run(engine.documents.get("sales_order", "O-1").instance)
    assert "no calendar 'office'" in str([each.error for each in run.steps()])


def test_what_cannot_be_counted_is_refused(place: Place) -> None:
    """A calendar that cannot be read is not published; a time that could be read in two ways, or a calendar for nothing, is not compiled."""
    engine = place.engine()
    with pytest.raises(PayloadError, match="'office': it has no hours"):
        engine.charters.publish_settings({"calendars": {"office": {**OFFICE, "hours": {}}}})
    envelope = generate_envelope(ready_contract("sales_order"))
    for node, code in (
        ("{id: sign, type: approval, approvers: [{user: ann}], due: 36h, calendar: office}", "times"),
        ("{id: rest, type: wait_timer, duration: 2w, calendar: office}", "times"),
        ("{id: rest, type: wait_timer, until: entity.created_at, calendar: office}", "wait"),
    ):
        assert code in [each.code for each in check_body(envelope, read_body(body(SLOT, node)))]
