"""Names that are empty name nothing, what an event could not start is told, and audits say what people did and why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.processes.acting import ends, process, registered, system
from standfast import Actor, PayloadError, RejectedError, Saga
from support.engines import Place

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    "named", [{"definition": ""}, {"definition": "w", "step": ""}, {"definition": "w", "version": ""}]
)
def test_an_empty_name_pauses_nothing(place: Place, named: dict[str, Any]) -> None:
    """Left out and empty are two things: whoever gives an empty name does not mean all of the tenant, or of the definition."""
    engine = place.engine().register(Saga("w").step("x", lambda: None).build())
    for call in (engine.pauses.pause, engine.pauses.resume):
        with pytest.raises(PayloadError, match="is empty and names nothing"):
            call(**named)
    assert engine.pauses.list() == []
    assert engine.pauses.pause().definition == ""


def test_an_event_whose_workflow_is_archived_is_told(place: Place) -> None:
    """It starts nothing, and the event says so; an older version that is in use is started instead of an archived newer one."""
    engine = place.engine()
    for version in (1, 2):
        engine.register(Saga("w", version=version).trigger("ev").step("x", lambda: None).build())
    engine.definitions.archive("w", 2, reason="bad")
    engine.advance(seconds=3)
    engine.publish("ev", "", {}, event_id="1")
    engine.drain()
    found = engine.events.get("1")
    assert (len(found.started), found.failures) == (1, [])
    engine.definitions.archive("w", 1, reason="bad")
    engine.advance(seconds=3)
    engine.publish("ev", "", {}, event_id="2")
    engine.drain()
    found = engine.events.get("2")
    assert (found.started, len(found.failures)) == ([], 1)
    assert "archived" in found.failures[0]
    with pytest.raises(RejectedError, match="archived"):
        engine.batches.begin("start", definition="w", inputs=[{}])


def test_the_audit_says_what_was_done_to_schedules_and_batches_and_why(place: Place) -> None:
    """In the words of the calls, with the reason of the batch itself before that of the request."""
    engine = place.engine().register(Saga("w").wait_for("x", signal="x").build())
    olga = engine.acting(Actor(id="olga", capabilities=frozenset({"*"})))
    run = engine.start("w")
    batch = olga.batches.begin("cancel", runs=[run.id], reason="the shop closes")
    olga.batches.cancel(batch.id, "it opens again")
    told = [(each.action, each.reason) for each in engine.audit.of(batch.instance)]
    assert told == [("begin", "the shop closes"), ("cancel", "it opens again")]
    schedule = olga.schedules.put("s", "w", every=HOUR)
    olga.schedules.pause("s", "look")
    olga.schedules.resume("s", "seen")
    olga.schedules.trigger("s", overlap="allow_all")
    before = datetime(2029, 12, 1, tzinfo=UTC)
    olga.schedules.backfill("s", before, before + HOUR)
    now = place.clock.now()
    olga.schedules.backfill("s", now, now + 9 * HOUR)
    olga.schedules.stop_backfills("s")
    olga.schedules.delete("s")
    actions = [each.action for each in engine.audit.of(schedule.instance)]
    assert actions == ["put", "pause", "resume", "trigger", "backfill", "backfill", "stop backfills", "delete"]


def test_a_wait_that_is_longer_than_the_cap_is_waited(place: Place) -> None:
    """The cap bounds how waits grow, and does not shorten the one that was asked for."""
    engine = place.engine()
    calls: list[datetime] = []

    def pay() -> None:
        calls.append(place.clock.now())
        raise ValueError("x")

    engine.handle("pay", pay)
    step = system("pay", "pay") | {"retry": {"attempts": 2, "delay": "1h"}}
    registered(engine, process(step, *ends("done"), ways="pay completed done"))
    engine.processes.start("w", {})
    engine.advance(hours=2)
    first, second = calls
    assert second - first >= HOUR
