"""Rules of docs/concepts/graphs.md in the smallest graphs that show them, each played on the machine and on the reference."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from machine.generating import stored
from machine.hosting import RUN, Host
from machine.playing import Act, Answer, Begin, Deliver, Fire, Pass, Play, Say
from standfast.errors import DefinitionError
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph
from standfast.kernel.decider import Failure
from standfast.kernel.row_kinds.steps import DeadLetterRaised, StepOpened
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.events import BranchesDropped, HandlerMissing
from standfast.machine.nodes.wait import MOST_KEPT
from standfast.machine.preconditions import LATE

DLQ, PAUSE = g.Policies(on_failure="dlq"), g.Policies(on_no_edge="pause")
START = Say(c.StartWorkflow(input={"x": 1}))


def task(name: str, *, calls: int = 1, is_undone: bool = False) -> g.Node:
    """A node that calls a handler."""
    undo = g.HandlerCall(handler=f"undo {name}", retry=g.RetryRule(max_calls=1)) if is_undone else None
    return g.Node(
        id=name,
        op=g.TaskOp(work=g.HandlerCall(handler=f"do {name}", retry=g.RetryRule(max_calls=calls))),
        compensation=undo,
    )


def node(name: str, op: g.Op, timeout_ms: int | None = None) -> g.Node:
    """Any other node."""
    return g.Node(id=name, op=op, timeout_ms=timeout_ms)


def edge(source: str, target: str, on: str = g.OK, *, when: str = "") -> g.Edge:
    """A way."""
    return g.Edge(source=source, target=target, on=on, when=stored(when) if when else None)


def fork(*branches: str, strategy: g.JoinOp | None = None) -> tuple[list[g.Node], list[g.Edge]]:
    """A fork `f` whose branches are the nodes with these names, and its join `j`."""
    nodes = [node("f", g.SplitOp()), node("j", strategy or g.JoinOp(split="f"))]
    return nodes, [edge("f", name, g.BRANCH) for name in branches] + [edge(name, "j") for name in branches]


def play(
    nodes: Sequence[g.Node], edges: Sequence[g.Edge], acts: Sequence[Act], policies: g.Policies | None = None
) -> Play:
    """Play the acts; the first disagreement is an error."""
    graph = compile_graph(
        kind="process",
        name="g",
        version="1",
        entry=nodes[0].id,
        nodes=nodes,
        edges=edges,
        policies=policies or g.Policies(),
    )
    played = Play(graph)
    for act in [START, *acts]:
        assert can_happen(played, act), f"nothing comes of {act}: a rule is not shown by it"
        played.act(act)
    return played


def can_happen(played: Play, act: Act) -> bool:
    """Whether there is a call that begins or comes back, a timer that fires, a message that arrives."""
    host = played.host
    match act:
        case Begin(step=step) | Answer(command=c.CompleteStep(step=step) | c.FailStep(step=step)):
            return any(call.body.step == step for call in host.calls.values())
        case Fire(command=command):
            return command in host.timers.values()
        case Deliver():
            return bool(host.inbox)
        case Say() | Pass():
            return True


def seen(played: Play) -> str:
    """What the machine made of it, in one line: the run, its steps by number, its dead letters, what it asked of its child."""
    host = played.host
    opened = sorted((each for each in host.rows if isinstance(each, StepOpened)), key=lambda each: each.number)
    words = [f"{'' if each.compensates is None else 'undo '}{each.node} {each.status}" for each in opened]
    words += [f"letter of {each.number}" for each in host.rows if isinstance(each, DeadLetterRaised)]
    words += [f"child to {each.asked}" for each in host.children if each.asked]
    return f"{host.state.status}{host.state.reason and ' ' + host.state.reason}: {', '.join(words)}"


def done(step: int, output: object = None) -> Answer:
    """A call comes back."""
    return Answer(c.CompleteStep(step=step, output=output))


def failed(step: int, *, was_called: bool = True, is_final: bool = False) -> Answer:
    """A call comes back badly."""
    return Answer(c.FailStep(step=step, error="no", was_called=was_called, is_final=is_final))


# -- answers


def test_only_a_call_has_an_answer() -> None:
    """An answer of a handler for a step that waits for a person is not believed."""
    played = play(
        [node("ask", g.HumanOp())], [], [Say(c.CompleteStep(step=1, output=1)), Say(c.FailStep(step=1, error="no"))]
    )
    assert seen(played) == "running: ask pending"


def test_only_a_call_of_a_workflow_has_a_child() -> None:
    """The end of a child does not complete a step that waits for a handler."""
    played = play([task("a")], [], [Say(c.EndChild(step=1, status="completed", result=1))])
    assert seen(played) == "running: a pending"


def test_a_step_without_a_timer_does_not_time_out() -> None:
    """A time-out counts only for a step that has one."""
    played = play([node("ask", g.HumanOp())], [], [Say(c.TimeOut(step=1))])
    assert seen(played) == "running: ask pending"


def test_a_run_begins_once() -> None:
    """The end of the delay counts only for a run that waits for it."""
    played = play([task("a")], [], [Say(c.BeginWorkflow())])
    assert seen(played) == "running: a pending"


def test_the_result_of_a_child_is_found_under_the_name_of_the_call() -> None:
    """Also if it is an object; and the compensation of the call is told the same answer, whenever the child ended."""
    call = node("call", g.CallOp(definition="child"))
    for result in ({"x": 2}, 7):
        played = play([call], [], [Say(c.EndChild(step=1, status="completed", result=result))])
        assert played.host.state.result == {"x": 1, "call": result}
    undone = g.Node(id="call", op=call.op, compensation=task("call", is_undone=True).compensation)
    ended = Say(c.EndChild(step=1, status="completed", result=7))
    cancel = Say(c.CancelWorkflow())
    orders: list[list[Act]] = [[cancel, ended], [ended, cancel, Deliver()]]
    for acts in orders:
        played = play([undone, task("a")], [edge("call", "a")], acts)
        assert [(each.body.output, each.body.data["call"]) for each in played.host.calls.values()] == [(7, 7)]


def test_a_child_does_not_answer_for_a_handler_nor_a_handler_for_a_child() -> None:
    """Also not for steps that were stopped and are waited for."""
    nodes, edges = fork("a", "call")
    stopped: list[Act] = [Begin(2), Say(c.CancelWorkflow())]
    wrong: list[Act] = [Say(c.EndChild(step=2, status="completed")), Say(c.CompleteStep(step=3))]
    right: list[Act] = [done(2), Say(c.EndChild(step=3, status="cancelled"))]
    branches = [task("a", is_undone=True), node("call", g.CallOp(definition="child"))]
    played = play([*nodes, *branches], edges, [*stopped, *wrong, *right])
    assert seen(played) == "running: f completed, a skipped, call skipped, undo a pending, child to cancel"


def test_only_a_call_misses_its_handler() -> None:
    """A note about a missing handler is not taken for a step that has none."""
    played = play([node("ask", g.HumanOp())], [], [Say(c.NoteMissingHandler(step=1, handler="h"))])
    assert not [each for each in played.host.history if isinstance(each, HandlerMissing)]
    played = play([task("a")], [], [Say(c.NoteMissingHandler(step=1, handler="do a"))])
    assert isinstance(played.host.history[-1], HandlerMissing)
    assert seen(played) == "running: a pending"


def test_times_end_only_while_their_timers_are_set() -> None:
    """The deadline and the time that handlers have to stop as well."""
    played = play([task("a")], [], [Say(c.PassDeadline()), Say(c.EndGrace())])
    assert seen(played) == "running: a pending"
    nodes, edges = fork("a", "b", strategy=g.JoinOp(split="f", strategy="any"))
    played = play([*nodes, task("a"), task("b")], edges, [Begin(2), Begin(3), failed(2), Say(c.EndGrace())])
    assert seen(played) == "running: f completed, a failed, b pending"


def test_only_so_many_signals_are_kept() -> None:
    """One more is refused, whatever its name; a signal that a step waits for is never one too many, and what is taken makes room."""
    waits = [node("first", g.WaitEventOp(signal="red")), node("then", g.WaitEventOp(signal="green")), task("end")]
    early: list[Act] = [Say(c.SendSignal(name=name)) for name in ("green", "blue") for _ in range(MOST_KEPT // 2)]
    ways = [edge("first", "then"), edge("then", "end")]
    played = play(waits, ways, [*early, Say(c.SendSignal(name="blue")), Say(c.SendSignal(name="yellow"))])
    kept = played.host.state.signals
    assert {name: len(payloads) for name, payloads in kept.items()} == {"green": MOST_KEPT // 2, "blue": MOST_KEPT // 2}
    played.act(Say(c.SendSignal(name="red")))
    assert seen(played) == "running: first completed, then completed, end pending"
    played.act(Say(c.SendSignal(name="yellow")))
    assert len(played.host.state.signals["yellow"]) == 1


def test_a_time_ends_by_its_own_timer() -> None:
    """The same command from anybody else, before the timer fires, is nobody's to wait for."""
    host = play([node("ask", g.HumanOp(), 5)], [], []).host
    assert "step:1" in host.timers
    assert host.tell(c.TimeOut(step=1)) == LATE
    assert host.tell(c.TimeOut(step=1), timer="step:1") != LATE


def test_an_empty_branch_has_no_last_step() -> None:
    """A branch that goes from the split to the join at once leaves nothing in the data."""
    nodes, edges = fork("a")
    played = play([*nodes, task("a")], [*edges, edge("f", "j", g.BRANCH)], [done(2, 5)])
    assert played.host.state.result == {"x": 1, "a": 5}


# -- edges


def test_a_condition_on_an_error_edge_counts() -> None:
    """Where the condition of the only error edge does not hold, no error edge leads on, and the run is rolled back."""
    ways = [edge("a", "b", g.ERROR, when="workflow.x > 5")]
    played = play([task("a"), task("b")], ways, [failed(1)])
    assert seen(played) == "failed: a failed"


def test_a_condition_on_a_timeout_edge_counts() -> None:
    """The same for a node that waited too long."""
    ways = [edge("ask", "b", g.TIMEOUT, when="workflow.x > 5")]
    played = play([node("ask", g.HumanOp(), 5), task("b")], ways, [Fire(c.TimeOut(step=1))])
    assert seen(played) == "failed: ask failed"


def test_a_condition_on_a_rejected_edge_counts() -> None:
    """The same for a person who rejects: the run is aborted."""
    ways = [edge("ask", "b", g.REJECTED, when="workflow.x > 5")]
    played = play([node("ask", g.HumanOp()), task("b")], ways, [Say(c.AnswerStep(step=1, outcome="rejected"))])
    assert seen(played) == "aborted: ask completed"


def test_a_rejection_aborts_and_does_nothing_else() -> None:
    """Neither does the policy for missing edges get a say, nor do the other branches meet."""
    nodes, edges = fork("ask", "b")
    reject = Say(c.AnswerStep(step=2, outcome="rejected"))
    edges = [each for each in edges if each.source != "ask"] + [edge("ask", "j", g.CONFIRMED)]
    for policy in ("complete", "pause", "fail"):
        played = play(
            [*nodes, node("ask", g.HumanOp()), task("b")], edges, [done(3), reject], g.Policies(on_no_edge=policy)
        )
        assert seen(played) == "aborted: f completed, ask completed, b completed"


def test_a_question_says_by_itself_what_its_rejection_leads_to() -> None:
    """What the node says counts before the policy: to fail where others abort, to abort where others fail."""
    reject = Say(c.AnswerStep(step=1, outcome="rejected"))
    played = play([node("ask", g.HumanOp(on_reject="fail"))], [], [reject])
    assert seen(played) == "failed: ask failed"
    played = play([node("ask", g.HumanOp(on_reject="abort"))], [], [reject], g.Policies(on_reject="fail"))
    assert seen(played) == "aborted: ask completed"
    played = play([node("ask", g.HumanOp())], [], [reject], g.Policies(on_reject="fail"))
    assert seen(played) == "failed: ask failed"


def test_nobody_decides_on_the_compensation_of_a_question() -> None:
    """It is a call like every other: only its handler says when it is done."""
    undo = g.HandlerCall(handler="undo ask", retry=g.RetryRule(max_calls=1))
    asked = g.Node(id="ask", op=g.HumanOp(), compensation=undo)
    confirm = Say(c.AnswerStep(step=1, outcome="confirmed"))
    again = Say(c.AnswerStep(step=4, outcome="confirmed"))
    played = play([asked, task("b")], [edge("ask", "b", g.CONFIRMED)], [confirm, failed(2), again])
    assert played.host.state.open[4].of == 1
    assert seen(played) == "running: ask completed, b failed, undo b completed, undo ask pending"


def test_an_end_can_cancel_the_run() -> None:
    """An end with the status `cancelled` cancels the run."""
    played = play([task("a"), node("e", g.EndOp(status="cancelled"))], [edge("a", "e")], [done(1)])
    assert seen(played) == "cancelled: a completed, e completed"


def test_edges_for_any_outcome_count_only_without_edges_of_its_own() -> None:
    """Where the outcome has an edge whose condition does not hold, no edge leads on."""
    own = edge("a", "b", when="workflow.x > 5")
    assert seen(play([task("a"), task("b")], [own, edge("a", "b", "*")], [done(1)])) == "completed: a completed"
    assert seen(play([task("a"), task("b")], [edge("a", "b", "*")], [done(1)])) == "running: a completed, b pending"


def test_a_condition_that_cannot_be_answered_does_not_hold() -> None:
    """The next edge is tried."""
    ways = [edge("a", "b", when="workflow.missing > 5"), edge("a", "d")]
    assert seen(play([*map(task, "abd")], ways, [done(1)])) == "running: a completed, d pending"


def test_what_an_edge_adds_is_computed_from_the_data_before_it() -> None:
    """What cannot be computed is null."""
    assign = {"x": stored("workflow.items > 1", "mapping"), "y": stored("workflow.x", "mapping")}
    way = g.Edge(source="a", target="e", assign=assign)
    played = play([task("a"), node("e", g.EndOp())], [way], [done(1, {"items": []})])
    assert played.host.state.result == {"x": None, "y": 1, "items": []}


def test_a_task_has_no_timeout_as_a_node() -> None:
    """Its calls have one; the checks refuse the other."""
    slow = g.Node(id="a", op=task("a").op, timeout_ms=5)
    with pytest.raises(DefinitionError, match="a timeout has no effect"):
        play([slow], [], [])


# -- calls


def test_the_wait_before_a_call_is_asked_for_or_follows_the_rule() -> None:
    """Grown with each failure, and at most the cap."""
    retry = g.RetryRule(max_calls=5, delay_ms=10, backoff="exponential", cap_ms=35)
    patient = g.Node(id="a", op=g.TaskOp(work=g.HandlerCall(handler="do a", retry=retry)))
    played = play([patient], [], [])
    waits = []
    for after in (None, None, timedelta(seconds=9), None):
        played.act(Answer(c.FailStep(step=1, error="no", after=after)))
        waits += [each.effect.delay / timedelta(milliseconds=1) for each in played.host.calls.values()]
    assert waits == [10, 20, 9000, 35]


def test_jitter_spreads_the_calls() -> None:
    """Up to the share of the wait is added, another part of it each time, and the same whenever the same is decided again."""
    retry = g.RetryRule(max_calls=9, delay_ms=1000, jitter_percent=50)
    nodes = [g.Node(id="a", op=g.TaskOp(work=g.HandlerCall(handler="do a", retry=retry)))]

    def waits() -> list[float]:
        played, found = play(nodes, [], []), []
        for _ in range(8):
            played.act(failed(1))
            found += [each.effect.delay / timedelta(milliseconds=1) for each in played.host.calls.values()]
        return found

    assert len(set(waits())) > 4
    assert all(1000 <= wait <= 1500 for wait in waits())
    assert max(waits()) > 1050
    assert waits() == waits()


def test_expressions_may_ask_for_the_step_and_the_instance() -> None:
    """On edges as well as in conditions: the name of the node that is left, and the id of the run."""
    ways = [edge("a", "b", when=f"step_name == 'a' and instance_id == '{RUN}'"), edge("a", "d")]
    graph = compile_graph(
        kind="saga", name="g", version="1", entry="a", nodes=[*map(task, "abd")], edges=ways, policies=g.Policies()
    )
    told = Host(graph)
    told.tell(c.StartWorkflow(input={"x": 1}))
    told.tell(c.CompleteStep(step=1))
    assert [call.body.node for call in told.calls.values() if call.body.step > 1] == ["b"]


def test_a_repeat_has_the_key_of_the_first_step_unless_its_data_is_new() -> None:
    """What is done again with other data is other work."""
    again, anew = Say(c.RequeueStep(step=2)), Say(c.RequeueStep(step=3, input={"x": 9}))
    played = play([task("a", is_undone=True)], [], [failed(1), Say(c.RequeueStep(step=1)), failed(2), again], DLQ)
    assert [each.body.first for each in played.host.calls.values()] == [1]
    played.act(failed(3))
    played.act(anew)
    assert [each.body.first for each in played.host.calls.values()] == [4]
    played.act(failed(4))
    played.act(Say(c.CancelWorkflow()))
    assert [each.body.first for each in played.host.calls.values()] == [4]


# -- waiting for an operator


def test_to_resume_is_refused_while_there_are_dead_steps() -> None:
    """They are requeued instead."""
    played = play([task("a")], [], [failed(1), Say(c.ResumeWorkflow())], DLQ)
    assert seen(played) == "paused dlq: a failed, letter of 1"


def test_a_token_that_no_edge_leads_on_from_ends_when_the_run_goes_on() -> None:
    """It does not wait a second time; if an edge leads on by then, it is taken."""
    ways = [edge("a", "b", when="now > '2031-01-01T00:00:00Z'")]
    played = play([task("a"), task("b")], ways, [done(1), Say(c.ResumeWorkflow())], PAUSE)
    assert played.run.status == "completed"
    host = play([task("a"), task("b")], ways, [done(1)], PAUSE).host
    host.now = datetime(2032, 1, 1, tzinfo=UTC)
    host.tell(c.ResumeWorkflow())
    assert [call.body.node for call in host.calls.values()] == ["b"]


@pytest.mark.row("EC-22")
def test_a_requeue_is_a_word_from_outside() -> None:
    """The calls in a row are counted from it, also if the run goes on already."""
    nodes, edges = fork("a", "b")
    policies = g.Policies(on_failure="dlq", chain_limit=3)
    acts: list[Act] = [Begin(2), Begin(3), failed(2), failed(3), Say(c.RequeueStep(step=2)), done(4)]
    acts += [Say(c.RequeueStep(step=3)), done(5), done(7)]
    lines = [*edges, edge("j", "p"), edge("p", "q")]
    played = play([*nodes, *map(task, "abpq")], lines, acts, policies)
    assert (
        seen(played)
        == "running: f completed, a failed, b failed, a completed, b completed, j completed, p completed, q pending"
    )


def test_nothing_begins_while_the_run_waits_for_an_operator() -> None:
    """Work that nobody has begun is taken back, whatever the run waits for."""
    nodes, edges = fork("a", "b")
    played = play([*nodes, task("a"), task("b")], edges[:2] + edges[3:], [done(2)], PAUSE)
    assert seen(played) == "paused no_edge: f completed, a completed, b pending"


def test_a_call_that_fails_in_a_pause_is_made_again_afterwards() -> None:
    """As long as the retry rule allows another call, the step has not failed."""
    nodes, edges = fork("a", "b")
    acts: list[Act] = [Begin(2), Begin(3), failed(2), failed(3), Say(c.RequeueStep(step=2))]
    played = play([*nodes, task("a"), task("b", calls=2)], edges, acts, DLQ)
    assert [each.body.node for each in played.host.calls.values()] == ["b", "a"]
    played.act(failed(3))
    assert seen(played) == "paused dlq: f completed, a failed, b failed, a pending, letter of 3"


@pytest.mark.row("EC-22")
def test_an_operator_may_exceed_the_limit_of_visits() -> None:
    """A requeued step is entered again, and so is a node that a token was held before."""
    policies = g.Policies(on_failure="dlq", max_visits=1)
    played = play([task("a")], [], [failed(1), Say(c.RequeueStep(step=1)), done(2)], policies)
    assert seen(played) == "completed: a failed, a completed"
    ways = [edge("a", "a", when="workflow.x == 1"), edge("a", "b")]
    loop = g.Policies(max_visits=1)
    played = play([task("a"), task("b")], ways, [done(1), Say(c.ResumeWorkflow()), done(2, {"x": 2})], loop)
    assert seen(played) == "running: a completed, a completed, b pending"


def test_only_a_call_can_exceed_the_limit_of_calls_in_a_row() -> None:
    """A run that has made as many calls as it may can still end."""
    played = play([task("a"), node("e", g.EndOp())], [edge("a", "e")], [done(1)], g.Policies(chain_limit=1))
    assert seen(played) == "completed: a completed, e completed"


def test_a_requeued_step_was_executed_all_the_same() -> None:
    """A step that failed is undone, also if an operator had it repeated."""
    acts: list[Act] = [failed(1), Say(c.RequeueStep(step=1)), Say(c.CancelWorkflow())]
    played = play([task("a", is_undone=True)], [], [*acts, Deliver()], DLQ)
    assert seen(played) == "running: a failed, a skipped, undo a pending"


def test_a_dead_step_of_a_branch_that_is_not_needed_is_settled() -> None:
    """Its dead letter goes with the branch; it cannot be requeued any more."""
    nodes, edges = fork("a", "b", strategy=g.JoinOp(split="f", strategy="any"))
    acts: list[Act] = [
        Begin(2),
        Begin(3),
        failed(2),
        failed(3),
        Say(c.RequeueStep(step=3)),
        done(4),
        Say(c.RequeueStep(step=2)),
    ]
    played = play([*nodes, task("a"), task("b"), task("z")], [*edges, edge("j", "z")], acts, DLQ)
    assert seen(played) == "running: f completed, a failed, b failed, b completed, j completed, z pending"


def test_an_aborted_run_has_no_reason_to_wait() -> None:
    """The reason of a pause does not outlive it."""
    played = play([task("a")], [], [failed(1), Say(c.AbortWorkflow())], DLQ)
    assert seen(played) == "aborted: a failed"


# -- rollback


def test_a_repeat_stands_for_the_step_that_it_repeats() -> None:
    """Once its handler was called, only the repeat is undone, with the key that both of them had."""
    acts: list[Act] = [failed(1), Say(c.RequeueStep(step=1)), done(2), Say(c.CancelWorkflow())]
    played = play([task("a", is_undone=True), task("b")], [edge("a", "b")], [*acts, Deliver()], DLQ)
    assert [(each.body.step, each.body.first) for each in played.host.calls.values()] == [(4, 1)]


def test_a_dead_step_is_undone_with_its_own_error() -> None:
    """Whether it was stopped or requeued before."""
    cancel = Say(c.CancelWorkflow(reason="enough"))
    ways: list[list[Act]] = [[failed(1), cancel], [failed(1), Say(c.RequeueStep(step=1)), cancel, Deliver()]]
    for acts in ways:
        played = play([task("a", is_undone=True)], [], acts, DLQ)
        assert [each.body.error for each in played.host.calls.values()] == ["no"]


def test_a_call_that_was_lost_before_the_handler_began_is_no_call() -> None:
    """A step that was called again after such a loss, and taken back then, was never called."""
    nodes, edges = fork("a", "b")
    branches = [task("a", calls=2, is_undone=True), task("b")]
    played = play([*nodes, *branches], edges, [failed(2, was_called=False), failed(3), Deliver()])
    assert seen(played) == "failed: f completed, a skipped, b failed, undo b completed, undo f completed"
    assert not played.host.calls


def test_a_child_that_took_too_long_is_undone() -> None:
    """The step is left by `timeout`, and nobody waits for the child; or it has failed, and the rollback waits until the child has undone what it did."""
    call = node("call", g.CallOp(definition="child"), 5)
    played = play([task("a", is_undone=True), call], [edge("a", "call")], [done(1), Fire(c.TimeOut(step=2))])
    assert seen(played) == "running: a completed, call failed, child to undo"
    played.act(Say(c.EndChild(step=2, status="completed", is_undoable=True)))
    assert seen(played) == "running: a completed, call failed, child to undo"
    played.act(Say(c.EndChild(step=2, status="cancelled", has_undone=True)))
    assert seen(played) == "running: a completed, call failed, undo call completed, undo a pending, child to undo"
    played = play([call, task("b")], [edge("call", "b", g.TIMEOUT)], [Fire(c.TimeOut(step=1)), done(2)])
    assert seen(played) == "completed: call completed, b completed, child to undo"


def test_a_child_ends_for_its_call_and_not_for_what_undoes_that() -> None:
    """An end that names the compensation is nobody's: the rollback waits until the child itself has undone what it did."""
    nodes = [task("a", is_undone=True), node("call", g.CallOp(definition="child")), task("b")]
    ended = Say(c.EndChild(step=2, status="completed", is_undoable=True))
    wrong = [Say(c.EndChild(step=5, status=each)) for each in ("failed", "cancelled")]
    acts: list[Act] = [done(1), ended, failed(3), *wrong]
    played = play(nodes, [edge("a", "call"), edge("call", "b")], acts)
    waits = "a completed, call completed, b failed, undo b completed, undo call pending, child to undo"
    assert seen(played) == f"running: {waits}"
    played.act(Say(c.EndChild(step=2, status="cancelled", has_undone=True)))
    assert "undo call completed, undo a pending" in seen(played)


def test_a_rollback_ends_what_waits_for_an_operator() -> None:
    """Dead steps are settled and undone, and what was taken back is skipped."""
    nodes, edges = fork("a", "b", "d")
    branches = [task("a", is_undone=True), task("b"), task("d")]
    acts: list[Act] = [Begin(3), failed(2), Deliver(), done(3)]
    lost = [each for each in edges if each.source != "b"]
    played = play([*nodes, *branches], lost, acts, g.Policies(on_failure="dlq", on_no_edge="fail"))
    assert seen(played) == "running: f completed, a failed, b completed, d skipped, undo a pending"


def test_a_step_whose_handler_was_never_called_is_not_undone() -> None:
    """A step that failed before anybody called its handler has done nothing."""
    played = play([task("a", is_undone=True)], [], [failed(1, was_called=False, is_final=True)])
    assert seen(played) == "failed: a failed"


def test_a_step_that_was_called_once_and_taken_back_the_second_time_is_undone_in_a_branch() -> None:
    """Its handler had been called: after a failure, a cancellation and a branch that is not needed alike."""
    nodes, edges = fork("a", "b")
    branches = [task("a", calls=2, is_undone=True), task("b")]
    played = play([*nodes, *branches], edges, [failed(2), failed(3), Deliver()])
    assert seen(played) == "running: f completed, a skipped, b failed, undo b completed, undo a pending"
    played = play([*nodes, *branches], edges, [failed(2), Say(c.CancelWorkflow()), Deliver(), Deliver()])
    assert seen(played) == "running: f completed, a skipped, b skipped, undo a pending"


def test_a_child_has_all_the_time_it_needs_to_undo_its_work() -> None:
    """The time that handlers have to stop is not for children."""
    nodes, edges = fork("b", "call")
    branches = [task("b"), node("call", g.CallOp(definition="child"))]
    acts: list[Act] = [done(1), Begin(3), Say(c.CancelWorkflow()), Fire(c.EndGrace())]
    played = play([task("a", is_undone=True), *nodes, *branches], [edge("a", "f"), *edges], acts)
    assert seen(played) == "running: a completed, f completed, b skipped, call skipped, child to cancel"
    played.act(Say(c.EndChild(step=4, status="cancelled")))
    assert seen(played).endswith("undo a pending, child to cancel")


def test_a_child_is_cancelled_with_its_parent_whatever_its_parent_undoes() -> None:
    """What the child undoes is the child's business."""
    call = node("call", g.CallOp(definition="child"))
    played = play([call], [], [Say(c.CancelWorkflow())], g.Policies(on_cancel="none"))
    assert seen(played) == "cancelled: call skipped, child to cancel"


def test_a_child_that_is_being_cancelled_is_aborted_with_its_parent() -> None:
    """An abort ends everything at once."""
    played = play([node("call", g.CallOp(definition="child"))], [], [Say(c.CancelWorkflow()), Say(c.AbortWorkflow())])
    assert seen(played) == "aborted: call skipped, child to abort"


def test_steps_that_were_stopped_together_are_undone_in_reverse_order_of_their_numbers() -> None:
    """The order does not depend on which of them had been taken back and called again."""
    nodes, edges = fork("a", "b", "d")
    branches = [task("a", is_undone=True), task("b", is_undone=True), task("d")]
    acts: list[Act] = [Begin(3), failed(4), Deliver(), Say(c.RequeueStep(step=4)), Begin(2), Say(c.CancelWorkflow())]
    played = play([*nodes, *branches], edges, [*acts, done(2), done(3), Deliver()], DLQ)
    assert seen(played) == "running: f completed, a skipped, b skipped, d failed, d skipped, undo b pending"


# -- branches that were not needed


def lost(losers: g.Losers, *, is_undone: bool = True) -> tuple[list[g.Node], list[g.Edge]]:
    """A fork into `a`, and `b` and `d` in a row, of which one is enough; `z` follows."""
    nodes, edges = fork("a", "b", strategy=g.JoinOp(split="f", strategy="any", losers=losers))
    branches = [task("a", is_undone=is_undone), task("b", is_undone=is_undone), task("d"), task("z")]
    ways = [each for each in edges if each.source != "b"] + [edge("b", "d"), edge("d", "j"), edge("j", "z")]
    return [*nodes, *branches], ways


def test_losers_are_undone_when_their_handlers_have_come_back() -> None:
    """The run goes on at once; a handler that was told to stop is waited for before its branch is undone."""
    nodes, edges = lost("undo")
    played = play(nodes, edges, [done(3), Begin(4), done(2)])
    assert [call.body.node for call in played.host.calls.values() if not call.body.is_compensation] == ["d", "z"]
    played.act(done(4))
    assert [call.body.step for call in played.host.calls.values() if call.body.is_compensation] == [7]
    played.act(done(6))
    assert played.run.status == "running"
    played.act(done(7))
    assert played.run.status == "completed"


def test_without_anything_to_undo_nothing_is_dropped() -> None:
    """Branches without compensations leave no trace of an undoing, and the run does not wait for their handlers."""
    nodes, edges = lost("undo", is_undone=False)
    played = play(nodes, edges, [done(3), Begin(4), done(2), done(6)])
    assert played.run.status == "completed"
    assert not any(isinstance(each, BranchesDropped) for each in played.host.history)


def test_a_loser_may_be_dropped_while_another_one_is_undone() -> None:
    """One after the other, in reverse order of their ends, also across joins."""
    inner, inner_edges = fork("a", "b", strategy=g.JoinOp(split="f", strategy="any"))
    outer = [node("o", g.SplitOp()), node("q", g.JoinOp(split="o", strategy="any")), task("z", is_undone=True)]
    row = [
        task("s", is_undone=True),
        task("a", is_undone=True),
        task("b", is_undone=True),
        node("w", g.WaitTimerOp(duration_ms=9)),
    ]
    ways = [
        edge("o", "s", g.BRANCH),
        edge("s", "f"),
        edge("j", "w"),
        edge("w", "q"),
        edge("o", "z", g.BRANCH),
        edge("z", "q"),
    ]
    played = play(
        [*outer, *inner, *row], [*inner_edges, *ways], [done(2), Begin(5), Begin(6), done(5), done(6), done(3)]
    )
    while played.host.calls:
        played.act(done(next(iter(played.host.calls.values())).body.step))
    rows = [each for each in played.host.rows if isinstance(each, StepOpened) and each.compensates]
    assert [each.node for each in rows] == ["b", "a", "s"]
    assert played.run.status == "completed"


def test_a_compensation_under_way_is_finished_when_the_run_turns_back() -> None:
    """It is neither called off nor called a second time."""
    nodes, edges = lost("undo")
    for turn_back in (failed(6), Say(c.CancelWorkflow(reason="enough"))):
        played = play(nodes, edges, [done(3), done(2), Deliver()])
        undoing = [call for call in played.host.calls.values() if call.body.is_compensation]
        assert [call.body.node for call in undoing] == ["b"]
        played.act(Begin(undoing[0].body.step))
        played.act(turn_back)
        played.act(done(undoing[0].body.step))
        played.act(Deliver())
        while played.host.calls:
            played.act(done(next(iter(played.host.calls.values())).body.step))
        rows = [
            each for each in played.host.rows if isinstance(each, StepOpened) and each.node == "b" and each.compensates
        ]
        assert len(rows) == 1
        assert played.run.is_over


def test_on_the_way_back_every_answer_is_taken() -> None:
    """A handler that was under way when the run turned back is undone with all that it answered."""
    nodes, edges = fork("a", "b")
    graph = compile_graph(
        kind="process",
        name="g",
        version="1",
        entry="f",
        nodes=[*nodes, task("a", is_undone=True), task("b")],
        edges=edges,
        policies=g.Policies(),
    )
    played = Play(graph, 100)
    for act in (START, Begin(2), failed(3), done(2, "x" * 200)):
        played.act(act)
    assert [call.body.output for call in played.host.calls.values()] == ["x" * 200]


def test_a_join_without_room_can_be_requeued_with_other_data() -> None:
    """Its branches have met: it passes on with what the operator gave."""
    nodes, edges = fork("a", "b")
    graph = compile_graph(
        kind="process",
        name="g",
        version="1",
        entry="f",
        nodes=[*nodes, task("a"), task("b"), task("z")],
        edges=[*edges, edge("j", "z")],
        policies=DLQ,
    )
    played = Play(graph, 100)
    for act in (START, done(2, "x" * 60), done(3, "x" * 60), Say(c.RequeueStep(step=4, input={"x": 2}))):
        played.act(act)
    assert [call.body.input for call in played.host.calls.values()] == [{"x": 2}]


# -- what the runtime asks of the machine


def test_every_failure_of_a_handler_is_a_command() -> None:
    """The machine decides about it; a missing handler is told as well."""
    host = play([task("a")], [], []).host
    body = host.calls[0].body
    failure = Failure(error="no", is_final=True, after=timedelta(seconds=1), was_called=False)
    told = c.FailStep(step=1, error="no", is_final=True, after=timedelta(seconds=1), was_called=False)
    assert host.machine.effect_failed(body, failure) == told
    assert host.machine.handler_missing(body, "do a") == c.NoteMissingHandler(step=1, handler="do a")
    assert host.machine.key_of(told) == ""


def test_a_loser_is_undone_after_all_once_its_child_is() -> None:
    """The child of a branch that was not needed could not be undone; when it is, nothing is left for the step's own compensation."""
    undo = g.HandlerCall(handler="undo a", retry=g.RetryRule(max_calls=1))
    nodes, edges = fork("a", "b", strategy=g.JoinOp(split="f", strategy="any"))
    call = g.Node(id="a", op=g.CallOp(definition="other"), compensation=undo)
    stuck = Say(c.EndChild(step=2, status="failed", reason="compensation_failed"))
    played = play([*nodes, call, task("b")], edges, [stuck])
    assert seen(played) == "running: f completed, a failed, b pending, undo a failed, letter of 2"
    played.act(Say(c.EndChild(step=2, status="cancelled")))
    assert seen(played) == "running: f completed, a failed, b pending, undo a failed, undo a completed"
