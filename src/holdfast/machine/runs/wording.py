"""Texts with holes, filled in from the data when they are needed."""

from __future__ import annotations

from html import escape

from holdfast.expressions import Expression
from holdfast.machine.graphs.graph import Human, Node
from holdfast.machine.graphs.index import GraphIndex
from holdfast.machine.runs.state import Data


def subject_of(routes: GraphIndex, node: Node, names: Data) -> str:
    """What a person is asked; ExpressionError if it cannot be put into words."""
    assert isinstance(node.op, Human)
    return filled(routes.template(node.id), node.op.subject or node.id, names)


def filled(template: Expression | None, text: str, names: Data) -> str:
    """A text with its holes filled in, from what they name."""
    if template is None:
        return text
    # A NUL is what not every database can keep, and nobody sees.
    return str(template.evaluate(names)).replace("\x00", "")


def escaped(value: object) -> object:
    """Data whose texts mean nothing in HTML but themselves."""
    match value:
        case str():
            return escape(value)
        case dict():
            return {name: escaped(each) for name, each in value.items()}
        case list():
            return [escaped(each) for each in value]
        case _:
            return value
