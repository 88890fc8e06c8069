"""Size limits of expressions. They are part of what a definition was compiled with.

Length is checked before parsing, depth while the tree is built, and the rest on the tree.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import msgspec

from standfast.errors import ConfigurationError, ExpressionError
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.expressions.model.numbers import canonical_number
from standfast.expressions.model.tree import Items, Node, Number, depth, variables, walk

DEEPEST = 100
"""Upper bound of the depth limit, because trees are traversed recursively."""


class ExpressionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one expression. The defaults come from the specifications."""

    length: int = 500
    """Characters of the source. For a JSON condition, of its native form."""
    depth: int = 10
    """Nodes on the longest path from root to leaf. `a && b && c` is one node with three parts."""
    dereferences: int = 20
    """Names after a namespace, summed over all variables."""
    list_items: int = 100
    """Items in one list."""
    digits: int = 30
    """Digits of a number, written without an exponent."""
    json_length: int = 4000
    """Characters of a JSON condition."""
    template_length: int = 2000
    """Characters of a `{path}` text."""

    def __post_init__(self) -> None:
        for field, value in msgspec.structs.asdict(self).items():
            if value < 1:
                raise ConfigurationError(f"the limit {field!r} must be at least 1, not {value}")
        if self.depth > DEEPEST:
            raise ConfigurationError(f"the limit 'depth' can be at most {DEEPEST}, not {self.depth}")


def check_length(text: str, limit: int) -> None:
    """Refuse a source that is too long, before it is parsed."""
    if len(text) > limit:
        raise ExpressionError(
            f"an expression may have {limit} characters; this one has {len(text)}",
            reason=ExpressionErrorCode.TOO_LONG,
            position=limit,
        )


def check_depth(node: Node, limits: ExpressionLimits, above: int = 0) -> None:
    """Refuse a node whose depth, with the levels `above` it, exceeds the limit. Its children have been checked."""
    if depth(node) + above > limits.depth:
        raise ExpressionError(
            f"an expression may be nested {limits.depth} levels deep; this one goes deeper",
            reason=ExpressionErrorCode.TOO_DEEP,
            position=node.at,
        )


def check_items(node: Items, limits: ExpressionLimits) -> None:
    """Refuse a list that is too long."""
    if len(node.items) > limits.list_items:
        raise ExpressionError(
            f"a list may have {limits.list_items} items; this one has {len(node.items)}",
            reason=ExpressionErrorCode.LIST_TOO_LONG,
            position=node.at,
        )


def check_tree(tree: Node, limits: ExpressionLimits) -> None:
    """Refuse an external tree that no source within the limits could produce."""
    check_depth(tree, limits)
    for node in walk(tree):
        if isinstance(node, Items):
            check_items(node, limits)
        elif isinstance(node, Number):
            canonical_number(node.text, limits.digits, node.at)


def check_dereferences(tree: Node, limits: ExpressionLimits, tops: AbstractSet[str]) -> None:
    """Refuse an expression that reads too many names, at the variable that exceeds the limit.

    Names in `tops` do not count.
    """
    count = 0
    for variable in variables(tree):
        count += len(variable.path) - (variable.path[0] in tops)
        if count > limits.dereferences:
            raise ExpressionError(
                f"an expression may follow {limits.dereferences} names into the data; this is one too many",
                reason=ExpressionErrorCode.TOO_MANY_DEREFERENCES,
                position=variable.at,
            )
