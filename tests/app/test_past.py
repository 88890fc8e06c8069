"""Runs as they were: what is told of an event is what the events before it come to, and what is recent costs little."""

from __future__ import annotations

import pytest

from standfast import NotFoundError, Saga, Settings
from standfast.features.runs.history import PastState
from standfast.kernel.program import Program
from standfast.testing import ManualEngine
from support.engines import Place

STEPS = 12
LONG = Saga("long")
for _number in range(STEPS):
    LONG = LONG.step(f"s{_number}", lambda: {"more": "x" * 50})


def told(engine: ManualEngine) -> list[PastState]:
    """A run that has ended, after each of its events."""
    run = engine.register(LONG.build()).start("long", {"n": 1})
    engine.drain()
    return [engine.runs.state_at(run.id, at) for at in range(1, len(run.history()) + 1)]


def test_a_run_is_told_as_it_was_with_a_snapshot_or_without(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """After every event the same is told, whether a snapshot was stored before it, with it, behind it or never; behind it little is folded."""
    plain, kept = (place.engine(Settings(snapshot_events=many)) for many in (10_000, 4))
    without, snapped = told(plain), told(kept)
    assert [(each.event, each.status, each.open, each.ended, each.data) for each in snapped] == [
        (each.event, each.status, each.open, each.ended, each.data) for each in without
    ]
    assert (snapped[-1].status, len(snapped[-1].ended)) == ("completed", STEPS)
    replayed, inner = [], Program.replay

    def counting(program: Program, state: object, events: object) -> object:
        replayed.append(len(events))  # type: ignore[arg-type]
        return inner(program, state, events)  # type: ignore[arg-type]

    monkeypatch.setattr(Program, "replay", counting)
    for states in (without, snapped):
        kept.runs.state_at(states[-1].id, len(states))
    assert replayed[0] == len(without)
    assert replayed[1] < len(without) // 2
    for beyond in (0, len(snapped) + 1):
        with pytest.raises(NotFoundError, match="has the events 1 to"):
            kept.runs.state_at(snapped[0].id, beyond)
