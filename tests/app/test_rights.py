"""Rights: whoever has no capability looks at nothing of others and changes nothing of theirs, by whichever call."""

from __future__ import annotations

import pytest

from app.test_partitions import LISTS, MADE, OF_ONE, Things, furnished, opened, told, within
from standfast import Actor, ForbiddenError
from standfast.features.batches.model.messages import CancelBatch
from standfast.features.schedules.model.messages import DeleteSchedule
from support.engines import Place

EVE = Actor(id="eve")
"""Has no capability, and nobody has asked her anything."""

FREE = {
    # What a definition names no capability for is open to everybody who knows of it, as are deciders of the application.
    "run.signal", "run.cancel", "run.abort", "runs.partition_of",
    "documents.check_edit", "documents.notify_mutation", "documents.mutate", "documents.transition", "documents.amend", "documents.create",
    "deciders.get", "deciders.history", "deciders.state", "deciders.verify", "deciders.observations", "deciders.transitions",
    "deciders.observed_machine", "deciders.execute", "deciders.execute_dynamic", "deciders.submit", "events.publish",
    # Processes are looked at by those of their partition; what may be done with one, its definition says.
    "processes.get", "processes.events", "processes.list", "processes.resume",
    # Each question is answered by itself, by why it is refused.
    "tasks.decide_many",
    # One's own: an inbox, notifications, decisions and sessions.
    "tasks.list of mine", "tasks.list requested by me", "tasks.counts", "tasks.decided",
    "notifications.mine", "notifications.count_unread", "notifications.mark_read", "notifications.mark_all_read",
    "sessions.open", "sessions.list", "sessions.end",
    "directory.open_tasks_of_inactive",
}  # fmt: skip
"""The calls that take no capability in Python; all others are refused to whoever has none."""


@pytest.mark.row("P-006", "P-131", "P-141")
def test_without_a_capability_nothing_of_others_is_seen_or_changed(place: Place) -> None:
    """Each call that is about something of others is refused, and so is the way around by the deciders of the engine's own."""
    engine = opened(place)
    on: Things = furnished(engine)
    north, eve = within(engine, "north"), within(engine, "north", EVE)
    north.processes.start("orders.approval", {"total": 1}, key="p")
    answers = {name: told(call, eve, on)[0] for name, call in {**OF_ONE, **LISTS, **MADE}.items()}
    assert {name for name, said in answers.items() if not said.startswith("ForbiddenError")} == FREE
    for kept, key in (
        ("ask", "k"),
        ("orders.approval", "p"),
        ("invoice", "d-1"),
        ("$schedule", "s-1"),
        ("$event", "e-1"),
    ):
        for look in (eve.deciders.get, eve.deciders.state, eve.deciders.history, eve.deciders.verify):
            with pytest.raises(ForbiddenError, match=r"execution:read|read them with `documents`"):
                look(kept, key)
        with pytest.raises(ForbiddenError, match="execution:read"):
            eve.deciders.transitions(kept)
    for own, command in (("$schedule", DeleteSchedule(id="s-1")), ("$batch", CancelBatch(id="b-1"))):
        for give in (eve.deciders.execute, eve.deciders.submit):
            with pytest.raises(ForbiddenError, match="of the engine's own"):
                give(own, command)
    with pytest.raises(ForbiddenError, match="of the engine's own"):
        eve.deciders.execute_dynamic("$event", {"type": "ExpireEvent", "id": "e-1"})
    engine.drain()
    assert north.schedules.get("s-1").status == "active"
