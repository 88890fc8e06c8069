"""A list of those who are asked means all of them, also where it names roles alone: of each role one holder, in every kind of workflow."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from app.documents.blueprints import CLERK, GIVEN, of, opened, published
from app.processes.acting import ends, registered
from standfast import Actor, Saga
from standfast.features.rules import load_rules
from standfast.testing import ManualEngine
from support.engines import Place

LEA, LEO = (Actor(id=name, roles=frozenset({"legal"})) for name in ("lea", "leo"))
FAY = Actor(id="fay", roles=frozenset({"finance"}))
RITA = Actor(id="rita")

PROCESS = {
    "domain": "d",
    "workflows": [
        {
            "id": "p",
            "steps": [
                {"id": "ok", "type": "approval", "assignees": [{"role": "legal"}, {"role": "finance"}]},
                *ends("granted"),
            ],
            "transitions": [{"from": "ok", "event": "approved", "to": "granted"}],
        }
    ],
}
RULES = {
    "workflow_id": "spend",
    "steps": [
        {
            "id": "ok",
            "type": "action",
            "action": "block",
            "reason": "It is too much",
            "requires": {"type": "approval", "role": "legal", "users": ["fay"]},
        },
        {"id": "allowed", "type": "action", "action": "allow"},
    ],
}
BODY = """
base: {entity_type: invoice, envelope_version: 1}
slots:
  "slot:submitted_to_approved":
    nodes: [{id: ok, type: approval, approvers: [{role: legal}, {role: finance}]}]
"""


def saga(engine: ManualEngine) -> None:
    """Asks two roles in one list."""
    engine.register(Saga("spend").human("ok", ask=["role:legal", "role:finance"]).build())
    engine.acting(RITA).start("spend", {})


def process(engine: ManualEngine) -> None:
    """The same in a process."""
    registered(engine, json.dumps(PROCESS))
    engine.acting(RITA).processes.start("p")


def rules(engine: ManualEngine) -> None:
    """A role and a user."""
    engine.register(load_rules(RULES))
    engine.acting(RITA).start("spend", {})


def document(engine: ManualEngine) -> None:
    """The same in a document."""
    published(engine, BODY)
    mine = of(engine, CLERK).documents
    mine.create("invoice", GIVEN, id="I-1")
    mine.transition("invoice", "I-1", "submit")


@pytest.mark.row("E-677")
@pytest.mark.parametrize("begin", [saga, process, rules, document])
def test_each_role_of_a_list_has_to_agree(place: Place, begin: Callable[[ManualEngine], None]) -> None:
    """One holder answers for each role. The question stays open until the last of the list has approved."""
    engine = opened(place)
    begin(engine)
    engine.drain()
    calls = of if begin is document else ManualEngine.acting
    (task,) = calls(engine, LEA).tasks.list(mine=True)
    lea, leo, fay = (calls(engine, each).tasks for each in (LEA, LEO, FAY))
    assert lea.get(task).agreement == "all of them"
    yes, pinned = "confirmed" if begin is saga else "approved", task.document_version
    lea.decide(task, yes, document_version=pinned)
    engine.drain()
    assert (leo.list(mine=True), fay.get(task).status) == ([], "open")
    fay.decide(task, yes, document_version=pinned)
    engine.drain()
    assert fay.get(task).status == "decided"
