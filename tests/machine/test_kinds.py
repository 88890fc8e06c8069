"""Every kind of node says all that others ask of it; whoever adds one and forgets something is told here what."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from typing import get_args

import msgspec
import pytest

from standfast.features.sagas.definition import STEP_TYPES
from standfast.graph import model as g
from standfast.graph import nodes as kinds
from standfast.graph.model import Node, Op
from standfast.graph.nodes.kind import NodeOp, NodeShape
from standfast.machine import nodes
from standfast.machine.flow.node_kind import Kind

KINDS: tuple[type[NodeOp], ...] = get_args(Op)
OWN = ("word", "shape", "is_answering", "is_named", "execution", "exits")
"""What a kind says itself, whatever it is."""
SENTENCES = ("Entered when:", "May do:", "Left when:", "On compensation:")


def forgotten(kind: type[NodeOp]) -> list[str]:
    """What a kind does not say that others ask of it."""
    missing = [name for name in OWN if name not in vars(kind)]
    if kind.__struct_fields__ and not {"findings", "formulas"} & vars(kind).keys():
        missing.append("what can be wrong with its fields")
    if not inspect.getdoc(kind):
        missing.append("a docstring")
    return missing


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_says_all_that_is_asked_of_it(kind: type[NodeOp]) -> None:
    """Word, picture, answers, place of work, outcomes, and what can be wrong with its fields: the kind says it, nobody else."""
    assert forgotten(kind) == []


def test_a_kind_that_forgets_something_is_found() -> None:
    """A kind that says nothing of itself lacks all of it, and whoever asks it is told so at once."""

    class Unheard(NodeOp, frozen=True, kw_only=True, tag="unheard"):
        """Says nothing."""

        width: int = 0

    assert forgotten(Unheard) == [*OWN, "what can be wrong with its fields"]
    for question in ("execution", "exits"):
        with pytest.raises(NotImplementedError):
            getattr(Unheard(), question)
    with pytest.raises(KeyError):
        nodes.kind_of(Node(id="n", op=Unheard()))  # type: ignore[arg-type]


def test_every_kind_of_the_package_is_in_the_union() -> None:
    """A kind that has a module and no place in the union would never be read back."""
    modules = [import_module(f"{kinds.__name__}.{each.name}") for each in pkgutil.iter_modules(kinds.__path__)]
    made = {value for module in modules for value in vars(module).values() if isinstance(value, type)}
    assert {each for each in made if issubclass(each, NodeOp)} - {NodeOp} == set(KINDS)
    assert {each.__name__ for each in KINDS} | {"Op"} == set(kinds.__all__)


def test_every_kind_does_something_in_a_run() -> None:
    """No kind that a graph can have is without its behaviour, and each behaviour is told by the four sentences."""
    assert set(nodes._KINDS) == set(KINDS)
    for behaviour in nodes._KINDS.values():
        assert isinstance(behaviour, Kind)
        told = inspect.getdoc(inspect.getmodule(type(behaviour))) or ""
        assert all(sentence in told for sentence in SENTENCES), type(behaviour).__name__


def test_kinds_can_be_told_apart() -> None:
    """No two kinds have the same tag, word or shape."""
    for asked in (
        [kind.__struct_config__.tag for kind in KINDS],
        [kind.word for kind in KINDS],
        [kind.shape.mermaid for kind in KINDS],
    ):
        assert len(set(asked)) == len(KINDS)
    assert all(isinstance(kind.shape, NodeShape) for kind in KINDS)
    assert len(set(STEP_TYPES)) == len(KINDS) + 2


def test_every_kind_of_node_says_where_its_work_is_done() -> None:
    """Each kind by itself: the limit of calls in a row and the drawings go by it."""
    stored: dict[str, object] = {}
    work = g.HandlerCall(handler="h")
    said: dict[g.Execution, list[g.Op]] = {
        "pure": [
            g.ConditionOp(expression=stored),
            g.SplitOp(),
            g.JoinOp(split="f"),
            g.SavePointOp(),
            g.NoReturnOp(),
            g.EndOp(),
            g.NotificationOp(to=("ann",), subject="news"),
            g.StartOp(),
            g.GateOp(transition="t"),
            g.PolicyGateOp(action="a"),
            g.ProxyOp(slot="s", side="in"),
            g.ActionOp(action="a"),
            g.ScriptOp(formula=stored),
            g.RuleOp(rules=()),
        ],
        "effect": [g.TaskOp(work=work)],
        "transactional": [
            g.TaskOp(work=msgspec.structs.replace(work, transactional=True)),
            g.ActionOp(action="a", work=msgspec.structs.replace(work, transactional=True)),
        ],
        "wait": [
            g.HumanOp(),
            g.WaitTimerOp(duration_ms=1),
            g.WaitEventOp(signal="s"),
            g.WaitEventsOp(events=()),
            g.CallOp(definition="d"),
            g.NotificationOp(to=("ann",), subject="news", wait=True),
            g.StateOp(status="s"),
            g.RestOp(),
        ],
    }
    for execution, ops in said.items():
        assert {Node(id="n", op=op).execution for op in ops} == {execution}
    assert {type(op) for ops in said.values() for op in ops} == set(KINDS)
