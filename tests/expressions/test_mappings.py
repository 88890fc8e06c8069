from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from expressions.trying import DEFAULT, failed, refused, value
from standfast.errors import ExpressionError
from standfast.expressions import Expression, ExpressionOptions, parse, parse_fields

DATA: dict[str, object] = {
    "workflow": {"order_id": "ord-123", "customer": {"email": "bob@example.com"}},
    "context": {"tenant_id": "acme-corp"},
    "entity": {"shipment_id": 77, "express": True, "rate": 1.5},
}


def mapped(source: str, options: ExpressionOptions = DEFAULT) -> object:
    """What a mapping expression makes of the data."""
    return value(source, DATA, spelling="mapping", options=options)


def template(source: str) -> Expression:
    """A text with holes."""
    return parse(source, spelling="template")


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("workflow.order_id", "ord-123"),
        ("workflow.customer.email", "bob@example.com"),
        ("workflow.customer", {"email": "bob@example.com"}),
        ("context.tenant_id", "acme-corp"),
        ("'EUR'", "EUR"),
        ("5", 5),
        ("0.5", 0.5),
        ("0.10000000000000000001", Decimal("0.10000000000000000001")),
        ("true", True),
        ("null", None),
        ("[1, workflow.order_id]", [1, "ord-123"]),
        ("entity.shipment_id > 10", True),
        ("entity.express", True),
    ],
)
def test_a_mapping_makes_a_value(source: str, result: object) -> None:
    """State by `workflow.`, request context by `context.`, literals and comparisons all become values."""
    made = mapped(source)
    assert made == result
    assert type(made) is type(result)


@pytest.mark.parametrize("source", ["workflow.nope", "workflow.nope.deeper", "event.kind"])
def test_a_missing_path_maps_to_null(source: str) -> None:
    """A mapping that is nothing but a path reads null where nothing is, unless strictness is asked for."""
    assert mapped(source) is None
    strict = parse(source, spelling="mapping", options=ExpressionOptions(lenient=False))
    assert failed(strict, DATA).reason == "missing_value"


def test_a_computed_mapping_is_strict() -> None:
    """Leniency of paths does not reach into comparisons: a missing amount must not count as 0 there."""
    assert failed(parse("workflow.total > 10", spelling="mapping"), DATA).reason == "missing_value"


@pytest.mark.row("E-604")
@pytest.mark.parametrize(
    ("source", "message"),
    [("EUR", "a text is written in quotes"), ("workflw.order_id", "did you mean 'workflow'?")],
)
def test_a_bare_word_is_a_forgotten_quote(source: str, message: str) -> None:
    """A name outside the namespaces would map to null in silence, so it is refused."""
    error = refused(source, spelling="mapping")
    assert error.reason == "unknown_name"
    assert message in str(error)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("delivery:pod:{entity.shipment_id}", "delivery:pod:77"),
        ("{workflow.order_id}/{entity.shipment_id}", "ord-123/77"),
        ("no holes", "no holes"),
        ("", ""),
        ("{{literal}} {entity.express}", "{literal} true"),
        ("{{{entity.express}", "{true"),
        ("a\\b\n{entity.rate}", "a\\b\n1.5"),
        ("\\{entity.rate}\\", "\\1.5\\"),
        ("{entity.nope?}!", "!"),
        ("👩\u200d🚀 {entity.rate}", "👩\u200d🚀 1.5"),
    ],
)
def test_templates_fill_their_holes(source: str, text: str) -> None:
    """A text with `{path}` holes is filled from the data; doubled braces stand for themselves."""
    assert template(source).evaluate(DATA) == text


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (5.0, "5"),
        (-0.0, "0"),
        (Decimal("0E+5"), "0"),
        (0.1, "0.1"),
        (1e22, "10000000000000000000000"),
        (Decimal("1.50"), "1.5"),
        (10**25, "1" + "0" * 25),
        (False, "false"),
        (date(2026, 3, 31), "2026-03-31"),
        (datetime(2026, 3, 31, 14, tzinfo=UTC), "2026-03-31T14:00:00Z"),
        (timedelta(hours=1), "PT3600S"),
    ],
)
def test_values_have_one_text(shown: object, text: str) -> None:
    """Equal numbers give equal texts, so that an event key does not depend on how a number was stored."""
    assert template("{entity.x}").evaluate({"entity": {"x": shown}}) == text


@pytest.mark.parametrize(
    ("entity", "reason"),
    [
        ({}, "missing_value"),
        ({"x": None}, "type_mismatch"),
        ({"x": [1]}, "type_mismatch"),
        ({"x": {"y": 1}}, "type_mismatch"),
        ({"x": float("nan")}, "bad_number"),
        ({"x": Decimal("1e999999")}, "bad_number"),
        ({"x": datetime(2026, 3, 31)}, "no_time_zone"),  # noqa: DTZ001
        ({"x": b"x"}, "unsupported_type"),
    ],
)
def test_a_template_without_a_value_fails(entity: dict[str, object], reason: str) -> None:
    """A key or message with a hole in it is never made: a missing value, null and structures are errors."""
    for lenient in (None, True):
        expression = parse("k:{entity.x}", spelling="template", options=ExpressionOptions(lenient=lenient))
        error = failed(expression, {"entity": entity})
        assert (error.reason, error.position) == (reason, 3)


@pytest.mark.parametrize(
    ("source", "reason", "position"),
    [
        ("a{b", "bad_template", 1),
        ("a}b", "bad_template", 1),
        ("{}", "bad_name", 1),
        ("{ x }", "bad_name", 1),
        ("{0}", "bad_name", 1),
        ("{x!r}", "bad_name", 1),
        ("{x:>10}", "bad_name", 1),
        ("{x[0]}", "bad_name", 1),
        ("{x + 1}", "bad_name", 1),
        ("{x.__class__}", "bad_name", 1),
    ],
)
def test_holes_take_paths_and_nothing_else(source: str, reason: str, position: int) -> None:
    """Formats, conversions, indexes and expressions in a hole are refused, and so is a lonely brace."""
    error = refused(source, spelling="template")
    assert (error.reason, error.position) == (reason, position)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("'pod:{entity.shipment_id}'", "pod:77"),
        ('"pod:{entity.shipment_id}"', "pod:77"),
        (r"'\{x\} {entity.rate} \'\u00e9'", "{x} 1.5 'é"),
        ("'{{x}}'", "{x}"),
        (r"'\{x\}'", "{x}"),
    ],
)
def test_a_quoted_text_in_a_mapping_may_have_holes(source: str, text: str) -> None:
    """In a mapping a quoted text is a template; braces meant as such are escaped or doubled."""
    assert mapped(source) == text


def test_a_mapping_may_forbid_templates() -> None:
    """Where templates are not allowed a brace is refused, not passed on as text."""
    options = ExpressionOptions(templates=False)
    assert refused("'pod:{entity.id}'", spelling="mapping", options=options).reason == "bad_template"
    assert mapped(r"'\{x\}'", options) == "{x}"


def test_a_constant_list_is_not_shared() -> None:
    """A caller may change the list it got without changing the expression."""
    expression = parse("[1, 2]", spelling="mapping")
    first = expression.evaluate({})
    assert isinstance(first, list)
    first.append(3)
    assert expression.evaluate({}) == [1, 2]


def test_fields_are_filled_at_every_depth() -> None:
    """Texts of a structured mapping are expressions, other literals pass through, and lists and objects are kept."""
    mapping = parse_fields(
        {
            "order_id": "workflow.order_id",
            "tenant": "context.tenant_id",
            "key": "'pod:{entity.shipment_id}'",
            "attempts": 3,
            "nothing": None,
            "nested": {"rate": "entity.rate", "tags": ["'a'", "entity.express"]},
        }
    )
    assert mapping.evaluate(DATA) == {
        "order_id": "ord-123",
        "tenant": "acme-corp",
        "key": "pod:77",
        "attempts": 3,
        "nothing": None,
        "nested": {"rate": 1.5, "tags": ["a", True]},
    }


@pytest.mark.row("E-604")
def test_field_errors_name_the_field() -> None:
    """Whichever field cannot be read, checked or filled, the error says its path and keeps its reason."""
    with pytest.raises(ExpressionError, match=r"^a: b: expected a value") as caught:
        parse_fields({"a": {"b": "entity.x >"}})
    assert caught.value.reason == "syntax"
    mapping = parse_fields({"a": {"b": "entity.nope"}, "c": ["'{entity.gone}'"]})
    with pytest.raises(ExpressionError, match=r"^a: b: there is no 'nope'"):
        mapping.check({"entity": {"gone": "string"}})
    with pytest.raises(ExpressionError, match=r"^c: there is no 'entity\.gone'"):
        mapping.evaluate(DATA)


def test_checked_fields_read_times() -> None:
    """A checked mapping evaluates with the types of the schema."""
    schema: Mapping[str, object] = {"entity": {"due": "date"}, "now": "datetime"}
    mapping = parse_fields({"overdue": "entity.due < now"}).check(schema)
    assert mapping.evaluate({"entity": {"due": "2026-01-01"}, "now": datetime(2026, 1, 2, tzinfo=UTC)}) == {
        "overdue": True
    }


def test_a_mapping_cannot_be_bottomless() -> None:
    """Nesting beyond the limit is refused, so a mapping that contains itself is an error and not a crash."""
    endless: dict[str, object] = {}
    endless["again"] = endless
    with pytest.raises(ExpressionError) as caught:
        parse_fields(endless)
    assert caught.value.reason == "too_deep"
