"""Wherever the process dies: a document and its workflow are as they would be without the crash, and never at odds with one another."""

from __future__ import annotations

from contextlib import suppress

import pytest

from app.documents.acting import ANN, BOB, CARL, GIVEN, asking, graph
from standfast import Actor, RejectedError
from standfast.graph.definition import Definition
from standfast.testing import CrashScenario, ManualEngine, crash_everywhere


def prepare(engine: ManualEngine) -> None:
    """An engine that knows invoices."""
    engine.register(Definition(graph=graph()))


def decide(engine: ManualEngine, actor: Actor, node: str) -> None:
    """Approve the question of a node, if it is open."""
    for task in engine.tasks.list():
        if task.name == node:
            asking(engine, actor).tasks.decide(task, "approved", document_version=task.document_version)


def approved(engine: ManualEngine) -> None:
    """From the draft to the active invoice, each call as often as it takes."""
    mine = asking(engine, BOB).documents
    mine.create("invoice", GIVEN, id="I-1", idempotency_key="create")
    mine.mutate("invoice", "I-1", {"total": 700}, idempotency_key="edit")
    mine.transition("invoice", "I-1", "submit", idempotency_key="submit")
    decide(engine, ANN, "first")
    decide(engine, CARL, "second")
    engine.drain()


def amended(engine: ManualEngine) -> None:
    """The invoice is amended while somebody decides, and approved anew."""
    mine = asking(engine, BOB).documents
    mine.create("invoice", GIVEN, id="I-1", idempotency_key="create")
    with suppress(RejectedError):  # It was superseded before the crash.
        mine.transition("invoice", "I-1", "submit", idempotency_key="submit")
        decide(engine, ANN, "first")
        mine.amend("invoice", "I-1", {"total": 900}, new_id="I-2")
    mine.transition("invoice", "I-2", "submit", idempotency_key="again")
    for actor, node in ((ANN, "first"), (CARL, "second")):
        decide(engine, actor, node)
    engine.drain()


def outcome(engine: ManualEngine) -> object:
    """How the documents stand, what they were, and which decisions were used up."""
    told = []
    for row in sorted(engine.documents.list("invoice").items, key=lambda each: each.id):
        seen = engine.documents.get("invoice", row.id)
        versions = [(each.version, each.data_hash) for each in engine.documents.versions("invoice", row.id)]
        told.append((row.id, seen.status, seen.version, seen.superseded_by, seen.amended_from, versions))
        assert engine.run(seen.instance).verify().is_sound
    return told


@pytest.mark.row("E-074", "E-007", "E-225", "E-468")
@pytest.mark.parametrize("play", [approved, amended])
def test_a_crash_anywhere_changes_nothing(play: object) -> None:
    """Use cases A and C, with the process dying at every point: the same documents, versions and decisions, each once."""
    assert callable(play)
    report = crash_everywhere(CrashScenario(prepare=prepare, play=play, outcome=outcome))
    assert report.points > 5
