"""What documents rest on: one writer, nothing behind its back, and everything that an organisation wants in one body."""

from __future__ import annotations

import re

import pytest

from app.documents.blueprints import CLERK, GIVEN, of, opened, published
from standfast import Actor
from standfast.errors import DefinitionError, RejectedError
from standfast.expressions import parse
from standfast.features.documents.body.checks import read_body
from standfast.features.documents.compiler.compiler import compile_effective
from standfast.features.documents.compiler.graph import graph_of
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.library import ready_contract
from standfast.graph.definition import Definition
from standfast.kernel.codec.canonical import canonical_hash
from support.engines import Place
from support.repository import ROOT

BODY = """
base: {entity_type: invoice, envelope_version: 1}
slots:
  "slot:submitted_to_approved":
    entry: branch
    exit: join
    nodes:
      - {id: split, type: parallel_split}
      - {id: manager, type: approval, approvers: [{role: manager}]}
      - {id: check, type: task, handler: check}
      - {id: both, type: parallel_join}
      - {id: cool, type: wait_timer, duration: 1d}
      - {id: paid, type: wait_event, event: payment, key: "{entity.number}"}
    edges:
      - {from: in, to: split, when: entity.grand_total > 1000}
      - {from: in, to: out}
      - {from: split, to: manager}
      - {from: split, to: check}
      - {from: manager, to: both, on: approved}
      - {from: check, to: both}
      - {from: both, to: cool}
      - {from: cool, to: paid}
      - {from: paid, to: out, on: event}
  "slot:approved_to_active":
    nodes: [{id: post, type: action, action: invoice.post, run_as: system}]
"""
BOSS = Actor(id="mia", roles=frozenset({"manager"}))
TABLES = "documents|document_versions|mutations|audit"


@pytest.mark.row("E-002", "E-015", "E-016", "E-017", "E-137")
def test_what_was_missing_before_there_was_a_workflow(place: Place) -> None:
    """A graph of the organisation's own: branches, parallel steps, waits for people, time and events; its position visible; the approval pinned and the gate behind it.

    One writer at a time and effects after the commit are what the kernel does for every run.
    """
    engine = opened(place)
    calls: list[object] = []
    engine.handle("check", lambda: calls.append("check"))
    engine.handle("invoice.post", lambda document: {"posting_ref": f"GL-{document['id']}"})
    published(engine, BODY)  # Editable by the organisation.
    clerk, boss = of(engine, CLERK), of(engine, BOSS)
    clerk.documents.create("invoice", {**GIVEN, "grand_total": 5}, id="I-0")
    clerk.documents.transition("invoice", "I-0", "submit")
    engine.drain()
    assert clerk.documents.get("invoice", "I-0").status == "active"  # The other branch.
    clerk.documents.create("invoice", GIVEN, id="I-1")
    sent = clerk.documents.transition("invoice", "I-1", "submit")
    assert ([each.rsplit(":", 1)[-1] for each in sent.places], calls) == (
        ["check", "manager", "split"],
        [],
    )  # Visible; nothing is called before the commit.
    engine.drain()
    (task,) = boss.tasks.list(mine=True)
    with pytest.raises(RejectedError, match="APPROVAL_VERSION_STALE"):
        boss.tasks.decide(task, "approved", document_version="7")
    boss.tasks.decide(task, "approved", document_version=task.document_version)
    engine.drain()
    assert (clerk.documents.get("invoice", "I-1").places, calls) == (["usr:slot:submitted_to_approved:cool"], ["check"])
    engine.advance(days=1)
    of(engine, Actor(id="bank", capabilities=frozenset({"*"}))).publish("payment", "R-1")
    engine.drain()
    seen = clerk.documents.get("invoice", "I-1")
    assert (seen.status, seen.data["posting_ref"]) == ("active", "GL-I-1")


@pytest.mark.row("E-003", "E-067", "E-005", "EH-01", "EH-10")
def test_documents_have_one_writer(place: Place) -> None:
    """Whatever an edit, a transition, a step or an amendment writes has its mutation and its line of the audit; its rows follow from events alone, and no statement writes them otherwise."""
    engine = opened(place)
    engine.handle("check", lambda: None)
    engine.handle("invoice.post", lambda: {"posting_ref": "GL-1"})
    published(engine, BODY)
    clerk = of(engine, CLERK).documents
    clerk.create("invoice", {**GIVEN, "grand_total": 5}, id="I-1")  # A run begins with it,
    clerk.mutate("invoice", "I-1", {"note": "x"})
    clerk.transition("invoice", "I-1", "submit")  # its gates move with its transitions,
    engine.drain()
    clerk.create("invoice", GIVEN, id="I-2")
    clerk.transition("invoice", "I-2", "submit")
    amended = clerk.mutate("invoice", "I-2", {"note": "y"})  # an edit where others decide is noticed,
    own = engine.as_tenant("acme")
    for name in ("I-1", "I-2", amended.id):
        view = own.documents.get("invoice", name)
        versions, mutations = own.documents.versions("invoice", name), own.documents.mutations("invoice", name)
        written = {each.version_after: each for each in mutations if each.version_after != each.version_before}
        assert [each.version for each in versions] == sorted(written) == list(range(1, view.version + 1))
        assert len(own.documents.audit("invoice", name)) >= len(mutations)
        run = own.run(view.instance)
        assert run.steps()  # evidence is kept,
        assert run.verify().is_sound  # and all rows are what the history says.
    folder = ROOT / "src/standfast/store"
    writes = re.compile(rf"(insert into|update|delete from) (standfast\.)?({TABLES})\b", re.IGNORECASE)
    others = [file.name for file in folder.rglob("sql/*.sql") if writes.search(file.read_text(encoding="utf-8"))]
    assert others == []


@pytest.mark.row("E-881")
def test_every_part_of_the_way_can_be_called_by_itself(place: Place) -> None:
    """From a contract an envelope, from that a workflow, of that a run that is moved and mended; hashes and expressions without any of it."""
    envelope = generate_envelope(ready_contract("invoice"))
    workflow = compile_effective(envelope, read_body(BODY))
    engine = place.engine().register(Definition(graph=graph_of(workflow)))
    clerk = of(engine, CLERK, "default").documents
    made = clerk.create("invoice", {**GIVEN, "grand_total": 5}, id="I-1")
    assert clerk.transition("invoice", "I-1", "submit").status == "active"
    assert engine.invariants.repair(made.instance, reason="to be sure").is_whole
    assert canonical_hash({"b": 1, "a": [2]}) == canonical_hash({"a": [2], "b": 1}) != canonical_hash({"a": [2]})
    assert parse("entity.total > 3").evaluate({"entity": {"total": 4}}) is True


@pytest.mark.row("E-024", "E-029", "E-185")
@pytest.mark.parametrize(
    "node",
    [
        "{id: a, type: sql, statement: delete from documents}",
        "{id: a, type: lifecycle_gate, transition: approve}",
        "{id: a, type: state, status: active}",
        "{id: a, type: script, formula: \"__import__('os')\", into: x}",
        "{id: a, type: action, action: invoice.update, payload: {status: \"'active'\"}}",
        "{id: a, type: action, action: gl_entry.erase}",
    ],
)
def test_nothing_in_a_body_goes_past_the_one_writer(node: str) -> None:
    """There is no type of step for statements, gates or states, no code in expressions, no action that the contract does not have."""
    acme = of(opened()).bodies
    text = (
        f'base: {{entity_type: invoice, envelope_version: 1}}\nslots:\n  "slot:draft_to_submit":\n    nodes: [{node}]\n'
    )
    try:
        draft = acme.save(text)
    except DefinitionError:
        return
    problems = draft.problems
    if not problems:  # A payload is judged where the step runs: its status is none of the document's fields.
        acme.publish(draft.id)
        found = acme.dry_run("invoice", GIVEN)
        assert (found.ends, found.status) == ("paused", "draft")
        return
    with pytest.raises(DefinitionError):
        acme.publish(draft.id)
