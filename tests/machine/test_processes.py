"""What the machine does for processes: mappings of tasks, answers that are laid over the data, names of expressions, the deadline's way."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from machine.hosting import Host
from standfast.errors import DefinitionError
from standfast.expressions import ExpressionOptions, parse
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph
from standfast.kernel.actor import Actor
from standfast.kernel.decision import Answer, Rejection
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.commands.timers import DEADLINE
from standfast.machine.model.events import StepCompleted, TimedOut
from standfast.machine.model.rejections import Refusal

ANN = Actor(id="ann")


def graph(nodes: Sequence[g.Node], edges: Sequence[g.Edge] = (), **policies: object) -> g.Graph:
    """A process of these nodes."""
    return compile_graph(
        kind="process",
        name="p",
        version="1",
        entry=nodes[0].id,
        nodes=nodes,
        edges=edges,
        policies=g.Policies(on_failure="pause", on_cancel="none", on_no_edge="fail", **policies),  # type: ignore[arg-type]
    )


def mapped(**sources: str) -> dict[str, g.Stored]:
    """Stored mappings."""
    return {name: parse(source, spelling="mapping", options=_OPTIONS).to_data() for name, source in sources.items()}


def stored(source: str) -> g.Stored:
    """A stored condition."""
    return parse(source).to_data()


def task(**fields: object) -> g.Node:
    """A task with mappings."""
    return g.Node(id="call", op=g.TaskOp(work=g.HandlerCall(handler="h"), **fields))  # type: ignore[arg-type]


def started(built: g.Graph, data: dict[str, object] | None = None, actor: Actor = ANN) -> Host:
    """A run that ann has started."""
    host = Host(built)
    host.tell(c.StartWorkflow(input=data or {}), actor)
    return host


def code(answer: Answer) -> str:
    """Why it was refused; empty if it was not."""
    return answer.code if isinstance(answer, Rejection) else ""


END = g.Node(id="end", op=g.EndOp())
_OPTIONS = ExpressionOptions(namespaces=frozenset({"workflow", "context", "response"}))


# -- tasks


def test_a_handler_is_given_what_the_mapping_names() -> None:
    """Values come from the state and from the instance, and the rest of the state stays at home."""
    given = mapped(
        order="workflow.order.id", tenant="context.tenant_id", by="context.subject_id", kind="'new'", none="workflow.no"
    )
    host = started(graph([task(input=given), END], [g.Edge(source="call", target="end")]), {"order": {"id": "o-1"}})
    assert host.calls[0].body.input == {"order": "o-1", "tenant": "default", "by": "ann", "kind": "new", "none": None}


def test_what_cannot_be_told_is_a_failure_of_the_step() -> None:
    """A text with a hole in it is not sent out."""
    host = started(graph([task(input=mapped(text="'for {workflow.name}'"))]))
    assert not host.calls
    assert host.state.status == "paused"


def test_only_what_the_mapping_names_is_kept_of_an_answer() -> None:
    """The response is read by paths, and what nobody asked for is dropped; no mapping at all keeps nothing."""
    for output, kept in (
        (mapped(confirmed_at="response.at", old="workflow.total"), {"confirmed_at": "noon", "old": 5}),
        ({}, {}),
    ):
        host = started(graph([task(output=output), END], [g.Edge(source="call", target="end")]), {"total": 5})
        host.tell(c.CompleteStep(step=1, output={"at": "noon", "noise": 1}), effect=0)
        assert host.state.result == {"total": 5, **kept}


# -- answers


def asking(ways: Sequence[g.Edge]) -> Host:
    """A run that waits for an answer which is laid over its data."""
    op = g.HumanOp(outcomes=("approved", "sent"), lays_over=True, signs={"approved": "approved_by"})
    targets = [g.Node(id=name, op=g.EndOp()) for name in dict.fromkeys(each.target for each in ways)]
    return started(graph([g.Node(id="ask", op=op), *targets], ways), {"total": 5, "note": "old"})


WAYS = (g.Edge(source="ask", target="end", on="approved"), g.Edge(source="ask", target="end", on="sent"))


@pytest.mark.parametrize(
    ("outcome", "given", "left"),
    [
        ("approved", {"note": "new"}, {"note": "new", "approved_by": "bob"}),
        ("approved", {"approved_by": "eve"}, {"note": "old", "approved_by": "eve"}),
        ("approved", None, {"note": "old", "approved_by": "bob"}),
        ("sent", {"note": "new"}, {"note": "new"}),
    ],
)
def test_an_answer_is_laid_over_the_data(outcome: str, given: object, left: dict[str, object]) -> None:
    """Later names win, others stay, and who approved is noted unless the answer says it."""
    host = asking(WAYS)
    host.tell(c.AnswerStep(step=1, outcome=outcome, data=given), Actor(id="bob"))
    assert host.state.result == {"total": 5, **left}


@pytest.mark.parametrize(
    ("total", "given", "way"),
    [(50, {}, "small"), (500, {"sure": True}, "large"), (500, {}, ""), (50, {"sure": True}, "small")],
)
def test_the_first_open_way_is_taken_and_none_is_a_refusal(total: int, given: dict[str, object], way: str) -> None:
    """Conditions read the state and what the answer brings; where none holds nothing happens, and another answer still can."""
    op = g.HumanOp(outcomes=("approved",), lays_over=True)
    nodes = [g.Node(id="ask", op=op), *(g.Node(id=name, op=g.EndOp(outcome=name)) for name in ("small", "large"))]
    ways = [
        g.Edge(source="ask", target="small", on="approved", when=stored("workflow.total < 100")),
        g.Edge(source="ask", target="large", on="approved", when=stored("input.sure? == true"), priority=1),
    ]
    host = started(graph(nodes, ways), {"total": total})
    before = len(host.history)
    answer = host.tell(c.AnswerStep(step=1, outcome="approved", data=given), ANN)
    if way:
        assert host.state.outcome == way
    else:
        assert code(answer) == Refusal.NO_TRANSITION
        assert len(host.history) == before


def test_two_ways_to_one_target_can_ask_for_different_things() -> None:
    """Of several edges that differ in their priority each has a condition and a capability of its own."""
    ways = [
        g.Edge(source="ask", target="end", on="approved", when=stored("workflow.total < 3"), capability="small"),
        g.Edge(source="ask", target="end", on="approved", capability="large", priority=1),
        g.Edge(source="ask", target="end", on="sent"),
    ]
    assert code(asking(ways).tell(c.AnswerStep(step=1, outcome="approved"), Actor(id="x", capabilities=frozenset({"small"})))) == Refusal.NO_TRANSITION  # fmt: skip
    host = asking(ways)
    host.tell(c.AnswerStep(step=1, outcome="approved"), Actor(id="x", capabilities=frozenset({"large"})))
    assert host.state.status == "completed"


# -- advancing


CLERK = Actor(id="cleo", roles=frozenset({"clerk"}))


def waiting() -> Host:
    """A run that asks a clerk, and then calls something."""
    ask = g.Node(id="ask", op=g.HumanOp(outcomes=("sent",), role="clerk", lays_over=True))
    ways = [g.Edge(source="ask", target="call", on="sent"), g.Edge(source="call", target="end")]
    return started(graph([ask, task(), END], ways))


@pytest.mark.row("P-062", "P-065", "P-071", "P-081")
def test_an_advance_is_refused_in_the_order_of_the_specification() -> None:
    """Of two reasons the earlier one counts: no such process, not active, not asked, changed meanwhile, no way."""
    host = waiting()

    def told(actor: Actor, **given: object) -> str:
        return code(host.tell(c.AdvanceProcess(event="lost", partition="", **given), actor))  # type: ignore[arg-type]

    elsewhere = c.AdvanceProcess(event="lost", partition="north", expected=7)
    assert code(host.tell(elsewhere, ANN)) == Refusal.NOT_STARTED
    assert told(ANN, expected=7) == Refusal.NOT_ALLOWED
    assert told(CLERK, expected=7) == Refusal.VERSION_CONFLICT
    assert told(CLERK, expected=1) == Refusal.UNKNOWN_OUTCOME
    host.tell(c.AdvanceProcess(event="sent", partition="", expected=1), CLERK)
    assert [each.body.node for each in host.calls.values()] == ["call"]
    assert told(ANN, expected=7) == Refusal.VERSION_CONFLICT
    assert told(ANN, expected=2) == told(ANN) == Refusal.NO_TRANSITION
    host.tell(c.CancelWorkflow())
    assert code(host.tell(elsewhere, ANN)) == Refusal.NOT_STARTED
    assert told(ANN, expected=7) == Refusal.NOT_ACTIVE


def test_the_engine_itself_sees_every_part_of_a_tenant() -> None:
    """A call that names no part at all advances a process of any."""
    host = waiting()
    host.tell(c.AdvanceProcess(event="sent"), CLERK)
    assert "ask" not in {each.node for each in host.state.open.values()}


def test_an_advance_for_a_step_that_was_seen_is_refused_when_more_has_happened() -> None:
    """Whoever was looked up for it has to be looked up again, also if nothing else bars them."""
    host = waiting()
    seen = host.version
    host.tell(c.CommentTask(step=1, text="a word"), CLERK)
    assert code(host.tell(c.AdvanceProcess(event="sent", seen=seen), CLERK)) == Refusal.OUTDATED


def test_only_a_process_is_advanced() -> None:
    """Whoever advances runs of other kinds is told that there is none."""
    nodes = [g.Node(id="ask", op=g.HumanOp())]
    saga = compile_graph(kind="saga", name="s", version="1", entry="ask", nodes=nodes, edges=(), policies=g.Policies())
    host = Host(saga)
    host.tell(c.StartWorkflow())
    assert code(host.tell(c.AdvanceProcess(event="confirmed"))) == Refusal.NOT_STARTED


# -- the deadline


def expiring(first: g.Node, *edges: g.Edge) -> Host:
    """A run with a deadline that leads to `expired`."""
    nodes = [
        first,
        END,
        g.Node(id="late", op=g.EndOp(outcome="late")),
        g.Node(id="expired", op=g.EndOp(outcome="expired")),
    ]
    used = {"expired", first.id, *(each.target for each in edges)}
    nodes = [each for each in nodes if each.id in used]
    return started(graph(nodes, edges, deadline_ms=1000, on_deadline="expired"))


ASK = g.Node(id="ask", op=g.HumanOp(outcomes=("approved",)))
APPROVED = g.Edge(source="ask", target="end", on="approved")


def test_a_passed_deadline_leads_where_the_definition_says() -> None:
    """A run that waits for a person goes there, and the deadline has then been used up."""
    host = expiring(ASK, APPROVED)
    host.tell(c.PassDeadline(), timer=DEADLINE)
    assert (host.state.status, host.state.outcome) == ("completed", "expired")
    assert [type(each) for each in host.history if isinstance(each, TimedOut)] == [TimedOut]


def test_the_timeout_of_the_step_wins_over_that_of_the_run() -> None:
    """A step that says where to go when time is over goes there, although it was the run's time."""
    host = expiring(ASK, APPROVED, g.Edge(source="ask", target="late", on="timeout"))
    host.tell(c.PassDeadline(), timer=DEADLINE)
    assert host.state.outcome == "late"


@pytest.mark.parametrize(
    "op", [g.TaskOp(work=g.HandlerCall(handler="h")), g.WaitTimerOp(duration_ms=9000), g.WaitEventOp(signal="s")]
)
def test_a_passed_deadline_ends_whatever_is_under_way(op: g.TaskOp | g.WaitTimerOp | g.WaitEventOp) -> None:
    """A call is told to stop and its late answer changes nothing; waits are over."""
    host = expiring(g.Node(id="work", op=op), g.Edge(source="work", target="end"))
    for call in host.calls.values():
        call.is_begun = True
    host.tell(c.PassDeadline(), timer=DEADLINE)
    assert (host.state.status, host.state.outcome) == ("completed", "expired")
    if host.calls:
        assert host.calls[0].recall is not None
        host.tell(c.CompleteStep(step=1, output={"x": 1}), effect=0)
    assert host.state.result == {}
    assert not any(isinstance(each, StepCompleted) and each.step == 1 for each in host.history)


def test_a_run_that_waits_for_an_operator_does_not_expire() -> None:
    """Its step has failed, and nobody is moved on behind the operator's back."""
    host = expiring(task(), g.Edge(source="call", target="end"))
    host.tell(c.FailStep(step=1, error="no", is_final=True), effect=0)
    assert host.state.status == "paused"
    host.tell(c.PassDeadline(), timer=DEADLINE)
    assert host.state.status == "paused"


@pytest.mark.parametrize(
    ("nodes", "edges", "policies"),
    [
        ([END], [], {"deadline_ms": 5, "on_deadline": "nowhere"}),
        ([END], [], {"on_deadline": "end"}),
        (
            [g.Node(id="fork", op=g.SplitOp()), END],
            [g.Edge(source="fork", target="end", on=g.BRANCH)],
            {"deadline_ms": 5, "on_deadline": "end"},
        ),
    ],
)
def test_a_deadline_leads_to_a_node_that_is_there(
    nodes: list[g.Node], edges: list[g.Edge], policies: dict[str, object]
) -> None:
    """An unknown node, a target without a deadline, and forks are found when the graph is compiled."""
    with pytest.raises(DefinitionError) as refused:
        graph(nodes, edges, **policies)
    assert "deadline" in [each.code for each in refused.value.diagnostics]
