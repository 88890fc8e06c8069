"""The keys of events that steps wait for: which of all events of a name it is."""

from __future__ import annotations

from standfast.errors import ExpressionError, brief
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.graph.index import GraphIndex
from standfast.graph.model import Awaited, Node
from standfast.kernel.codec.message_types import LONGEST_NAME
from standfast.machine.model.state import Data


def key_of(routes: GraphIndex, node: Node, awaited: Awaited, names: Data) -> str:
    """The key that an event has to be published for; ExpressionError if the data has none."""
    expression = routes.event_key(node.id, awaited.title)
    if expression is None:
        return ""
    value = expression.evaluate(names)
    key = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(key, str) or not key or "\x00" in key or len(key.encode("utf-8", "replace")) > LONGEST_NAME:
        told = f"{expression.source} is {brief(value)}; a key is a whole number or a text of 1 to {LONGEST_NAME} bytes"
        raise ExpressionError(told, reason=ExpressionErrorCode.TYPE_MISMATCH)
    return key


def key_or_none(routes: GraphIndex, node: Node, awaited: Awaited, names: Data) -> str:
    """The same; empty if the data has none."""
    try:
        return key_of(routes, node, awaited, names)
    except ExpressionError:
        return ""
