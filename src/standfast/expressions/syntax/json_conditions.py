"""JSON conditions: `{"field": "order.total", "operator": "gte", "value": 10000}`, joined by `all`, `any` and `not`.

`{"expression": "..."}` contains a native expression. `{"field": "..."}` as a value compares two fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from standfast.errors import ExpressionError
from standfast.expressions.model.characters import mention
from standfast.expressions.model.error_codes import ExpressionErrorCode
from standfast.expressions.model.suggestions import suggestion
from standfast.expressions.model.tree import Comparison, Constant, Node, Number, Operator, Variable
from standfast.expressions.syntax.json_source import Numeral, Spot, read_json, text_places
from standfast.expressions.syntax.native import read_native
from standfast.expressions.syntax.tree_builder import Builder

OPERATORS: Final[dict[str, Operator]] = {
    "eq": "==",
    "ne": "!=",
    "neq": "!=",
    "lt": "<",
    "lte": "<=",
    "le": "<=",
    "gt": ">",
    "gte": ">=",
    "ge": ">=",
    "in": "in",
    "contains": "contains",
    "starts_with": "starts_with",
    "ends_with": "ends_with",
    "==": "==",
    "!=": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
}
"""The values of `operator`, besides `exists`."""

EXISTS: Final = "exists"

SHAPES: Final = (
    (frozenset({"field", "operator"}), frozenset({"field", "operator", "value"})),
    (frozenset({"field", "op"}), frozenset({"field", "op", "value"})),
    *((frozenset({key}), frozenset({key})) for key in ("all", "any", "not", "expression")),
)
"""Keys that must, and keys that may, occur together."""

_LEVELS_PER_NODE = 3
"""JSON levels per level of the tree: an object, a list in it, and one for parts that are merged."""


def read_condition(source: str, builder: Builder) -> Node:
    """Return the tree of a JSON condition."""
    return _condition(read_json(source, _LEVELS_PER_NODE * builder.limits.depth), builder)


def _condition(spot: Spot, builder: Builder) -> Node:
    keys = _object(spot, "a condition")
    _check_shape(spot, keys)
    if "field" in keys:
        return _comparison(spot, keys, builder)
    if "not" in keys:
        return builder.negation(_condition(keys["not"], builder), spot.at)
    if "expression" in keys:
        return _expression(keys["expression"], builder)
    if "all" in keys:
        return builder.conjunction(_conditions(keys["all"], builder))
    return builder.disjunction(_conditions(keys["any"], builder))


def _check_shape(spot: Spot, keys: Mapping[str, Spot]) -> None:
    if any(required <= keys.keys() <= allowed for required, allowed in SHAPES):
        return
    known = frozenset().union(*(allowed for _, allowed in SHAPES))
    for key, value in keys.items():
        if key not in known:
            raise _wrong(f"{mention(key)} is not a key of a condition{suggestion(key, sorted(known))}", value)
    raise _wrong("a condition has field, operator and value; or else one of all, any, not, expression", spot)


def _comparison(spot: Spot, keys: Mapping[str, Spot], builder: Builder) -> Comparison:
    operator = keys["operator"] if "operator" in keys else keys["op"]
    name = _string(operator, "an operator")
    if name == EXISTS:
        return _existence(keys, builder, operator.at)
    if name not in OPERATORS:
        message = f"there is no operator {mention(name)}; there are {', '.join([*OPERATORS, EXISTS])}"
        raise _wrong(message, operator, reason=ExpressionErrorCode.UNKNOWN_OPERATOR)
    if "value" not in keys:
        raise _wrong(f"'{name}' needs a value", spot)
    field, value = _field(keys["field"], builder), _operand(keys["value"], builder)
    return builder.comparison(OPERATORS[name], field, value, operator.at)


def _existence(keys: Mapping[str, Spot], builder: Builder, at: int) -> Comparison:
    """Build the test for a non-null value: `path? != null`, or the opposite for the value false."""
    field = keys["field"]
    path = _string(field, "a field").removesuffix("?")
    wanted = keys["value"].value if "value" in keys else True
    if not isinstance(wanted, bool):
        raise _wrong("the value of 'exists' is true or false", keys["value"])
    null = Constant(value=None, at=at)
    return builder.comparison("!=" if wanted else "==", builder.variable(f"{path}?", field.at), null, at)


def _expression(spot: Spot, builder: Builder) -> Node:
    """Parse a native expression inside the JSON."""
    text = _string(spot, "an expression")
    return read_native(text, builder, text_places(spot).__getitem__)


def _conditions(spot: Spot, builder: Builder) -> list[Node]:
    if not isinstance(spot.value, list) or not spot.value:
        raise _wrong("here stands a list of at least one condition", spot)
    return [_condition(each, builder) for each in spot.value]


def _operand(spot: Spot, builder: Builder) -> Node:
    if isinstance(spot.value, list):
        return builder.items([_scalar(each, builder) for each in spot.value], spot.at)
    return _scalar(spot, builder)


def _scalar(spot: Spot, builder: Builder) -> Constant | Number | Variable:
    value = spot.value
    if isinstance(value, Numeral):
        return builder.number(value, spot.at)
    if isinstance(value, dict) and value.keys() == {"field"}:
        return _field(value["field"], builder)
    if isinstance(value, dict | list):
        raise _wrong('here stands a text, a number, true, false, null or {"field": "..."}', spot)
    return Constant(value=value, at=spot.at)


def _field(spot: Spot, builder: Builder) -> Variable:
    return builder.variable(_string(spot, "a field"), spot.at)


def _object(spot: Spot, what: str) -> Mapping[str, Spot]:
    if not isinstance(spot.value, dict):
        raise _wrong(f"{what} is an object", spot)
    return spot.value


def _string(spot: Spot, what: str) -> str:
    if not isinstance(spot.value, str) or isinstance(spot.value, Numeral):
        raise _wrong(f"{what} is a text", spot)
    return spot.value


def _wrong(
    message: str, spot: Spot, reason: ExpressionErrorCode = ExpressionErrorCode.BAD_CONDITION
) -> ExpressionError:
    return ExpressionError(message, reason=reason, position=spot.at)
