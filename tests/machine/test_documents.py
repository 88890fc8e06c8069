"""The rules of documents: where they may be edited, what moves them, which approvals count, and what nobody can get past."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from machine.documents import ANN, BOB, CARL, GIVEN, Case
from machine.hosting import OLGA, Host
from standfast.errors import DefinitionError
from standfast.graph import model as g
from standfast.graph.document_spec import DocumentAction, DocumentField
from standfast.graph.model import DocumentRule, Edge, Node
from standfast.kernel.actor import SYSTEM, Actor
from standfast.kernel.decision import Decision, Rejection
from standfast.kernel.row_kinds.steps import StepOpened
from standfast.machine.model import events as e
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.commands.document_commands import CreateDocument, Mutate, RequestTransition
from standfast.machine.model.commands.repair_commands import CompleteByHand, ForceFailure, SkipStep
from standfast.machine.model.queries.fields import CHANGED
from support.envelopes import (
    ACTIVE_SLOT,
    APPROVE_SLOT,
    FIELDS,
    SUBMIT_SLOT,
    Body,
    approval,
    both,
    chain,
    invoice,
    value,
    when,
)

TWO = {APPROVE_SLOT: chain(approval("first"), approval("second", who="user:carl"))}
PARALLEL = {APPROVE_SLOT: both(approval("first"), approval("second", who="user:carl"))}


def submitted(bodies: dict[str, Body] | None = None, **options: object) -> Case:
    """A document that waits for its approvals."""
    case = Case(invoice(bodies or TWO, **options))  # type: ignore[arg-type]
    assert case.ask("submit") == ""
    return case


def active(**options: object) -> Case:
    """A document that was approved."""
    case = submitted(**options)  # type: ignore[arg-type]
    assert case.decide("first", ANN) == ""
    assert case.decide("second", CARL) == ""
    return case


# -- the life of a document


@pytest.mark.row("E-110", "E-111", "E-461", "E-401")
def test_a_created_document_rests_in_its_first_state() -> None:
    """A document has its run from the moment it is created, with its defaults and computed fields, and waits as a draft."""
    case = Case(invoice())
    assert (case.document.status, case.document.version, case.at) == ("draft", 1, ["sys:state:draft"])
    assert case.document.data == {"vendor": "acme", "total": 500, "currency": "EUR", "large": False}
    assert [row.wait_kind for row in case.rows(StepOpened)] == ["", "state"]
    assert case.host.history[0] == e.WorkflowStarted(input={}, requester="bob")


@pytest.mark.row("E-101", "E-103", "E-112", "E-402", "ED-11")
def test_a_bare_envelope_moves_by_what_is_asked_for() -> None:
    """Where nobody has filled a slot, its gate performs the transition in the commit that asks for it."""
    case = Case(invoice())
    assert case.ask("submit") == ""
    assert (case.document.status, case.at) == ("submitted", ["sys:state:submitted"])
    assert case.ask("approve") == ""
    assert case.document.status == "active"


@pytest.mark.row("E-113", "E-404", "ED-07")
def test_a_round_is_completed_at_the_rest_and_the_document_lives_on() -> None:
    """Approved, the round is over and the document locked; the run itself goes on, and costs nothing."""
    case = active()
    assert (case.document.status, case.document.is_resting, case.at) == ("active", True, ["sys:end"])
    assert (case.row.status, case.row.is_resting, case.host.state.status) == ("active", True, "running")
    assert case.host.machine.status(case.host.state).reason == "round_completed"
    assert case.window == "locked"


@pytest.mark.row("E-114")
def test_a_later_transition_begins_another_round() -> None:
    """An active document is cancelled in a round of its own, which begins at its state, and ends the life of the document."""
    case = active()
    assert case.ask("cancel", reason="wrong vendor") == ""
    assert (case.document.status, case.document.round) == ("cancelled", 2)
    assert (case.host.state.status, case.host.state.reason) == ("completed", "cancelled")
    assert case.edit(total=1) == "WORKFLOW_EDIT_LOCKED"
    assert case.ask("cancel") == "WORKFLOW_EDIT_LOCKED"


@pytest.mark.row("E-114", "EO-22")
def test_a_document_that_was_there_before_is_taken_over_at_its_status() -> None:
    """One that is taken over waits at the state that it has, with its version, and can be moved from there."""
    host = Host(invoice())
    host.key = "OLD-7"
    data = {**GIVEN, "currency": "USD", "posting": "GL-1"}
    host.tell(CreateDocument(data=data, status="active", version=4), BOB)
    assert host.state.document is not None
    assert (host.state.document.status, host.state.document.version) == ("active", 4)
    assert host.state.document.is_resting
    host.tell(RequestTransition(transition="cancel"), BOB)
    assert host.state.document.status == "cancelled"


def test_nothing_but_a_creation_begins_a_document() -> None:
    """An envelope is not started like a saga, a saga has no documents, and a document needs an id and a known status."""
    case = Case(invoice())
    assert case.code(case.tell(CreateDocument(data=GIVEN))) == "already_started"
    for command, key in (
        (c.StartWorkflow(input={}), "x"),
        (CreateDocument(data=GIVEN), ""),
        (CreateDocument(data=GIVEN, status="cancelled"), "x"),
        (CreateDocument(data=GIVEN, status="lost"), "x"),
    ):
        host = Host(invoice())
        host.key = key
        assert case.code(host.tell(command, BOB)) == "no_document"
        assert host.history == []
    saga = Host(
        g.Graph(kind="saga", name="s", version="1", entry="e", nodes={"e": Node(id="e", op=g.EndOp())}, edges=())
    )
    assert case.code(saga.tell(CreateDocument(data=GIVEN), BOB)) == "no_document"


# -- windows


@pytest.mark.row("E-221", "E-226", "E-243")
def test_a_draft_is_edited_and_counts_its_versions() -> None:
    """In an editable window an edit is a new version, without gaps, and the flow stays where it is."""
    case = Case(invoice())
    assert [case.edit(total=total) for total in (600, 700)] == ["", ""]
    assert (case.document.version, case.document.data["total"], case.at) == (3, 700, ["sys:state:draft"])
    assert [each.version for each in case.versions] == [1, 2, 3]


@pytest.mark.row("E-221", "E-222", "E-239")
def test_a_locked_document_is_not_edited() -> None:
    """The refusal names where the document is and what could be done instead, and nothing has changed."""
    case = active()
    answer = case.tell(Mutate(payload={"total": 1}))
    assert isinstance(answer, Rejection)
    assert answer.code == "WORKFLOW_EDIT_LOCKED"
    assert "amend it, or ask for 'cancel'" in answer.message
    assert case.document.data["total"] == 500


@pytest.mark.row("E-224")
def test_a_locked_edit_is_refused_before_any_rule_is_judged() -> None:
    """Not even a rule that would block, or cannot be judged, is looked at."""
    case = active()
    broken = DocumentRule(name="broken", when=when("entity.nowhere.at_all > 1"))
    assert case.code(case.tell(Mutate(payload={"total": 1}), rules=[broken])) == "WORKFLOW_EDIT_LOCKED"


@pytest.mark.row("E-225", "E-231", "ED-07")
def test_an_edit_of_what_others_decide_on_is_an_amendment() -> None:
    """From the moment of the submission on, before anybody has looked, a plain edit is refused in favour of an amendment."""
    case = submitted()
    assert case.edit(total=900) == "WORKFLOW_AMENDMENT_REQUIRED"
    assert (case.document.version, case.at) == (1, ["first"])


@pytest.mark.row("E-055", "E-905", "E-229")
def test_a_contract_may_refuse_drift_instead() -> None:
    """With `on_drift: fail` an edit in a stable region is refused with its own code, and changes nothing."""
    case = submitted(on_drift="fail")
    assert case.edit(total=900) == "WORKFLOW_VERSION_DRIFT"
    assert case.document.version == 1


@pytest.mark.row("E-230", "ED-07")
def test_the_strictest_window_counts() -> None:
    """Of two branches, one of which is locked, the locked one decides, whatever the status says."""
    body = both(approval("first"), approval("second", who="user:carl"))
    body = Body(body.nodes, body.first, body.last, body.edges, windows={"second": "locked"})
    case = submitted({SUBMIT_SLOT: body})
    assert (case.document.status, case.window) == ("draft", "locked")
    assert case.edit(total=1) == "WORKFLOW_EDIT_LOCKED"


@pytest.mark.row("EO-24")
def test_an_edit_may_name_the_version_that_was_seen() -> None:
    """Whoever edits another version than the one they have seen is told, with both numbers."""
    case = Case(invoice())
    assert case.edit(total=600, expected=1) == ""
    answer = case.tell(Mutate(payload={"total": 700}, expected_version=1))
    assert isinstance(answer, Rejection)
    assert (answer.code, "version 2" in answer.message, "seen 1" in answer.message) == ("version_conflict", True, True)


# -- what is given


@pytest.mark.row("E-011")
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"total": "x"}, "invalid_document"),
        ({"total": 1.5}, "invalid_document"),
        ({"total": True}, "invalid_document"),
        ({"total": None}, "invalid_document"),
        ({"currency": "GBP"}, "invalid_document"),
        ({"colour": "red"}, "invalid_document"),
        ({"large": True}, "invalid_document"),
        ({"posting": "GL-1"}, "invalid_document"),
        ({"note": "x" * 2_000_000}, "too_large"),
    ],
)
def test_what_does_not_fit_the_contract_is_refused(fields: dict[str, object], code: str) -> None:
    """A wrong type, an unknown name, something computed, something of the workflow's own, something huge: refused, and nothing changed."""
    case = Case(invoice())
    assert case.code(case.tell(Mutate(payload=fields))) == code


def test_lists_and_objects_are_judged_to_the_bottom() -> None:
    """Each fault is told with its place: in a list, in an object of a list, of dates and instants."""
    line = DocumentField(
        type="object",
        fields={"item": DocumentField(type="string", required=True), "price": DocumentField(type="money")},
    )
    extra = {
        "lines": DocumentField(type="list", items=line),
        "due": DocumentField(type="date"),
        "seen": DocumentField(type="datetime"),
        "order": DocumentField(type="ref", of="order"),
        "paid": DocumentField(type="bool"),
        "tags": DocumentField(type="list"),
    }
    case = Case(invoice(fields={**FIELDS, **extra}))
    good = {
        "lines": [{"item": "a", "price": 5}],
        "due": "2026-11-17",
        "seen": "2026-11-17T09:00:00+01:00",
        "order": "O-1",
        "paid": True,
        "tags": ["a", 1],
    }
    assert case.code(case.tell(Mutate(payload=good))) == ""
    answer = case.tell(
        Mutate(
            payload={
                "lines": [{"price": "x", "colour": 1}, 5],
                "due": "tomorrow",
                "seen": "2026-11-17T09:00:00",
                "order": "",
                "paid": "yes",
                "tags": "a",
            }
        )
    )
    assert isinstance(answer, Rejection)
    for place in (
        "lines[0].colour",
        "lines[0].item",
        "lines[0].price",
        "lines[1]",
        "due",
        "seen",
        "order",
        "paid",
        "tags",
    ):
        assert f"{place}:" in answer.message


def test_an_edit_that_changes_nothing_is_no_version() -> None:
    """The same values again are no news, and void nothing."""
    case = Case(invoice())
    assert case.edit(total=500) == "ignored"
    assert case.document.version == 1


@pytest.mark.parametrize(
    "text",
    [
        *("20261117T093000Z", "2026-W47-2T09:30:00Z", "2026-11-17T09:30+00:00", "2026-11-17T09:30:00,5Z"),
        *("2026-11-17T09:30:00+01:00:30", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
    ],
)
def test_an_instant_is_one_that_conditions_can_read(text: str) -> None:
    """What is written in another way, or lies beyond all time, is refused, and no step stops at it later."""
    case = Case(invoice(fields={**FIELDS, "seen": DocumentField(type="datetime")}))
    assert case.code(case.tell(Mutate(payload={"seen": text}))) == "invalid_document"
    assert case.code(case.tell(Mutate(payload={"seen": "2026-11-17T09:30:00+01:00"}))) == ""


def test_what_is_computed_follows_from_what_is_computed() -> None:
    """Each behind those that it reads, whatever they are called; what comes to nothing has no value, from the beginning on."""
    names = ["d", "b", "a", "c"]  # Each from the one before.
    chain_ = {
        name: DocumentField(type="computed", formula=value(f"entity.{before}"))
        for before, name in zip(["total", *names], names, strict=False)
    }
    product = DocumentField(type="computed", formula=value("entity.total"), times=value("entity.vendor"))
    case = Case(invoice(fields={**FIELDS, **chain_, "product": product}))
    for total in (7, 8):
        case.edit(total=total)
        assert [case.document.data[name] for name in names] == [total] * 4
    assert [b"product" in each.data for each in case.versions] == [False] * 3


def test_fields_that_are_computed_from_one_another_are_refused() -> None:
    """There would be no end to it; the graph says so."""
    circle = {
        name: DocumentField(type="computed", formula=value(f"entity.{of}")) for name, of in (("a", "b"), ("b", "a"))
    }
    with pytest.raises(DefinitionError, match="'a' from 'b' from 'a'"):
        invoice(fields={**FIELDS, **circle})


def test_null_takes_a_field_away_and_computed_ones_follow() -> None:
    """A field that is not required can go; what is computed is computed anew with every edit."""
    case = Case(invoice(), note="hello")
    assert case.edit(note=None, total=200_000) == ""
    assert "note" not in case.document.data
    assert case.document.data["large"] is True


@pytest.mark.row("E-887")
def test_actions_and_transitions_need_their_capability() -> None:
    """Who may not do it is refused before the window is looked at; who may is not."""
    post = DocumentAction(name="touch", capability="invoice.touch")
    case = Case(invoice(actions=[post], capabilities={"submit": "invoice.submit"}))
    clerk = Actor(id="dora", capabilities=frozenset({"invoice.*"}))
    assert case.code(case.tell(Mutate(action="touch", payload={"total": 1}))) == "not_allowed"
    assert case.code(case.tell(Mutate(action="touch", payload={"total": 1}), clerk)) == ""
    assert case.ask("submit") == "not_allowed"
    assert case.ask("submit", clerk) == ""
    assert case.code(case.tell(Mutate(action="create", payload={}))) == "unknown_action"
    assert case.code(case.tell(Mutate(action="explode", payload={}))) == "unknown_action"


def test_an_action_may_ask_for_a_payload_of_its_own() -> None:
    """What is given must fit the schema of the action."""
    schema: dict[str, object] = {"type": "object", "required": ["note"], "properties": {"note": {"type": "string"}}}
    case = Case(invoice(actions=[DocumentAction(name="remark", payload=schema)]))
    assert case.code(case.tell(Mutate(action="remark", payload={}))) == "invalid_document"
    assert case.code(case.tell(Mutate(action="remark", payload={"note": "x"}))) == ""


# -- lifecycle


@pytest.mark.row("E-112", "EH-05")
@pytest.mark.parametrize(
    ("status", "legal"),
    [
        ("draft", {"submit", "cancel"}),
        ("submitted", {"approve", "cancel", "recall"}),
        ("active", {"cancel"}),
        ("amended", {"submit", "cancel"}),
    ],
)
def test_only_what_the_lifecycle_has_leads_on(status: str, legal: set[str]) -> None:
    """From each status exactly its own transitions can be asked for; the refusal lists them."""
    for transition in ("submit", "approve", "cancel", "recall"):
        case = Case(invoice(), amends="INV-0" if status == "amended" else "")
        for before in {"submitted": ["submit"], "active": ["submit", "approve"]}.get(status, []):
            case.ask(before)
        assert case.document.status == status
        answer = case.tell(RequestTransition(transition=transition))
        if transition in legal:
            assert not isinstance(answer, Rejection)
        else:
            assert isinstance(answer, Rejection)
            assert answer.code == "WORKFLOW_TRANSITION_ILLEGAL"
            assert all(repr(each) in answer.message for each in legal)
    assert Case(invoice()).ask("fly") == "unknown_transition"
    over = Case(invoice())
    assert (over.ask("cancel"), over.document.status) == ("", "cancelled")
    assert {over.ask(each) for each in ("submit", "approve", "cancel", "recall")} == {"WORKFLOW_EDIT_LOCKED"}


@pytest.mark.row("ED-11")
def test_an_intent_waits_for_the_body_of_its_slot() -> None:
    """A transition whose way is not done yet is kept, and performed by the gate in the name of whoever asked for it."""
    case = submitted({SUBMIT_SLOT: chain(approval("first"))})
    assert (case.document.status, case.at) == ("draft", ["first"])
    answer = case.tell(RequestTransition(transition="submit"), CARL)
    assert isinstance(answer, Rejection)
    assert (answer.code, "'first'" in answer.message) == ("WORKFLOW_GATE_NOT_READY", True)
    assert case.decide("first", ANN) == ""
    assert case.document.status == "submitted"
    moved = [event for event in case.host.history if isinstance(event, e.DocumentMoved)]
    assert [(event.transition, event.by) for event in moved] == [("submit", "bob")]


@pytest.mark.row("EO-02", "E-686")
def test_a_submitted_document_is_recalled() -> None:
    """Its requester pulls it back to draft; the questions are withdrawn, what was decided counts no more, and it can be edited again."""
    case = submitted()
    assert case.decide("first", ANN) == ""
    assert case.ask("recall") == ""
    assert (case.document.status, case.at, case.applied) == ("draft", ["sys:state:draft"], [False])
    assert case.edit(total=600) == ""


@pytest.mark.row("EO-23")
def test_a_draft_is_discarded() -> None:
    """It is cancelled where it lies, its run is over, and nothing can be asked of it any more."""
    case = Case(invoice())
    assert case.ask("cancel", reason="a duplicate") == ""
    assert (case.document.status, case.host.state.status, case.at) == ("cancelled", "completed", [])
    assert (case.edit(total=600), case.ask("submit")) == ("WORKFLOW_EDIT_LOCKED", "WORKFLOW_EDIT_LOCKED")


@pytest.mark.row("EO-45")
def test_a_call_that_runs_while_its_document_is_cancelled_ends_and_is_recorded() -> None:
    """One that nobody has begun is taken back; what a begun one brings is told, and the document stays cancelled."""
    begun, waiting = (Node(id=name, op=g.TaskOp(work=g.HandlerCall(handler=name))) for name in ("begun", "waiting"))
    case = submitted({APPROVE_SLOT: both(begun, waiting)})
    effects = {call.body.node: effect for effect, call in case.host.calls.items()}
    case.host.calls[effects["begun"]].is_begun = True
    assert case.ask("cancel") == ""
    assert [call.body.node for call in case.host.calls.values()] == ["begun"]
    step = case.host.calls[effects["begun"]].body.step
    answer = case.tell(c.CompleteStep(step=step, output={"sent": True}), SYSTEM, effect=effects["begun"])
    assert isinstance(answer, Decision)
    assert [(type(each), each.output) for each in answer.events if isinstance(each, e.StepStopped)] == [
        (e.StepStopped, {"sent": True})
    ]
    assert (case.document.status, case.host.state.status) == ("cancelled", "completed")


@pytest.mark.row("EO-35", "EO-36", "EC-22")
def test_rework_without_end_waits_for_an_operator() -> None:
    """A document that is refused so often that it would enter its draft once too often waits with a reason, and not before."""
    graph = invoice(TWO)
    policies = msgspec.structs.replace(graph.policies, max_visits=3)
    case = Case(msgspec.structs.replace(graph, policies=policies))
    for status in ("running", "running", "paused"):
        assert case.ask("submit") == ""
        assert case.decide("first", ANN, "rejected") == ""
        assert case.host.state.status == status
    assert (case.host.state.reason, case.at) == ("max_visits", [])
    assert "entered 3 times" in case.host.state.error


@pytest.mark.row("EO-45")
def test_a_document_is_cancelled_while_others_decide() -> None:
    """The other branches are ended with it; late decisions are refused."""
    case = submitted(PARALLEL)
    late = case.step("second").number
    assert case.ask("cancel", reason="duplicate") == ""
    assert (case.document.status, case.host.state.status) == ("cancelled", "completed")
    answer = c.AnswerStep(step=late, outcome="approved", document_version="1")
    assert case.code(case.tell(answer, CARL)) == "already_terminal"


# -- approvals


@pytest.mark.row("E-668", "E-671", "E-674", "E-266", "E-903")
def test_an_approval_is_pinned_to_the_version_that_was_seen() -> None:
    """A decision on another version, or on none, is refused with both; on the one that is asked about it is taken."""
    case = Case(invoice(TWO))
    case.edit(total=700)
    case.ask("submit")
    assert case.document.approvals[case.step("first").number].version == 2
    for version in ("1", "3", ""):
        assert case.decide("first", ANN, version=version) == "APPROVAL_VERSION_STALE"
        late = c.AnswerStep(step=case.step("first").number, outcome="approved", document_version=version)
        answer = case.tell(late, ANN)
        assert isinstance(answer, Rejection)
        assert "asks about version 2 of the document" in answer.message
        assert (f"decide on {version!r}" if version else "you do not say so") in answer.message
    assert case.decide("first", ANN, version="2") == ""


@pytest.mark.row("E-053", "E-672", "E-903", "E-422")
def test_the_gate_uses_approvals_up_once() -> None:
    """Every decision of the way is marked as applied in the commit in which the gate passes, and none is left over."""
    case = submitted()
    assert case.decide("first", ANN) == ""
    assert case.applied == [None]
    assert case.decide("second", CARL) == ""
    assert case.applied == [True, True]
    assert case.document.approvals == {}


@pytest.mark.row("E-673", "E-053")
def test_an_edit_voids_what_was_decided_before_it() -> None:
    """In a slot that allows edits, an edit voids the decisions at once, and the gate has those asked again; who decided after it is not."""
    case = submitted({SUBMIT_SLOT: chain(approval("first"), approval("second", who="user:carl"))})
    assert case.decide("first", ANN) == ""
    assert case.edit(total=900) == ""
    assert (case.document.version, case.applied) == (2, [False])
    assert case.decide("second", CARL) == ""
    assert (case.document.status, case.at) == ("draft", ["first"])
    assert case.decide("first", ANN) == ""
    assert (case.document.status, case.applied) == ("submitted", [False, True, True])


@pytest.mark.row("E-669", "E-674")
def test_an_open_question_is_put_anew_after_an_edit() -> None:
    """Nobody can decide on what is no more: the question is asked again, about the document as it is."""
    case = submitted({SUBMIT_SLOT: chain(approval("first"))})
    before = case.step("first").number
    assert case.edit(total=900) == ""
    after = case.step("first").number
    assert after != before
    assert case.document.approvals[after].version == 2
    late = c.AnswerStep(step=before, outcome="approved", document_version="1")
    assert case.code(case.tell(late, ANN)) == "not_waiting"
    assert case.decide("first", ANN) == ""
    assert case.document.status == "submitted"


def test_an_edit_leaves_approvals_of_other_fields_as_they_are() -> None:
    """An approval that says what it covers is void only if that has changed."""
    body = chain(approval("first", covers=["total"]), approval("second", who="user:carl", covers=["note"]))
    case = submitted({SUBMIT_SLOT: body})
    assert case.decide("first", ANN) == ""
    assert case.edit(note="new") == ""
    voided = [event for event in case.host.history if isinstance(event, e.ApprovalsVoided)]
    assert [(len(event.steps), event.fields) for event in voided] == [(1, ["note"])]
    assert case.applied == [None]
    assert case.decide("second", CARL, version="2") == ""
    assert (case.document.status, case.applied) == ("submitted", [True, True])


@pytest.mark.row("E-673", "E-053")
@pytest.mark.parametrize("shape", [chain, both])
def test_only_those_approvals_are_asked_again_that_are_void(shape: Callable[..., Body]) -> None:
    """An edit of what one of two has approved: the gate has that one asked alone, the other stays in force, and the history says which."""
    nodes = approval("price", covers=["total"]), approval("seller", who="user:carl", covers=["vendor"])
    last = approval("last", who="user:carl", covers=["note"])
    one = shape(*nodes)
    edges = [*one.edges, Edge(source=one.last[0].split(":")[0], target="last", on=one.last[0].split(":")[1])]
    case = Case(invoice({SUBMIT_SLOT: Body([*one.nodes, last], one.first, ["last:approved"], edges)}))
    assert case.ask("submit") == ""
    assert (case.decide("price", ANN), case.decide("seller", CARL)) == ("", "")
    given = {each.node: number for number, each in case.document.approvals.items()}
    assert case.edit(total=600) == ""
    assert case.decide("last", CARL) == ""
    assert case.at == ["price"]
    (kept,) = [event for event in case.host.history if isinstance(event, e.ApprovalsKept)]
    asked = {event.step: event.node for event in case.host.history if isinstance(event, e.StepStarted)}
    assert ([asked[step] for step in kept.steps], kept.slot) == (["seller", "last"], SUBMIT_SLOT)
    assert case.decide("price", ANN, version="2") == ""
    assert case.document.status == "submitted"
    assert "keep approvals" in [line.what for line in case.audit]
    told = [
        event.output for event in case.host.history if isinstance(event, e.StepCompleted) and event.node == "seller"
    ]
    assert [each["decided_by"] for each in told if isinstance(each, dict)] == ["carl"]
    (applied,) = [event for event in case.host.history if isinstance(event, e.ApprovalsApplied)]
    assert (len(applied.steps), given["seller"] in applied.steps, given["price"] in applied.steps) == (3, True, False)


@pytest.mark.row("E-750")
def test_an_approval_that_was_kept_and_is_void_now_is_asked_for_when_the_way_comes_to_it() -> None:
    """The step does not pass by an answer that counts for nothing, so that nothing behind it happens on the strength of that."""
    fields = {"a": "total", "b": "note", "c": "vendor"}
    case = Case(invoice({SUBMIT_SLOT: chain(*(approval(name, covers=[each]) for name, each in fields.items()))}))
    assert (case.ask("submit"), case.decide("a", ANN), case.decide("b", ANN), case.edit(total=7)) == ("", "", "", "")
    assert (case.decide("c", ANN), case.at) == ("", ["a"])
    assert (case.edit(note="another"), case.decide("a", ANN), case.at) == ("", "", ["b"])
    again = [each for each in case.host.history if isinstance(each, e.StepCompleted) and each.outcome == "again"]
    assert len(again) == 1
    assert (case.decide("b", ANN), case.document.status, case.applied) == (
        "",
        "submitted",
        [False, False, True, True, True],
    )


@pytest.mark.row("EO-18")
def test_approvals_of_items_are_kept_branch_by_branch() -> None:
    """Two lines are approved, each in its branch; the total is edited, and only who has approved that is asked again."""
    nodes = [
        Node(id="each", op=g.SplitOp(items=value("entity.lines"), item="line")),
        approval("ask", covers=["lines"]),
        Node(id="meet", op=g.JoinOp(split="each")),
        approval("sum", who="user:carl", covers=["total"]),
        approval("last", covers=["note"]),
    ]
    edges = [
        Edge(source="each", target="ask", on=g.BRANCH),
        Edge(source="ask", target="meet", on="approved"),
        Edge(source="meet", target="sum"),
        Edge(source="sum", target="last", on="approved"),
    ]
    fields = {**FIELDS, "lines": DocumentField(type="list")}
    case = Case(invoice({SUBMIT_SLOT: Body(nodes, "each", ["last:approved"], edges)}, fields=fields), lines=["a", "b"])
    assert case.ask("submit") == ""
    tokens = [step.token for step in case.host.state.open.values()]
    assert [token.rpartition(".")[2] for token in tokens] == ["1", "2"]
    assert (case.decide("ask", ANN), case.decide("ask", ANN), case.decide("sum", CARL)) == ("", "", "")
    assert case.edit(total=600) == ""
    assert (case.decide("last", ANN), case.at) == ("", ["sum"])
    assert (case.decide("sum", CARL, version="2"), case.document.status) == ("", "submitted")
    (applied,) = [event for event in case.host.history if isinstance(event, e.ApprovalsApplied)]
    assert len(applied.steps) == 4


@pytest.mark.row("EO-35")
def test_a_run_has_only_so_many_tokens() -> None:
    """A split that would make more of them has failed, and begins none of its branches."""
    graph = invoice(PARALLEL)
    for most, at in ((3, ["first", "second"]), (2, [])):
        policies = msgspec.structs.replace(graph.policies, max_tokens=most)
        case = Case(msgspec.structs.replace(graph, policies=policies))
        assert case.ask("submit") == ""
        assert case.at == at
    assert (case.host.state.status, "at most 2 tokens" in case.host.state.error) == ("paused", True)


def test_an_approval_that_another_way_does_not_come_to_is_not_used_up() -> None:
    """The slot is gone through again by another way: what was approved on the first one counts for nothing there."""
    nodes = [
        Node(id="large", op=g.ConditionOp(expression=when("entity.total > 1000"))),
        approval("chief", covers=["vendor"]),
    ]
    last = approval("last", who="user:carl", covers=["total"])
    edges = [
        Edge(source="large", target="chief", on=g.TRUE),
        Edge(source="large", target="last", on=g.FALSE),
        Edge(source="chief", target="last", on="approved"),
    ]
    case = Case(
        invoice(
            {
                SUBMIT_SLOT: Body(
                    [*nodes, last, approval("end")],
                    "large",
                    ["end:approved"],
                    [*edges, Edge(source="last", target="end", on="approved")],
                )
            }
        ),
        total=2000,
    )
    assert case.ask("submit") == ""
    assert (case.decide("chief", ANN), case.decide("last", CARL)) == ("", "")
    assert case.edit(total=10) == ""
    assert (case.decide("end", ANN), case.decide("last", CARL)) == ("", "")
    (applied,) = [event for event in case.host.history if isinstance(event, e.ApprovalsApplied)]
    assert {
        event.node for event in case.host.history if isinstance(event, e.StepStarted) and event.step in applied.steps
    } == {"last", "end"}
    assert case.document.status == "submitted"


@pytest.mark.row("E-105", "E-679", "E-680", "EC-10", "EC-30")
def test_a_rejection_leaves_the_slot_and_everybody_is_asked_again() -> None:
    """At the second of two, the first one's approval is gone with it: the document is back in draft with the reason, and can be submitted again."""
    case = submitted()
    assert case.decide("first", ANN) == ""
    bare = c.AnswerStep(step=case.step("second").number, outcome="rejected", document_version="1")
    assert case.code(case.tell(bare, CARL)) == "reason_required"
    assert case.decide("second", CARL, "rejected") == ""
    assert (case.document.status, case.applied) == ("draft", [False, None])
    back = next(event for event in reversed(case.host.history) if isinstance(event, e.DocumentMoved))
    assert (back.how, back.by, back.reason) == ("rejected", "carl", "because")
    assert case.ask("submit") == ""
    assert case.at == ["first"]


@pytest.mark.row("EC-32")
def test_a_rejection_in_one_branch_ends_the_others() -> None:
    """Two are asked at once and one rejects: the other one's question is withdrawn, and one token goes on to the gate."""
    case = submitted(PARALLEL)
    late = case.step("first").number
    assert case.decide("second", CARL, "rejected") == ""
    assert (case.document.status, case.at) == ("draft", ["sys:state:draft"])
    assert list(case.host.state.tokens) == ["0"]
    answer = c.AnswerStep(step=late, outcome="approved", document_version="1")
    assert case.code(case.tell(answer, ANN)) == "not_waiting"


@pytest.mark.row("E-745")
def test_a_rejection_before_the_submission_leaves_the_document_where_it_was() -> None:
    """In the slot before the first gate the reject edge of the status is taken."""
    case = submitted({SUBMIT_SLOT: chain(approval("first"))})
    assert case.decide("first", ANN, "rejected") == ""
    assert (case.document.status, case.at) == ("draft", ["sys:state:draft"])
    assert case.ask("submit") == ""
    assert case.decide("first", ANN) == ""
    assert case.document.status == "submitted"


def test_a_rejection_that_an_author_routes_is_his_affair() -> None:
    """With an edge of its own a rejection leads to somebody else, who decides."""
    first, second = approval("first"), approval("second", who="user:carl")
    body = Body(
        nodes=(first, second),
        first="first",
        last=("first:approved", "second:approved"),
        edges=[Edge(source="first", target="second", on="rejected")],
    )
    case = submitted({APPROVE_SLOT: body})
    assert case.decide("first", ANN, "rejected") == ""
    assert case.at == ["second"]
    assert case.decide("second", CARL) == ""
    assert (case.document.status, case.applied) == ("active", [None, True])


@pytest.mark.row("E-226")
def test_a_slot_may_begin_anew_with_every_edit() -> None:
    """With `on_edit: restart` what was done in the slot is done again."""
    pause = Node(id="pause", op=g.WaitTimerOp(duration_ms=1000))
    case = submitted({SUBMIT_SLOT: chain(approval("first"), pause)}, on_edit="restart")
    assert case.decide("first", ANN) == ""
    assert case.at == ["pause"]
    assert case.edit(total=900) == ""
    assert (case.at, case.applied, case.host.timers) == (["first"], [False], {})


# -- nobody gets past


@pytest.mark.row("EO-10", "E-575")
def test_no_repair_passes_a_gate_or_an_approval() -> None:
    """Operators can neither skip nor complete a state or an approval, nor override one, nor end the run behind the lifecycle's back."""
    case = submitted()
    step = case.step("first").number
    for command, code in (
        (SkipStep(step=step, reason="hurry", outcome="approved"), "protected"),
        (CompleteByHand(step=step, reason="hurry"), "protected"),
        (c.ResumeWorkflow(override=True, reason="hurry"), "protected"),
        (c.CancelWorkflow(reason="hurry"), "document_life"),
        (c.AbortWorkflow(reason="hurry"), "document_life"),
        (ForceFailure(reason="hurry"), "document_life"),
    ):
        assert case.code(case.tell(command, OLGA)) == code
    draft = Case(invoice())
    skip = SkipStep(step=draft.step("sys:state:draft").number, reason="hurry", outcome="submit")
    assert draft.code(draft.tell(skip, OLGA)) == "protected"


# -- amendments


@pytest.mark.row("E-068", "E-236", "E-242", "ED-08")
@pytest.mark.parametrize("is_active", [False, True])
def test_a_document_makes_room_for_its_amendment(is_active: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Its questions are withdrawn, its decisions void, its run cancelled as amended; and it is superseded once."""
    case = active() if is_active else submitted()
    if not is_active:
        assert case.decide("first", ANN) == ""
    assert case.supersede() == ""
    assert (case.document.status, case.document.superseded_by) == ("cancelled", "INV-2")
    assert (case.host.state.status, case.host.state.error, case.at) == ("cancelled", "amended", [])
    assert case.applied == ([True, True] if is_active else [False])
    assert case.supersede("INV-3") == "ALREADY_SUPERSEDED"
    assert case.edit(total=1) == "ALREADY_SUPERSEDED"


@pytest.mark.row("E-237", "E-241", "ED-08")
def test_an_amendment_begins_in_its_own_state_and_is_approved_anew() -> None:
    """The new document starts at version 1 as amended, editable, and no approval of the old one counts for it."""
    host = Host(invoice(TWO))
    host.key = "INV-2"
    host.tell(CreateDocument(data={**GIVEN, "total": 900}, amended_from="INV-1"), BOB)
    assert host.state.document is not None
    assert (host.state.document.status, host.state.document.version) == ("amended", 1)
    assert [step.node for step in host.state.open.values()] == ["sys:state:amended"]
    assert not any(isinstance(event, e.DocumentMoved) for event in host.history)
    host.tell(RequestTransition(transition="submit"), BOB)
    assert [step.node for step in host.state.open.values()] == ["first"]


def test_what_can_be_edited_needs_no_amendment() -> None:
    """A draft is edited as it is."""
    assert Case(invoice()).supersede() == "not_amendable"


@pytest.mark.row("ED-08")
@pytest.mark.parametrize("is_active", [False, True])
def test_a_contract_may_amend_in_place(is_active: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """The same document gets another version and goes back to where amended ones are; what was decided before counts no more."""
    case = active(amendment="in_place") if is_active else submitted(amendment="in_place")
    if not is_active:
        case.decide("first", ANN)
        assert case.edit(total=900) == ""
    else:
        assert case.edit(total=900) == "WORKFLOW_EDIT_LOCKED"
        assert case.code(case.tell(Mutate(payload={"total": 900}, amends=True))) == ""
    assert (case.document.status, case.document.version, case.at) == ("amended", 2, ["sys:state:amended"])
    assert False in case.applied or is_active
    assert case.supersede() == "WORKFLOW_AMENDMENT_REQUIRED"
    assert case.ask("submit") == ""
    assert case.at == ["first"]


# -- actions, scripts, rules


def posting(*, allowed: bool = True, handler: str = "", run_as: str = "", capability: str = "") -> Case:
    """A document whose last slot posts it."""
    action = DocumentAction(name="post", workflow_allowed=allowed, handler=handler, capability=capability)
    work = g.HandlerCall(handler=handler, transactional=True) if handler else None
    gate = Node(id="sys:policy:post", op=g.PolicyGateOp(action="post"), run_as=run_as)
    payload = {} if handler else {"posting": value("'GL-9'")}
    node = Node(id="post", op=g.ActionOp(action="post", payload=payload, work=work), run_as=run_as)
    body = chain(gate, node)
    case = Case(invoice({**TWO, ACTIVE_SLOT: body}, actions=[action]))
    case.ask("submit")
    case.decide("first", ANN)
    case.decide("second", CARL)
    return case


@pytest.mark.row("E-227", "E-405", "E-008")
def test_an_action_of_the_workflow_writes_where_people_may_not() -> None:
    """In the locked slot it sets a field of its own, as a version with its step as the cause; the approvals that let it there stay applied."""
    case = posting()
    assert (case.document.status, case.document.version, case.document.data["posting"]) == ("active", 2, "GL-9")
    assert [(each.action, each.run_as, each.step is not None) for each in case.mutations if each.action == "post"] == [
        ("post", "actor", True)
    ]
    assert case.applied == [True, True]
    assert case.edit(total=1) == "WORKFLOW_EDIT_LOCKED"
    for person in (BOB, Actor(id="root", capabilities=frozenset({"*"}))):
        same = Mutate(action="post", payload={"note": "X"})
        assert case.code(case.tell(same, person)) == "WORKFLOW_EDIT_LOCKED"
    assert (case.document.version, case.document.data.get("note")) == (2, None)


@pytest.mark.row("E-751")
def test_no_step_changes_what_was_approved_behind_the_gate() -> None:
    """Nobody would be asked for it again; fields that only the workflow writes are no part of what was approved."""
    mark = DocumentAction(name="mark", workflow_allowed=True)
    change = Node(id="change", op=g.ActionOp(action="mark", payload={"total": value("1"), "posting": value("'GL-1'")}))
    bodies = {APPROVE_SLOT: chain(approval("first")), ACTIVE_SLOT: chain(change)}
    case = submitted(bodies, actions=[mark])
    assert case.decide("first", ANN) == ""
    assert (case.host.state.status, case.host.state.reason) == ("paused", "step_failed")
    assert "'total'" in case.host.state.error
    assert (case.document.data["total"], "posting" in case.document.data) == (500, False)


def test_an_action_that_the_contract_does_not_allow_there_fails() -> None:
    """What the workflow itself may not do has its step fail, and the run waits for an operator."""
    case = posting(allowed=False)
    assert (case.host.state.status, case.host.state.reason) == ("paused", "step_failed")
    assert "posting" not in case.document.data


@pytest.mark.row("E-403", "E-025", "E-571", "E-573")
def test_a_policy_gate_stands_before_an_action() -> None:
    """Who asked for the transition needs the capability of the action; the engine itself needs none."""
    case = posting(capability="invoice.post")
    assert (case.host.state.status, case.host.state.reason) == ("paused", "step_failed")
    assert "invoice.post" in case.host.state.error
    assert "posting" not in case.document.data
    assert posting(capability="invoice.post", run_as="system").document.data["posting"] == "GL-9"


@pytest.mark.row("E-420")
def test_a_handler_computes_changes_inside_the_commit() -> None:
    """It is given the document and the payload; what it returns is applied if it fits, and is refused with all that it wrote if not."""
    case = posting(handler="post_invoice")
    (call,) = case.host.calls.values()
    assert call.effect.transactional
    document = call.body.input["document"]
    assert isinstance(document, dict)
    assert (document["id"], document["status"], document["data"]["total"]) == ("INV-1", "active", 500)
    assert case.code(case.host.tell(c.CompleteStep(step=call.body.step, output={"colour": 1}))) == "invalid_document"
    assert case.code(case.host.tell(c.CompleteStep(step=call.body.step, output="done"))) == "invalid_document"
    assert case.code(case.call({"posting": "GL-7"})) == ""
    assert (case.document.data["posting"], case.document.version, case.document.is_resting) == ("GL-7", 2, True)


def test_a_handler_that_was_stopped_changes_nothing() -> None:
    """Its slot was left meanwhile: what it wrote is refused, so that it goes with its transaction."""
    case = posting(handler="post_invoice")
    (call,) = case.host.calls.values()
    call.is_begun = True
    assert case.ask("cancel") == ""
    assert case.code(case.host.tell(c.CompleteStep(step=call.body.step, output={"posting": "x"}))) == "already_terminal"
    assert case.document.status == "cancelled"


@pytest.mark.row("E-415", "E-408", "E-601", "E-449")
def test_scripts_and_conditions_read_the_document() -> None:
    """A script keeps its value in the context, where a condition finds it; one that cannot be answered fails its step, and is not taken as no."""
    script = Node(id="s", op=g.ScriptOp(formula=when("entity.total > 400 && actor.id == 'bob'"), into="is_large"))
    lane = Node(id="c", op=g.ConditionOp(expression=when("context.is_large")))
    ask = approval("first")
    body = Body(
        nodes=(script, lane, ask),
        first="s",
        last=("c:false", "first:approved"),
        edges=[Edge(source="s", target="c"), Edge(source="c", target="first", on=g.TRUE)],
    )
    assert submitted({APPROVE_SLOT: body}).at == ["first"]
    small = Case(invoice({APPROVE_SLOT: body}), total=300)
    assert (small.ask("submit"), small.document.status) == ("", "active")
    odd = Body(
        nodes=(Node(id="c", op=g.ConditionOp(expression=when("entity.note == 'x'"))), ask),
        first="c",
        last=("c:false", "first:approved"),
        edges=[Edge(source="c", target="first", on=g.TRUE)],
    )
    case = submitted({APPROVE_SLOT: odd})
    assert (case.host.state.status, case.document.status) == ("paused", "submitted")


def test_a_way_whose_condition_cannot_be_answered_is_not_the_other_way() -> None:
    """Of two ways out of a script the first one's condition reads what is not there: nobody goes the second one instead."""
    script = Node(id="s", op=g.ScriptOp(formula=when("entity.total > 1")))
    ask = approval("first")
    body = Body(
        nodes=(script, ask),
        first="s",
        last=("first:approved",),
        edges=[Edge(source="s", target="first", when=when("entity.note == 'x'"))],
    )
    graph = invoice({APPROVE_SLOT: body})
    other = Edge(source="s", target="sys:slot:submitted_to_approved:out", priority=1)
    case = Case(_with_edge(graph, other))
    assert case.ask("submit") == ""
    assert (case.host.state.status, case.host.state.reason) == ("paused", "condition_failed")


def _with_edge(graph: g.Graph, edge: Edge) -> g.Graph:
    return msgspec.structs.replace(graph, edges=(*graph.edges, edge))


@pytest.mark.row("E-416", "E-885", "EH-08")
def test_a_rule_node_judges_by_flat_rules() -> None:
    """The first word that a rule has for the document leads on; a rule may set a field, and one that blocks has a way of its own."""
    mark = DocumentRule(name="mark", effect="set_field", field="note", value=value("'checked'"))
    rules = (
        DocumentRule(name="small", when=when("entity.total < 1000"), effect="outcome", outcome="fast"),
        DocumentRule(name="usd", when=when("entity.currency == 'USD'"), effect="block", reason="no dollars"),
    )
    ask = approval("first")
    body = Body(
        nodes=(Node(id="r", op=g.RuleOp(rules=rules)), ask),
        first="r",
        last=("r:fast", "first:approved"),
        edges=[Edge(source="r", target="first"), Edge(source="r", target="first", on=g.BLOCKED)],
    )
    case = submitted({SUBMIT_SLOT: chain(Node(id="m", op=g.RuleOp(rules=(mark,)))), APPROVE_SLOT: body})
    assert (case.document.status, case.document.data["note"], case.document.version) == ("active", "checked", 2)
    dollars = Case(invoice({APPROVE_SLOT: body}), currency="USD")
    dollars.ask("submit")
    assert dollars.at == ["first"]


@pytest.mark.row("E-884", "EH-08")
def test_rules_are_judged_before_a_change_is_applied() -> None:
    """Without any node: a rule blocks, warns, requires or sets, for an edit, a creation and a transition alike."""
    case = Case(invoice())
    block = DocumentRule(name="cap", when=when("entity.total > 1000"), reason="nothing above ten euros")
    answer = case.tell(Mutate(payload={"total": 2000}), rules=[block])
    assert isinstance(answer, Rejection)
    assert (answer.code, answer.message) == (
        "rule_blocked",
        "a rule of the organisation stands against it: nothing above ten euros",
    )
    need = DocumentRule(name="note", effect="require_field", field="note")
    assert case.code(case.tell(RequestTransition(transition="submit"), rules=[need])) == "rule_blocked"
    stamp = DocumentRule(name="stamp", effect="set_field", field="note", value=value("actor.id"))
    warn = DocumentRule(name="warn", effect="warn", reason="are you sure")
    assert case.code(case.tell(Mutate(payload={"total": 900}), rules=[stamp, warn])) == ""
    assert case.document.data["note"] == "bob"
    changed = next(event for event in case.host.history if isinstance(event, e.DocumentChanged))
    assert changed.warnings == ["are you sure"]
    host = Host(invoice(), rules=[block])
    host.key = "X"
    assert case.code(host.tell(CreateDocument(data={**GIVEN, "total": 2000}), BOB)) == "rule_blocked"


# -- rows


@pytest.mark.row("E-240", "E-009", "E-578", "EH-10")
def test_the_rows_tell_what_was_done_and_who_did_it() -> None:
    """Every version is kept with its hash, every mutation with its class and values, sensitive ones masked, and the audit has a line for each."""
    case = Case(invoice(TWO), iban="DE1")
    case.edit(total=600, iban="DE2")
    case.ask("submit", reason="please")
    case.decide("first", ANN)
    assert [(each.version, each.status) for each in case.versions] == [(1, "draft"), (2, "draft")]
    assert case.versions[0].data_hash != case.versions[1].data_hash
    made = {each.action: each for each in case.mutations}
    assert (made["update"].kind, made["update"].version_before, made["update"].version_after) == ("business", 1, 2)
    assert made["update"].changes == b'{"total":[500,600],"iban":{"changed":true}}'
    assert CHANGED == {"changed": True}
    assert (made["decide approved"].kind, made["decide approved"].actor) == ("workflow", "ann")
    assert made["request submit"].reason == "please"
    lines = case.audit
    assert [each.sequence for each in lines] == list(range(1, len(lines) + 1))
    assert {each.sequence for each in case.mutations} <= {each.sequence for each in lines}
    first = lines[0]
    assert (first.who, first.what, first.which, first.how, first.place) == (
        "bob",
        "create",
        "invoice/INV-1@1",
        "business",
        "call",
    )
    steps = [each for each in lines if each.how == "step"]
    assert any(each.what == "pass sys:gate:submit" and each.who == "bob" for each in steps)
