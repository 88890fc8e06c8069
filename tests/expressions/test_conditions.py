from __future__ import annotations

from decimal import Decimal

import pytest

from expressions.trying import failed, refused, value
from standfast.errors import ExpressionError
from standfast.expressions import ExpressionOptions, parse

TOTAL: dict[str, object] = {"field": "order.total", "operator": "gte", "value": 10000}


@pytest.mark.row("R-108")
@pytest.mark.parametrize(
    ("total", "result"), [(9999.99, False), (10000, True), (15000, True), (Decimal("9999.99"), False)]
)
def test_the_worked_example(total: object, *, result: bool) -> None:
    """`gte` over a dotted path into the context decides at the bound as written."""
    assert value(TOTAL, {"order": {"total": total}}) is result


def test_text_and_data_are_the_same_condition() -> None:
    """A condition may come as JSON text or as the data that such text decodes to."""
    text = '{"field": "order.total", "operator": "gte", "value": 10000}'
    assert parse(text, spelling="json") == parse(TOTAL)


@pytest.mark.row("R-108", "E-190")
@pytest.mark.parametrize(
    ("operator", "operand", "native"),
    [
        ("eq", 1, "a.b == 1"),
        ("neq", 1, "a.b != 1"),
        ("ne", "x", "a.b != 'x'"),
        ("gt", 1.5, "a.b > 1.5"),
        ("gte", -1, "a.b >= -1"),
        ("ge", 1, "a.b >= 1"),
        ("lt", 1e2, "a.b < 100"),
        ("lte", 1, "a.b <= 1"),
        ("le", 1, "a.b <= 1"),
        ("in", [1, "x", None, True], "a.b in [1, 'x', null, true]"),
        ("contains", "x", "a.b contains 'x'"),
        ("exists", True, "a.b? != null"),
        ("exists", False, "a.b? == null"),
        ("==", None, "a.b == null"),
        ("!=", False, "a.b != false"),
        (">=", 1, "a.b >= 1"),
        ("eq", {"field": "c.d"}, "a.b == c.d"),
        ("in", {"field": "c.d"}, "a.b in c.d"),
        ("in", [{"field": "c"}, 1], "a.b in [c, 1]"),
        ("eq", [], "a.b == []"),
    ],
)
def test_operators(operator: str, operand: object, native: str) -> None:
    """Every operator name, and every symbol, is the native operator of that meaning."""
    assert str(parse({"field": "a.b", "operator": operator, "value": operand})) == native


@pytest.mark.row("E-190", "E-617")
@pytest.mark.parametrize(
    ("condition", "native"),
    [
        ({"all": [TOTAL, {"field": "a", "op": "eq", "value": 1}]}, "order.total >= 10000 && a == 1"),
        ({"any": [TOTAL, {"not": TOTAL}]}, "order.total >= 10000 || !(order.total >= 10000)"),
        ({"not": {"all": [{"expression": "a || b"}, TOTAL]}}, "!((a || b) && order.total >= 10000)"),
        ({"all": [TOTAL]}, "order.total >= 10000"),
        ({"all": [{"all": [TOTAL, TOTAL]}, TOTAL]}, " && ".join(["order.total >= 10000"] * 3)),
        ({"expression": 'actor.roles contains "x"'}, "actor.roles contains 'x'"),
        ({"field": "a", "operator": "exists"}, "a? != null"),
        ({"expression": "flag"}, "flag"),
    ],
)
def test_conditions_nest(condition: dict[str, object], native: str) -> None:
    """`all`, `any` and `not` join conditions, and `expression` holds the native form among them."""
    assert parse(condition) == parse(native)
    assert str(parse(condition)) == native


@pytest.mark.row("R-108")
@pytest.mark.parametrize(
    ("data", "result"), [({}, False), ({"a": None}, False), ({"a": {"b": None}}, False), ({"a": {"b": 0}}, True)]
)
def test_exists_asks_for_something_other_than_null(data: dict[str, object], *, result: bool) -> None:
    """`exists` is true of any value but null, and no error where nothing is, also in strict conditions."""
    assert value({"field": "a.b", "operator": "exists"}, data) is result
    assert value({"field": "a.b", "operator": "exists", "value": False}, data) is not result


def test_strict_unless_asked() -> None:
    """A JSON condition over a missing field is an error by default, and 0 or nothing when lenient."""
    assert failed(parse(TOTAL), {}).reason == "missing_value"
    lenient = ExpressionOptions(lenient=True)
    assert value(TOTAL, options=lenient) is False
    assert value({"field": "roles", "operator": "contains", "value": "x"}, options=lenient) is False
    assert value({"field": "x", "operator": "in", "value": {"field": "xs"}}, options=lenient) is False


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("", "syntax", 0),
        ("[", "syntax", 1),
        ("[]", "bad_condition", 0),
        ("5", "bad_condition", 0),
        ("{}", "bad_condition", 0),
        ('{"field": "a"}', "bad_condition", 0),
        ('{"feild": "a", "operator": "eq", "value": 1}', "bad_condition", 10),
        ('{"field": "a", "operator": "eq"}', "bad_condition", 0),
        ('{"field": "a", "operator": "eq", "op": "eq", "value": 1}', "bad_condition", 0),
        ('{"field": "a", "operator": "equals", "value": 1}', "unknown_operator", 27),
        ('{"field": "a", "operator": 5, "value": 1}', "bad_condition", 27),
        ('{"field": 5, "operator": "eq", "value": 1}', "bad_condition", 10),
        ('{"field": "a b", "operator": "eq", "value": 1}', "bad_name", 10),
        ('{"field": "", "operator": "eq", "value": 1}', "bad_name", 10),
        ('{"field": "a.", "operator": "eq", "value": 1}', "bad_name", 10),
        ('{"field": "größe", "operator": "eq", "value": 1}', "bad_name", 10),
        ('{"field": "a", "operator": "eq", "value": {"x": 1}}', "bad_condition", 42),
        ('{"field": "a", "operator": "in", "value": [[1]]}', "bad_condition", 43),
        ('{"field": "a", "operator": "in", "value": 5}', "type_mismatch", 42),
        ('{"field": "a", "operator": "gt", "value": null}', "null_order", 27),
        ('{"field": "a", "operator": "exists", "value": 1}', "bad_condition", 46),
        ('{"all": []}', "bad_condition", 8),
        ('{"any": {}}', "bad_condition", 8),
        ('{"not": []}', "bad_condition", 8),
        ('{"all": [1]}', "bad_condition", 9),
        ('{"all": [], "any": []}', "bad_condition", 0),
        ('{"expression": 5}', "bad_condition", 15),
        ('{"expression": "a >"}', "syntax", 19),
        ('{"expression": "a == \\"x\\" >"}', "syntax", 27),
        ('{"expression": "\\ud83d\\ude00 > 1"}', "syntax", 16),
        ('{"expression": "a == \\"x\\" && b == \'\\\\q\'"}', "bad_string", 36),
        ('{"not": {"not": 1, "not": 2}}', "bad_condition", 19),
        ('{"field": "a", "operator": "eq", "value": "\\ud800"}', "bad_string", 42),
        ('{"field": "a", "operator": "eq", "value": NaN}', "syntax", 42),
        ("{'field': 1}", "bad_string", 1),
        ('{"field": "a",}', "syntax", 14),
    ],
)
def test_mistakes_are_pointed_at(text: str, reason: str, position: int) -> None:
    """A malformed condition is refused at the character, whether its JSON or its meaning is wrong."""
    error = refused(text, spelling="json")
    assert (error.reason, error.position) == (reason, position)


@pytest.mark.parametrize(
    "condition",
    [
        {"field": "a", "operator": "eq", "value": Decimal("0.1")},
        {"field": "a", "operator": "eq", "value": object()},
        {"field": "a", "operator": "eq", "value": float("nan")},
        {"field": "a", "operator": "eq", "value": {1, 2}},
        {("a",): 1},
    ],
)
def test_only_plain_json_is_a_condition(condition: dict[str, object]) -> None:
    """Data that JSON cannot say is refused like a malformed text."""
    assert refused(condition).reason in {"bad_condition", "syntax"}


def test_a_condition_that_contains_itself_is_refused() -> None:
    """Data without an end is an error, not a crash."""
    endless: dict[str, object] = {}
    endless["not"] = endless
    with pytest.raises(ExpressionError) as caught:
        parse(endless)
    assert caught.value.reason == "bad_condition"


@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\x00", "\x9b", "\u3164", "\U000e0001"])
def test_hidden_characters_in_data_are_kept_but_shown(hidden: str) -> None:
    """A text value may hold any character; the source that is shown to people has it as an escape."""
    expression = parse({"field": "a", "operator": "eq", "value": f"x{hidden}y"})
    assert expression.evaluate({"a": f"x{hidden}y"}) is True
    assert hidden not in expression.source
    assert hidden not in str(expression)
