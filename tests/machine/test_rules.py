"""Rules of docs/concepts/graphs.md in the smallest graphs that show them, each played on the machine and on the reference."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.machine import commands as c
from holdfast.machine import graph as g
from holdfast.machine.compiling import compile_graph
from machine.generating import stored
from machine.playing import Act, Answer, Begin, Deliver, Fire, Play, Say

DLQ, PAUSE = g.Policies(on_failure="dlq"), g.Policies(on_no_edge="pause")
START = Say(c.StartWorkflow(input={"x": 1}))


def task(name: str, *, calls: int = 1, is_undone: bool = False) -> g.Node:
    """A node that calls a handler."""
    undo = g.Work(handler=f"undo {name}", retry=g.Retry(max_calls=1)) if is_undone else None
    return g.Node(
        id=name, op=g.Task(work=g.Work(handler=f"do {name}", retry=g.Retry(max_calls=calls))), compensation=undo
    )


def node(name: str, op: g.Op, timeout_ms: int | None = None) -> g.Node:
    """Any other node."""
    return g.Node(id=name, op=op, timeout_ms=timeout_ms)


def edge(source: str, target: str, on: str = g.OK, *, when: str = "") -> g.Edge:
    """A way."""
    return g.Edge(source=source, target=target, on=on, when=stored(when) if when else None)


def fork(*branches: str, strategy: g.Join | None = None) -> tuple[list[g.Node], list[g.Edge]]:
    """A fork `f` whose branches are the nodes with these names, and its join `j`."""
    nodes = [node("f", g.Split()), node("j", strategy or g.Join(split="f"))]
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
        played.act(act)
    return played


def done(step: int, output: object = None) -> Answer:
    """A call comes back."""
    return Answer(c.CompleteStep(step=step, output=output))


def failed(step: int, *, was_called: bool = True, is_final: bool = False) -> Answer:
    """A call comes back badly."""
    return Answer(c.FailStep(step=step, error="no", was_called=was_called, is_final=is_final))


# -- answers


def test_only_a_call_has_an_answer() -> None:
    """An answer of a handler for a step that waits for a person is not believed."""
    play([node("ask", g.Human())], [], [Say(c.CompleteStep(step=1, output=1)), Say(c.FailStep(step=1, error="no"))])


def test_only_a_call_of_a_workflow_has_a_child() -> None:
    """The end of a child does not complete a step that waits for a handler."""
    play([task("a")], [], [Say(c.EndChild(step=1, status="completed", result=1))])


def test_a_step_without_a_timer_does_not_time_out() -> None:
    """A time-out counts only for a step that has one."""
    play([node("ask", g.Human())], [], [Say(c.TimeOut(step=1))])


def test_a_run_begins_once() -> None:
    """The end of the delay counts only for a run that waits for it."""
    play([task("a")], [], [Say(c.BeginWorkflow())])


def test_the_result_of_a_child_is_an_answer_like_any_other() -> None:
    """An answer that is an object is laid over the data; None changes nothing."""
    call = node("call", g.Call(definition="child"))
    play([call, task("a")], [edge("call", "a")], [Say(c.EndChild(step=1, status="completed", result={"x": 2}))])
    play([call, task("a")], [edge("call", "a")], [Say(c.EndChild(step=1, status="completed"))])


def test_an_empty_branch_has_no_last_step() -> None:
    """A branch that goes from the split to the join at once leaves nothing in the data."""
    nodes, edges = fork("a")
    play([*nodes, task("a")], [*edges, edge("f", "j", g.BRANCH)], [done(2, 5)])


# -- edges


def test_a_condition_on_an_error_edge_counts() -> None:
    """Where the condition of the only error edge does not hold, no error edge leads on, and the run is rolled back."""
    ways = [edge("a", "b", g.ERROR, when="input.x > 5")]
    play([task("a"), task("b")], ways, [failed(1)])


def test_a_condition_on_a_timeout_edge_counts() -> None:
    """The same for a node that waited too long."""
    ways = [edge("ask", "b", g.TIMEOUT, when="input.x > 5")]
    play([node("ask", g.Human(), 5), task("b")], ways, [Fire(c.TimeOut(step=1))])


def test_a_condition_on_a_rejected_edge_counts() -> None:
    """The same for a person who rejects: the run is aborted."""
    ways = [edge("ask", "b", g.REJECTED, when="input.x > 5")]
    play([node("ask", g.Human()), task("b")], ways, [Say(c.DecideStep(step=1, decision="rejected"))])


def test_a_rejection_aborts_and_does_nothing_else() -> None:
    """Neither does the policy for missing edges get a say, nor do the other branches meet."""
    nodes, edges = fork("ask", "b")
    reject = Say(c.DecideStep(step=2, decision="rejected"))
    edges = [each for each in edges if each.source != "ask"] + [edge("ask", "j", g.CONFIRMED)]
    for policy in ("complete", "pause", "fail"):
        play([*nodes, node("ask", g.Human()), task("b")], edges, [done(3), reject], g.Policies(on_no_edge=policy))


def test_an_end_can_cancel_the_run() -> None:
    """An end with the status `cancelled` cancels the run."""
    played = play([task("a"), node("e", g.End(status="cancelled"))], [edge("a", "e")], [done(1)])
    assert played.run.status == "cancelled"


# -- waiting for an operator


def test_nothing_begins_while_the_run_waits_for_an_operator() -> None:
    """Work that nobody has begun is taken back, whatever the run waits for."""
    nodes, edges = fork("a", "b")
    play([*nodes, task("a"), task("b")], edges[:2] + edges[3:], [done(2)], PAUSE)


def test_a_call_that_fails_in_a_pause_is_made_again_afterwards() -> None:
    """As long as the retry rule allows another call, the step has not failed."""
    nodes, edges = fork("a", "b")
    acts: list[Act] = [Begin(2), Begin(3), failed(2), failed(3), Say(c.RequeueStep(step=2)), failed(3)]
    play([*nodes, task("a"), task("b", calls=2)], edges, acts, DLQ)


def test_an_operator_may_exceed_the_limit_of_visits() -> None:
    """A requeued step is entered again, and so is a node that a token was held before."""
    policies = g.Policies(on_failure="dlq", max_visits=1)
    play([task("a")], [], [failed(1), Say(c.RequeueStep(step=1)), done(2)], policies)
    ways = [edge("a", "a", when="input.x == 1"), edge("a", "b")]
    loop = g.Policies(max_visits=1)
    play([task("a"), task("b")], ways, [done(1), Say(c.ResumeWorkflow()), done(2, {"x": 2})], loop)


def test_only_a_call_can_exceed_the_limit_of_calls_in_a_row() -> None:
    """A run that has made as many calls as it may can still end."""
    play([task("a"), node("e", g.End())], [edge("a", "e")], [done(1)], g.Policies(chain_limit=1))


def test_a_requeued_step_was_executed_all_the_same() -> None:
    """A step that failed is undone, also if an operator had it repeated."""
    acts: list[Act] = [failed(1), Say(c.RequeueStep(step=1)), Say(c.CancelWorkflow())]
    play([task("a", is_undone=True)], [], [*acts, Deliver()], DLQ)


def test_a_dead_step_of_a_branch_that_is_not_needed_is_settled() -> None:
    """Its dead letter goes with the branch; it cannot be requeued any more."""
    nodes, edges = fork("a", "b", strategy=g.Join(split="f", strategy="any"))
    acts: list[Act] = [
        Begin(2),
        Begin(3),
        failed(2),
        failed(3),
        Say(c.RequeueStep(step=3)),
        done(4),
        Say(c.RequeueStep(step=2)),
    ]
    play([*nodes, task("a"), task("b"), task("z")], [*edges, edge("j", "z")], acts, DLQ)


def test_an_aborted_run_has_no_reason_to_wait() -> None:
    """The reason of a pause does not outlive it."""
    play([task("a")], [], [failed(1), Say(c.AbortWorkflow())], DLQ)


# -- rollback


def test_a_rollback_ends_what_waits_for_an_operator() -> None:
    """Dead steps are settled and undone, and what was taken back is skipped."""
    nodes, edges = fork("a", "b", "d")
    branches = [task("a", is_undone=True), task("b"), task("d")]
    acts: list[Act] = [Begin(3), failed(2), Deliver(), done(3)]
    lost = [each for each in edges if each.source != "b"]
    play([*nodes, *branches], lost, acts, g.Policies(on_failure="dlq", on_no_edge="fail"))


def test_a_step_whose_handler_was_never_called_is_not_undone() -> None:
    """A step that failed before anybody called its handler has done nothing."""
    play([task("a", is_undone=True)], [], [failed(1, was_called=False, is_final=True)])


def test_a_step_that_was_called_once_and_taken_back_the_second_time_is_undone_in_a_branch() -> None:
    """Its handler had been called: after a failure, a cancellation and a branch that is not needed alike."""
    nodes, edges = fork("a", "b")
    branches = [task("a", calls=2, is_undone=True), task("b")]
    play([*nodes, *branches], edges, [failed(2), failed(3), Deliver()])
    play([*nodes, *branches], edges, [failed(2), Say(c.CancelWorkflow()), Deliver(), Deliver()])


def test_a_child_has_all_the_time_it_needs_to_undo_its_work() -> None:
    """The time that handlers have to stop is not for children."""
    play(
        [task("a", is_undone=True), node("call", g.Call(definition="child"))],
        [edge("a", "call")],
        [done(1), Say(c.CancelWorkflow()), Fire(c.EndGrace())],
    )


def test_a_child_is_cancelled_with_its_parent_whatever_its_parent_undoes() -> None:
    """What the child undoes is the child's business."""
    call = node("call", g.Call(definition="child"))
    play([call], [], [Say(c.CancelWorkflow())], g.Policies(on_cancel="none"))


def test_a_child_that_is_being_cancelled_is_aborted_with_its_parent() -> None:
    """An abort ends everything at once."""
    play([node("call", g.Call(definition="child"))], [], [Say(c.CancelWorkflow()), Say(c.AbortWorkflow())])


def test_steps_that_were_stopped_together_are_undone_in_reverse_order_of_their_numbers() -> None:
    """The order does not depend on which of them had been taken back and called again."""
    nodes, edges = fork("a", "b", "d")
    branches = [task("a", is_undone=True), task("b", is_undone=True), task("d")]
    acts: list[Act] = [Begin(3), failed(4), Deliver(), Say(c.RequeueStep(step=4)), Begin(2), Say(c.CancelWorkflow())]
    play([*nodes, *branches], edges, [*acts, done(2), done(3), Deliver()], DLQ)
