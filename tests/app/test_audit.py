"""The audit is complete and true: every act of a person is one entry that names who, for whom, why, and what changed."""

from __future__ import annotations

from typing import get_args

import pytest

from app.auditing import ACTS, ADM, LOOKS, NOT_HUMAN, SAME, World, calls_there
from holdfast import Actor, ForbiddenError, PayloadError, RequestContext, Saga
from holdfast.app.acts import AuditEntry
from holdfast.kernel.changes import Change
from holdfast.machine.runs import commands as c
from holdfast.machine.runs import repair_commands as r
from holdfast.machine.runs.acts import NOTED
from holdfast.machine.runs.admission import OPERATIONS
from holdfast.machine.runs.document_commands import DocumentCommand
from holdfast.store.shapes import Header, InstanceQuery
from holdfast.testing import ManualEngine
from support.engines import Place
from support.inside import store_of

OWN_LINE = {
    *get_args(DocumentCommand),
    c.AnswerStep,
    c.WithdrawDecision,
    c.WithdrawTask,
    r.CancelBranch,
}
"""Commands whose own events are lines of the audit of a document."""
NO_DOCUMENT = {c.CancelWorkflow, c.AbortWorkflow, r.ForkWorkflow}
"""Commands that no document takes."""


def test_every_call_is_judged_here() -> None:
    """A new call only looks, is an act that is tried here, is shown by another one, or is no act of a person; each says which."""
    tried = {name.partition(" of ")[0] for name in ACTS if not name.startswith("document:")}
    known = [tried, set(SAME), set(NOT_HUMAN), LOOKS]
    assert set().union(*known) == calls_there()
    assert sum(map(len, known)) == len(calls_there())


def test_every_command_of_people_leaves_a_line_in_the_audit_of_a_document() -> None:
    """Of a new command somebody has to say whether its own events tell the audit, or whether it is noted."""
    assert OWN_LINE | NOTED.keys() | NO_DOCUMENT == {*OPERATIONS, c.RetryCompensation}
    assert not OWN_LINE & NOTED.keys()


@pytest.mark.row("E-578", "E-579", "E-580")
@pytest.mark.parametrize("name", sorted(ACTS))
def test_an_act_is_one_entry_that_names_all_of_it(place: Place, name: str) -> None:
    """In the audit of everything, exactly one entry is the act: it names the real actor, the principal, the reason, and what is different since."""
    why = f"why {name}"
    engine = place.engine()
    found = ACTS[name](World(engine, why))
    engine.drain()
    if found.where == "shared":
        change = engine.audit.changes(is_shared=True)[0]
        assert (change.subject, change.before != change.after) == ("maintenance", True)
        return
    acts = [(each.id, act) for each in _instances(engine) for act in engine.audit.of(each.id) if act.actor == ADM.id]
    changes = engine.audit.changes(actor=ADM.id, limit=1000)
    told = [each for _, each in acts if each.reason == why and each.action not in found.others]
    entries: list[AuditEntry | Change] = [*told, *(each for each in changes if each.reason == why)]
    assert (
        len(acts) + len(changes) - len([each for _, each in acts if each.action in found.others]) == 1 + found.prepared
    )
    (entry,) = entries
    assert (entry.actor, entry.on_behalf_of) == (ADM.id, ADM.on_behalf_of)
    assert entry.before != entry.after
    assert (found.instance is None) == (found.where == "change")
    if found.where == "change":
        assert isinstance(entry, Change)
    else:
        assert [each for each, act in acts if act is entry] == [found.instance]
    if found.where == "document":
        lines = [each for each in engine.documents.audit("invoice", found.document) if each.who == ADM.id]
        # A gate that a transition passes has a line of its own, in the name of the requester.
        (line,) = [each for each in lines if each.place == "call" and not each.what.startswith("passed ")]
        assert (line.whom, line.why) == (ADM.on_behalf_of, why)


def _instances(engine: ManualEngine) -> list[Header]:
    """All instances of the tenant, those of the engine itself included."""
    return store_of(engine).reader("default").instances(InstanceQuery(limit=100))


@pytest.mark.row("E-578", "E-580")
def test_what_an_operator_does_to_a_step_is_not_told_of_the_requester(place: Place) -> None:
    """Skipped or completed by hand: the line of the step names the operator, and only what follows by itself names who asked for the transition."""
    world = World(place.engine(), "it is stuck")
    instance, _ = world.invoice()
    slot = BROKEN_SLOT
    draft = world.own.bodies.save(slot)
    world.engine.handle("boom", _broken)
    world.own.bodies.publish(draft.id)
    made = world.own.documents.create("invoice", {"number": "R-2", "vendor_id": "V", "grand_total": 1}, id="I-2")
    world.own.documents.transition("invoice", "I-2", "submit")
    world.engine.drain()
    assert instance != made.instance
    number = world.engine.run(made.instance).steps()[-1].number
    world.calls.run(made.instance).skip(number, reason="it is stuck")
    world.engine.drain()
    skips = [each for each in world.engine.documents.audit("invoice", "I-2") if each.what.startswith("skip ")]
    assert {(each.who, each.whom) for each in skips} == {("adm", "boss")}
    assert sorted(each.how for each in skips) == ["step", "workflow"]
    assert world.engine.run(made.instance).verify().is_sound


BROKEN_SLOT = """
base: {entity_type: invoice, envelope_version: 1}
slots:
  "slot:draft_to_submit":
    nodes: [{id: h, type: task, handler: boom, attempts: 1}, {id: z, type: wait_timer, duration: 1h}]
    edges: [{from: h, to: z}]
"""


def _broken() -> None:
    raise RuntimeError("no")


def test_nothing_is_told_of_what_was_refused_or_was_so_already(place: Place) -> None:
    """A call that is refused, or that changes nothing, leaves no entry: the audit tells what happened."""
    engine = place.engine()
    adm = engine.acting(RequestContext(actor=ADM, reason="again"))
    adm.directory.put("bob")
    adm.directory.put("bob")
    key = adm.keys.create("k", actor="bot").key
    adm.keys.revoke(key)
    adm.keys.revoke(key)
    for _ in range(2):
        adm.chains.publish("c", [{"asks": ["bob"]}])
        adm.definitions.publish(Saga("mine").step("a", "a").build())
    with pytest.raises(ForbiddenError):
        engine.acting(Actor(id="eve"), reason="please").keys.create("k", actor="eve")
    told = [(each.subject, each.action) for each in reversed(engine.audit.changes())]
    assert told == [
        ("person", "put"),
        ("key", "create"),
        ("key", "revoke"),
        ("chain", "publish"),
        ("definition", "publish"),
    ]


def test_auditors_find_changes_by_what_and_by_whom(place: Place) -> None:
    """By sort of thing, by name and by actor, page by page; whoever lacks `audit:read` finds nothing, nor does another tenant."""
    engine = place.engine()
    for who in ("ann", "bea"):
        calls = engine.acting(Actor(id=who, capabilities=frozenset({"*"})), reason=f"{who} says so")
        calls.directory.put(f"{who}'s")
        calls.keys.create("k", actor="bot")
    audit = engine.acting(Actor(id="audra", capabilities=frozenset({"audit:read"}))).audit
    assert [(each.subject, each.actor) for each in audit.changes(subject="key")] == [("key", "bea"), ("key", "ann")]
    assert [each.name for each in audit.changes(subject="person", name="ann's")] == ["ann's"]
    assert {each.reason for each in audit.changes(actor="ann")} == {"ann says so"}
    first = audit.changes(limit=3)
    assert first + audit.changes(before=first[-1], limit=3) == audit.changes()
    assert engine.as_tenant("rival").audit.changes() == []
    with pytest.raises(PayloadError, match="subject"):
        audit.changes(name="ann's")
    with pytest.raises(ForbiddenError, match="all tenants"):
        audit.changes(is_shared=True)
    with pytest.raises(ForbiddenError, match="audit:read"):
        engine.acting(Actor(id="eve")).audit.changes()


def test_a_change_and_its_entry_are_one_transaction(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the entry cannot be written, nothing is changed."""
    engine = place.engine()
    adm = engine.acting(RequestContext(actor=ADM, reason="x"))
    kept = adm.keys.create("kept", actor="bot").key
    side = type(store_of(engine).line().changes())

    def fail(_self: object, _change: object) -> None:
        raise RuntimeError("no room")

    monkeypatch.setattr(side, "add", fail)
    with pytest.raises(RuntimeError, match="no room"):
        adm.keys.revoke(kept)
    monkeypatch.undo()
    assert adm.keys.get(kept).revoked_at is None
    assert [each.action for each in engine.audit.changes()] == ["create"]
