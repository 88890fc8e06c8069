"""Compiles a tree to closures, once for many evaluations.

Each closure takes the data and a notebook. With a notebook it records every variable that it reads; with None it skips
that. Both use the same closures, so an explanation never differs from the evaluation.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar, assert_never

from standfast.errors import ExpressionError
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.expressions.model.numbers import number_value
from standfast.expressions.model.temporal import read_time
from standfast.expressions.model.tree import (
    Absent,
    And,
    Comparison,
    Constant,
    Items,
    Node,
    Not,
    Number,
    Operator,
    Or,
    TextTemplate,
    Variable,
)
from standfast.expressions.model.types import KINDS, RELATIONS, Relation, Unreadable, kind_of, text_of

Data: TypeAlias = dict[str, object]
Notebook: TypeAlias = dict[str, object] | None
ParametersT = ParamSpec("ParametersT")
ResultT = TypeVar("ResultT")
Run: TypeAlias = Callable[[Data, Notebook], object]


class _Absence:
    """The type of `ABSENT`."""


ABSENT: Final = _Absence()
"""Recorded for a missing variable."""

STAND_INS: Final[dict[Absent, object]] = {
    "null": None,
    "zero": 0,
    "alike": None,
    "false": False,
    "list": [],
    "text": "",
}
"""Substitutes for absent values. For `alike` the comparison uses zero if the other side is a number."""

NUMBERS: Final = frozenset(each for each, kind in KINDS.items() if kind == "number")

PAIR: Final = 2
"""Two parts are the common case, in which Python's `and` and `or` are faster than a loop."""

_EQUAL = frozenset({int, str, bool})
_ORDERED = frozenset({int, str})
QUICK: Final[dict[Operator, tuple[Callable[[Any, Any], object], frozenset[type]]]] = {
    "==": (operator.eq, _EQUAL),
    "!=": (operator.ne, _EQUAL),
    "<": (operator.lt, _ORDERED),
    "<=": (operator.le, _ORDERED),
    ">": (operator.gt, _ORDERED),
    ">=": (operator.ge, _ORDERED),
    "in": (operator.eq, frozenset()),
    "contains": (operator.eq, frozenset()),
    "starts_with": (operator.eq, frozenset()),
    "ends_with": (operator.eq, frozenset()),
}
"""Types for which Python's operator equals the language's if both sides have the same type. They skip the type
table."""


def compile_tree(tree: Node) -> Run:
    """Return the closure of a whole expression."""
    run = _compiled(tree)
    if isinstance(tree, Variable):
        return _checked(run, tree.at)
    if isinstance(tree, Items):
        # A constant list is built once, so callers get a copy.
        return lambda data, notebook: copy(run(data, notebook))
    return run


def _compiled(node: Node) -> Run:
    match node:
        case Constant() | Number():
            return _constant(_value(node))
        case Variable():
            return _variable(node)
        case Items(items=items):
            return _items(items)
        case Comparison():
            return _comparison(node)
        case Not(part=part):
            truth = _truth(part)
            return lambda data, notebook: not truth(data, notebook)
        case And(parts=parts):
            return _conjunction([_truth(part) for part in parts])
        case Or(parts=parts):
            return _disjunction([_truth(part) for part in parts])
        case TextTemplate(parts=parts):
            return _template(parts)
        case _:
            assert_never(node)


def _value(node: Constant | Number) -> object:
    return number_value(node.text) if isinstance(node, Number) else node.value


def _constant(value: object) -> Run:
    return lambda _data, _notebook: value


def _variable(node: Variable) -> Run:
    path, name, absent = node.path, node.name, _absence(node)

    def read(data: Data, notebook: Notebook) -> object:
        value: object = data
        try:
            for key in path:
                if type(value) is not dict:
                    value = _without_fields(value, node)
                value = value[key]
        except KeyError:
            value = ABSENT
        if notebook is not None:
            notebook[name] = value
        return absent(value) if value is None or value is ABSENT else value

    return read if node.read_as is None else _typed(read, node)


def _without_fields(value: object, node: Variable) -> Data:
    """Treat null in a path as an object without fields, so that everything below is missing.

    Other non-objects are errors.
    """
    if value is None:
        return {}
    if type(value) is Unreadable:
        raise ExpressionError(value.why, reason=ExpressionErrorCode.MISSING_VALUE, position=node.at)
    raise ExpressionError(
        f"'{node.name}' leads through something that is not an object",
        reason=ExpressionErrorCode.NOT_AN_OBJECT,
        position=node.at,
    )


def _absence(node: Variable) -> Callable[[object], object]:
    """Return the function for a missing or null value: a substitute for an optional variable.

    Otherwise null stays null and a missing value raises.
    """
    if node.absent != "error":
        stand_in = STAND_INS[node.absent]
        return lambda _nothing: stand_in

    def refuse(nothing: object) -> object:
        if nothing is None:
            return None
        raise ExpressionError(
            f"there is no '{node.name}' in the data", reason=ExpressionErrorCode.MISSING_VALUE, position=node.at
        )

    return refuse


def _typed(read: Run, node: Variable) -> Run:
    """Read an ISO text as the time type of the schema."""
    kind, read_text = node.read_as, _located(read_time, node.at)
    assert kind is not None

    def typed(data: Data, notebook: Notebook) -> object:
        value = read(data, notebook)
        return read_text(value, kind) if type(value) is str else value

    return typed


def _items(items: Sequence[Constant | Number | Variable]) -> Run:
    if not any(isinstance(item, Variable) for item in items):
        return _constant([_value(item) for item in items if not isinstance(item, Variable)])
    runs = [compile_tree(item) for item in items]
    return lambda data, notebook: [run(data, notebook) for run in runs]


def _comparison(node: Comparison) -> Run:
    left, right = _compiled(node.left), _compiled(node.right)
    quick, types = QUICK[node.operator]
    relate = _located(_relation(node), node.at)

    def compared(data: Data, notebook: Notebook) -> object:
        first, second = left(data, notebook), right(data, notebook)
        if type(first) is type(second) and type(first) in types:
            return quick(first, second)
        return relate(first, second)

    if isinstance(node.left, Variable) and isinstance(node.right, Constant | Number):
        return _fast_lane(node, node.left, _value(node.right), compared)
    return compared


def _relation(node: Comparison) -> Relation:
    """Return the comparison function of an operator.

    For two variables the data decides whether an absent one counts as zero.
    """
    relation = RELATIONS[node.operator]
    is_alike = [isinstance(side, Variable) and side.absent == "alike" for side in (node.left, node.right)]
    if not any(is_alike):
        return relation

    def related(left: object, right: object) -> bool:
        if is_alike[0] and left is None and type(right) in NUMBERS:
            return relation(0, right)
        if is_alike[1] and right is None and type(left) in NUMBERS:
            return relation(left, 0)
        return relation(left, right)

    return related


def _fast_lane(node: Comparison, field: Variable, constant: object, compared: Run) -> Run:
    """Return a fast path for a field compared with a constant of its type, without a notebook. Other cases use `compared`.

    Most conditions have this form, and one call instead of four doubles their speed.
    """
    quick, types = QUICK[node.operator]
    wanted, first, last = type(constant), field.path[0], field.path[-1]

    def beside_top(data: Data, notebook: Notebook) -> object:
        if notebook is None and type(value := data.get(last)) is wanted:
            return quick(value, constant)
        return compared(data, notebook)

    def beside_nested(data: Data, notebook: Notebook) -> object:
        if notebook is None and type(parent := data.get(first)) is dict and type(value := parent.get(last)) is wanted:
            return quick(value, constant)
        return compared(data, notebook)

    if wanted not in types or field.read_as is not None:
        return compared
    return {1: beside_top, 2: beside_nested}.get(len(field.path), compared)


def _truth(node: Node) -> Run:
    """Return the closure of a node that must be a boolean. Most nodes always are."""
    run = _compiled(node)
    if isinstance(node, Comparison | Not | And | Or):
        return run

    def truth(data: Data, notebook: Notebook) -> object:
        value = run(data, notebook)
        if type(value) is bool:
            return value
        raise ExpressionError(
            f"true or false is needed here, not a value of kind {kind_of(value)}",
            reason=ExpressionErrorCode.NOT_BOOLEAN,
            position=node.at,
        )

    return truth


def _conjunction(parts: Sequence[Run]) -> Run:
    if len(parts) == PAIR:
        first, second = parts
        return lambda data, notebook: first(data, notebook) and second(data, notebook)
    return lambda data, notebook: all(part(data, notebook) for part in parts)


def _disjunction(parts: Sequence[Run]) -> Run:
    if len(parts) == PAIR:
        first, second = parts
        return lambda data, notebook: first(data, notebook) or second(data, notebook)
    return lambda data, notebook: any(part(data, notebook) for part in parts)


def _template(parts: Sequence[Constant | Variable]) -> Run:
    runs = [(_compiled(part), _located(text_of, part.at)) for part in parts]
    return lambda data, notebook: "".join(show(run(data, notebook)) for run, show in runs)


def _checked(run: Run, at: int) -> Run:
    check = _located(kind_of, at)

    def checked(data: Data, notebook: Notebook) -> object:
        value = run(data, notebook)
        check(value)
        return value

    return checked


def _located(function: Callable[ParametersT, ResultT], at: int) -> Callable[ParametersT, ResultT]:
    """Add a source position to errors of a function that knows no source."""

    def located(*arguments: ParametersT.args, **keywords: ParametersT.kwargs) -> ResultT:
        try:
            return function(*arguments, **keywords)
        except ExpressionError as error:
            error.position = at
            raise

    return located
