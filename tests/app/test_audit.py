"""The audit is complete and true: every act of a person is one entry that names who, for whom, why, and what changed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from app.auditing import ACTIONS, ACTS, ADM, BODY, FILE, INVOICE, LOOKS, NOT_HUMAN, SAME, World, calls_there
from standfast import Actor, ForbiddenError, NotFoundError, PayloadError, RejectedError, RequestContext, Saga
from standfast.features.documents.contract.library import ready_contract
from standfast.features.runs.audit_entries import AuditEntry
from standfast.kernel.row_kinds.changes import Change
from standfast.machine.audit import NOTED
from standfast.machine.model.commands import repair_commands as r
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.commands.document_commands import DocumentCommand
from standfast.machine.preconditions import OPERATIONS
from standfast.store.records.instances import InstanceHeader, InstanceQuery
from standfast.testing import ManualEngine
from support.engines import Place
from support.inside import store_of
from support.samples import Add, Counter

OWN_LINE = {
    *get_args(DocumentCommand),
    c.AnswerStep,
    c.WithdrawDecision,
    c.WithdrawTask,
    r.CancelBranch,
}
"""Commands whose own events are lines of the audit of a document."""
TOLD_IN = Path(__file__).with_name("told-acts.txt")
TOLD = frozenset(TOLD_IN.read_text(encoding="utf-8").splitlines())
"""What the audit tells of each act: the action, and the values before and after. Who reads an audit relies on it."""
CHANCE = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{12,}\b|\d{4}-\d\d-\d\d[T ][\d:.]+(\+00:00|Z)?")
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


@pytest.mark.row("E-578", "E-579", "E-580", "EO-09", "EH-10")
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
    assert told_as(name, entry) in TOLD, f"write what it tells to {TOLD_IN.name} if that is right"
    assert (found.instance is None) == (found.where == "change")
    if found.where == "change":
        assert isinstance(entry, Change)
        assert name not in ACTIONS
    else:
        assert [each for each, act in acts if act is entry] == [found.instance]
        assert entry.action == ACTIONS[name]
    if found.where == "document":
        lines = [each for each in engine.documents.audit("invoice", found.document) if each.who == ADM.id]
        # A gate that a transition passes has a line of its own, in the name of the requester.
        (line,) = [each for each in lines if each.place == "call" and not each.what.startswith("passed ")]
        assert (line.whom, line.why) == (ADM.on_behalf_of, why)


def told_as(name: str, entry: AuditEntry | Change) -> str:
    """What an entry tells of a change, without ids, hashes and instants."""
    values = json.dumps([entry.before, entry.after], default=str, sort_keys=True)
    told = json.dumps(json.loads(values, object_hook=_in_order), sort_keys=True)
    what = CHANCE.sub("*", f" {entry.subject}:{entry.name}") if isinstance(entry, Change) else ""
    return f"{name}: {entry.action}{what} {CHANCE.sub('*', told)}"


def _in_order(fields: dict[str, object]) -> dict[str, object]:
    """Roles have no order."""
    roles = fields.get("roles")
    return {**fields, "roles": sorted(roles)} if isinstance(roles, list) else fields


def _instances(engine: ManualEngine) -> list[InstanceHeader]:
    """All instances of the tenant, those of the engine itself included."""
    return store_of(engine).reader("default").instances(InstanceQuery(limit=100))


@pytest.mark.row("E-578", "E-580", "EO-10")
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


@pytest.mark.row("E-578", "E-685", "P-007")
def test_a_stand_in_is_entered_with_both_names(place: Place) -> None:
    """Whoever decides for somebody who delegated to them is the actor, and the giver is the principal: for a run, a process and a document."""
    engine = place.engine()
    world = World(engine, "")
    world.people("bob", "cat")
    world.own.directory.delegate("bob", "cat")
    cat = engine.acting("cat", reason="bob is away")
    run, task = world.asked(ask=["user:bob"])
    cat.tasks.approve(task)
    engine.definitions.publish_file(FILE.replace("role: fin", "user: bob"))
    process = world.own.processes.start("p").id
    cat.processes.advance(process, "approved")
    world.own.contracts.publish(ready_contract("invoice"))
    world.own.bodies.publish(world.own.bodies.save(BODY.replace("role: manager", "user: bob")).id)
    made = world.own.documents.create("invoice", INVOICE, id="I-1")
    world.own.documents.transition("invoice", "I-1", "submit")
    engine.drain()
    (asked,) = engine.run(made.instance).tasks()
    cat.tasks.approve(asked, document_version=str(made.version))
    for instance in (run, process, made.instance):
        (act,) = [each for each in engine.audit.of(instance) if each.actor == "cat"]
        assert (act.on_behalf_of, act.reason, act.action.partition(" ")[0]) == ("bob", "bob is away", "decide")
    (line,) = [each for each in engine.documents.audit("invoice", "I-1") if each.who == "cat" and each.place == "call"]
    assert (line.whom, line.why) == ("bob", "bob is away")
    trail = [each for each in engine.processes.events(process) if each.actor_id == "cat"]
    assert {each.on_behalf_of for each in trail} == {"bob"}


@pytest.mark.row("P-007", "P-073")
def test_every_answer_of_several_is_an_entry_of_its_own(place: Place) -> None:
    """Where several have to answer, each answer is one act of whoever gave it, with the comment; the last one too."""
    engine = place.engine()
    world = World(engine, "")
    world.people("ann", "bob")
    run, task = world.asked(ask=["user:ann", "user:bob"], agree="all")
    engine.acting("ann").tasks.approve(task, comment="fine with me")
    engine.acting("bob").tasks.reject(task, comment="too much")
    acts = [(each.actor, each.action, each.reason) for each in engine.audit.of(run) if each.step == 1]
    assert acts == [("ann", "decide confirmed", "fine with me"), ("bob", "decide rejected", "too much")]


def test_what_is_refused_by_a_run_leaves_no_entry(place: Place) -> None:
    """A command that is refused, or that comes too late, is no act."""
    engine = place.engine()
    world = World(engine, "again")
    run = world.run(Saga("rest").wait_for("wait", signal="go"))
    before = engine.audit.of(run.id)
    with pytest.raises(ForbiddenError):
        engine.acting("eve", reason="please").run(run.id).skip(1, reason="please")
    with pytest.raises(RejectedError):
        world.calls.run(run.id).resume()
    assert engine.audit.of(run.id) == before


def test_a_call_without_an_actor_is_an_entry_of_the_system(place: Place) -> None:
    """An operator who names no actor is entered as `system`, on documents too; what the engine does by itself is not entered."""
    engine = place.engine()
    world = World(engine, "")
    instance, _ = world.invoice()
    known = len(engine.audit.of(instance))
    engine.run(instance).pause("look first")
    engine.drain()
    (act,) = engine.audit.of(instance)[known:]
    assert (act.actor, act.action, act.reason) == ("system", "pause", "look first")
    (line,) = [each for each in engine.documents.audit("invoice", "I-1") if each.what == "pause"]
    assert (line.who, line.why) == ("system", "look first")
    slept = world.run(Saga("nap").wait_for("nap", signal="wake", timeout=60))
    engine.advance(minutes=2)
    assert [each.action for each in engine.audit.of(slept.id)] == ["start"]


def test_what_the_engine_finds_out_about_people_is_no_entry(place: Place) -> None:
    """Nobody acts when the engine sees that a role has lost its last holder, or finds a manager later."""
    engine = place.engine()
    for name in ("ann", "rita"):
        engine.directory.put(name)
    engine.directory.grant("ann", "finance")
    engine.register(Saga("role").human("ok", role="finance").build())
    engine.register(Saga("manager").human("ok", ask="manager").build())
    by_role, by_manager = (engine.acting("rita").start(name, {}).id for name in ("role", "manager"))
    engine.drain()
    assert engine.run(by_manager).describe().reason == "no_approver"
    engine.directory.revoke("ann", "finance")
    engine.advance(minutes=1)
    assert engine.run(by_role).describe().reason == "no_approver"
    engine.directory.grant("ann", "finance")
    engine.directory.set_manager("rita", "ann")
    engine.advance(minutes=1)
    for each in (by_role, by_manager):
        assert engine.run(each).describe().status == "running"
        assert [(entry.actor, entry.action) for entry in engine.run(each).audit()] == [("rita", "start")]


def test_the_acts_on_an_instance_are_listed_page_by_page(place: Place) -> None:
    """A page begins behind the last act of the page before; whoever may read the run reads its acts too, and nobody else."""
    engine = place.engine()
    world = World(engine, "")
    run = world.run(Saga("rest").wait_for("wait", signal="go"))
    for _ in range(2):
        world.calls.run(run.id).pause()
        world.calls.run(run.id).resume()
    acts = engine.audit.of(run.id)
    assert [each.action for each in acts] == ["start", "pause", "resume", "pause", "resume"]
    first = engine.audit.of(run.id, limit=2)
    assert [*first, *engine.audit.of(run.id, after=first[-1], limit=9)] == acts
    reader = engine.acting(Actor(id="rea", capabilities=frozenset({"execution:read"})))
    assert reader.run(run.id).audit(after=first[-1], limit=1) == acts[2:3]
    auditor = engine.acting(Actor(id="audra", capabilities=frozenset({"audit:read"})))
    assert auditor.audit.of(run.id) == acts
    with pytest.raises(ForbiddenError, match="audit:read"):
        reader.audit.of(run.id)
    with pytest.raises(ForbiddenError):
        engine.acting("eve").run(run.id).audit()
    with pytest.raises(NotFoundError):
        engine.as_tenant("rival").audit.of(run.id)


@pytest.mark.row("EO-27", "EO-28")
def test_redaction_reaches_the_audit_and_sealing_keeps_it(place: Place) -> None:
    """A value that is redacted is gone from the acts and lines that named it; they stay, and what was sealed stays proven."""
    engine = place.engine()
    world = World(engine, "")
    instance, _ = world.invoice()
    world.own.documents.mutate("invoice", "I-1", {"vendor_id": "V-471147114711"})
    world.calls.run(instance).pause("ask V-471147114711 first")
    world.calls.run(instance).resume("V-471147114711 is fine")
    engine.seals.seal()
    acts = [(each.sequence, each.actor, each.action) for each in engine.audit.of(instance)]
    world.calls.documents.redact("invoice", "I-1", ["vendor_id"], reason="erasure")
    found = engine.audit.of(instance)
    assert [(each.sequence, each.actor, each.action) for each in found[:-1]] == acts
    lines = engine.documents.audit("invoice", "I-1")
    assert "V-4711" not in f"{found}{lines}{engine.documents.mutations('invoice', 'I-1')}"
    assert engine.instances.verify(instance).is_sound
    assert found[-1].after == {"redacted": ["vendor_id"]}


def test_acts_are_told_by_code_that_does_not_know_the_instance(place: Place) -> None:
    """Without the decider who did what, and why, is still told; the values before and after are not."""
    engine = place.engine()
    world = World(engine, "count")
    engine.register(Counter())
    world.calls.deciders.execute(Counter, Add("c-1", 1))
    instance = engine.deciders.get(Counter, "c-1").id
    (act,) = place.engine().audit.of(instance)
    assert (act.actor, act.on_behalf_of, act.reason, act.before, act.after) == ("adm", "boss", "count", {}, {})
