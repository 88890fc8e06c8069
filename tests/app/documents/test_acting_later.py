"""What steps of documents do later in somebody's name: by the rights of the commit that does it, and not by those of the moment of asking."""

from __future__ import annotations

from contextlib import AbstractContextManager
from itertools import pairwise

import pytest

from app.documents.walls import FIN, OPERATOR, PUBLISHER, acting, decide, stands
from standfast import Actor, Capabilities, Directory, RequestContext
from standfast.app.api.sync import Calls
from standfast.features.runs.explain import Reason
from standfast.kernel.people import DirectoryLook, Grant, Principal
from standfast.people.directory import StaticDirectory
from standfast.people.directory_files import Roster
from standfast.testing import ManualEngine
from support.engines import Place

CONTRACT = """
entity_type: invoice
version: 1
fields:
  number: {type: string, required: true}
  total: {type: money}
  posting: {type: string}
system_fields: [posting]
lifecycle:
  version: 1
  initial: draft
  terminal: [cancelled]
  amended: amended
  states:
    draft: {window: editable}
    submitted: {window: amend_only}
    active: {window: locked}
    cancelled: {window: locked}
    amended: {window: editable}
  transitions:
    - {name: submit, from: [draft, amended], to: submitted, permission: invoice.submit}
    - {name: approve, from: [submitted], to: active, begins: by_itself, on_reject: draft, permission: invoice.approve}
    - {name: cancel, from: [draft, submitted, active], to: cancelled, kind: cancel}
slots:
  - {id: "slot:before", entry: "sys:state:draft", exit: "sys:gate:submit", window: editable, stable: false}
  - {id: "slot:asking", entry: "sys:state:submitted", exit: "sys:gate:approve", window: amend_only, stable: true}
  - {id: "slot:behind", entry: "sys:gate:approve", exit: "sys:state:active", window: locked, stable: false}
actions:
  - {name: invoice.create, creates: true}
  - {name: invoice.update}
  - {name: invoice.stamp, permission: invoice.stamp, workflow_allowed: true}
  - {name: invoice.post, permission: invoice.post, workflow_allowed: true, handler: invoice.post}
"""
ASK = "{id: a, type: approval, approvers: [{user: fin}]}"
STAMP = "{id: s, type: action, action: invoice.stamp, payload: {posting: \"'X'\"}}"
POST = "{id: s, type: action, action: invoice.post}"
CLERK = Capabilities({"clerk": ["invoice.*"]})


def slot(name: str, *nodes: str) -> str:
    """A patch of nodes that follow one another."""
    ids = [each.split("id: ", 1)[1].split(",", 1)[0] for each in nodes]
    edges = ", ".join(f"{{from: {one}, to: {other}}}" for one, other in pairwise(ids))
    return f'  "slot:{name}":\n    nodes: [{", ".join(nodes)}]\n' + (f"    edges: [{edges}]\n" if edges else "")


def opened(engine: ManualEngine, *patches: str, people: bool = True) -> ManualEngine:
    """An organisation whose clerks bob and bea may do everything with invoices; fin approves."""
    engine.contracts.publish(CONTRACT)
    own = acting(engine, PUBLISHER)
    draft = own.bodies.save("base: {entity_type: invoice, envelope_version: 1}\nslots:\n" + "".join(patches))
    assert not draft.problems, draft.problems
    own.bodies.publish(draft.id)
    engine.handler("invoice.post")(lambda: {"posting": "GL"})
    for name in ("bob", "bea", "fin") if people else ():
        engine.as_tenant("acme").directory.put(name)
    for name in ("bob", "bea") if people else ():
        engine.as_tenant("acme").directory.grant(name, "clerk")
    return engine


def calls_of(engine: ManualEngine, name: str = "bob", *capabilities: str) -> Calls:
    """The calls of somebody who brings these capabilities."""
    return acting(engine, Actor(id=name, capabilities=frozenset(capabilities)))


def submit(calls: Calls) -> None:
    """Somebody creates an invoice and submits it."""
    calls.documents.create("invoice", {"number": "A-1", "total": 100}, id="I-1")
    calls.documents.transition("invoice", "I-1", "submit")


def reason(engine: ManualEngine) -> Reason:
    """Why the invoice does not move."""
    calls = acting(engine, OPERATOR)
    (found,) = calls.run(calls.documents.get("invoice", "I-1").instance).why().reasons
    return found


def status(engine: ManualEngine) -> str:
    """What the invoice is."""
    return stands(engine)[0]


def leave(engine: ManualEngine, how: str) -> None:
    """Bob loses the role, or leaves."""
    directory = engine.as_tenant("acme").directory
    if how == "revoked":
        directory.revoke("bob", "clerk")
    else:
        directory.deactivate("bob")


@pytest.mark.row("E-572", "ED-11", "EO-26")
@pytest.mark.parametrize("how", ["revoked", "deactivated"])
@pytest.mark.parametrize("steps", [(ASK,), (ASK, STAMP), (ASK, POST)], ids=["gate", "action", "handler"])
def test_rights_that_were_lost_do_not_act(place: Place, steps: tuple[str, ...], how: str) -> None:
    """Bob asked for it while he could. When the step acts he cannot: it fails with the reason, and somebody who can asks again."""
    engine = opened(place.engine(capabilities=CLERK), slot("before", *steps))
    submit(calls_of(engine))
    engine.drain()
    leave(engine, how)
    decide(engine, "a", FIN)
    view = engine.as_tenant("acme").documents.get("invoice", "I-1")
    assert (view.status, view.run_status, view.data.get("posting")) == ("draft", "paused", None)
    assert "'bob'" in reason(engine).words
    assert {each.call for each in reason(engine).remedies} >= {"documents.transition"}
    calls_of(engine, "bea").documents.transition("invoice", "I-1", "submit")
    engine.drain()
    assert status(engine) == "submitted"


@pytest.mark.row("E-572")
@pytest.mark.parametrize("way", ["asked again", "retried"])
@pytest.mark.parametrize("how", ["revoked", "deactivated"])
def test_rights_that_are_lost_while_a_handler_is_called_do_not_act(place: Place, how: str, way: str) -> None:
    """The policy gate has let bob through; what the handler computes is not written if he may not do it by then. Whoever may takes the step over."""
    engine = opened(place.engine(capabilities=CLERK), slot("before", POST))
    submit(calls_of(engine))
    leave(engine, how)
    engine.drain()
    view = engine.as_tenant("acme").documents.get("invoice", "I-1")
    assert (view.status, view.run_status, view.data.get("posting")) == ("draft", "paused", None)
    found = reason(engine)
    assert "'bob'" in found.words
    if way == "asked again":
        calls_of(engine, "bea").documents.transition("invoice", "I-1", "submit")
    else:
        assert found.step_number is not None
        calls_of(engine, "bea", "execution:*").run(view.instance).retry(found.step_number, reason="bob has left")
    engine.drain()
    view = engine.as_tenant("acme").documents.get("invoice", "I-1")
    assert (view.status, view.data.get("posting"), view.updated_by) == ("submitted", "GL", "bea")


@pytest.mark.row("EO-26", "ED-11")
@pytest.mark.parametrize("way", ["asked again", "retried"])
def test_a_gate_that_opens_by_itself_does_not_act_for_a_leaver(place: Place, way: str) -> None:
    """Bob has submitted and left. The approval counts, and the gate waits until somebody who may takes over; whoever retries it without the right does not."""
    engine = opened(place.engine(capabilities=CLERK), slot("asking", ASK))
    submit(calls_of(engine))
    engine.drain()
    leave(engine, "deactivated")
    decide(engine, "a", FIN)
    assert stands(engine)[::2] == ("submitted", "paused")
    step = reason(engine).step_number
    assert step is not None
    run = engine.as_tenant("acme").documents.get("invoice", "I-1").instance
    poor = calls_of(engine, "olga", "execution:*").run(run)
    poor.retry(step, reason="again")
    engine.drain()
    assert stands(engine)[::2] == ("submitted", "paused")
    if way == "asked again":
        calls_of(engine, "bea").documents.transition("invoice", "I-1", "approve")
    else:
        step = reason(engine).step_number
        assert step is not None
        calls_of(engine, "bea", "execution:*").run(run).retry(step, reason="bob has left")
    engine.drain()
    assert status(engine) == "active"


@pytest.mark.row("ED-11")
def test_a_role_that_was_lost_holds_up_nothing_that_follows_by_itself(place: Place) -> None:
    """Bob could submit when he did; the approval that follows asks for no right of his, and the history tells by which directory he was judged."""
    engine = opened(place.engine(capabilities=CLERK), slot("asking", ASK))
    submit(calls_of(engine))
    engine.drain()
    leave(engine, "revoked")
    decide(engine, "a", FIN)
    assert status(engine) == "active"
    run = engine.as_tenant("acme").documents.get("invoice", "I-1").instance
    moved = [each.data for each in engine.as_tenant("acme").run(run).history() if each.event_type == "document_moved"]
    assert [bool(each.get("access_version")) for each in moved] == [False, True]


@pytest.mark.row("E-572")
def test_what_came_with_the_request_counts_where_nothing_can_be_looked_up(place: Place) -> None:
    """An actor whom the directory does not have acts later with what the request said."""
    engine = opened(place.engine(), slot("before", ASK, STAMP), people=False)
    submit(calls_of(engine, "zoe", "invoice.*"))
    engine.drain()
    decide(engine, "a", FIN)
    assert status(engine) == "submitted"


@pytest.mark.row("E-572")
def test_nothing_is_done_in_the_name_of_a_key_that_was_revoked(place: Place) -> None:
    """The key with which somebody asked is revoked while the slot waits: the gate does not act."""
    engine = opened(place.engine(), slot("before", ASK))
    keys = engine.as_tenant("acme").keys
    key = keys.create("robot", actor="bob", kind="user", capabilities=["invoice.*"]).key
    actor = Actor(id="bob", capabilities=frozenset({"invoice.*"}), key=key.id)
    submit(engine.acting(RequestContext(tenant="acme", actor=actor)))
    engine.drain()
    keys.revoke(key.id)
    decide(engine, "a", FIN)
    assert stands(engine)[::2] == ("draft", "paused")
    assert "revoked" in reason(engine).words


# -- service accounts


@pytest.mark.row("E-574")
@pytest.mark.parametrize("how", ["unknown", "deactivated"])
@pytest.mark.parametrize("node", [STAMP, POST], ids=["action", "handler"])
def test_a_service_account_that_may_not_act_does_not(place: Place, node: str, how: str) -> None:
    """The directory has service accounts, and not this one, or has deactivated it. The step fails; when the account is there, it can be retried."""
    account = node.replace("type: action", 'type: action, run_as: "service_account:svc-gl"')
    engine = opened(place.engine(capabilities=CLERK), slot("behind", account))
    directory = engine.as_tenant("acme").directory
    directory.put("svc-other", kind="service")
    if how == "deactivated":
        directory.put("svc-gl", kind="service")
        directory.deactivate("svc-gl")
    submit(calls_of(engine))
    engine.drain()
    calls_of(engine).documents.transition("invoice", "I-1", "approve")
    engine.drain()
    view = engine.as_tenant("acme").documents.get("invoice", "I-1")
    assert (view.run_status, view.data.get("posting")) == ("paused", None)
    found = reason(engine)
    assert "the service account 'svc-gl'" in found.words
    assert found.step_number is not None
    if how == "unknown":
        directory.put("svc-gl", kind="service")
    else:
        directory.activate("svc-gl")
    acting(engine, OPERATOR).run(view.instance).retry(found.step_number, reason="it is there")
    engine.drain()
    assert engine.as_tenant("acme").documents.get("invoice", "I-1").data["posting"] in {"X", "GL"}


@pytest.mark.row("E-574")
def test_a_service_account_acts_where_the_directory_has_none(place: Place) -> None:
    """An organisation that keeps no service accounts in the directory names those of its other systems."""
    node = STAMP.replace("type: action", 'type: action, run_as: "service_account:erp"')
    engine = opened(place.engine(capabilities=CLERK), slot("behind", node))
    submit(calls_of(engine))
    engine.drain()
    calls_of(engine).documents.transition("invoice", "I-1", "approve")
    engine.drain()
    assert engine.as_tenant("acme").documents.get("invoice", "I-1").data["posting"] == "X"


# -- a directory of the host


class Hosted(Directory):
    """People of the host's own, who can leave."""

    def __init__(self) -> None:
        self.left: set[str] = set()

    def looking(self, tenant: str) -> AbstractContextManager[DirectoryLook]:
        """A look at them."""
        people = [Principal(id=name, is_active=name not in self.left) for name in ("bob", "bea", "fin")]
        grants = [Grant(principal="bob", role="clerk"), Grant(principal="bea", role="clerk")]
        return StaticDirectory(Roster(principals=people, grants=grants), tenant=tenant).looking(tenant)


@pytest.mark.row("EO-26", "ED-11")
@pytest.mark.parametrize(("where", "expected"), [("before", "submitted"), ("asking", "active")])
@pytest.mark.parametrize("leaves", [False, True])
def test_gates_ask_a_directory_of_the_host(place: Place, where: str, expected: str, *, leaves: bool) -> None:
    """No commit can ask it, so that the gate has it asked; it acts for nobody who has left, and somebody else asks again."""
    hosted = Hosted()
    engine = opened(place.engine(directory=hosted, capabilities=CLERK), slot(where, ASK), people=False)
    submit(calls_of(engine))
    engine.drain()
    hosted.left = {"bob"} if leaves else set()
    decide(engine, "a", FIN)
    if leaves:
        assert stands(engine)[2] == "paused"
        assert "'bob'" in reason(engine).words
        transition = "submit" if where == "before" else "approve"
        calls_of(engine, "bea").documents.transition("invoice", "I-1", transition)
        engine.drain()
    assert status(engine) == expected
    lines = acting(engine, PUBLISHER).documents.audit("invoice", "I-1")
    passed = [each.what for each in lines if each.what.startswith("passed ")]
    assert passed == (["passed submit"] if where == "before" else ["passed submit", "passed approve"])
