from __future__ import annotations

import itertools
from collections import ChainMap
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import get_args
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given

from expressions.strategies import any_number, untimed
from expressions.trying import failed, value
from standfast.errors import ExpressionError
from standfast.expressions import ExpressionErrorCode, parse
from standfast.expressions.model.numbers import AnyNumber, as_decimal
from standfast.expressions.model.tree import Operator
from standfast.expressions.model.types import ORDERED, Kind, kind_of

NOON = datetime(2026, 3, 31, 12, tzinfo=UTC)

SAMPLES: dict[Kind, list[object]] = {
    "null": [None],
    "bool": [True, False],
    "number": [0, 1, -1, 0.5, Decimal("0.5"), 10**40, float("inf"), Decimal("-Infinity"), Decimal("1e999999")],
    "string": ["", "a", "2026-03-31", "2026-03-31T12:00:00Z", "PT1H"],
    "datetime": [NOON, datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)],
    "date": [date(2026, 3, 31), date.min, date.max],
    "duration": [timedelta(0), timedelta.max],
    "list": [[], [1, "a"], [[1]], [{}]],
    "object": [{}, {"a": 1}],
}

OPERATORS: tuple[Operator, ...] = get_args(Operator)


def outcome(operator: str, left: object, right: object) -> object:
    """What the operator makes of two values: a truth value, or the reason why not."""
    try:
        return parse(f"a {operator} b").evaluate({"a": left, "b": right})
    except ExpressionError as error:
        return ExpressionErrorCode(error.reason)


@pytest.mark.row("E-614")
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_pair_of_kinds_has_an_answer(operator: str) -> None:
    """Whatever the kinds, an operator answers with true, false or an error that has a reason."""
    everything = [sample for samples in SAMPLES.values() for sample in samples]
    for left, right in itertools.product(everything, repeat=2):
        assert isinstance(outcome(operator, left, right), bool | ExpressionErrorCode)


@pytest.mark.row("E-614")
@pytest.mark.parametrize(("left", "right"), [*itertools.product(SAMPLES, repeat=2)])
def test_order_exists_between_the_listed_kinds_only(left: Kind, right: Kind) -> None:
    """Two kinds have an order exactly if the table says so; null never has one, and that has its own reason."""
    answers = {outcome("<", first, second) for first in SAMPLES[left] for second in SAMPLES[right]}
    if (left, right) in ORDERED:
        assert answers <= {True, False, ExpressionErrorCode.BAD_TIME}
        assert answers & {True, False}
    elif "null" in (left, right):
        assert answers == {ExpressionErrorCode.NULL_ORDER}
    else:
        assert answers == {ExpressionErrorCode.TYPE_MISMATCH}


@pytest.mark.row("E-614", "F-185")
@pytest.mark.parametrize(("left", "right"), [*itertools.combinations(SAMPLES, 2)])
def test_different_kinds_are_never_equal(left: Kind, right: Kind) -> None:
    """Equality across kinds is false and no error, except where a text is read as the time beside it."""
    answers = {outcome("==", first, second) for first in SAMPLES[left] for second in SAMPLES[right]}
    assert answers == {False} or (left, right) in ORDERED


@pytest.mark.parametrize("operator", ["==", "!="])
def test_equality_has_no_direction(operator: str) -> None:
    """Exchanging the sides of == or != never changes the answer."""
    everything = [sample for samples in SAMPLES.values() for sample in samples]
    for left, right in itertools.combinations(everything, 2):
        assert outcome(operator, left, right) == outcome(operator, right, left)


def test_opposites() -> None:
    """!= is the opposite of ==, and >= of <, wherever they have an answer."""
    everything = [sample for samples in SAMPLES.values() for sample in samples]
    for left, right in itertools.product(everything, repeat=2):
        for operator, opposite in (("==", "!="), ("<", ">="), ("<=", ">")):
            first, second = outcome(operator, left, right), outcome(opposite, left, right)
            assert first == second if isinstance(first, ExpressionErrorCode) else first is not second


@pytest.mark.row("E-614")
@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("a.null == null", True),
        ("a.null != null", False),
        ("a.zero == null", False),
        ("a.empty == null", False),
        ("a.false == null", False),
        ("null in a.list", True),
        ("a.list contains null", True),
    ],
)
def test_null_equals_only_null(source: str, *, result: bool) -> None:
    """Null equals null and nothing else: not zero, not the empty text, not false."""
    data: dict[str, object] = {"a": {"null": None, "zero": 0, "empty": "", "false": False, "list": [1, None]}}
    assert value(source, data) is result


@pytest.mark.row("E-614")
@pytest.mark.parametrize(
    ("source", "data", "reason"),
    [
        ("a > 5", {"a": None}, "null_order"),
        ("a > 5", {}, "missing_value"),
        ("a.b.c > 5", {"a": {}}, "missing_value"),
        ("a.b.c > 5", {"a": None}, "missing_value"),
        ("a.b > 5", {"a": 1}, "not_an_object"),
        ("a.b > 5", {"a": [1]}, "not_an_object"),
        ("a && true", {"a": 1}, "not_boolean"),
        ("a && true", {"a": None}, "not_boolean"),
        ("a", {"a": "yes"}, "not_boolean"),
        ("a > 5", {"a": object()}, "unsupported_type"),
        ("a > 5", {"a": float("nan")}, "not_a_number"),
        ("a == 5", {"a": Decimal("NaN")}, "not_a_number"),
        ("a != 5", {"a": Decimal("sNaN")}, "not_a_number"),
        ("a in 5", {"a": 5}, None),
    ],
)
def test_what_cannot_be_evaluated_is_an_error(source: str, data: dict[str, object], reason: str | None) -> None:
    """A condition over missing, null or mistyped data fails with a reason; it is never quietly false."""
    if reason is None:
        with pytest.raises(ExpressionError):
            parse(source)
        return
    error = failed(parse(source), data)
    assert (error.reason, error.source) == (reason, source)


@pytest.mark.row("F-198", "E-614")
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (1, Decimal("1.00")),
        (0.1, Decimal("0.1")),
        (2**53, float(2**53)),
        (10**23, Decimal("1e23")),
        (float("inf"), Decimal("Infinity")),
        (-0.0, 0),
    ],
)
def test_equal_numbers_of_different_types(left: object, right: object) -> None:
    """A number equals the same number of another type; a float is the decimal that it is written as."""
    assert outcome("==", left, right) is True
    assert outcome("<=", left, right) is True
    assert outcome("<", left, right) is False


@pytest.mark.row("F-198")
@pytest.mark.parametrize(
    ("left", "right"), [(2**53, float(2**53 + 2)), (2**53 + 1, float(2**53)), (1, 1.0000000000000002)]
)
def test_near_numbers_are_not_equal(left: object, right: object) -> None:
    """No comparison rounds: numbers that differ in the last digit differ."""
    assert outcome("==", left, right) is False


@given(left=any_number, right=any_number)
@untimed
def test_numbers_compare_as_the_decimals_they_stand_for(left: AnyNumber, right: AnyNumber) -> None:
    """All comparisons of numbers agree with one another, because each number stands for one decimal."""
    first, second = as_decimal(left), as_decimal(right)
    assert outcome("==", left, right) is (first == second)
    assert outcome("<", left, right) is (first < second)
    assert outcome(">=", left, right) is (first >= second)


def test_money_is_compared_in_minor_units() -> None:
    """10000 in a condition is 100.00 in money: whole numbers compare as whole numbers."""
    assert value("entity.grand_total > 10000", {"entity": {"grand_total": 10001}}) is True
    assert value("entity.grand_total > 10000", {"entity": {"grand_total": 10000}}) is False


@pytest.mark.row("F-199", "E-614")
@pytest.mark.parametrize(
    ("left", "right"),
    [("Active", "active"), ("a", "a "), ("\u00e9", "e\u0301"), ("admin", "\u0430dmin"), ("ss", "\u00df"), ("1", "01")],
)
def test_texts_are_compared_exactly(left: str, right: str) -> None:
    """Case, blanks, accents written in two ways and look-alike letters all make a difference."""
    assert outcome("==", left, right) is False


@pytest.mark.row("E-605")
@pytest.mark.parametrize(
    ("left", "right", "answer"),
    [
        ([1, 2], 2, True),
        ([1, 2], 2.0, True),
        ([1, 2], True, False),
        ([1, 2], "2", False),
        (["ab"], "a", False),
        ("abc", "b", True),
        ("abc", "", True),
        ("abc", "B", False),
        ("abc", 5, ExpressionErrorCode.TYPE_MISMATCH),
        ("5", 5, ExpressionErrorCode.TYPE_MISMATCH),
        (None, "a", ExpressionErrorCode.TYPE_MISMATCH),
        ({"a": 1}, "a", ExpressionErrorCode.TYPE_MISMATCH),
        ([{"a": 1}], "a", False),
        ([{"a": 1}], {"a": 1}, ExpressionErrorCode.TYPE_MISMATCH),
        ([[1, 2]], [1, 2], True),
        ([[[1]]], [[1]], ExpressionErrorCode.TYPE_MISMATCH),
        ([object()], 1, ExpressionErrorCode.UNSUPPORTED_TYPE),
    ],
)
def test_contains(left: object, right: object, answer: object) -> None:
    """A list contains what equals an item of it; a text contains texts; nothing else contains."""
    assert outcome("contains", left, right) == answer


@pytest.mark.row("E-605")
@pytest.mark.parametrize(
    ("left", "right", "answer"),
    [
        (1, [1], True),
        ("a", "abc", ExpressionErrorCode.TYPE_MISMATCH),
        ("a", {"a": 1}, ExpressionErrorCode.TYPE_MISMATCH),
        (None, [], False),
    ],
)
def test_in(left: object, right: object, answer: object) -> None:
    """`in` needs a list on its right; a text is not one."""
    assert outcome("in", left, right) == answer


@pytest.mark.parametrize(
    ("left", "right", "answer"),
    [
        ([1, 2], [1, 2.0], True),
        ([1, 2], [2, 1], False),
        ([1], [True], False),
        ([], [], True),
        ([1], [1, 2], False),
        ([[1]], [[1]], ExpressionErrorCode.TYPE_MISMATCH),
        ([{}], [{}], ExpressionErrorCode.TYPE_MISMATCH),
    ],
)
def test_lists_are_equal_item_by_item(left: object, right: object, answer: object) -> None:
    """Two lists are equal if they have equal items in the same order; items with a structure are not compared."""
    assert outcome("==", left, right) == answer


@pytest.mark.row("E-618")
@pytest.mark.parametrize(
    ("due", "overdue"),
    [
        (date(2026, 3, 30), True),
        (date(2026, 3, 31), False),
        ("2026-03-30", True),
        ("2026-03-31", False),
        (NOON - timedelta(seconds=1), True),
        (NOON, False),
        ("2026-03-31T13:59:59+02:00", True),
        ("2026-03-31T14:00:00+02:00", False),
    ],
)
def test_an_overdue_condition(due: object, *, overdue: bool) -> None:
    """Dates and ISO texts compare with `now`; a date is overdue when its day is over, a datetime to the moment."""
    assert value("entity.due < now", {"entity": {"due": due}, "now": NOON}) is overdue


@pytest.mark.row("E-618")
def test_now_is_a_moment_even_as_a_text() -> None:
    """Data that came as JSON has `now` as a text; it is compared as the moment it denotes, not letter by letter."""
    data: dict[str, object] = {"entity": {"due": "2026-03-31"}, "now": "2026-03-31T12:00:00Z"}
    assert value("entity.due < now", data) is False
    assert failed(parse("entity.due < now"), {**data, "now": "noon"}).reason == "bad_time"


@pytest.mark.row("E-618")
@pytest.mark.parametrize(
    ("left", "operator", "right", "answer"),
    [
        (NOON, "==", datetime(2026, 3, 31, 14, tzinfo=timezone(timedelta(hours=2))), True),
        (NOON, "==", date(2026, 3, 31), True),
        (datetime(2026, 3, 31, 1, tzinfo=timezone(timedelta(hours=2))), "==", date(2026, 3, 30), True),
        (NOON, "==", "2026-03-31T12:00:00Z", True),
        (NOON, ">", "tomorrow", ExpressionErrorCode.BAD_TIME),
        (NOON, "==", "tomorrow", ExpressionErrorCode.BAD_TIME),
        (NOON, ">", "2026-03-31T12:00:00", ExpressionErrorCode.NO_TIME_ZONE),
        (datetime(2026, 3, 31), "<", NOON, ExpressionErrorCode.NO_TIME_ZONE),  # noqa: DTZ001
        (datetime(2026, 3, 31), "==", datetime(2026, 3, 31), ExpressionErrorCode.NO_TIME_ZONE),  # noqa: DTZ001
        (timedelta(hours=1), "<", "PT90M", True),
        (timedelta(days=1), "==", "P1D", True),
        (timedelta(hours=1), "<", "1h", ExpressionErrorCode.BAD_TIME),
        (timedelta(hours=1), "<", NOON, ExpressionErrorCode.TYPE_MISMATCH),
        (datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), "<", NOON, ExpressionErrorCode.BAD_TIME),
    ],
)
def test_times(left: object, operator: str, right: object, answer: object) -> None:
    """Moments compare across zones, a moment equals its day in UTC, durations compare, and zoneless times are refused."""
    assert outcome(operator, left, right) == answer


def test_a_repeated_hour_is_two_moments() -> None:
    """When clocks are put back, the hour that occurs twice is told apart."""
    berlin = ZoneInfo("Europe/Berlin")
    first, second = (datetime(2026, 10, 25, 2, 30, tzinfo=berlin, fold=fold) for fold in (0, 1))
    assert outcome("<", first, second) is True


@pytest.mark.row("E-618")
def test_the_schema_says_which_texts_are_times() -> None:
    """Two ISO texts in different zones compare as moments once the schema has typed them, and as texts before."""
    expression = parse("entity.sent_at > '2026-03-31T12:00:00Z'")
    data: dict[str, object] = {"entity": {"sent_at": "2026-03-31T13:00:00+02:00"}}
    assert expression.evaluate(data) is True
    assert expression.check({"entity": {"sent_at": "datetime"}}).evaluate(data) is False


@pytest.mark.row("E-618")
def test_a_typed_text_that_is_no_time_is_an_error() -> None:
    """Data that breaks the contract fails at the variable, not somewhere later."""
    expression = parse("true && entity.due < now").check({"entity": {"due": "date"}, "now": "datetime"})
    error = failed(expression, {"entity": {"due": "soon"}, "now": NOON})
    assert (error.reason, error.position) == ("bad_time", 8)


def test_fields_of_related_documents() -> None:
    """A field of a document that this one refers to is read like any other."""
    data: dict[str, object] = {"entity": {"grand_total": 5, "customer": {"credit_available": 10}}}
    assert value("entity.customer.credit_available >= entity.grand_total", data) is True


def test_short_circuits() -> None:
    """A part that cannot change the result is not evaluated, so a guard protects what stands behind it."""
    assert value("a? != null && a > 5", {}) is False
    assert value("a? == null || a > 5", {}) is True
    assert value("a.b? != null && a.b > 1 && true", {"a": {}}) is False


def test_any_mapping_can_hold_the_data() -> None:
    """The outermost data may be a mapping of the caller's own; what lies in it must be plain."""
    assert parse("a.b > 1").evaluate(ChainMap({"a": {"b": 2}})) is True


@pytest.mark.parametrize("odd", [ChainMap({"b": 2}), type("Sneaky", (dict,), {})({"b": 2})])
def test_objects_on_the_way_are_plain(odd: object) -> None:
    """Only real dictionaries are looked into: a subclass could run code of its own."""
    assert failed(parse("a.b > 1"), {"a": odd}).reason == "not_an_object"


def test_holds_is_for_conditions() -> None:
    """`holds` gives a truth value or an error, never a value that only looks like one."""
    assert parse("a > 1").holds({"a": 2}) is True
    with pytest.raises(ExpressionError) as caught:
        parse("workflow.a", spelling="mapping").holds({"workflow": {"a": 1}})
    assert caught.value.reason == "not_boolean"


def test_every_kind_is_known_by_its_exact_type() -> None:
    """The samples of this file are of the kinds they are filed under."""
    for kind, samples in SAMPLES.items():
        assert {kind_of(sample) for sample in samples} == {kind}
