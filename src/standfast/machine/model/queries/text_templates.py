"""Texts with holes, filled in from the data when they are needed, and values that are shown to people.

Each is made for everybody and, where it reads fields that only some roles may see, once more for those.
"""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from standfast.expressions import Expression
from standfast.graph.document_spec import DocumentField
from standfast.graph.field_visibility import EVERYBODY, MASKED, Audience, Guarded
from standfast.graph.index import GraphIndex
from standfast.graph.model import HumanOp, Node
from standfast.graph.nodes.human import TEMPLATE
from standfast.machine.model.queries.fields import masked
from standfast.machine.model.state import Data


class Text(NamedTuple):
    """A text with its holes filled in."""

    shown: str
    """For everybody: hidden values are masked."""
    full: str
    audience: Audience = EVERYBODY
    """Who may see the full text."""


def subject_of(routes: GraphIndex, node: Node, names: Data) -> Text:
    """Fill in what a person is asked; ExpressionError if it cannot be put into words."""
    assert isinstance(node.op, HumanOp)
    return text_of(routes.template(node.id), routes.guarded(node.id, TEMPLATE), node.op.subject or node.id, names)


def text_of(template: Expression | None, guarded: Guarded | None, text: str, names: Data) -> Text:
    """Fill in a text for everybody, and for those who may see more."""
    full = filled(template, text, names)
    if guarded is None:
        return Text(full, full)
    return Text(filled(guarded.masked, text, names), full, guarded.audience)


def value_shown(guarded: Guarded, value: object) -> object:
    """Mask what is hidden of a value that an expression gave."""
    return MASKED if guarded.field is None else masked(guarded.field, value, is_hidden, MASKED)


def is_hidden(field: DocumentField) -> bool:
    """Whether only some roles may see a field."""
    return bool(field.audience)


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
