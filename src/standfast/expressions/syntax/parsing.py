"""Parses a source in any syntax to a tree, and checks all limits and rules that need no schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from standfast.errors import ExpressionError
from standfast.expressions.model.characters import JOINERS, check_characters, mention
from standfast.expressions.model.checking import Checker
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.expressions.model.limits import ExpressionLimits, check_dereferences, check_length
from standfast.expressions.model.options import LENIENT_SPELLINGS, ExpressionOptions, Spelling
from standfast.expressions.model.printing import printed
from standfast.expressions.model.schema import ANY
from standfast.expressions.model.tree import Node
from standfast.expressions.syntax.go_template import read_go
from standfast.expressions.syntax.json_conditions import read_condition
from standfast.expressions.syntax.mappings import read_mapping, read_template
from standfast.expressions.syntax.native import read_native
from standfast.expressions.syntax.tree_builder import Builder

READERS: Final[dict[Spelling, Callable[[str, Builder], Node]]] = {
    "native": read_native,
    "go": read_go,
    "json": read_condition,
    "mapping": read_mapping,
    "template": lambda source, builder: read_template(source, builder.options),
}

CONDITIONS: Final = frozenset({"native", "go", "json"})
"""Syntaxes of conditions. The others return values of any kind."""


def read_tree(source: str, spelling: Spelling, options: ExpressionOptions) -> Node:
    """Return the tree of a source."""
    if spelling not in READERS:
        known = ", ".join(READERS)
        raise ExpressionError(
            f"there is no spelling {mention(str(spelling))}; there are {known}", reason=ExpressionErrorCode.SYNTAX
        )
    check_length(source, _longest(spelling, options.limits))
    check_characters(source, JOINERS if spelling == "template" else frozenset())
    lenient = spelling in LENIENT_SPELLINGS if options.lenient is None else options.lenient
    builder = Builder(options, lenient=lenient)
    tree = READERS[spelling](source, builder)
    if spelling in CONDITIONS:
        tree = builder.condition(tree)
    if spelling == "json":
        check_length(printed(tree), options.limits.length)
    admit(tree, spelling, options)
    return tree


def admit(tree: Node, spelling: Spelling, options: ExpressionOptions) -> None:
    """Refuse a tree that reads too much, or whose types cannot match for any data."""
    check_dereferences(tree, options.limits, options.tops)
    checker = Checker(ANY)
    typed = checker.visit(tree)
    if spelling in CONDITIONS:
        checker.expect(typed, "bool")
    if checker.problems:
        raise checker.problems[0]


def _longest(spelling: Spelling, limits: ExpressionLimits) -> int:
    return {"json": limits.json_length, "template": limits.template_length}.get(spelling, limits.length)
