"""From a file to a graph: what each step and each transition becomes."""

from __future__ import annotations

from typing import Any

import pytest

from authoring.process.examples import ORDERS, changed, load, text_of
from standfast import load_processes
from standfast.graph import model as g
from standfast.graph.compiler import graph_bytes, read_graph

GRAPH = load(ORDERS).graph


def edges(graph: g.Graph, source: str) -> list[tuple[str, str, str, str]]:
    """The ways from a node, in the order in which they are tried: outcome, target, condition, capability."""
    found = sorted((each for each in graph.edges if each.source == source), key=lambda each: (each.on, each.priority))
    return [
        (each.on, each.target, "" if each.when is None else str(each.when["source"]), each.capability) for each in found
    ]


@pytest.mark.row("P-019")
def test_a_workflow_becomes_a_definition() -> None:
    """Its id is the name, it begins at its first step, and what it says of itself is kept."""
    definition = load(changed(description="What it is for."))
    assert (definition.name, definition.version, definition.id) == ("orders.approval", "1", "orders.approval-v1")
    assert (definition.graph.kind, definition.graph.entry) == ("process", "review")
    assert definition.description == "What it is for."
    assert load(changed(initial_step="process")).graph.entry == "process"
    assert definition.graph.rights == g.Rights(start="orders:start", cancel="orders:cancel")


def test_what_holds_for_all_processes() -> None:
    """A failure suspends, a cancellation undoes nothing, a missing way fails, and ten automatic steps in a row are the limit."""
    policies = GRAPH.policies
    assert (policies.on_failure, policies.on_cancel, policies.on_no_edge) == ("pause", "none", "fail")
    assert policies.chain_limit == 10
    assert load(changed(chain_limit=3)).graph.policies.chain_limit == 3


@pytest.mark.row("P-010", "P-011", "P-012")
def test_a_question_is_answered_by_the_events_of_its_transitions() -> None:
    """Conditions and guards are asked in the order of the file; the role, the form and the labels go along."""
    node = GRAPH.nodes["review"]
    assert isinstance(node.op, g.HumanOp)
    assert (node.op.outcomes, node.op.role, node.capability) == (("approved", "rejected"), "approver", "orders:approve")
    assert node.op.form == ORDERS["workflows"][0]["steps"][0]["form"]
    assert node.op.lays_over
    assert node.op.signs == {"approved": "approved_by", "rejected": "rejected_by"}
    assert node.metadata == {
        "title": "Review",
        "type": "approval",
        "labels": {"approved": "Approve", "rejected": "Reject"},
    }
    assert edges(GRAPH, "review") == [
        ("approved", "process", "workflow.total < 100", ""),
        ("approved", "process", "", "orders:large"),
        ("rejected", "rejected", "", ""),
    ]


@pytest.mark.row("P-010", "P-011", "P-012")
def test_a_system_step_calls_its_operation() -> None:
    """It is given what it maps, keeps what it maps, and leads on by `completed` and `error`; `retry` is no way of its own."""
    node = GRAPH.nodes["process"]
    assert isinstance(node.op, g.TaskOp)
    assert node.op.work == g.HandlerCall(handler="confirm", retry=g.RetryRule(max_calls=2, delay_ms=10_000))
    sources = {name: stored["source"] for name, stored in (node.op.input or {}).items()}
    assert sources == {"order_id": "workflow.order_id", "kind": "'new'", "tries": "3"}
    assert list(node.op.output or {}) == ["confirmed_at"]
    assert edges(GRAPH, "process") == [("error", "review", "", ""), ("ok", "pause", "", "")]
    assert node.metadata == {"retry": "orders:retry"}


@pytest.mark.parametrize(
    ("operation", "handler", "arguments"),
    [
        ("confirm", "confirm", None),
        ({"name": "confirm"}, "confirm", None),
        ({"name": "confirm", "invoker": "sdk", "arguments": {"a": 1}}, "confirm", {"a": 1}),
        ({"name": "confirmOrder", "invoker": "openapi"}, "openapi:confirmOrder", None),
    ],
)
def test_an_operation_names_its_handler(operation: Any, handler: str, arguments: object) -> None:
    """By itself for the application's own, and behind its invoker otherwise; what the invoker needs goes along."""
    node = load(changed(steps__1__operation=operation)).graph.nodes["process"]
    assert isinstance(node.op, g.TaskOp)
    assert (node.op.work.handler, node.metadata.get("arguments")) == (handler, arguments)


def test_what_a_call_may_take() -> None:
    """Times and repetitions are those of the file."""
    retry = {"attempts": 5, "delay": "1m", "backoff": "exponential", "factor": 1.5, "cap": "1h", "jitter": 0.25}
    graph = load(changed(steps__1__retry=retry, steps__1__timeout="30s", steps__1__stuck_after="5m")).graph
    node = graph.nodes["process"]
    assert isinstance(node.op, g.TaskOp)
    assert node.op.work.timeout_ms == 30_000
    assert node.op.work.retry == g.RetryRule(
        max_calls=5, delay_ms=60_000, backoff="exponential", factor_percent=150, cap_ms=3_600_000, jitter_percent=25
    )


def test_a_notification_goes_on_whatever_becomes_of_it() -> None:
    """Nobody waits for it; what it cannot even be given leads where its end leads; and it keeps nothing."""
    node = GRAPH.nodes["notify"]
    assert isinstance(node.op, g.TaskOp)
    assert node.op.detached
    assert node.op.output == {}
    assert edges(GRAPH, "notify") == [("error", "approved", "", ""), ("ok", "approved", "", "")]


def test_a_wait_is_for_a_time_or_an_event() -> None:
    """The way of the event itself stands before the one for any end."""
    lead = {"from": "pause", "event": "completed", "to": "rejected"}
    changes: dict[str, Any] = {"transitions__6": lead, "transitions__8": {**lead, "event": "paid", "to": "notify"}}
    graph = load(changed(**changes)).graph
    assert graph.nodes["pause"].op == g.WaitEventOp(signal="paid")
    assert edges(graph, "pause") == [
        ("ok", "notify", "", ""),
        ("ok", "rejected", "", ""),
        ("timeout", "rejected", "", ""),
    ]
    timed = {"id": "pause", "type": "wait", "duration": "1h30m"}
    assert load(changed(steps__3=timed, transitions__6=lead)).graph.nodes["pause"].op == g.WaitTimerOp(
        duration_ms=5_400_000
    )


def waiting(**fields: Any) -> g.Node:
    """The node of a wait with these fields."""
    lead = {"from": "pause", "event": "completed", "to": "notify"}
    return load(changed(steps__3={"id": "pause", "type": "wait", **fields}, transitions__6=lead)).graph.nodes["pause"]


def test_a_wait_is_for_an_instant_or_for_published_events() -> None:
    """With a key or a condition an event is one that is published; several have to come, or the first of them."""
    assert waiting(cron="0 9 * * MON", time_zone="Europe/Berlin").op == g.WaitTimerOp(
        cron="0 9 * * MON", time_zone="Europe/Berlin"
    )
    assert waiting(until="workflow.due_at").op.detail == "until workflow.due_at"
    keyed = waiting(event="paid", key="workflow.order_id", condition="event.amount > workflow.total", timeout="1d")
    assert isinstance(keyed.op, g.WaitEventsOp)
    (awaited,) = keyed.op.events
    assert awaited.event == "paid"
    assert (awaited.key or {})["source"] == "workflow.order_id"
    assert (awaited.match or {})["source"] == "event.amount > workflow.total"
    assert keyed.timeout_ms == 86_400_000
    several = waiting(events=[{"event": "paid", "name": "first"}, {"event": "paid", "name": "second"}], need="any").op
    assert isinstance(several, g.WaitEventsOp)
    assert ([each.title for each in several.events], several.need) == (["first", "second"], "any")


@pytest.mark.parametrize(
    ("assignees", "asked"),
    [
        ([{"role": "clerk"}], ("clerk", [])),
        ([{"user": "ann"}, {"role": "clerk", "weight": 2}], ("", ["user:ann", "role:clerk"])),
        ([{"expression": "workflow.boss"}], ("", ["rule:workflow.boss"])),
        ([{"resolver": "manager"}], ("", ["manager"])),
        ([{"resolver": "owner", "of": "house", "pick": "all"}], ("", ["owner:house"])),
    ],
)
def test_those_who_are_asked_are_found_in_every_way(
    assignees: list[dict[str, Any]], asked: tuple[str, list[str]]
) -> None:
    """People and roles by name, whoever an expression names, and whoever a resolver finds."""
    graph = load(changed(steps__0__assignee=None, steps__0__assignees=assignees)).graph
    op = graph.nodes["review"].op
    assert isinstance(op, g.HumanOp)
    assert (op.role, [each.words for each in op.asks]) == asked
    assert [each.weight for each in op.asks] == [each.get("weight", 1) for each in assignees][: len(op.asks)]


def test_what_has_to_be_agreed_goes_along() -> None:
    """A chain, how many are needed, and who may not decide."""
    more = {"agree": "n", "least": 2, "requires_reason": True, "self_approval": False, "form_for": ["approved"]}
    changes = {f"steps__0__{name}": value for name, value in more.items()}
    people = [{"user": name} for name in ("ann", "bob", "cat")]
    op = load(changed(steps__0__assignee=None, steps__0__assignees=people, **changes)).graph.nodes["review"].op
    assert isinstance(op, g.HumanOp)
    assert (op.agree, op.least, op.requires_reason, op.self_approval) == ("n", 2, True, False)
    assert (op.approval, op.rejects, op.form_for) == ("approved", "rejected", ("approved",))
    chained = load(changed(steps__0__assignee=None, steps__0__chain="large")).graph.nodes["review"].op
    assert isinstance(chained, g.HumanOp)
    assert chained.chain == "large"


def test_events_start_workflows() -> None:
    """Their key, their condition and what they give are expressions over the event and its key."""
    trigger = {"event": "order.placed", "key": "key", "condition": "event.total > 5", "input": {"id": "event.id"}}
    (made,) = load(changed(triggers=[trigger])).graph.triggers
    assert (made.event, (made.key or {})["source"], (made.when or {})["source"]) == (
        "order.placed",
        "key",
        "event.total > 5",
    )
    assert list(made.input or {}) == ["id"]


def test_a_terminal_says_what_the_workflow_came_to() -> None:
    """Every one of them means that it is completed; the outcome is for reports."""
    assert GRAPH.nodes["approved"].op == g.EndOp(outcome="approved")
    assert GRAPH.nodes["rejected"].op == g.EndOp()


@pytest.mark.row("P-010", "P-011", "P-012")
def test_where_time_leads_that_is_over() -> None:
    """A step's own target, else the workflow's, else it has failed; the same for the time of the whole."""
    assert (GRAPH.policies.deadline_ms, GRAPH.policies.on_deadline) == (72 * 3_600_000, "expired")
    assert ("timeout", "rejected", "", "") in edges(GRAPH, "pause")
    whole = load(changed(steps__0__timeout="24h")).graph
    assert whole.nodes["review"].timeout_ms == 24 * 3_600_000
    assert ("timeout", "expired", "", "") in edges(whole, "review")
    nowhere: dict[str, Any] = {"on_timeout": None, "steps__6": None}
    failing = load(changed(steps__0__timeout="24h", **nowhere)).graph
    assert ("timeout", "#timeout", "", "") in edges(failing, "review")
    assert failing.policies.on_deadline == "#timeout"
    assert failing.nodes["#timeout"].op == g.EndOp(status="failed")
    assert "#timeout" not in load(changed(timeout=None, **nowhere)).graph.nodes


def test_time_may_lead_by_transitions() -> None:
    """They have conditions like all others; an own target without an own time is for that of the whole."""
    late = {"from": "review", "event": "timeout", "to": "expired", "condition": "workflow.total > 5"}
    graph = load(changed(steps__0__timeout="1h", transitions__8=late)).graph
    assert ("timeout", "expired", "workflow.total > 5", "") in edges(graph, "review")
    assert ("timeout", "rejected", "", "") in edges(load(changed(steps__0__on_timeout="rejected")).graph, "review")


def test_an_answer_may_lead_to_a_call_first() -> None:
    """An operation of a question is called between the answer and the step it leads to; its failure has a way of its own."""
    failed = {"from": "review", "event": "error", "to": "rejected"}
    given: dict[str, Any] = {
        "steps__0__operation": "check",
        "steps__0__input": {"x": "workflow.x"},
        "transitions__8": failed,
    }
    graph = load(changed(**given)).graph
    assert edges(graph, "review")[:2] == [
        ("approved", "review/approved", "workflow.total < 100", ""),
        ("approved", "review/approved/2", "", "orders:large"),
    ]
    assert edges(graph, "review/approved") == [("error", "rejected", "", ""), ("ok", "process", "", "")]
    op = graph.nodes["review/approved"].op
    assert isinstance(op, g.TaskOp)
    assert (op.work.handler, list(op.input or {})) == ("check", ["x"])
    human = graph.nodes["review"].op
    assert isinstance(human, g.HumanOp)
    assert human.outcomes == ("approved", "rejected")


def test_a_condition_may_be_an_object() -> None:
    """The same condition as an expression and as field, operator and value reads the same."""
    given = {"field": "workflow.total", "operator": "lt", "value": 100}
    other = next(each for each in load(changed(transitions__0__condition=given)).graph.edges if each.when)
    one = next(each for each in GRAPH.edges if each.when)
    assert other.when is not None
    assert one.when is not None
    assert other.when["hash"] == one.when["hash"]


def test_a_default_that_is_written_out_changes_nothing() -> None:
    """The word that would be taken anyway gives the same graph, which comes back from the store as it was."""
    plain, written = ({"role": "boss", "weight": 2}, {"role": "boss", "weight": 2, "pick": "any"})
    one, other = (load(changed(steps__0__assignee=each)).graph for each in (plain, written))
    assert one.hash == other.hash
    assert read_graph(graph_bytes(other)) == other


def test_a_large_domain_is_loaded() -> None:
    """Two hundred workflows of twenty steps each."""
    steps = [{"id": f"s{n}", "type": "system", "operation": "do", "input": {"a": f"workflow.a{n}"}} for n in range(19)]
    ways = [{"from": f"s{n}", "event": "completed", "to": f"s{n + 1}"} for n in range(18)]
    whole = {
        "steps": [*steps, {"id": "end", "type": "terminal"}],
        "transitions": [*ways, {"from": "s18", "event": "completed", "to": "end"}],
    }
    file = {"domain": "large", "workflows": [{"id": f"w{n}", **whole} for n in range(200)]}
    loaded = load_processes(text_of(file))
    assert sum(len(each.graph.nodes) for each in loaded) == 4000
