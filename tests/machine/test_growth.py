"""What a run costs grows with its size and not with the square of it: calls are counted, not seconds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from machine.documents import ANN, Case
from machine.hosting import OLGA, Host
from standfast.expressions import parse
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.commands.repair_commands import SkipStep
from standfast.machine.model.folds.fold import MOST_DECIDED
from support.envelopes import APPROVE_SLOT, approval, chain, invoice

SMALL, LARGE = 60, 240
SHARE = 1.5
"""How much dearer a branch may become where there are four times as many."""


class Counting:
    """A run whose decisions are counted: the calls of functions that they make, built-in ones too."""

    def __init__(self, host: Host) -> None:
        self.calls = 0
        self._host = host
        decide = host.machine.decide

        def counted(*given: object) -> object:
            sys.setprofile(self._count)
            try:
                return decide(*given)  # type: ignore[arg-type]
            finally:
                sys.setprofile(None)

        host.machine.decide = counted  # type: ignore[assignment,method-assign]

    def _count(self, _frame: FrameType, event: str, _argument: object) -> None:
        self.calls += event in {"call", "c_call"}

    def answer(self, step: int) -> None:
        """The handler of a step comes back."""
        effect = next(number for number, call in self._host.calls.items() if call.body.step == step)
        self._host.tell(c.CompleteStep(step=step), effect=effect)


def branches(count: int) -> tuple[Host, Counting]:
    """Branches of a list, all of which have done one step that can be undone and are at a second one; the first to arrive is enough."""
    work = g.HandlerCall(handler="h")
    graph = compile_graph(
        kind="saga",
        name="g",
        version="1",
        entry="each",
        nodes=[
            g.Node(id="each", op=g.SplitOp(items=parse("input.rows", spelling="mapping").to_data())),
            g.Node(id="book", op=g.TaskOp(work=work), compensation=work),
            g.Node(id="note", op=g.TaskOp(work=work)),
            g.Node(id="wait", op=g.TaskOp(work=work)),
            g.Node(id="join", op=g.JoinOp(split="each", strategy="any")),
            g.Node(id="last", op=g.WaitEventOp(signal="go")),
        ],
        edges=[
            g.Edge(source="each", target="book", on=g.BRANCH),
            g.Edge(source="book", target="note"),
            g.Edge(source="note", target="wait"),
            g.Edge(source="wait", target="join"),
            g.Edge(source="join", target="last"),
        ],
        policies=g.Policies(),
    )
    host = Host(graph)
    counting = Counting(host)
    host.tell(c.StartWorkflow(input={"rows": list(range(count))}))
    for _ in range(2):
        for call in list(host.calls.values()):
            counting.answer(call.body.step)
    counting.calls = 0
    return host, counting


def meeting(count: int) -> int:
    """The calls that it takes to stop all branches but one."""
    host, counting = branches(count)
    counting.answer(next(iter(host.calls.values())).body.step)
    return counting.calls


def undoing(count: int) -> int:
    """The calls that it takes to undo all branches but one."""
    host, counting = branches(count)
    counting.answer(next(iter(host.calls.values())).body.step)
    for command in list(host.inbox):
        host.tell(command)
    counting.calls = 0
    undone = 0
    while host.calls:
        ((_, call),) = host.calls.items()
        assert call.body.is_compensation
        counting.answer(call.body.step)
        undone += 1
    assert undone == count - 1
    return counting.calls


@pytest.mark.parametrize("cost", [meeting, undoing])
def test_losers_cost_no_more_than_their_share(cost: Callable[[int], int]) -> None:
    """A branch that was not needed is stopped, and undone, for the same price among few and among many."""
    assert cost(LARGE) / LARGE < SHARE * cost(SMALL) / SMALL


def moving(count: int) -> int:
    """The calls that it takes to edit a document, to submit it and to decide the first of so many questions about it."""
    case = Case(invoice({APPROVE_SLOT: chain(*(approval(f"a{number}") for number in range(count)))}))
    case.edit(total=1)  # What is made of a graph is made once.
    counting = Counting(case.host)
    assert (case.edit(total=2), case.ask("submit"), case.decide("a0", ANN), case.at) == ("", "", "", ["a1"])
    return counting.calls


@pytest.mark.row("E-176", "E-932")
def test_moving_a_document_costs_the_same_in_a_graph_of_any_size() -> None:
    """Windows, ways and gates are looked up by name: four hundred nodes behind the document make nothing dearer."""
    assert moving(400) == moving(4)


def circle(*, compensated: bool) -> Host:
    """A process that asks the same question again and again."""
    undo = g.HandlerCall(handler="undo") if compensated else None
    graph = compile_graph(
        kind="process",
        name="g",
        version="1",
        entry="ask",
        nodes=[
            g.Node(id="ask", op=g.HumanOp(outcomes=("again", "done"))),
            g.Node(id="do", op=g.SavePointOp()),
            g.Node(id="end", op=g.TaskOp(work=g.HandlerCall(handler="h")), compensation=undo),
        ],
        edges=[
            g.Edge(source="ask", target="do", on="again"),
            g.Edge(source="do", target="ask", rework=True),
            g.Edge(source="ask", target="end", on="done"),
        ],
        policies=g.Policies(max_visits=10**9),
    )
    host = Host(graph)
    host.tell(c.StartWorkflow())
    return host


def rounds(host: Host, count: int) -> None:
    """Answer the question so many times."""
    for _ in range(count):
        (step,) = host.state.open
        host.tell(c.AnswerStep(step=step, outcome="again"))
    host.records.clear()
    host.rows.clear()


def test_a_process_that_goes_in_circles_does_not_grow() -> None:
    """Where nothing can be undone, steps that ended are forgotten; where something can, the rollback needs them."""
    host = circle(compensated=False)
    rounds(host, 20)
    assert len(host.state.executed) == 1
    host = circle(compensated=True)
    rounds(host, 20)
    assert len(host.state.executed) == 40


@pytest.mark.parametrize(("compensated", "kept"), [(False, 1), (True, 40)])
def test_steps_that_are_skipped_are_kept_as_others_are(*, compensated: bool, kept: int) -> None:
    """Where something can be undone they are among what ended; where nothing can, a run that is skipped on for years does not grow."""
    host = circle(compensated=compensated)
    for _ in range(20):
        (step,) = host.state.open
        host.tell(SkipStep(step=step, outcome="again", reason="stuck"), OLGA)
    assert len(host.state.executed) == kept
    skipped = [each for each in host.state.executed.values() if each.status == "skipped"]
    assert ([each.node for each in skipped], any(each.was_called for each in skipped)) == (["ask"] * (kept // 2), False)


def test_old_answers_are_forgotten() -> None:
    """A run remembers its last answers, to tell repeated ones, and no more of them than it has room for."""
    host = circle(compensated=False)
    host.state.decided = {-number: {} for number in range(1, MOST_DECIDED)}
    rounds(host, 3)
    assert len(host.state.decided) == MOST_DECIDED
    assert -1 not in host.state.decided
