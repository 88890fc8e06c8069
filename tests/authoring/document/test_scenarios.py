"""Scenarios of an organisation, and dry runs: a document is played through its workflow, with no database and no time lost."""

from __future__ import annotations

import pytest

from standfast.errors import DefinitionError
from standfast.features.documents.body.checks import read_body
from standfast.features.documents.body.format import Body
from standfast.features.documents.body.templates import instantiate
from standfast.features.documents.compiler.compiler import check_body, compile_effective
from standfast.features.documents.compiler.graph import graph_of
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.library import ready_contract
from standfast.features.documents.scenarios.dry_run import dry_run
from standfast.features.documents.scenarios.scenarios import ScenarioResult, run_scenario, run_scenarios
from standfast.features.simulation import Assumptions, DryRun
from standfast.kernel.actor import Actor
from standfast.machine.model.commands.document_commands import CreateDocument

BODY = """
base: {entity_type: invoice, envelope_version: 1}
slots:
  "slot:submitted_to_approved":
    entry: branch
    exit: join
    nodes:
      - {id: manager, type: approval, approvers: [{role: manager}, {role: cfo}], agree: all, timeout: 3d}
      - {id: late, type: notification, to: ["role:cfo"], subject: late}
      - {id: paid, type: wait_event, event: payment, key: "{entity.number}", timeout: 2d}
      - {id: check, type: task, handler: check, attempts: 1}
    edges:
      - {from: in, to: manager, when: "entity.grand_total > 1000"}
      - {from: in, to: check}
      - {from: manager, to: out, on: approved}
      - {from: manager, to: late, on: timeout}
      - {from: late, to: out}
      - {from: check, to: paid}
      - {from: paid, to: out, on: event}
      - {from: paid, to: out, on: timeout}
"""
DATA = "data: {number: R-1, vendor_id: V-1, grand_total: TOTAL}"
ANYBODY = Actor(id="bob", capabilities=frozenset({"*"}))


def body(*scenarios: str, total: int = 5000) -> Body:
    """A body with scenarios."""
    written = "".join(f"  - {{name: s, {DATA.replace('TOTAL', str(total))}, {each}}}\n" for each in scenarios)
    return read_body(BODY + (f"scenarios:\n{written}" if written else ""))


def played(*scenarios: str, total: int = 5000) -> list[ScenarioResult]:
    """What comes of scenarios."""
    given = body(*scenarios, total=total)
    graph = graph_of(compile_effective(generate_envelope(ready_contract("invoice")), given))
    return [run_scenario(graph, each) for each in given.scenarios]


GOOD = [
    "acts: [{ask: submit}, {decide: manager}], expect: {status: active, path: [manager, 'sys:gate:approve'], avoids: [late], asks_nobody: true}",
    "acts: [{ask: submit}], expect: {status: submitted, asks: [manager]}",
    "acts: [{ask: submit}, {decide: manager, decision: rejected, reason: no}], expect: {status: draft, asks_nobody: true}",
    "acts: [{ask: submit}, {wait: 71h}], expect: {asks: [manager], avoids: [late]}",
    "acts: [{ask: submit}, {wait: 72h}], expect: {path: [manager, late], status: draft}",
    "acts: [{edit: {note: x}}, {ask: submit, refused: not_allowed, by: eve}], people: {eve: {}}, expect: {status: draft, data: {note: x}}",
    "acts: [{ask: submit}, {decide: manager, by: mia}], people: {mia: {roles: [manager]}}, expect: {status: submitted, asks: [manager]}",
    "acts: [{ask: submit}, {decide: manager, by: eve, refused: not_allowed}], expect: {asks: [manager]}",
    "acts: [{ask: submit}, {edit: {note: y}, refused: WORKFLOW_AMENDMENT_REQUIRED}], expect: {status: submitted}",
]
"""Scenarios that come out as they should."""


@pytest.mark.row("EO-14")
@pytest.mark.parametrize("scenario", GOOD)
def test_a_scenario_that_comes_out_right(scenario: str) -> None:
    """Transitions, decisions by those who are asked or by name, edits, refusals, time that goes by: all as for real."""
    (result,) = played(scenario)
    assert result.is_passed, result.account()


@pytest.mark.row("EO-14")
def test_handlers_and_events_of_a_scenario() -> None:
    """Handlers answer what they are said to, or fail; events come by their key, or never do."""
    results = played(
        "acts: [{ask: submit}, {event: payment}], answers: {check: {fine: true}}, expect: {status: active, path: [check, paid]}",
        "acts: [{ask: submit}, {event: payment, key: R-1}], expect: {status: active}",
        "acts: [{ask: submit}, {wait: 3d}], expect: {status: active, path: [paid]}",
        "acts: [{ask: submit}], failing: [check], expect: {status: submitted, paused: true}",
        "acts: [{ask: submit}, {event: payment, key: R-2}], expect: {status: active}",
        "acts: [{ask: submit}], failing: [check], expect: {status: submitted}",
        total=5,
    )
    assert [each.is_passed for each in results] == [True, True, True, True, False, False]
    assert "nobody waits for the event 'payment'" in results[4].account()
    assert "waits for an operator" in results[5].account()


WRONG = {
    "acts: [{ask: submit}], expect: {status: active}": "the document was to be 'active', and is 'submitted'",
    "acts: [{ask: submit}, {decide: boss}], expect: {}": "act 2: nobody is asked at 'boss'; asked is: 'manager'",
    "acts: [{ask: fly}], expect: {}": "act 1: it was refused",
    "acts: [{ask: submit, refused: not_allowed}], expect: {}": "it was to be refused with 'not_allowed', and was not",
    "acts: [{ask: submit, wait: 3d}], expect: {}": "an act is one of ask, decide, edit, event, wait",
    "acts: [{by: bob}], expect: {}": "and this one says nothing",
    "acts: [{ask: submit}], expect: {path: [late, manager]}": "did not come to 'late' there",
    "acts: [{ask: submit}], expect: {avoids: [manager]}": "it was never to come to 'manager', and did",
    "acts: [{ask: submit}], expect: {asks_nobody: true}": "open were to be the approvals [], and these are: ['manager']",
    "acts: [], expect: {data: {note: x}}": "'note' was to be 'x', and is None",
    "people: {requester: {}}, expect: {}": "the document cannot be created",
    "acts: [], expect: {paused: true}": "it was to wait for an operator, and does not",
}


@pytest.mark.row("EO-14")
@pytest.mark.parametrize(("scenario", "told"), WRONG.items())
def test_the_account_of_a_scenario_that_fails(scenario: str, told: str) -> None:
    """What did not come out as it should is told in words, with the way that the document took."""
    (result,) = played(scenario)
    assert not result.is_passed
    assert told in result.account()
    assert "The way was: " in result.account()


REFUSING = {
    "{id: a, type: approval, approvers: [{role: manager}]}": (
        "rejected",
        ", {decide: a, decision: rejected, reason: no}",
    ),
    "{id: a, type: rule, rules: [{name: never, effect: block, reason: no}]}": ("blocked", ""),
}
"""Nodes that can refuse a document, the word for it, and what has to happen."""


@pytest.mark.parametrize("node", REFUSING)
@pytest.mark.parametrize("is_written", [False, True])
def test_whatever_else_happens_is_no_refusal(node: str, *, is_written: bool) -> None:
    """An edge for any outcome does not lead a refused document on, whether or not its author wrote where a refusal leads."""
    word, acts = REFUSING[node]
    refusal = f"- {{from: a, to: out, on: {word}}}" if is_written else ""
    text = f"""
base: {{entity_type: invoice, envelope_version: 1}}
slots:
  "slot:submitted_to_approved":
    exit: join
    nodes: [{node}, {{id: b, type: script, formula: "1"}}]
    edges:
      - {{from: a, to: b, on: "*"}}
      {refusal}
scenarios:
  - {{name: s, {DATA.replace("TOTAL", "5")}, acts: [{{ask: submit}}{acts}], expect: {{status: draft, path: [a], avoids: [b, "sys:state:active"]}}}}
"""
    given = read_body(text)
    graph = graph_of(compile_effective(generate_envelope(ready_contract("invoice")), given))
    result = run_scenario(graph, given.scenarios[0])
    assert result.is_passed, result.account()


def test_whatever_an_awaited_event_comes_to_what_it_brings_is_kept() -> None:
    """An edge for any outcome of a wait keeps what the event brought, and is taken as well if it never comes: then nothing can be asked of it."""
    text = f"""
base: {{entity_type: invoice, envelope_version: 1}}
slots:
  "slot:submitted_to_approved":
    exit: join
    nodes:
      - {{id: paid, type: wait_event, event: payment, timeout: 1d, into: payment}}
      - {{id: full, type: condition}}
      - {{id: part, type: script, formula: "1"}}
    edges:
      - {{from: paid, to: full, on: "*"}}
      - {{from: full, to: out, when: "context.payment.amount > 4"}}
      - {{from: full, to: part}}
scenarios:
  - {{name: s, {DATA.replace("TOTAL", "5")}, acts: [{{ask: submit}}, {{event: payment, payload: {{amount: 5}}}}], expect: {{status: active, avoids: [part]}}}}
  - {{name: t, {DATA.replace("TOTAL", "5")}, acts: [{{ask: submit}}, {{wait: 2d}}], expect: {{path: [paid, full], paused: true}}}}
"""
    given = read_body(text)
    graph = graph_of(compile_effective(generate_envelope(ready_contract("invoice")), given))
    for result in [run_scenario(graph, each) for each in given.scenarios]:
        assert result.is_passed, result.account()


def test_scenarios_cost_only_so_much_together() -> None:
    """Whoever publishes waits for them: those for which nothing is left fail, and say so."""
    given = body(*[GOOD[0]] * 4)
    graph = graph_of(compile_effective(generate_envelope(ready_contract("invoice")), given))
    results = run_scenarios(graph, given.scenarios, most=10)
    assert [each.is_passed for each in results] == [True, True, False, False]
    assert "commands together" in results[-1].account()
    assert all(each.is_passed for each in run_scenarios(graph, given.scenarios))


def test_scenarios_are_read_like_everything_else() -> None:
    """An unknown word in a scenario has its line and column; a body with too many is refused."""
    with pytest.raises(DefinitionError, match=r"\d+:\d+.*expekt"):
        body("acts: [], expekt: {}")
    envelope = generate_envelope(ready_contract("invoice"))
    many, long = body(*(["expect: {}"] * 201)), body(f"acts: [{', '.join(['{wait: 1s}'] * 201)}], expect: {{}}")
    assert [[each.code for each in check_body(envelope, given)] for given in (many, long)] == [["too_many"]] * 2


def tried(total: int, **decisions: str) -> DryRun:
    """The way of an invoice through the template."""
    graph = graph_of(compile_effective(generate_envelope(ready_contract("invoice")), instantiate("invoice_approval")))
    data: dict[str, object] = {"number": "R-1", "vendor_id": "V-1", "grand_total": total, "budget_owner_id": "otto"}
    given = CreateDocument(data=data)
    script = Assumptions(decisions=decisions, answers={"invoice.post": {"posting_ref": "GL"}})
    return dry_run(graph, given, ANYBODY, script, org={"trusted_vendors": ["V-1"]})


@pytest.mark.row("EO-13")
def test_which_way_a_document_would_take() -> None:
    """The lanes of an invoice, with who would be asked; what is assumed is marked, and a rejection is told where it leads."""
    small, large, middle = tried(40_000), tried(2_000_000), tried(400_000, standard="rejected")
    assert (small.ends, small.status, small.data["posting_ref"]) == ("rests", "active", "GL")
    assert not any(each.is_assumed for each in small.trail)
    assumed = {each.node: each.note for each in large.trail if each.is_assumed}
    assert assumed == {"finance": "asks role:finance_manager", "owner": "asks otto"}
    assert (middle.ends, middle.status) == ("waits", "draft")
    assert "'standard' was left by 'rejected'" in middle.reason
    assert [line for line in large.to_text().splitlines() if line.startswith("?")] == [
        "? finance → approved  (asks role:finance_manager)",
        "? owner → approved  (asks otto)",
    ]


@pytest.mark.row("EO-13")
def test_a_dry_run_goes_past_waits_and_stops_where_it_must() -> None:
    """Events that are awaited come, handlers that answer what does not fit stop it, and a document that could not be created is told of."""
    graph = graph_of(compile_effective(generate_envelope(ready_contract("invoice")), body(total=5)))
    data: dict[str, object] = {"number": "R-1", "vendor_id": "V-1", "grand_total": 5}
    found = dry_run(graph, CreateDocument(data=data), ANYBODY, Assumptions())
    assert (found.ends, [each.node for each in found.trail if each.is_assumed]) == ("rests", ["check", "paid"])
    missing = dry_run(graph, CreateDocument(data={}), ANYBODY, Assumptions())
    assert (missing.ends, missing.status, missing.trail) == ("refused", "", [])
    assert "invalid_document" in missing.reason
    post = graph_of(compile_effective(generate_envelope(ready_contract("invoice")), instantiate("fast_track")))
    eve = Actor(id="eve", capabilities=frozenset({"invoice.create"}))
    stopped = dry_run(post, CreateDocument(data=data), eve, Assumptions())
    assert (stopped.ends, stopped.status) == ("refused", "draft")
