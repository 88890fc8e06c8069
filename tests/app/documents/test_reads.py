"""What conditions, rules and policies read: fields without a value, other documents, settings; and what is kept of it."""

from __future__ import annotations

import pytest

from app.documents.blueprints import CLERK, GIVEN, of, opened, published
from standfast import DefinitionError, RejectedError
from support.engines import Place

REFERRING = """
entity_type: claim
version: 1
fields:
  total: {type: money}
  cost_center: {type: ref, of: cost_center}
lifecycle:
  version: 1
  initial: draft
  terminal: [paid]
  states: {draft: {window: editable}, paid: {window: locked}}
  transitions: [{name: pay, from: [draft], to: paid}]
slots:
  - {id: "slot:check", entry: "sys:state:draft", exit: "sys:gate:pay", window: editable, stable: false}
"""


@pytest.mark.row("E-614")
@pytest.mark.parametrize(
    ("when", "empty", "filled"),
    [
        ("entity.note == null", "waits", "goes on"),
        ("null == entity.note", "waits", "goes on"),
        ("entity.note != null", "goes on", "waits"),
        ("!(entity.note != null)", "waits", "goes on"),
    ],
)
def test_a_field_without_a_value_is_null_beside_the_word_null(when: str, empty: str, filled: str) -> None:
    """Where a condition asks whether a field of the contract is null, it gets an answer, and the document is not paused."""
    engine = opened()
    published(
        engine,
        f"""
base: {{entity_type: invoice, envelope_version: 1}}
slots:
  "slot:draft_to_submit":
    exit: join
    nodes: [{{id: c, type: condition}}, {{id: w, type: wait_timer, duration: 1h}}]
    edges: [{{from: c, to: w, when: "{when}"}}, {{from: c, to: out}}]
""",
    )
    mine = of(engine, CLERK).documents
    for name, data in (("I-1", GIVEN), ("I-2", {**GIVEN, "note": "x"})):
        mine.create("invoice", data, id=name)
        mine.transition("invoice", name, "submit")
    found = [mine.get("invoice", name) for name in ("I-1", "I-2")]
    assert [each.run_status for each in found] == ["running", "running"]
    assert [{"draft": "waits", "submitted": "goes on"}[each.status] for each in found] == [empty, filled]


@pytest.mark.row("E-614")
def test_a_field_without_a_value_is_in_no_order() -> None:
    """What else is asked of a field that has no value cannot be answered, and the document waits for an operator."""
    engine = opened()
    published(
        engine,
        """
base: {entity_type: invoice, envelope_version: 1}
slots:
  "slot:draft_to_submit":
    exit: join
    nodes: [{id: c, type: condition, expression: entity.due_date < now}, {id: w, type: wait_timer, duration: 1h}]
    edges: [{from: c, to: w, on: "true"}, {from: c, to: out, on: "false"}]
""",
    )
    mine = of(engine, CLERK).documents
    mine.create("invoice", GIVEN, id="I-1")
    assert mine.transition("invoice", "I-1", "submit").run_status == "paused"


@pytest.mark.row("E-614")
def test_rules_of_an_organisation_ask_for_null_too() -> None:
    """A published rule that blocks documents without a note blocks those, and no others."""
    engine = opened()
    published(engine)
    rule = {"name": "note", "effect": "block", "on": ["submit"], "when": "entity.note == null", "reason": "say why"}
    engine.as_tenant("acme").charters.publish_rules("invoice", [rule])
    mine = of(engine, CLERK).documents
    mine.create("invoice", GIVEN, id="I-1")
    with pytest.raises(RejectedError, match="say why"):
        mine.transition("invoice", "I-1", "submit")
    mine.mutate("invoice", "I-1", {"note": "x"})
    assert mine.transition("invoice", "I-1", "submit").status == "submitted"


@pytest.mark.row("E-607", "E-619")
@pytest.mark.parametrize(("path", "most"), [("entity.cost_center.owner_id", 10), ("approval.check.by", 10)])
def test_twenty_names_are_twenty_wherever_they_lead(path: str, most: int) -> None:
    """Names are counted behind the namespace, through another document as anywhere; one too many is told with its place."""
    engine = opened()
    engine.contracts.publish(REFERRING)

    def problems(count: int) -> list[tuple[str, str, bool]]:
        when = " || ".join([f"{path} == 'a'"] * count)
        body = f"""
base: {{entity_type: claim, envelope_version: 1}}
slots:
  "slot:check":
    exit: join
    nodes: [{{id: c, type: condition}}, {{id: w, type: wait_timer, duration: 1h}}]
    edges: [{{from: c, to: w, id: probe, when: "{when}"}}, {{from: c, to: out}}]
"""
        found = engine.as_tenant("acme").bodies.save(body).problems
        return [(each.code, each.edge, "at character" in each.message) for each in found]

    assert problems(most) == []
    assert problems(most + 1) == [("expression", "probe", True)]


LEADS_AWAY = "entity.cost_center.budget > 5"


@pytest.mark.row("E-182")
@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("policy", f'policies:\n  - {{name: rich, actions: [claim.pay], when: "{LEADS_AWAY}"}}\n'),
        ("formula", "  budget: {type: computed, formula: entity.cost_center.budget, as: money}\n"),
        ("times", "  budget: {type: computed, formula: entity.total, times: entity.cost_center.rate, as: money}\n"),
    ],
)
def test_a_contract_reads_no_other_document(place: Place, what: str, text: str) -> None:
    """A policy or a computed field that reads what a reference leads to could never be judged: it is refused where it stands, and says what to do."""
    contract = REFERRING + text if what == "policy" else REFERRING.replace("lifecycle:", f"{text}lifecycle:")
    with pytest.raises(DefinitionError, match="leads through 'cost_center'") as refused:
        place.engine().contracts.publish(contract)
    (found,) = refused.value.diagnostics
    line = next(at for at, each in enumerate(contract.splitlines(), 1) if "entity.cost_center" in each)
    assert (found.code, found.position.split(":")[0]) == ("expression", str(line))
    assert "`rule` or `condition` node" in found.message


@pytest.mark.row("E-182")
@pytest.mark.parametrize(
    "rule",
    [
        {"name": "rich", "effect": "block", "when": LEADS_AWAY},
        {"name": "rich", "effect": "set_field", "field": "total", "value": "entity.cost_center.budget"},
        {"name": "rich", "effect": "notify", "to": ["ann"], "subject": "of {entity.cost_center.budget}", "body": "x"},
    ],
)
def test_a_rule_of_an_organisation_reads_no_other_document(place: Place, rule: dict[str, object]) -> None:
    """A rule that reads what a reference leads to is not published; one that reads the reference itself is."""
    engine = place.engine()
    engine.contracts.publish(REFERRING)
    with pytest.raises(DefinitionError, match="leads through 'cost_center'") as refused:
        engine.charters.publish_rules("claim", [rule])
    assert {each.position for each in refused.value.diagnostics} == {"rich"}
    engine.charters.publish_rules("claim", [{"name": "own", "effect": "block", "when": "entity.cost_center == 'C-1'"}])
    engine.documents.create("claim", {"cost_center": "C-2"}, id="A")
    with pytest.raises(RejectedError, match="own"):
        engine.documents.create("claim", {"cost_center": "C-1"}, id="B")
