"""What decisions about documents read from outside: other documents, settings and rules, each as it is in the commit that decides."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.documents.acting import asking
from app.documents.orders import GIVEN, register
from app.documents.walls import ANN, CONTRACT, FIN, OPERATOR, POST, PUBLISHER, acting, decide, patch, stands, submit
from app.documents.walls import opened as invoices
from standfast import Actor, CommandError, RejectedError
from standfast.features.documents.content.views import DocumentChoice
from standfast.features.runs.explain import Reason
from standfast.graph.definition import Definition
from standfast.graph.model import DocumentRule, Node, RuleOp
from standfast.testing import ManualEngine
from support.engines import Place
from support.envelopes import SUBMIT_SLOT, chain, invoice, value

SAM = Actor(id="sam", capabilities=frozenset({"*"}))
WAITING = "{id: later, type: wait_timer, duration: 72h}"
ASK = "{id: ask, type: approval, approvers: [{user: ann}]}"


def orders(condition: str, *, before: str = WAITING) -> str:
    """A body in which an order waits, and goes on by itself if a condition holds then; else somebody is asked."""
    first = before.split("id: ")[1].split(",", maxsplit=1)[0]
    return f"""
base: {{entity_type: sales_order, envelope_version: 1}}
slots:
  "slot:submitted_to_approved":
    exit: join
    nodes: [{before}, {{id: enough, type: condition, expression: {condition}}}, {ASK}]
    edges: [{{from: {first}, to: enough}}, {{from: enough, to: out, on: "true"}}, {{from: enough, to: ask, on: "false"}}]
"""


CREDIT = orders("entity.customer.credit_available >= entity.grand_total")
LIMIT = orders("entity.grand_total <= org.limit")


def opened(place: Place, body: str) -> ManualEngine:
    """An engine that knows customers and orders."""
    engine = place.engine()
    register(engine, "customer")
    register(engine, "sales_order", body)
    return engine


def submitted(engine: ManualEngine, name: str = "O-1") -> None:
    """An order of a customer with little credit, which waits."""
    mine = asking(engine, SAM).documents
    if not mine.list("customer").items:
        mine.create("customer", {"name": "Mrs Smith", "credit_available": 500}, id="C-1")
    mine.create("sales_order", {**GIVEN, "customer": "C-1", "grand_total": 100}, id=name)
    mine.transition("sales_order", name, "submit")


def status(engine: ManualEngine, name: str = "O-1") -> str:
    """What an order is."""
    return engine.documents.get("sales_order", name).status


def chosen(engine: ManualEngine, name: str = "O-1") -> DocumentChoice:
    """What was asked at the condition."""
    (choice,) = [each for each in engine.documents.choices("sales_order", name) if each.node.endswith(":enough")]
    return choice


def read(engine: ManualEngine, name: str = "O-1") -> list[dict[str, object]]:
    """What the history tells of what was read."""
    run = engine.documents.get("sales_order", name).instance
    return [each.data for each in engine.run(run).history() if each.event_type == "facts_read"]


# -- other documents


@pytest.mark.row("E-619")
@pytest.mark.parametrize(("credit", "expected"), [(0, "submitted"), (500, "active")])
def test_a_condition_reads_another_document_as_it_is_when_it_decides(place: Place, credit: int, expected: str) -> None:
    """The credit that counts is that of the moment of the check, days after the submit; the decision tells its value and version."""
    engine = opened(place, CREDIT)
    submitted(engine)
    mine = asking(engine, SAM).documents
    mine.mutate("customer", "C-1", {"credit_available": 77})
    mine.mutate("customer", "C-1", {"credit_available": credit})
    engine.advance(timedelta(hours=80))
    assert status(engine) == expected
    choice = chosen(engine)
    assert (choice.asked[0].values["related.customer.credit_available"], choice.read) == (
        credit,
        {"customer": "customer/C-1@3"},
    )
    (told,) = read(engine)
    assert (told["related"], told["sources"]) == (
        {"customer": {"credit_available": credit}},
        {"customer": "customer/C-1@3"},
    )


@pytest.mark.row("E-619")
def test_the_way_on_from_an_approval_reads_another_document_as_it_is_then(place: Place) -> None:
    """Conditions of edges are no other than those of nodes: what they read is of the commit that takes the decision."""
    engine = opened(
        place,
        """
base: {entity_type: sales_order, envelope_version: 1}
slots:
  "slot:submitted_to_approved":
    exit: join
    nodes: [{id: first, type: approval, approvers: [{user: ann}]}, {id: enough, type: approval, approvers: [{user: cfo}]}]
    edges:
      - {from: first, to: out, on: approved, when: entity.customer.credit_available >= entity.grand_total}
      - {from: first, to: enough, on: approved, when: entity.customer.credit_available < entity.grand_total}
""",
    )
    submitted(engine)
    asking(engine, SAM).documents.mutate("customer", "C-1", {"credit_available": 0})
    (task,) = engine.tasks.list()
    asking(engine, ANN).tasks.decide(task, "approved", document_version=task.document_version)
    (task,) = engine.tasks.list()
    assert (task.name.rpartition(":")[2], read(engine)[-1]["sources"]) == ("enough", {"customer": "customer/C-1@2"})


@pytest.mark.row("E-619")
def test_another_process_reads_a_document_that_it_remembers_as_it_is_now(place: Place) -> None:
    """What a process remembers of a customer does not count once another process has changed it."""
    here, there = opened(place, CREDIT), opened(place, CREDIT)
    for name in ("O-1", "O-2"):
        submitted(there, name)
        here.advance(timedelta(hours=72))
        there.drain()
        asking(here, SAM).documents.mutate("customer", "C-1", {"credit_available": 0})
    assert (status(there, "O-1"), status(there, "O-2")) == ("active", "submitted")


@pytest.mark.row("E-619")
def test_what_is_as_it_was_read_before_is_not_told_again(place: Place) -> None:
    """Two conditions on the way read the same customer: the history has one line for both."""
    again = CREDIT.replace(
        '{from: enough, to: out, on: "true"}',
        '{from: enough, to: twice, on: "true"}, {from: twice, to: out, on: "true"}',
    ).replace(ASK, f"{{id: twice, type: condition, expression: entity.customer.credit_available > 1}}, {ASK}")
    again = again.replace('to: ask, on: "false"}', 'to: ask, on: "false"}, {from: twice, to: ask, on: "false"}')
    engine = opened(place, again)
    submitted(engine)
    engine.advance(timedelta(hours=72))
    assert (status(engine), len(read(engine))) == ("active", 1)


# -- other documents that were amended

AGREEMENT = """
entity_type: agreement
version: 1
fields: {name: {type: string}, credit: {type: money}}
amendment: AMENDMENT
lifecycle:
  version: 1
  initial: open
  terminal: [closed]
  amended: changed
  superseded: closed
  states: {open: {window: amend_only}, changed: {window: editable}, closed: {window: locked}}
  transitions:
    - {name: confirm, from: [changed], to: open}
    - {name: close, from: [open, changed], to: closed, kind: cancel}
actions: [{name: agreement.create, creates: true}, {name: agreement.update}]
"""


REVIEWED = """
base: {entity_type: agreement, envelope_version: 1}
slots:
  "slot:asked_to_agree":
    exit: join
    nodes: [{id: review, type: approval, approvers: [{user: fin}]}]
"""


def by_agreement(place: Place, amendment: str = "new_row", agreement: str = AGREEMENT) -> ManualEngine:
    """An invoice that waits, and is checked then by the credit of an agreement; the agreement has been there before."""
    engine = place.engine()
    engine.contracts.publish(agreement.replace("AMENDMENT", amendment))
    waiting = "{id: later, type: wait_timer, duration: 72h}"
    check = "{id: enough, type: condition, expression: entity.agreement.credit >= entity.total}"
    edges = '{from: later, to: enough}, {from: enough, to: out, on: "true"}, {from: enough, to: ask, on: "false"}'
    slot = patch("asking", f"{waiting}, {check}, {ASK}", edges)
    contract = CONTRACT % {"before": ""}
    engine.contracts.publish(contract.replace("  memo:", "  agreement: {type: ref, of: agreement}\n  memo:"))
    own = acting(engine, PUBLISHER)
    own.bodies.publish(own.bodies.save(f"base: {{entity_type: invoice, envelope_version: 1}}\nslots:\n{slot}").id)
    acting(engine, PUBLISHER).documents.create("agreement", {"name": "x", "credit": 500}, id="C-1")
    submit(engine, agreement="C-1")
    return engine


def checked(engine: ManualEngine) -> DocumentChoice:
    """What was asked at the check of an invoice."""
    choices = acting(engine, PUBLISHER).documents.choices("invoice", "I-1")
    (choice,) = [each for each in choices if each.node.endswith(":enough")]
    return choice


@pytest.mark.row("E-619")
@pytest.mark.parametrize(("credit", "expected"), [(0, "submitted"), (1_000, "active")])
def test_a_reference_reads_what_is_in_force_in_the_place_of_a_document(
    place: Place, credit: int, expected: str
) -> None:
    """An agreement that was amended counts as amended, twice over; the decision names the document and the version that it has read."""
    engine = by_agreement(place)
    own = acting(engine, PUBLISHER).documents
    newest = "C-1"
    for each in (77, credit):
        newest = own.mutate("agreement", newest, {"credit": each}).id
        own.transition("agreement", newest, "confirm")
    engine.advance(timedelta(hours=80))
    assert stands(engine)[0] == expected
    choice = checked(engine)
    assert choice.asked[0].values["related.agreement.credit"] == credit
    assert choice.read == {"agreement": f"agreement/{newest}@1"}


@pytest.mark.row("E-619")
@pytest.mark.parametrize("amendment", ["new_row", "in_place"])
def test_a_reference_to_what_is_not_in_force_fails_the_step(place: Place, amendment: str) -> None:
    """While an agreement is being amended neither the old nor the new one counts: the step says so, and goes on when the amendment is through."""
    engine = by_agreement(place, amendment)
    own = acting(engine, PUBLISHER).documents
    new = own.mutate("agreement", "C-1", {"credit": 1_000_000})
    engine.advance(timedelta(hours=80))
    assert stands(engine)[::2] == ("submitted", "paused")
    assert "is an amendment and 'changed', so nothing is in force" in failed_step(engine).words
    retry(engine)
    assert stands(engine)[::2] == ("submitted", "paused")
    own.transition("agreement", new.id, "confirm")
    retry(engine)
    assert stands(engine)[0] == "active"


DECIDED = AGREEMENT.replace("changed: {window: editable}", "changed: {window: editable}, asked: {window: amend_only}")
DECIDED = DECIDED.replace(
    "to: open}", "to: asked}\n    - {name: agree, from: [asked], to: open, on_reject: changed}", 1
)
DECIDED = DECIDED.replace("from: [open, changed]", "from: [open, changed, asked]")
DECIDED = DECIDED.replace("actions:", "    - {name: recall, from: [asked], to: changed, kind: recall}\nactions:")
DECIDED += """slots: [{id: "slot:asked_to_agree", entry: "sys:state:asked", exit: "sys:gate:agree", window: amend_only, stable: true}]
"""
"""The same, but that somebody has to agree to an amendment; nothing leads on from there by itself."""


@pytest.mark.row("E-619")
@pytest.mark.parametrize("amendment", ["new_row", "in_place"])
@pytest.mark.parametrize("then", ["asked", "recalled", "closed", "closed as asked"])
def test_an_amendment_is_in_force_through_a_completed_round_alone(place: Place, amendment: str, then: str) -> None:
    """One that waits for a decision, that was taken back or that was closed without one is not read, whichever way it is amended."""
    engine = by_agreement(place, amendment, DECIDED)
    own = acting(engine, PUBLISHER).documents
    new = own.mutate("agreement", "C-1", {"credit": 1_000_000}).id
    if then != "closed":
        own.transition("agreement", new, "confirm")
    if then == "recalled":
        own.transition("agreement", new, "recall")
    if then.startswith("closed"):
        own.transition("agreement", new, "close")
    engine.advance(timedelta(hours=80))
    assert stands(engine)[::2] == ("submitted", "paused")
    assert "so nothing is in force" in failed_step(engine).words
    assert_reads_after(engine, new, then)


def assert_reads_after(engine: ManualEngine, name: str, then: str) -> None:
    """Once it is agreed to it is read; what is closed is not, for good."""
    own = acting(engine, PUBLISHER).documents
    if then.startswith("closed"):
        retry(engine)
        assert stands(engine)[::2] == ("submitted", "paused")
        return
    for transition in ["confirm", "agree"] if then == "recalled" else ["agree"]:
        own.transition("agreement", name, transition)
    retry(engine)
    assert stands(engine)[0] == "active"


GOES_ON = DECIDED.replace("terminal: [closed]", "terminal: [closed, done]").replace(
    "closed: {window: locked}}", "closed: {window: locked}, done: {window: locked}}"
)
GOES_ON = GOES_ON.replace("actions:", "    - {name: finish, from: [open], to: done}\nactions:", 1)
"""The same, but that a round goes on from where the agreement is agreed."""


@pytest.mark.row("E-619")
@pytest.mark.parametrize("amendment", ["new_row", "in_place"])
def test_an_amendment_is_in_force_where_the_document_was_amended(place: Place, amendment: str) -> None:
    """Also if the round goes on from there: an order that was amended counts once it is ordered again, and is not sent yet."""
    engine = by_agreement(place, amendment, GOES_ON)
    own = acting(engine, PUBLISHER).documents
    new = own.mutate("agreement", "C-1", {"credit": 1_000_000}).id
    own.transition("agreement", new, "confirm")
    newer = own.mutate("agreement", new, {"credit": 1_000_001}).id
    own.transition("agreement", newer, "confirm")
    engine.advance(timedelta(hours=80))
    assert "so nothing is in force" in failed_step(engine).words
    own.transition("agreement", newer, "agree")
    assert own.get("agreement", newer).status == "open"
    retry(engine)
    assert stands(engine)[0] == "active"


@pytest.mark.row("E-619")
@pytest.mark.parametrize("back", ["changed", "open"])
def test_an_amendment_that_was_rejected_is_not_in_force(place: Place, back: str) -> None:
    """Wherever the rejection leads: also if the status is the one that an approved document has."""
    engine = by_agreement(
        place, "in_place", DECIDED.replace("on_reject: changed", f"on_reject: {back}, begins: by_itself")
    )
    own = acting(engine, PUBLISHER)
    own.bodies.publish(own.bodies.save(REVIEWED).id)
    acting(engine, PUBLISHER).documents.create("agreement", {"name": "y", "credit": 0}, id="C-2")
    acting(engine, ANN).documents.create("invoice", {"number": "A-2", "total": 100, "agreement": "C-2"}, id="I-2")
    acting(engine, ANN).documents.transition("invoice", "I-2", "submit")
    own.documents.mutate("agreement", "C-2", {"credit": 1_000_000})
    own.documents.transition("agreement", "C-2", "confirm")
    (task,) = acting(engine, FIN).tasks.list(mine=True)
    acting(engine, FIN).tasks.decide(task, "rejected", document_version=task.document_version, comment="no")
    engine.drain()
    assert own.documents.get("agreement", "C-2").status == back
    engine.advance(timedelta(hours=80))
    run = acting(engine, OPERATOR).run(own.documents.get("invoice", "I-2").instance)
    assert "so nothing is in force" in run.why().words


@pytest.mark.row("E-619")
def test_a_reference_to_what_has_no_successor_any_more_fails_the_step(place: Place) -> None:
    """An agreement whose successor was deleted by retention is not read as it was before."""
    engine = by_agreement(place)
    own = acting(engine, PUBLISHER)
    new = own.documents.mutate("agreement", "C-1", {"credit": 0})
    own.documents.transition("agreement", new.id, "close")
    own.run(new.instance).delete(reason="its time is over")
    engine.advance(timedelta(hours=80))
    assert stands(engine)[::2] == ("submitted", "paused")
    assert "took the place of 'C-1' and is not there" in failed_step(engine).words


# -- settings


@pytest.mark.row("E-888")
def test_a_condition_reads_settings_as_they_are_when_it_decides(place: Place) -> None:
    """Settings that are published while an order waits count when it goes on, whichever process has published them."""
    here, there = opened(place, LIMIT), opened(place, LIMIT)
    here.charters.publish_settings({"limit": 1_000})
    submitted(there)
    here.charters.publish_settings({"limit": 1})
    there.advance(timedelta(hours=72))
    assert status(there) == "submitted"
    choice = chosen(there)
    assert (choice.asked[0].values["org.limit"], choice.read) == (1, {"org": "settings@2"})
    assert [(each["org"], each["org_version"]) for each in read(there)] == [({"limit": 1}, 2)]


@pytest.mark.row("E-888")
def test_a_document_whose_workflow_reads_no_settings_has_none_in_its_history(place: Place) -> None:
    """What nobody reads costs nothing: no line, and no settings in any event."""
    engine = opened(place, CREDIT)
    engine.charters.publish_settings({"secretive": "limit-of-the-board"})
    submitted(engine)
    engine.advance(timedelta(hours=72))
    run = engine.documents.get("sales_order", "O-1").instance
    assert "limit-of-the-board" not in str([each.data for each in engine.run(run).history()])


def test_settings_that_the_application_cannot_tell_fail_only_those_who_read_them(place: Place) -> None:
    """An error in the application's own code is that of the command that needs its answer, and of no other."""
    engine = opened(place, orders("entity.grand_total <= org.limit", before=ASK.replace("ask", "first")))

    def unknown(_tenant: str) -> dict[str, object]:
        raise ValueError("the settings cannot be read")

    engine.govern(organisation=unknown)
    submitted(engine)
    (task,) = engine.tasks.list()
    calls = asking(engine, ANN).tasks
    with pytest.raises(CommandError, match="settings cannot be read"):
        calls.decide(task, "approved", document_version=task.document_version)
    engine.govern(organisation=lambda _tenant: {"limit": 100})
    calls.decide(task, "approved", document_version=task.document_version)
    assert status(engine) == "active"


# -- rules at gates

BLOCK: dict[str, object] = {"name": "cap", "effect": "block", "on": ["approve"], "reason": "the board first"}
APPROVAL = patch("asking", "{id: a, type: approval, approvers: [{user: fin}]}")


def publish(engine: ManualEngine, *rules: dict[str, object]) -> None:
    """Publish the rules of the organisation for invoices."""
    acting(engine, PUBLISHER).charters.publish_rules("invoice", list(rules))


def failed_step(engine: ManualEngine) -> Reason:
    """Why the invoice does not move."""
    calls = acting(engine, OPERATOR)
    (reason,) = calls.run(calls.documents.get("invoice", "I-1").instance).why().reasons
    return reason


@pytest.mark.row("E-884")
def test_a_rule_blocks_a_gate_that_opens_by_itself(place: Place) -> None:
    """Nobody asks for the transition, and its rules are judged all the same; the step says why, and the way out works."""
    engine = invoices(place.engine(), APPROVAL)
    publish(engine, BLOCK)
    submit(engine)
    decide(engine, "a", FIN)
    assert stands(engine) == ("submitted", 100, "paused", "step_failed")
    reason = failed_step(engine)
    assert "the board first" in reason.words
    assert {each.call for each in reason.remedies} == {"run.retry", "documents.transition"}
    with pytest.raises(RejectedError, match="the board first"):
        acting(engine, ANN).documents.transition("invoice", "I-1", "approve")
    publish(engine)
    acting(engine, ANN).documents.transition("invoice", "I-1", "approve")
    assert stands(engine)[0] == "active"


@pytest.mark.row("E-884")
@pytest.mark.parametrize("rule", ["block", "unreadable", "require_field"])
def test_rules_at_a_gate_are_those_of_the_moment_in_which_it_opens(place: Place, rule: str) -> None:
    """A rule that another process publishes while the transition is under way holds at its gate; one that cannot be judged lets nothing through."""
    more: dict[str, dict[str, object]] = {
        "block": {"effect": "block"},
        "unreadable": {"effect": "warn", "when": "org.nothing.at_all == 1"},
        "require_field": {"effect": "require_field", "field": "memo"},
    }
    engine, other = invoices(place.engine(), patch("before", WAITING)), place.engine()
    submit(engine)
    publish(other, {"name": "late", "on": ["submit"], **more[rule]})
    engine.advance(timedelta(hours=72))
    assert stands(engine)[::2] == ("draft", "paused")
    step = failed_step(engine).step_number
    assert step is not None
    publish(other)
    calls = acting(engine, OPERATOR)
    calls.run(calls.documents.get("invoice", "I-1").instance).retry(step, reason="the rule is gone")
    engine.drain()
    assert stands(engine)[0] == "submitted"


@pytest.mark.row("E-884")
def test_rules_after_a_transition_that_nobody_asks_for_are_followed(place: Place) -> None:
    """Whoever wants to be told of an approval is told once, also if it came by itself."""
    engine = invoices(place.engine(), APPROVAL)
    to: list[object] = ["bud"]
    publish(
        engine,
        {"name": "tell", "effect": "notify", "to": to, "subject": "{entity.number} is approved", "on": ["approve"]},
    )
    submit(engine)
    decide(engine, "a", FIN)
    told = acting(engine, Actor(id="bud")).notifications.mine()
    assert [each.subject for each in told] == ["A-1 is approved"]


# -- rules at steps of the document's own workflow

NOTED = patch("before", '{id: n, type: action, action: invoice.note, payload: {memo: "\'by a step\'", total: "5000"}}')
CLOSED: dict[str, object] = {"name": "closed", "effect": "block", "reason": "the books are closed"}


def retry(engine: ManualEngine) -> None:
    """An operator retries the step that has failed."""
    calls, step = acting(engine, OPERATOR), failed_step(engine).step_number
    assert step is not None
    calls.run(calls.documents.get("invoice", "I-1").instance).retry(step, reason="the rule is gone")
    engine.drain()


@pytest.mark.row("E-884", "EH-08")
@pytest.mark.parametrize("rule", ["block", "unreadable", "require_field"])
def test_rules_are_judged_where_a_step_of_the_own_workflow_acts(place: Place, rule: str) -> None:
    """What is refused to a person fails the step, with the reason and the content that the step would make; it goes on once the rule is gone."""
    more: dict[str, dict[str, object]] = {
        "block": {"effect": "block", "when": "entity.total > 1000", "reason": "ask the board first"},
        "unreadable": {"effect": "warn", "when": "org.nothing.at_all == 1"},
        "require_field": {"effect": "require_field", "field": "lines"},
    }
    engine = invoices(place.engine(), NOTED, APPROVAL)
    publish(engine, {"name": "cap", "on": ["note"], **more[rule]})
    submit(engine)
    assert stands(engine) == ("draft", 100, "paused", "step_failed")
    reason = failed_step(engine)
    assert rule != "block" or "ask the board first" in reason.words
    assert "run.retry" in {each.call for each in reason.remedies}
    with pytest.raises(RejectedError) as caught:
        acting(engine, ANN).documents.mutate("invoice", "I-1", {"total": 5000}, action="note")
    assert caught.value.reason == "rule_blocked"
    publish(engine)
    retry(engine)
    assert stands(engine) == ("submitted", 5000, "running", "")


@pytest.mark.row("E-884", "EH-08")
def test_rules_are_judged_behind_the_gate_before_a_handler_is_called(place: Place) -> None:
    """Books that are closed while others decide stay closed: nothing is posted, and the run is paused at the step."""
    engine = invoices(place.engine(), APPROVAL, POST)
    posted: list[object] = []

    @engine.handler("invoice.post")
    def post(document: dict[str, object]) -> dict[str, object]:
        posted.append(document["id"])
        return {"posting": "GL-1"}

    submit(engine)
    publish(engine, {**CLOSED, "on": ["post"]})
    decide(engine, "a", FIN)
    assert (stands(engine), posted) == (("active", 100, "paused", "step_failed"), [])
    assert "the books are closed" in failed_step(engine).words
    publish(engine)
    retry(engine)
    assert (stands(engine)[2:], posted) == (("running", "round_completed"), ["I-1"])


@pytest.mark.row("E-884", "EH-08")
def test_rules_judge_what_the_handler_of_a_step_has_computed(place: Place) -> None:
    """A content that comes from a handler is judged as any other; what the handler wrote goes with the refusal."""
    engine = invoices(place.engine(), patch("before", "{id: post, type: action, action: invoice.post}"))

    @engine.handler("invoice.post")
    def post() -> dict[str, object]:
        return {"total": 777_777}

    publish(engine, {"name": "cap", "effect": "block", "on": ["post"], "when": "entity.total > 1000"})
    submit(engine)
    engine.advance(timedelta(hours=1))
    assert stands(engine) == ("draft", 100, "paused", "step_failed")
    assert "'cap' blocks it" in failed_step(engine).words


@pytest.mark.row("E-884", "EH-08")
def test_a_rule_node_that_sets_a_field_edits_the_document(place: Place) -> None:
    """What the rule of a node sets is judged by the rules about edits; a node that sets nothing edits nothing."""
    stamp = DocumentRule(
        name="stamp", effect="set_field", field="note", value=value("'stamped'"), when=value("entity.total > 400")
    )
    engine = place.engine()
    graph = invoice({SUBMIT_SLOT: chain(Node(id="rule", op=RuleOp(rules=(stamp,))))})
    engine.register(Definition(graph=graph))
    engine.charters.publish_rules("invoice", [{**CLOSED, "on": ["update"]}])
    mine = asking(engine, SAM).documents
    for name, total in (("I-1", 100), ("I-2", 500)):
        mine.create("invoice", {"vendor": "acme", "total": total}, id=name)
        mine.transition("invoice", name, "submit")
    seen = [mine.get("invoice", each) for each in ("I-1", "I-2")]
    assert [(each.status, each.run_reason, each.data.get("note")) for each in seen] == [
        ("submitted", "", None),
        ("draft", "step_failed", None),
    ]


@pytest.mark.row("E-884", "EH-08")
def test_rules_set_fields_and_have_something_sent_also_for_steps(place: Place) -> None:
    """A field is set where the document can be edited, whoever is to be told is told, and the audit tells which rules had an effect."""
    engine = invoices(place.engine(), NOTED)
    to: list[object] = ["bud"]
    publish(
        engine,
        {"name": "mark", "effect": "set_field", "field": "memo", "value": "'checked'", "on": ["note"]},
        {"name": "tell", "effect": "notify", "to": to, "subject": "{entity.memo}", "on": ["note"]},
    )
    submit(engine)
    own = acting(engine, OPERATOR).documents
    assert own.get("invoice", "I-1").data["memo"] == "checked"
    assert [each.subject for each in acting(engine, Actor(id="bud")).notifications.mine()] == ["checked"]
    told = [(each.what, each.why) for each in own.audit("invoice", "I-1") if each.what.startswith("rules")]
    assert told == [("rules at note", "mark set_field; tell notify")]


# -- edits that are amendments


@pytest.mark.row("E-884", "EH-08")
@pytest.mark.parametrize("on", ["amend", "update"])
@pytest.mark.parametrize("call", ["amend", "mutate"])
@pytest.mark.parametrize("amendment", ["new_row", "in_place"])
def test_an_amendment_is_judged_as_an_edit_and_as_an_amendment(
    place: Place, on: str, call: str, amendment: str
) -> None:
    """Whichever of the two calls amends, the rules about `update` and about `amend` are both judged."""
    engine = invoices(place.engine(), APPROVAL, amendment=amendment)
    submit(engine)
    publish(engine, {**CLOSED, "on": [on]})
    own = acting(engine, ANN).documents
    with pytest.raises(RejectedError, match="books are closed"):
        getattr(own, call)("invoice", "I-1", {"total": 99})
    assert own.get("invoice", "I-1").data["total"] == 100
    publish(engine)
    assert getattr(own, call)("invoice", "I-1", {"total": 99}).data["total"] == 99


@pytest.mark.row("E-884", "EH-08")
def test_a_rule_about_both_names_of_an_amendment_is_followed_once(place: Place) -> None:
    """A rule without `on` is about `update` and about `amend`, and tells somebody once."""
    engine = invoices(place.engine(), APPROVAL)
    submit(engine)
    to: list[object] = ["bud"]
    publish(engine, {"name": "tell", "effect": "notify", "to": to, "subject": "amended", "on": ["update", "amend"]})
    acting(engine, ANN).documents.mutate("invoice", "I-1", {"total": 99})
    engine.drain()
    assert len(acting(engine, Actor(id="bud")).notifications.mine()) == 1
