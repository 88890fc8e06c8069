"""Whatever a run can be told, can remember or can consist of has its place in the tables that the machine works by."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from holdfast.authoring.saga import definition
from holdfast.machine.graphs import checks
from holdfast.machine.graphs import graph as g
from holdfast.machine.graphs import picture as drawing
from holdfast.machine.graphs.graph import Node, Op
from holdfast.machine.runs import decisions as deciding
from holdfast.machine.runs import evolution as evolving
from holdfast.machine.runs import nodes
from holdfast.machine.runs.commands import Command
from holdfast.machine.runs.events import Event


def test_every_command_is_decided() -> None:
    """No command that a run can be sent is without its function."""
    assert set(deciding._TABLE) == set(get_args(Command))


def test_every_event_is_folded() -> None:
    """No event that a history can hold is without its function, also one that changes nothing."""
    assert set(evolving._TABLE) == set(get_args(Event))


def test_every_kind_of_node_does_something() -> None:
    """No kind of node that a graph can have is without its behaviour."""
    assert set(nodes._KINDS) == set(get_args(Op))


def test_every_kind_of_node_has_a_word_in_sagas() -> None:
    """A definition can show each of its steps."""
    assert set(definition._TYPES) == set(get_args(Op))


def test_every_kind_of_node_says_where_its_work_is_done() -> None:
    """Each kind by itself: the limit of calls in a row and the drawings go by it."""
    stored: dict[str, object] = {}
    work = g.Work(handler="h")
    said: dict[g.Execution, list[g.Op]] = {
        "pure": [
            g.Condition(expression=stored),
            g.Split(),
            g.Join(split="f"),
            g.SavePoint(),
            g.NoReturn(),
            g.End(),
        ],
        "effect": [g.Task(work=work)],
        "transactional": [g.Task(work=msgspec.structs.replace(work, transactional=True))],
        "wait": [g.Human(), g.WaitTimer(duration_ms=1), g.WaitEvent(signal="s"), g.Call(definition="d")],
    }
    for execution, ops in said.items():
        assert {Node(id="n", op=op).execution for op in ops} == {execution}
    assert {type(op) for ops in said.values() for op in ops} == set(get_args(Op))


def test_a_kind_of_node_that_nobody_knows_is_not_taken_for_another() -> None:
    """A kind that was added and says nothing fails at once, where it is run and where it is drawn."""

    class Unheard(msgspec.Struct, frozen=True):
        """A kind that no table has."""

    node = Node(id="n", op=Unheard())  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="Unheard"):
        _ = node.execution
    with pytest.raises(AssertionError, match="Unheard"):
        drawing._detail(node.op)


def test_every_kind_of_node_has_its_outcomes() -> None:
    """The checks know of each kind by what it can be left."""
    assert set(checks.OUTCOMES) == set(get_args(Op))
