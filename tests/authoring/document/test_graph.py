"""From the artifact to the machine's graph: the machine's own checks accept it, and it says all that the contract and the body say."""

from __future__ import annotations

import msgspec
import pytest

from authoring.document.examples import (
    ACTIVE,
    AMEND,
    APPROVE,
    SUBMIT,
    Plain,
    ask,
    bills,
    compiled,
    contract,
    patch,
    usr,
    way,
)
from standfast import DefinitionError
from standfast.features.documents.body.templates import instantiate, read_template, template_names
from standfast.features.documents.compiler.compatibility import COMPILER_VERSION
from standfast.features.documents.compiler.compiler import compile_effective
from standfast.features.documents.compiler.graph import graph_of, machine_edges
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.library import contract_names, ready_contract
from standfast.graph import model as g
from standfast.graph.compiler import graph_bytes, read_graph
from standfast.graph.values.approver_rules import Ask

EVERYTHING: dict[str, Plain] = {
    SUBMIT: patch([{"id": "r", "type": "rule", "rules": [
        {"name": "one", "effect": "require_field", "field": "owner", "reason": "who?"},
        {"name": "two", "effect": "outcome", "outcome": "odd", "when": "entity.total > 5"},
    ]}, {"id": "w", "type": "wait_timer", "duration": "1h"}], ["r out ok", "r w odd"], exit="join"),
    APPROVE: patch(
        [
            {"id": "c", "type": "condition"},
            {"id": "s", "type": "parallel_split"},
            ask("a", timeout="3d", due="1d", remind=["12h"], escalate_to="chief", covers=["total"], distinct_approvers=True, channels=["email"]),
            ask("b", approvers=[{"expression": "entity.owner"}, {"user": "bob"}, {"resolver": "manager"}], agree="n", least=2, title="For {entity.number}"),
            {"id": "j", "type": "parallel_join", "mode": "any", "losers": "stop"},
            {"id": "e", "type": "wait_event", "event": "paid", "key": "{entity.number}", "match": "event.amount > 3", "timeout": "2d", "into": "payment"},
            {"id": "k", "type": "condition", "expression": {"field": "context.payment", "op": "exists"}},
            {"id": "t", "type": "task", "handler": "score", "input": {"n": "entity.number"}, "into": "score", "timeout": "5m"},
            {"id": "x", "type": "script", "formula": "context.score", "into": "doubled"},
        ],
        [
            way("c s", when="entity.total > 5"), "c e", "s a", "s b", "a j approved", "b j approved", "j out", "e k event", "e out timeout",
            "k t true", "k out false", "t x", "x out", "a out timeout",
        ],
        exit="join",
    ),
    ACTIVE: patch(
        [
            {"id": "post", "type": "action", "action": "bill.post", "payload": {"posting": "entity.number"}, "run_as": "service_account:bot", "undo": "bill.unpost"},
            {"id": "mark", "type": "action", "action": "bill.mark", "payload": {"owner": "'x'"}, "run_as": "system"},
            {"id": "hook", "type": "webhook_out", "url": "https://x.example/{entity.number}", "payload": {"total": "entity.total"}, "secret": "hush", "into": "answer"},
            {"id": "tell", "type": "notification", "to": ["role:x", "{entity.owner}"], "subject": "{entity.number} is posted", "await": True},
        ],
        ["post mark", "mark hook", "hook tell", "post tell denied"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", contract_names())
def test_every_ready_contract_has_a_graph(name: str) -> None:
    """The bare envelope is one that the machine takes, and it comes back from the store as it was."""
    graph = graph_of(compile_effective(generate_envelope(ready_contract(name))), version="7")
    assert (graph.kind, graph.name, graph.version, graph.entry) == ("envelope", name, "7", "sys:start")
    assert read_graph(graph_bytes(graph)) == graph


@pytest.mark.parametrize("name", template_names())
def test_every_template_has_a_graph(name: str) -> None:
    """With its own parameters."""
    envelope = generate_envelope(ready_contract(read_template(name).entity_type))
    assert graph_of(compile_effective(envelope, instantiate(name))).hash


def test_a_branch_of_a_timeout_may_not_leave_a_split() -> None:
    """What would leave a branch past its join is refused before any graph is made."""
    with pytest.raises(DefinitionError, match="branch_misses_join"):
        compiled(EVERYTHING)


def everything() -> g.Graph:
    """A graph with every kind of node."""
    slots = {name: dict(each) for name, each in EVERYTHING.items()}
    edges = slots[APPROVE]["edges"]
    assert isinstance(edges, list)
    slots[APPROVE]["edges"] = [each for each in edges if each != way("a out timeout")] + [way("a j timeout")]
    return graph_of(compiled(slots))


@pytest.mark.row("E-886", "E-571")
def test_every_type_of_node_becomes_a_kind_of_the_machine() -> None:
    """With all that its author said."""
    nodes = everything().nodes
    assert {type(node.op).__name__ for node in nodes.values()} == {
        "StartOp", "RestOp", "StateOp", "GateOp", "PolicyGateOp", "ProxyOp", "ActionOp", "HumanOp", "ConditionOp", "SplitOp", "JoinOp", "WaitTimerOp", "WaitEventsOp",
        "TaskOp", "NotificationOp", "ScriptOp", "RuleOp",
    }  # fmt: skip
    post, bot = nodes[usr("post", ACTIVE)], nodes[f"sys:policy:{usr('post', ACTIVE)}"]
    assert isinstance(post.op, g.ActionOp)
    assert post.op.action == "post"
    assert post.op.work is not None
    assert (post.op.work.handler, post.op.work.transactional) == ("bill.post", True)
    assert post.compensation is not None
    assert (post.compensation.handler, post.compensation.transactional) == ("bill.unpost", True)
    assert (post.run_as, bot.run_as, nodes[usr("mark", ACTIVE)].run_as) == ("bot", "bot", "system")
    hook = nodes[usr("hook", ACTIVE)].op
    assert isinstance(hook, g.TaskOp)
    assert (hook.work.handler, sorted(hook.input or {})) == ("standfast.webhook", ["payload.total", "secret", "url"])
    tell = nodes[usr("tell", ACTIVE)].op
    assert isinstance(tell, g.NotificationOp)
    assert (tell.wait, sorted(tell.templates)) == (True, ["subject", "to.1"])


@pytest.mark.row("E-661", "E-685")
def test_approvals_pin_the_version_and_keep_their_options() -> None:
    """Who is asked, by whom it is agreed, when it is due, what it covers."""
    nodes = everything().nodes
    first, second = nodes[usr("a")], nodes[usr("b")]
    assert isinstance(first.op, g.HumanOp)
    assert isinstance(second.op, g.HumanOp)
    assert first.op.pins
    assert (first.op.covers, first.op.requires_reason, first.op.self_approval) == (("total",), True, False)
    assert first.op.times == g.TaskTimes(
        due_ms=86_400_000, reminders_ms=(43_200_000,), escalation=(g.Rung(after_ms=86_400_000, role="chief"),)
    )
    assert first.timeout_ms == 3 * 86_400_000
    assert [ask.words for ask in second.op.asks] == ["rule:entity.owner", "user:bob", "manager"]
    assert (second.op.agree, second.op.least) == ("n", 2)
    assert second.op.template is not None
    assert first.op.asks == (Ask(by="role", of="boss"),)


def test_refusals_that_leave_a_slot_are_no_edges() -> None:
    """The machine ends the others and tells the gate; ways that an author routes are there."""
    graph = graph_of(
        compiled(
            {
                APPROVE: patch([ask("a")]),
                SUBMIT: patch([ask("b"), ask("c")], ["b out approved", "b c rejected"], exit="join"),
            }
        )
    )
    left = {(edge.source, edge.on) for edge in graph.edges if edge.source.startswith("usr:")}
    assert left == {
        (usr("a"), "approved"),
        (usr("b", SUBMIT), "approved"),
        (usr("b", SUBMIT), "rejected"),
        (usr("c", SUBMIT), "approved"),
    }


def test_edges_keep_their_order_and_their_names() -> None:
    """Each edge of the graph is that of one in the artifact, tried in the same order, whatever priorities were given."""
    ways = [
        way("in a", when="entity.total > 7", id="seven"),
        way("in a", when="entity.total > 5", id="five", priority=1),
        way("in out", id="else"),
    ]
    effective = compiled({APPROVE: patch([ask("a")], ways, entry="branch", exit="join")})
    graph = graph_of(effective)
    names = machine_edges(effective)
    tried = [names[edge.id] for edge in graph.edges if edge.source == "sys:slot:submitted_to_approved:in"]
    assert tried == ["five", "seven", "else"]
    assert len(names) == len(graph.edges)


def test_the_document_is_what_the_contract_says() -> None:
    """Fields, lifecycle, actions by their verbs, windows of all nodes, slots with the window that they have now."""
    effective = compiled({APPROVE: patch([ask("a")], window="locked")})
    spec = graph_of(effective).document
    assert spec is not None
    assert spec.fields["posting"].system
    assert spec.fields["iban"].sensitive
    assert spec.fields["kind"].values == ("goods", "service")
    assert (spec.initial, spec.terminal, spec.amended, spec.superseded) == (
        "draft",
        ("cancelled",),
        "amended",
        "cancelled",
    )
    assert [each.name for each in spec.actions] == ["post", "mark", "shred", "unpost"]
    assert spec.windows == effective.windows
    assert {each.id: each.window for each in spec.regions} == {
        SUBMIT: "editable",
        APPROVE: "locked",
        ACTIVE: "locked",
        AMEND: "editable",
    }
    assert spec.stable == tuple(effective.stable)
    assert (spec.contract_version, spec.envelope_version, spec.compiler_version) == ("1", "1", COMPILER_VERSION)


def test_what_begins_by_itself_does_so_only_where_a_slot_is_filled() -> None:
    """A bare one rests until somebody asks."""
    bare, filled = (
        graph_of(compile_effective(bills())).document,
        graph_of(compiled({APPROVE: patch([ask("a")])})).document,
    )
    assert bare is not None
    assert filled is not None
    assert {each.name: each.begins for each in bare.transitions} == {
        "submit": "asked",
        "approve": "asked",
        "cancel": "asked",
    }
    assert {each.name: each.begins for each in filled.transitions}["approve"] == "by_itself"


@pytest.mark.row("E-188", "E-712")
def test_an_artifact_that_was_changed_has_no_graph() -> None:
    """Nothing is run that was not compiled."""
    made = compile_effective(generate_envelope(contract()))
    with pytest.raises(DefinitionError, match="WORKFLOW_HASH_MISMATCH"):
        graph_of(msgspec.structs.replace(made, stable=[]))
