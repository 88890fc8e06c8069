"""The law of who may do what, and by which outcome: refusals in their order, and the ways that capabilities open and close."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from machine.hosting import NOW, RUN, Host
from standfast.errors import DefinitionError
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph
from standfast.kernel.actor import SYSTEM, Actor
from standfast.kernel.decision import Answer, Decision, Ignored, Rejection
from standfast.kernel.moment import Moment
from standfast.kernel.row_kinds.steps import TaskOpened
from standfast.kernel.rows import Record, merge
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.events import StepAnswered
from standfast.machine.model.queries.expression_scope import ScopeQuery, namespaces_of
from standfast.machine.model.rejections import Refusal

ANN = Actor(id="ann", roles=frozenset({"finance"}), capabilities=frozenset({"orders.*"}), on_behalf_of="eve")
BOB = Actor(id="bob", capabilities=frozenset({"stock.take"}))
ROOT = Actor(id="root", capabilities=frozenset({"*"}))
ANSWERS = ("approved", "rejected", "returned")


def graph(
    nodes: Sequence[g.Node], edges: Sequence[g.Edge] = (), *, rights: g.Rights | None = None, **policies: object
) -> g.Graph:
    """A process of these nodes."""
    return compile_graph(
        kind="process",
        name="g",
        version="1",
        entry=nodes[0].id,
        nodes=nodes,
        edges=edges,
        policies=g.Policies(**policies),  # type: ignore[arg-type]
        rights=rights or g.Rights(),
    )


def asking(
    *, role: str = "", capability: str = "", ways: Sequence[tuple[str, str, str]] = (("approved", "yes", ""),)
) -> Host:
    """A run that waits for an answer; each way has an outcome, a target and a capability."""
    led = {outcome for outcome, _, _ in ways} | {"rejected"}
    op = g.HumanOp(outcomes=tuple(each for each in ANSWERS if each in led), role=role)
    nodes = [g.Node(id="ask", op=op, capability=capability)]
    nodes += [g.Node(id=name, op=g.EndOp()) for name in dict.fromkeys(target for _, target, _ in ways)]
    edges = [
        g.Edge(source="ask", target=target, on=outcome, capability=needed, priority=place)
        for place, (outcome, target, needed) in enumerate(ways)
    ]
    host = Host(graph(nodes, edges))
    host.tell(c.StartWorkflow())
    return host


def answer(host: Host, actor: Actor, outcome: str = "approved", step: int = 1) -> Answer:
    """Somebody answers."""
    return host.tell(c.AnswerStep(step=step, outcome=outcome, comment="so", data={"sum": 5}), actor)


def code(answer: Answer) -> str:
    """Why it was refused; empty if it was not."""
    return answer.code if isinstance(answer, Rejection) else ""


def went(host: Host) -> str:
    """The last node that was entered."""
    events = [event for event in host.history if getattr(event, "node", "")]
    return str(events[-1].node)  # type: ignore[union-attr]


@pytest.mark.row("P-066")
@pytest.mark.parametrize(
    ("role", "capability", "allowed"),
    [
        ("", "", "ann bob root system"),
        ("finance", "", "ann root system"),
        ("", "orders.approve", "ann root system"),
        ("", "stock.take", "bob root system"),
        ("finance", "stock.take", "root system"),
        ("finance", "orders.approve", "ann root system"),
    ],
)
def test_an_answer_takes_the_role_and_the_capability(role: str, capability: str, allowed: str) -> None:
    """Those who have both may answer, as far as they are asked for; nobody else changes anything."""
    for actor in (ANN, BOB, ROOT, SYSTEM):
        host = asking(role=role, capability=capability)
        before = len(host.history)
        refused = code(answer(host, actor))
        assert refused == ("" if actor.id in allowed.split() else Refusal.NOT_ALLOWED)
        assert (len(host.history) == before) == bool(refused)


def test_one_event_tells_of_an_answer() -> None:
    """Who answered what, for whom, when and with which data."""
    host = asking()
    answer(host, ANN, "rejected")
    (told,) = [event for event in host.history if isinstance(event, StepAnswered)]
    assert told == StepAnswered(
        step=1,
        outcome="rejected",
        actor="ann",
        on_behalf_of="eve",
        at=NOW.isoformat(),
        comment="so",
        data={"sum": 5},
    )
    (task,) = [row for row in host.rows if isinstance(row, TaskOpened)]
    assert (task.outcome, task.actor, task.comment) == ("rejected", "ann", "so")


def test_an_outcome_that_the_question_does_not_have_is_refused() -> None:
    """The refusal names those that it has; `ok` and `timeout` are nobody's answers."""
    for outcome in ("confirmed", "ok", "timeout", "*", ""):
        refused = answer(asking(), ANN, outcome)
        assert isinstance(refused, Rejection)
        assert refused.code == Refusal.UNKNOWN_OUTCOME
        assert "'approved', 'rejected'" in refused.message


@pytest.mark.row("P-062")
def test_refusals_come_in_their_order() -> None:
    """Not waiting comes before not allowed, not allowed before an unknown outcome, that before a way that is closed."""
    host = asking(role="finance", ways=[("approved", "yes", "stock.take")])
    assert code(answer(host, BOB, "nonsense", step=7)) == Refusal.NOT_WAITING
    assert code(answer(host, BOB, "nonsense")) == Refusal.NOT_ALLOWED
    assert code(answer(host, ANN, "nonsense")) == Refusal.UNKNOWN_OUTCOME
    assert code(answer(host, ANN)) == Refusal.NO_TRANSITION
    answer(host, SYSTEM)
    assert host.state.status == "completed"
    assert code(answer(host, BOB, "nonsense", step=7)) == Refusal.ALREADY_TERMINAL


@pytest.mark.row("P-069")
def test_the_first_way_that_is_open_for_the_actor_is_taken() -> None:
    """A way whose capability the actor lacks is passed over, in the order of priority."""
    ways = [("approved", "large", "orders.large"), ("approved", "stock", "stock.take"), ("approved", "small", "")]
    for actor, target in ((ANN, "large"), (BOB, "stock"), (Actor(id="eve"), "small"), (SYSTEM, "large")):
        host = asking(ways=ways)
        answer(host, actor)
        assert went(host) == target


@pytest.mark.row("P-068")
def test_an_answer_whose_ways_are_closed_is_not_taken() -> None:
    """The question stays open for somebody who may go one of them, also where the policy would end the run."""
    host = asking(ways=[("approved", "large", "orders.large"), ("rejected", "no", "orders.close")])
    for outcome in ("approved", "rejected"):
        assert code(answer(host, BOB, outcome)) == Refusal.NO_TRANSITION
    assert list(host.state.open) == [1]
    answer(host, ANN, "rejected")
    assert went(host) == "no"


def test_what_nobody_asked_for_is_done_by_the_system() -> None:
    """A handler that comes back opens every way, whoever made the run move before."""
    nodes = [g.Node(id="do", op=g.TaskOp(work=g.HandlerCall(handler="h"))), g.Node(id="end", op=g.EndOp())]
    host = Host(graph(nodes, [g.Edge(source="do", target="end", capability="orders.close")]))
    host.tell(c.StartWorkflow(), BOB)
    host.tell(c.CompleteStep(step=1), effect=0)
    assert went(host) == "end"


@pytest.mark.row("P-060")
def test_a_start_takes_the_capability_of_the_workflow() -> None:
    """It is asked before whether there is such a run already, and not of a workflow that calls this one."""
    nodes = [g.Node(id="wait", op=g.WaitEventOp(signal="go"))]
    host = Host(graph(nodes, rights=g.Rights(start="orders.start")))
    assert code(host.tell(c.StartWorkflow(), BOB)) == Refusal.NOT_ALLOWED
    assert host.state.status == "new"
    assert isinstance(host.tell(c.StartWorkflow(), ANN), Decision)
    assert code(host.tell(c.StartWorkflow(), BOB)) == Refusal.NOT_ALLOWED
    assert code(host.tell(c.StartWorkflow(), ANN)) == Refusal.ALREADY_STARTED
    child = Host(graph(nodes, rights=g.Rights(start="orders.start")))
    assert isinstance(
        child.tell(c.StartWorkflow(parent=str(RUN), parent_definition="p", parent_step=1), SYSTEM), Decision
    )


@pytest.mark.row("P-121")
@pytest.mark.parametrize("stop", [c.CancelWorkflow, c.AbortWorkflow])
@pytest.mark.parametrize(
    ("rights", "allowed"),
    [
        (g.Rights(), "bob"),
        (g.Rights(cancel="stock.take"), "bob"),
        (g.Rights(start="orders.start", cancel="stock.take"), "bob"),
        (g.Rights(start="orders.start"), "ann"),
        (g.Rights(start="stock.take", cancel="orders.stop"), "ann"),
    ],
)
def test_a_stop_takes_the_capability_to_cancel(
    stop: type[c.CancelWorkflow | c.AbortWorkflow], rights: g.Rights, allowed: str
) -> None:
    """Where there is none, it takes that to start; the workflow that started this one is not asked."""
    for actor in (ANN, BOB):
        host = Host(graph([g.Node(id="wait", op=g.WaitEventOp(signal="go"))], rights=rights))
        host.tell(c.StartWorkflow())
        is_free = rights == g.Rights() or actor.id == allowed
        assert code(host.tell(stop(), actor)) == ("" if is_free else Refusal.NOT_ALLOWED)
        assert host.state.is_terminal == is_free
        host = Host(graph([g.Node(id="wait", op=g.WaitEventOp(signal="go"))], rights=rights))
        host.tell(c.StartWorkflow())
        host.tell(stop(by_parent=True), SYSTEM)
        assert host.state.is_terminal


def waiting(capability: str) -> Host:
    """A run that first waits for `go`, then for `more`, which takes a capability."""
    nodes = [
        g.Node(id="first", op=g.WaitEventOp(signal="go")),
        g.Node(id="second", op=g.WaitEventOp(signal="more"), capability=capability),
    ]
    host = Host(graph(nodes, [g.Edge(source="first", target="second")]))
    host.tell(c.StartWorkflow())
    return host


def test_a_signal_takes_the_capability_of_the_step_that_waits_for_it() -> None:
    """Also one that comes early: once it is kept, nobody knows any more who sent it."""
    host = waiting("orders.close")
    assert code(host.tell(c.SendSignal(name="more"), BOB)) == Refusal.NOT_ALLOWED
    host.tell(c.SendSignal(name="go"), BOB)
    assert code(host.tell(c.SendSignal(name="more"), BOB)) == Refusal.NOT_ALLOWED
    host.tell(c.SendSignal(name="more"), ANN)
    assert host.state.status == "completed"


def test_the_world_answers_a_step_as_people_do() -> None:
    """Whoever was given the step that waits answers it by `ok`, by the same command and law; a second time it is no news."""
    host = waiting("orders.close")
    answered = c.AnswerStep(step=1, outcome="ok", data={"x": 1})
    host.tell(answered, BOB)
    assert host.state.tokens["0"].data == {"x": 1}
    assert isinstance(host.tell(answered, BOB), Ignored)
    assert code(host.tell(c.AnswerStep(step=2, outcome="ok"), BOB)) == Refusal.NOT_ALLOWED
    assert code(host.tell(c.AnswerStep(step=2, outcome="done"), ANN)) == Refusal.UNKNOWN_OUTCOME
    host.tell(c.AnswerStep(step=2, outcome="ok"), ANN)
    assert host.state.status == "completed"
    state, told = host.machine.initial(), list[Record]()
    for event in host.history:
        told += host.machine.rows_of(state, event)
        state = host.machine.evolve(state, event)
    assert host.rows == merge(told)


def test_only_what_waits_for_an_answer_can_be_answered() -> None:
    """A call of a handler or a timer has no outcome that anybody could name."""
    for op in (g.TaskOp(work=g.HandlerCall(handler="h")), g.WaitTimerOp(duration_ms=1), g.CallOp(definition="other")):
        host = Host(graph([g.Node(id="a", op=op)]))
        host.tell(c.StartWorkflow())
        assert code(host.tell(c.AnswerStep(step=1, outcome="ok"), SYSTEM)) == Refusal.NOT_WAITING


def test_an_outcome_that_leads_nowhere_is_refused_when_the_graph_is_compiled() -> None:
    """An edge for any outcome leads on from all of them."""
    ask, end = g.Node(id="ask", op=g.HumanOp(outcomes=ANSWERS)), g.Node(id="end", op=g.EndOp())
    with pytest.raises(DefinitionError, match="'returned', and no edge leads on") as refused:
        graph([ask, end], [g.Edge(source="ask", target="end", on="approved")])
    assert [each.code for each in refused.value.diagnostics] == ["no_way"]
    assert len(graph([ask, end], [g.Edge(source="ask", target="end", on="*")]).nodes) == 2


@pytest.mark.parametrize("kind", ["saga", "process", "rules", "envelope"])
def test_the_names_of_expressions_have_values_of_their_types(kind: g.Kind) -> None:
    """What a front end checks expressions against is what a run gives them."""
    host = asking()
    spaces = namespaces_of(kind)
    moment = Moment(now=NOW, instance=RUN, actor=ANN)
    values = spaces.values(ScopeQuery(moment, host.state, "ask", host.state.tokens["0"].data))
    assert values.keys() == (spaces.schema.fields or {}).keys()
    actor = values["actor"]
    assert actor == {"id": "ann", "kind": "user", "roles": ["finance"], "capabilities": ["orders.*"]}
    assert (spaces.schema.fields or {})["actor"].fields.keys() == actor.keys()  # type: ignore[union-attr]


def test_an_early_signal_opens_no_way_that_its_sender_may_not_take() -> None:
    """Once it is kept nobody asks who sent it, so that whoever lacks a right of any way behind the wait cannot send it early."""
    nodes = [
        g.Node(id="sleep", op=g.WaitTimerOp(duration_ms=1000)),
        g.Node(id="wait", op=g.WaitEventOp(signal="go")),
        g.Node(id="vip", op=g.EndOp()),
        g.Node(id="plain", op=g.EndOp()),
    ]
    edges = [
        g.Edge(source="sleep", target="wait"),
        g.Edge(source="wait", target="vip", capability="orders.close", priority=1),
        g.Edge(source="wait", target="plain", priority=2),
    ]
    host = Host(graph(nodes, edges))
    host.tell(c.StartWorkflow())
    assert code(host.tell(c.SendSignal(name="go"), Actor(id="eve"))) == Refusal.NOT_ALLOWED
    assert not host.state.signals


def test_rights_do_not_hang_on_what_a_command_says_of_itself() -> None:
    """Whoever may not start or stop a run may not do so in the name of a parent either; the engine's own messages may."""
    built = graph([g.Node(id="wait", op=g.WaitEventOp(signal="go"))], rights=g.Rights(start="orders.start"))
    host, eve = Host(built), Actor(id="eve")
    child = c.StartWorkflow(parent=str(RUN), parent_definition="p", parent_step=1)
    assert code(host.tell(child, eve)) == Refusal.NOT_ALLOWED
    host.tell(child, SYSTEM)
    assert code(host.tell(c.CancelWorkflow(by_parent=True), eve)) == Refusal.NOT_ALLOWED
    assert code(host.tell(c.AbortWorkflow(by_parent=True), eve)) == Refusal.NOT_ALLOWED
    host.tell(c.CancelWorkflow(by_parent=True), SYSTEM)
    assert host.state.is_terminal


def test_putting_a_step_back_takes_the_right_to_repair() -> None:
    """Whichever way the command comes: the law is asked before it is looked whether there is anything to put back."""
    host = Host(graph([g.Node(id="wait", op=g.WaitEventOp(signal="go"))]))
    host.tell(c.StartWorkflow(), SYSTEM)
    for command in (c.RequeueStep(step=1), c.RetryCompensation(step=1)):
        assert code(host.tell(command, Actor(id="eve"))) == Refusal.NOT_ALLOWED
        assert code(host.tell(command, Actor(id="olga", capabilities=frozenset({"execution:repair"})))) != ""
        assert code(host.tell(command, SYSTEM)) != Refusal.NOT_ALLOWED
