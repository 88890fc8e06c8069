"""Where specifications clash: what a document does when it comes to a node again, when branches and edits cross, when a step fails, and what is never taken back."""

from __future__ import annotations

import msgspec
import pytest

from machine.documents import ANN, BOB, CARL, Case
from machine.hosting import OLGA, Host
from standfast.graph import model as g
from standfast.graph.document_spec import DocumentAction
from standfast.graph.model import DocumentRule, Edge, Node
from standfast.kernel.actor import SYSTEM
from standfast.kernel.decision import Rejection
from standfast.kernel.row_kinds.steps import StepOpened
from standfast.machine.model import events as e
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.commands.document_commands import Mutate, RequestTransition
from standfast.machine.model.commands.repair_commands import RetryStep
from standfast.machine.model.engine_tasks import Post
from support.envelopes import (
    ACTIVE_SLOT,
    APPROVE_SLOT,
    SUBMIT_SLOT,
    Body,
    approval,
    both,
    chain,
    invoice,
    value,
    when,
)

MARK = DocumentAction(name="mark", workflow_allowed=True)
TWO = chain(approval("first"), approval("second", who="user:carl"))


def work(name: str, *, undo: str = "") -> Node:
    """A step that calls a handler, which something else may undo."""
    return Node(
        id=name,
        op=g.TaskOp(work=g.HandlerCall(handler=name)),
        compensation=g.HandlerCall(handler=undo) if undo else None,
    )


def submitted(bodies: dict[str, Body], **options: object) -> Case:
    """An invoice whose submission was asked for."""
    case = Case(invoice(bodies, actions=[MARK], **options))  # type: ignore[arg-type]
    assert case.ask("submit") == ""
    return case


def told(case: Case, type_: type[e.Event]) -> int:
    """How often something has happened."""
    return sum(isinstance(event, type_) for event in case.host.history)


def rows(case: Case, node: str) -> list[StepOpened]:
    """The rows of the steps of a node."""
    return [row for row in case.rows(StepOpened) if row.node == node]


def fail(case: Case, error: str = "the line is dead") -> None:
    """The handler of the step that calls one has failed for good."""
    effect, call = next(iter(case.host.calls.items()))
    case.tell(c.FailStep(step=call.body.step, error=error, is_final=True), SYSTEM, effect=effect)


# -- coming again


@pytest.mark.row("ED-01", "ED-02", "ED-03", "EC-02", "EC-30")
def test_a_node_that_is_come_to_again_at_the_same_version_is_another_step() -> None:
    """Rejected and submitted again unchanged, each question is a step with the next visit and number, and what was decided before counts for nothing."""
    case = submitted({APPROVE_SLOT: TWO})
    assert case.decide("first", ANN) == ""
    assert case.decide("second", CARL, "rejected") == ""
    assert case.ask("submit") == ""
    assert (case.document.version, case.at) == (1, ["first"])
    assert case.decide("first", ANN) == ""
    assert case.decide("second", CARL) == ""
    assert case.document.status == "active"
    assert [[row.visit for row in rows(case, node)] for node in ("first", "second")] == [[1, 2], [1, 2]]
    assert case.applied == [False, None, True, True]
    numbers = [row.number for row in case.rows(StepOpened)]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.row("ED-02", "ED-13", "EC-03", "EC-31")
def test_a_step_that_is_repeated_is_a_step_of_its_own_through_pauses_and_repairs() -> None:
    """Failed, held by an operator, repeated: the old row stays as it ended, the new one has the next visit, and every moment folds from the history."""
    case = submitted({APPROVE_SLOT: chain(work("check"), approval("first"))})
    fail(case)
    assert (case.host.state.status, case.host.state.reason) == ("paused", "step_failed")
    (failed,) = rows(case, "check")
    assert case.code(case.tell(RetryStep(step=failed.number, reason="it is back"), OLGA)) == ""
    next(iter(case.host.calls.values())).is_begun = True
    assert case.code(case.tell(c.PauseWorkflow(reason="audit"), OLGA)) == ""
    case.call()
    assert case.at == []
    assert case.code(case.tell(c.ResumeWorkflow(reason="done"), OLGA)) == ""
    assert [(row.visit, row.status) for row in rows(case, "check")] == [(1, "failed"), (2, "completed")]
    assert case.at == ["first"]
    assert case.ask("cancel") == ""
    assert (case.document.status, case.host.state.status) == ("cancelled", "completed")


# -- one way, all branches, one join


@pytest.mark.row("ED-06", "ED-05")
def test_an_edit_between_two_arrivals_does_not_make_a_join_go_on_twice() -> None:
    """One branch has arrived, an edit has the other one asked anew: the join waits for that, goes on once, and the gate passes once."""
    body = both(approval("first", covers=["total"]), approval("second", who="user:carl", covers=["note"]))
    case = submitted({SUBMIT_SLOT: body})
    assert sorted(case.at) == ["first", "second"]
    assert case.decide("first", ANN) == ""
    assert case.edit(note="new") == ""
    assert (case.at, told(case, e.BranchesMet)) == (["second"], 0)
    assert case.decide("second", CARL) == ""
    assert (told(case, e.BranchesMet), len(rows(case, "meet")), told(case, e.DocumentMoved)) == (1, 1, 1)
    assert (case.document.status, case.applied) == ("submitted", [True, True])


@pytest.mark.row("EC-08")
def test_a_branch_that_failed_blocks_the_join_until_it_is_repeated() -> None:
    """It is not taken for one that has ended: the join does not go on with the others."""
    case = submitted({APPROVE_SLOT: both(work("check"), approval("first"))})
    assert case.decide("first", ANN) == ""
    fail(case)
    assert (case.document.status, case.host.state.status, told(case, e.BranchesMet)) == ("submitted", "paused", 0)
    assert case.code(case.tell(RetryStep(step=rows(case, "check")[0].number, reason="again"), OLGA)) == ""
    case.call()
    assert (case.document.status, told(case, e.BranchesMet)) == ("active", 1)


# -- windows


@pytest.mark.row("EC-20")
def test_a_transition_may_name_the_version_that_was_seen() -> None:
    """Whoever submits another version than the one they have seen is told, and nothing is asked for."""
    case = Case(invoice())
    assert case.edit(total=600) == ""
    assert case.code(case.tell(RequestTransition(transition="submit", expected_version=1))) == "version_conflict"
    assert told(case, e.TransitionRequested) == 0
    assert case.code(case.tell(RequestTransition(transition="submit", expected_version=2))) == ""


@pytest.mark.row("ED-07")
def test_a_stable_region_is_never_editable() -> None:
    """Whatever its window says: where others decide on the content an edit is an amendment."""
    graph = invoice({SUBMIT_SLOT: chain(approval("first"))})
    assert graph.document is not None
    spec = msgspec.structs.replace(graph.document, stable=(*graph.document.stable, "first"))
    case = Case(msgspec.structs.replace(graph, document=spec))
    assert case.edit(total=600) == ""
    assert case.ask("submit") == ""
    assert (case.document.status, case.window) == ("draft", "amend_only")
    assert case.edit(total=700) == "WORKFLOW_AMENDMENT_REQUIRED"


def test_who_may_not_ask_is_not_told_where_a_document_is() -> None:
    """A refusal for want of the capability comes before the one that names the status."""
    case = Case(invoice(capabilities={"approve": "invoice.approve"}))
    assert case.ask("approve") == "not_allowed"
    answer = case.tell(RequestTransition(transition="approve"))
    assert isinstance(answer, Rejection)
    assert "draft" not in answer.message
    assert case.ask("approve", OLGA) == "WORKFLOW_TRANSITION_ILLEGAL"


@pytest.mark.row("E-884")
def test_a_rule_sets_nothing_where_the_document_cannot_be_edited() -> None:
    """At a transition out of a locked state it has no effect: no later rule sees what it would have set, nobody is told that it was, and there is a warning."""
    case = Case(invoice())
    assert (case.ask("submit"), case.ask("approve")) == ("", "")
    stamp = DocumentRule(name="stamp", effect="set_field", field="note", value=value("'x'"))
    need = DocumentRule(name="need", effect="require_field", field="note")
    assert case.code(case.tell(RequestTransition(transition="cancel"), rules=[stamp, need])) == "rule_blocked"
    assert case.code(case.tell(RequestTransition(transition="cancel"), rules=[stamp])) == ""
    assert ("note" in case.document.data, told(case, e.RulesApplied)) == (False, 0)
    asked = next(event for event in reversed(case.host.history) if isinstance(event, e.TransitionRequested))
    assert asked.warnings == ["the rule 'stamp' would set 'note', and the document cannot be edited where it is"]


@pytest.mark.row("E-884", "E-009")
def test_a_rule_sends_a_document_without_its_sensitive_fields() -> None:
    """The receiver of a webhook gets the document as it is after the change, but for what is sensitive."""
    case = Case(invoice(), iban="DE1")
    hook = DocumentRule(name="hook", effect="webhook", url="https://example.com/hook")
    assert case.code(case.tell(Mutate(payload={"total": 600}), rules=[hook])) == ""
    (post,) = [each for each in case.host.errands if isinstance(each, Post)]
    document = post.payload["document"]
    assert isinstance(document, dict)
    assert (document["version"], document["data"]) == (
        2,
        {"vendor": "acme", "total": 600, "currency": "EUR", "large": False},
    )


@pytest.mark.row("ED-11")
def test_a_gate_moves_a_document_only_from_where_its_transition_begins() -> None:
    """However a token has come to it: a draft that is led to the gate of the approval fails there, and stays a draft."""
    graph = invoice()
    edges = [
        msgspec.structs.replace(edge, target="sys:gate:approve")
        if (edge.source, edge.on) == ("sys:state:draft", "submit")
        else edge
        for edge in graph.edges
    ]
    case = Case(msgspec.structs.replace(graph, edges=tuple(edges)))
    assert case.ask("submit") == ""
    assert (case.document.status, case.host.state.reason, told(case, e.DocumentMoved)) == ("draft", "step_failed", 0)


# -- failures


@pytest.mark.row("ED-13")
def test_a_failure_takes_its_way_if_there_is_one() -> None:
    """With an edge for errors the run goes on by it, and waits for nobody."""
    body = Body(
        nodes=(work("check"), approval("first")),
        first="check",
        last=("check:ok", "first:approved"),
        edges=[Edge(source="check", target="first", on=g.ERROR)],
    )
    case = submitted({APPROVE_SLOT: body})
    fail(case)
    assert (case.host.state.status, case.at) == ("running", ["first"])


@pytest.mark.row("ED-12")
def test_what_rests_says_what_it_waits_for() -> None:
    """A state, a question, a timer, an event and a call that nobody has begun are pending, the resting ones with the kind of their wait."""
    waits = Body(
        nodes=(
            Node(id="fork", op=g.SplitOp()),
            approval("first"),
            Node(id="timer", op=g.WaitTimerOp(duration_ms=1000)),
            Node(id="event", op=g.WaitEventOp(signal="paid")),
            work("check"),
            Node(id="meet", op=g.JoinOp(split="fork")),
        ),
        first="fork",
        last=("meet:ok",),
        edges=[
            *(Edge(source="fork", target=each, on=g.BRANCH) for each in ("first", "timer", "event", "check")),
            Edge(source="first", target="meet", on="approved"),
            *(Edge(source=each, target="meet") for each in ("timer", "event", "check")),
        ],
    )
    case = Case(invoice({APPROVE_SLOT: waits}))
    assert [(row.status, row.wait_kind) for row in rows(case, "sys:state:draft")] == [("pending", "state")]
    assert case.ask("submit") == ""
    found = {row.node: (row.status, row.wait_kind) for row in case.rows(StepOpened)}
    assert [found[node] for node in ("first", "timer", "event", "check")] == [
        ("pending", "human"),
        ("pending", "timer"),
        ("pending", "event"),
        ("pending", ""),
    ]


CLOSED = Body(
    nodes=(Node(id="script", op=g.ScriptOp(formula=value("1"))), approval("first")),
    first="script",
    last=("first:approved",),
    edges=[Edge(source="script", target="first", when=when("entity.total > 9999"))],
)
"""Where no way leads on for most documents."""


@pytest.mark.row("ED-11", "EC-31", "E-447")
@pytest.mark.parametrize("held", ["by a failure", "by a missing way"])
@pytest.mark.parametrize("wanted", ["recall", "cancel", "amendment"])
def test_a_document_that_waits_for_an_operator_is_led_elsewhere_and_nowhere_else(held: str, wanted: str) -> None:
    """What had it wait is ended with all else, and so is where its token was to go on: it goes one way, past no gate but the one that was asked for."""
    body = CLOSED if held == "by a missing way" else both(work("check"), approval("first"))
    case = submitted({APPROVE_SLOT: body}, amendment="in_place")
    if held != "by a missing way":
        fail(case)
    assert (case.document.status, case.host.state.status) == ("submitted", "paused")
    before = told(case, e.DocumentMoved)
    assert (case.edit(total=900) if wanted == "amendment" else case.ask(wanted)) == ""
    status, place = {
        "recall": ("draft", ["sys:state:draft"]),
        "cancel": ("cancelled", []),
        "amendment": ("amended", ["sys:state:amended"]),
    }[wanted]
    assert (case.document.status, case.at, told(case, e.DocumentMoved) - before) == (status, place, 1)
    assert case.host.state.status == ("completed" if wanted == "cancel" else "running")
    if wanted != "cancel":
        assert (list(case.host.state.tokens), case.edit(total=901), case.ask("submit")) == (["0"], "", "")
        assert case.document.status == "submitted"


@pytest.mark.row("E-447", "EC-08", "E-575")
@pytest.mark.parametrize("beside", [False, True])
def test_no_operator_has_a_document_go_on_where_no_way_is_open(*, beside: bool) -> None:
    """A resume ends neither its life nor a branch, which would pass the join without the approval that was never asked for; once a way is open it is gone."""
    body = CLOSED
    if beside:
        frame = both(CLOSED.nodes[0], approval("second", who="user:carl"))
        edges = [each for each in frame.edges if each.source != "script"]
        edges += [*CLOSED.edges, Edge(source="first", target="meet", on="approved")]
        body = Body(nodes=(*frame.nodes, CLOSED.nodes[1]), first=frame.first, last=frame.last, edges=edges)
    case = submitted({SUBMIT_SLOT: body})
    for _ in range(2):
        assert (case.host.state.status, case.host.state.reason, case.document.status) == ("paused", "no_edge", "draft")
        assert case.code(case.tell(c.ResumeWorkflow(reason="go on"), OLGA)) == ""
    assert case.edit(total=10_000) == ""
    assert case.code(case.tell(c.ResumeWorkflow(reason="now"), OLGA)) == ""
    assert sorted(case.at) == (["first", "second"] if beside else ["first"])


@pytest.mark.row("EC-10", "E-745")
def test_a_rejected_document_does_not_begin_again_by_itself() -> None:
    """Where a rejection leaves it in a state whose way begins by itself it stays there, until somebody asks for that way."""
    graph = invoice({APPROVE_SLOT: chain(approval("first"))})
    edges = [
        msgspec.structs.replace(edge, target="sys:state:submitted")
        if (edge.source, edge.on) == ("sys:gate:approve", g.REJECT)
        else edge
        for edge in graph.edges
    ]
    case = Case(msgspec.structs.replace(graph, edges=tuple(edges)))
    assert case.ask("submit") == ""
    assert case.decide("first", ANN, "rejected") == ""
    assert (case.document.status, case.at) == ("submitted", ["sys:state:submitted"])
    assert case.ask("approve") == ""
    assert case.at == ["first"]


@pytest.mark.row("EC-32")
def test_a_rejection_ends_what_a_document_waits_for_an_operator_by() -> None:
    """A branch has failed, and another one rejects: nothing of the slot is left, so that nobody has to see to it."""
    case = submitted({APPROVE_SLOT: both(work("check"), approval("first"))})
    fail(case)
    assert case.decide("first", ANN, "rejected") == ""
    assert (case.document.status, case.host.state.status, case.at) == ("draft", "running", ["sys:state:draft"])


@pytest.mark.row("EC-31", "EC-32")
@pytest.mark.parametrize("wanted", ["recall", "cancel", "amendment"])
def test_a_rejection_that_an_operator_holds_counts_no_more_once_the_document_is_led_elsewhere(wanted: str) -> None:
    """Rejected in a pause and then recalled, cancelled or amended: when the run goes on the document goes there, and is not rejected on the way."""
    case = submitted({APPROVE_SLOT: both(work("check"), approval("first"))}, amendment="in_place")
    assert case.code(case.tell(c.PauseWorkflow(reason="audit"), OLGA)) == ""
    assert case.decide("first", ANN, "rejected") == ""
    assert case.document.status == "submitted"
    assert (case.edit(total=900) if wanted == "amendment" else case.ask(wanted)) == ""
    assert case.code(case.tell(c.ResumeWorkflow(reason="done"), OLGA)) == ""
    status = {"recall": "draft", "cancel": "cancelled", "amendment": "amended"}[wanted]
    moves = [event for event in case.host.history if isinstance(event, e.DocumentMoved)][1:]
    assert (case.document.status, [(each.status, each.how) for each in moves]) == (
        status,
        [(status, "amended" if wanted == "amendment" else "passed")],
    )


@pytest.mark.row("E-226", "EC-30")
def test_a_slot_that_begins_anew_forgets_a_rejection_that_was_held() -> None:
    """Rejected in a pause and edited: whoever is asked about what it is now decides, and not who rejected what it was."""
    case = submitted({SUBMIT_SLOT: chain(approval("first"))}, on_edit="restart")
    assert case.code(case.tell(c.PauseWorkflow(reason="audit"), OLGA)) == ""
    assert case.decide("first", ANN, "rejected") == ""
    assert case.edit(total=900) == ""
    assert case.code(case.tell(c.ResumeWorkflow(reason="done"), OLGA)) == ""
    assert (case.document.status, case.at) == ("draft", ["first"])
    assert case.decide("first", ANN) == ""
    assert case.document.status == "submitted"


@pytest.mark.row("E-226", "ED-02")
@pytest.mark.parametrize("wanted", ["edit", "cancel", "submit"])
def test_a_question_that_an_edit_puts_anew_is_not_put_twice(wanted: str) -> None:
    """An edit in a slot that begins anew, and a transition with a rule that sets a field, lead the one token to one place, while the question was open."""
    stamp = DocumentRule(name="stamp", effect="set_field", field="note", value=value("'x'"))
    case = submitted({SUBMIT_SLOT: chain(approval("first"))}, on_edit="restart" if wanted == "edit" else "keep")
    if wanted == "edit":
        assert case.edit(total=900) == ""
    else:
        expected = "WORKFLOW_GATE_NOT_READY" if wanted == "submit" else ""
        assert case.code(case.tell(RequestTransition(transition=wanted), rules=[stamp])) == expected
    assert case.at == ([] if wanted == "cancel" else ["first"])
    open_ = [row.number for row in case.rows(StepOpened) if row.status == "pending"]
    assert open_ == [step.number for step in case.host.state.open.values()]


@pytest.mark.row("E-226")
def test_a_slot_that_begins_anew_waits_for_no_operator_any_more() -> None:
    """The step that had failed is ended by the edit, and called again."""
    case = submitted({SUBMIT_SLOT: chain(work("check"), approval("first"))}, on_edit="restart")
    fail(case)
    assert case.edit(total=900) == ""
    assert (case.host.state.status, case.at) == ("running", ["check"])


# -- what the workflow does to its own document


@pytest.mark.row("ED-20")
@pytest.mark.parametrize(("field", "is_kept"), [("posting", True), ("note", False)])
def test_a_step_of_the_workflow_voids_approvals_unless_it_sets_a_field_of_the_workflow(
    field: str,
    is_kept: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """A field that the contract keeps for the workflow changes nothing for those who have approved; any other has them asked about what it has become."""
    mark = Node(id="mark", op=g.ActionOp(action="mark", payload={field: value("'x'")}))
    case = submitted({APPROVE_SLOT: chain(approval("first"), mark)})
    assert case.decide("first", ANN) == ""
    assert case.document.version == 2
    if not is_kept:
        assert (case.document.status, case.at, case.applied) == ("submitted", ["first"], [False])
        assert case.document.approvals[case.step("first").number].version == 2
        assert case.decide("first", ANN) == ""
    assert (case.document.status, case.document.version, case.applied[-1]) == ("active", 2, True)


@pytest.mark.row("E-416")
@pytest.mark.parametrize("slot", [SUBMIT_SLOT, APPROVE_SLOT, ACTIVE_SLOT])
def test_a_rule_node_sets_fields_only_where_the_document_may_be_edited(slot: str) -> None:
    """Elsewhere it would change what others decide on or have approved: the step fails, the content stays, and the run waits for an operator."""
    rule = DocumentRule(name="stamp", effect="set_field", field="note", value=value("'changed'"))
    body = chain(approval("second", who="user:carl"), Node(id="stamp", op=g.RuleOp(rules=(rule,))))
    if slot == ACTIVE_SLOT:
        body = chain(Node(id="stamp", op=g.RuleOp(rules=(rule,))))
    case = submitted({APPROVE_SLOT: chain(approval("first")), slot: body})
    for node, actor in (("second", CARL), ("second", CARL), ("first", ANN)):
        if case.at == [node]:
            assert case.decide(node, actor) == ""
    if slot == SUBMIT_SLOT:
        assert (case.document.status, case.document.data["note"]) == ("active", "changed")
    else:
        assert (case.host.state.reason, case.document.version, "note" in case.document.data) == (
            "step_failed",
            1,
            False,
        )


# -- what is never taken back


@pytest.mark.row("EC-07", "EC-14")
@pytest.mark.parametrize("ending", ["failure", "cancel", "amendment", "rejection"])
def test_what_was_done_before_a_gate_stays_done(ending: str) -> None:
    """A failure behind the gate, a cancellation, an amendment and a rejection undo nothing of what lies before, although it could be undone."""
    case = submitted(
        {SUBMIT_SLOT: chain(work("reserve", undo="release")), APPROVE_SLOT: chain(approval("first"), work("check"))}
    )
    case.call()
    assert case.document.status == "submitted"
    match ending:
        case "failure":
            assert case.decide("first", ANN) == ""
            fail(case)
            assert case.host.state.reason == "step_failed"
        case "cancel":
            assert case.ask("cancel") == ""
        case "amendment":
            assert case.supersede() == ""
        case _:
            assert case.decide("first", ANN, "rejected") == ""
    assert [call.body.is_compensation for call in case.host.calls.values()] == []
    assert told(case, e.CompensationStarted) == told(case, e.RollbackStarted) == 0


@pytest.mark.row("EC-29")
def test_a_run_without_a_document_has_none_of_its_rules() -> None:
    """A saga has no window, no version and no rows of documents; whatever is asked of a document is refused there."""
    graph = g.Graph(
        kind="saga",
        name="s",
        version="1",
        entry="ask",
        nodes={"ask": Node(id="ask", op=g.HumanOp(outcomes=("yes",))), "end": Node(id="end", op=g.EndOp())},
        edges=(Edge(source="ask", target="end", on="yes"),),
    )
    host = Host(graph)
    host.tell(c.StartWorkflow(input={"total": 1}), BOB)
    before = len(host.history)
    assert Case.code(host.tell(Mutate(payload={"total": 2}), BOB)) == "no_document"
    assert (host.state.document, len(host.history)) == (None, before)
    assert {type(row).__name__ for row in host.rows} == {"StepOpened", "TaskOpened"}
    assert [row.document_version for row in host.rows if hasattr(row, "document_version")] == [None]
