"""Joins that look at what arrives: which branches count, and which one ends the join for all."""

from __future__ import annotations

import pytest

from authoring.document.examples import APPROVE, Plain, compiled, patch, way
from machine.documents import Case
from standfast.features.documents.compiler.graph import graph_of
from standfast.graph.model import Graph
from standfast.kernel.actor import SYSTEM
from standfast.machine.model.commands import run_commands as c

NODES: list[Plain] = [
    {"id": "s", "type": "parallel_split"},
    {"id": "reserve", "type": "action", "action": "bill.post", "undo": "bill.unpost", "run_as": "system"},
    {"id": "reserved", "type": "script", "formula": "true", "into": "is_reserved"},
    {"id": "credit", "type": "task", "handler": "credit", "into": "credit"},
    {"id": "tell", "type": "notification", "to": ["ann"], "subject": "an order"},
    {"id": "slow", "type": "wait_event", "event": "never"},
    {"id": "pay", "type": "wait_event", "event": "paid"},
]
EDGES: list[Plain | str] = [
    "s reserve", "s credit", "s tell", "s slow", "reserve reserved", "reserved j", "credit j", "tell j", "slow j event",
    "j out ok", "j pay none", "j pay abort", "pay out event",
]  # fmt: skip
JOIN: Plain = {
    "id": "j",
    "type": "parallel_join",
    "mode": "any",
    "accept": "context.is_reserved? == true",
    "abort": "context.credit.verdict? == 'bad'",
}


def order(*, without: tuple[str, ...] = ()) -> Graph:
    """The sales order of the specification, with less if wanted."""
    nodes = [each for each in [*NODES, JOIN] if each["id"] not in without]
    edges = [each for each in EDGES if not set(str(each).split(" ")[:2]) & set(without)]
    edges += ["reserve j"] if "reserved" in without and "reserve" not in without else []
    return graph_of(compiled({APPROVE: patch(nodes, edges, exit="join")}, context={"is_reserved": "bool"}))


class Order(Case):
    """An order whose handlers answer when they are told to."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph, number="1")
        assert self.ask("submit") == ""

    def answer(self, node: str, output: object = None) -> None:
        """The handler of a node comes back; `undo` stands for that of its compensation."""
        for effect, call in list(self.host.calls.items()):
            if call.body.node.endswith(
                f":{node.removeprefix('undo ')}"
            ) and call.body.is_compensation is node.startswith("undo "):
                self.tell(c.CompleteStep(step=call.body.step, output=output), SYSTEM, effect=effect)
                return
        raise AssertionError(node, [call.body for call in self.host.calls.values()])

    @property
    def waits(self) -> list[str]:
        """Where something is under way, by local names."""
        return sorted(name.rpartition(":")[2] for name in self.at)


@pytest.mark.row("E-554", "E-747")
def test_a_branch_that_is_not_accepted_does_not_win() -> None:
    """The notice is through at once, and good credit comes first: neither of them is what was waited for."""
    case = Order(order())
    assert case.document.status == "submitted"
    case.answer("credit", {"verdict": "good"})
    assert case.waits == ["reserve", "slow"]
    case.answer("reserve", {})
    assert case.document.status == "active"


@pytest.mark.row("E-554", "E-747", "E-749")
def test_bad_credit_ends_the_others_at_once() -> None:
    """It comes first: what has not been done is not begun, and the order waits for its payment."""
    case = Order(order())
    case.answer("credit", {"verdict": "bad"})
    assert case.document.status == "submitted"
    assert "pay" in case.waits
    assert "slow" not in case.waits


@pytest.mark.row("E-555", "E-748", "EC-06", "ED-20")
def test_what_was_done_is_undone_when_another_branch_ends_the_join() -> None:
    """The reservation was made, and did not count alone; bad credit releases it by a change of its own, which is the workflow's, and no version is taken back."""
    case = Order(order(without=("reserved",)))
    case.answer("reserve", {"posting": "R-1"})
    assert case.document.status == "submitted"
    case.answer("credit", {"verdict": "bad"})
    assert (case.document.version, case.document.data["posting"]) == (2, "R-1")
    case.answer("undo reserve", {"posting": None})
    assert case.waits == ["pay"]
    assert (case.document.version, "posting" in case.document.data) == (3, False)
    own = [(each.action, each.version_after, each.run_as) for each in case.mutations if each.kind == "business"][1:]
    assert own == [("post", 2, "system"), ("unpost", 3, "system")]


@pytest.mark.row("EC-14", "E-748")
def test_what_is_being_undone_is_undone_before_another_document_takes_the_place() -> None:
    """An amendment is refused while a branch gives back what it had done, since the run would end with it; a cancellation waits for it, and then the run ends."""
    for ending in ("amended", "cancelled"):
        case = Order(order(without=("reserved",)))
        case.answer("reserve", {"posting": "R-1"})
        case.answer("credit", {"verdict": "bad"})
        assert case.supersede() == "rollback_in_progress"
        if ending == "cancelled":
            assert case.ask("cancel") == ""
            assert (case.document.status, case.host.state.status) == ("cancelled", "running")
        case.answer("undo reserve", {"posting": None})
        assert "posting" not in case.document.data
        assert case.supersede() == ("" if ending == "amended" else "WORKFLOW_EDIT_LOCKED")
        assert case.host.state.is_terminal
        assert (case.at, case.host.calls) == ([], {})


@pytest.mark.row("E-555", "E-748")
def test_also_a_branch_that_has_arrived_is_undone() -> None:
    """Where all are waited for, the reservation is there already when bad credit comes last."""
    join = {name: value for name, value in JOIN.items() if name != "accept"} | {"mode": "all"}
    edges = [each for each in EDGES if each != "j pay none" and "slow" not in str(each)]
    nodes = [each for each in NODES if each["id"] != "slow"]
    case = Order(graph_of(compiled({APPROVE: patch([*nodes, join], edges, exit="join")})))
    case.answer("reserve", {})
    assert case.waits == ["credit"]
    case.answer("credit", {"verdict": "bad"})
    case.answer("undo reserve", {})
    assert case.waits == ["pay"]


@pytest.mark.row("E-554")
def test_a_join_that_accepts_nobody_says_so() -> None:
    """All branches have ended, and none of them counted."""
    case = Order(order(without=("reserve", "reserved", "slow")))
    case.answer("credit", {"verdict": "good"})
    assert case.waits == ["pay"]
    assert case.document.status == "submitted"


def test_a_branch_that_cannot_be_judged_is_a_failure() -> None:
    """Nobody guesses: the run waits for an operator."""
    join = {**JOIN, "accept": "context.credit.verdict == 'good'"}
    graph = graph_of(compiled({APPROVE: patch([*NODES, join], [*EDGES, way("in s")], exit="join")}))
    case = Order(graph)
    assert (case.host.state.status, case.host.state.reason) == ("paused", "step_failed")
