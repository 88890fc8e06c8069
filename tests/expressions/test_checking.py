from __future__ import annotations

import pytest

from expressions.trying import refused
from standfast.errors import ExpressionError
from standfast.expressions import Type, parse, schema_type

SCHEMA: dict[str, object] = {
    "entity": {
        "grand_total": "money",
        "quantity": "number",
        "status": Type("string", values=("draft", "open", "closed")),
        "name": "string",
        "paid": "bool",
        "due_date": "date",
        "sent_at": "datetime",
        "lead_time": "duration",
        "tags": ["string"],
        "lines": "list",
        "customer": {"credit_available": "money", "id": "string"},
        "extra": "object",
        "anything": "any",
    },
    "actor": {"roles": ["string"], "user_id": "string"},
    "now": "datetime",
}


def found(source: str, expects: str | None = None) -> list[tuple[str, int | None]]:
    """The reasons and positions of all problems that the schema reveals."""
    problems = parse(source, spelling="mapping" if expects else "native").problems(
        SCHEMA,
        expects=expects,  # type: ignore[arg-type]
    )
    return [(problem.reason, problem.position) for problem in problems]


@pytest.mark.row("E-605", "E-618")
@pytest.mark.parametrize(
    "source",
    [
        "entity.grand_total > 10000",
        "entity.grand_total == entity.quantity",
        "entity.quantity > 1.5",
        "entity.status == 'open'",
        "entity.status in ['draft', 'open']",
        "entity.name > 'a'",
        "entity.name contains 'x'",
        "entity.tags contains 'x'",
        "'x' in entity.tags",
        "entity.lines contains 5",
        "entity.lines == []",
        "entity.paid && !entity.paid",
        "entity.paid == true",
        "entity.due_date < now",
        "entity.due_date == '2026-03-31'",
        "entity.sent_at >= '2026-03-31T12:00:00Z'",
        "entity.sent_at >= '2026-03-31'",
        "entity.lead_time > 'PT48H'",
        "entity.customer.credit_available >= entity.grand_total",
        "entity.customer == null",
        "entity.name != null",
        "entity.extra.whatever == 1",
        "entity.anything.at.all > 1",
        "entity.anything && entity.anything > 1",
        "actor.user_id in [entity.customer.id, 'root']",
        "[entity.name] contains actor.user_id",
    ],
)
def test_sound_expressions_pass(source: str) -> None:
    """What fits the schema has no problems, and what the schema leaves open is not guessed at."""
    assert found(source) == []


@pytest.mark.row("E-604")
@pytest.mark.parametrize(
    ("source", "position", "message"),
    [
        ("entity.grand_totl > 1", 0, "did you mean 'grand_total'?"),
        ("1 < entity.nope", 4, "there is no 'nope' in 'entity'"),
        ("entity.customer.credit > 1", 0, "there is no 'credit' in 'entity.customer'"),
        ("entitty.status == 'open'", 0, "did you mean 'entity'?"),
        ("org.id == 'x'", 0, "there is no 'org'"),
        ("entity.status? == null && actor.nope?", 26, "there is no 'nope' in 'actor'"),
    ],
)
def test_unknown_names_are_refused(source: str, position: int, message: str) -> None:
    """An unknown variable or namespace is refused with its place and the nearest known name, even if optional."""
    problem = parse(source).problems(SCHEMA)[0]
    assert (problem.reason, problem.position, problem.source) == ("unknown_name", position, source)
    assert message in str(problem)


@pytest.mark.row("E-605", "E-614", "E-615", "E-618")
@pytest.mark.parametrize(
    ("source", "reason", "position"),
    [
        ("entity.name > 5", "type_mismatch", 12),
        ("entity.name == 5", "type_mismatch", 12),
        ("5 != entity.name", "type_mismatch", 2),
        ("entity.paid < 1", "type_mismatch", 12),
        ("entity.quantity == true", "type_mismatch", 16),
        ("entity.tags > 1", "type_mismatch", 12),
        ("entity.extra == entity.customer", "type_mismatch", 13),
        ("entity.customer.id.x == 1", "not_an_object", 0),
        ("entity.name in entity.status", "type_mismatch", 15),
        ("5 in entity.tags", "type_mismatch", 2),
        ("entity.tags contains 5", "type_mismatch", 12),
        ("entity.name contains 5", "type_mismatch", 21),
        ("entity.quantity contains 5", "type_mismatch", 16),
        ("entity.quantity in ['x']", "type_mismatch", 16),
        ("entity.name", "not_boolean", 0),
        ("!entity.name", "not_boolean", 1),
        ("entity.paid && entity.quantity", "not_boolean", 15),
        ("entity.grand_total > 100.50", "not_minor_units", 21),
        ("entity.status == 'opne'", "unknown_value", 17),
        ("entity.status in ['open', 'shut']", "unknown_value", 26),
        ("entity.due_date < 'tomorrow'", "bad_time", 18),
        ("entity.sent_at < '31.03.2026'", "bad_time", 17),
        ("entity.lead_time > '2 days'", "bad_time", 19),
        ("entity.lead_time > now", "type_mismatch", 17),
        ("entity.due_date > 5", "type_mismatch", 16),
    ],
)
def test_types_are_checked(source: str, reason: str, position: int) -> None:
    """What must fail, or could never be equal, is refused before anything runs, at the character."""
    assert found(source) == [(reason, position)]


@pytest.mark.row("E-605", "E-614")
@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("'a' > 5", "type_mismatch"),
        ("'a' == 5", "type_mismatch"),
        ("a < null", "null_order"),
        ("a < true", "type_mismatch"),
        ("a > [1]", "type_mismatch"),
        ("a in 'x'", "type_mismatch"),
        ("5 contains a", "type_mismatch"),
        ("'x' contains 5", "type_mismatch"),
        ("!5", "not_boolean"),
        ("a && 'x'", "not_boolean"),
        ("a || null", "not_boolean"),
        ("'x'", "not_boolean"),
        ("[1]", "not_boolean"),
        ("null", "not_boolean"),
    ],
)
def test_constants_are_checked_without_a_schema(source: str, reason: str) -> None:
    """What no data could make right is refused when it is parsed."""
    assert refused(source).reason == reason


@pytest.mark.row("E-604")
def test_all_problems_are_told_at_once() -> None:
    """An author sees every mistake, each at its place; `check` raises the first."""
    source = "entity.nope > 1 && entity.name > 5 && !entity.quantity"
    assert found(source) == [("unknown_name", 0), ("type_mismatch", 31), ("not_boolean", 39)]
    with pytest.raises(ExpressionError) as caught:
        parse(source).check(SCHEMA)
    assert (caught.value.reason, caught.value.source) == ("unknown_name", source)


@pytest.mark.parametrize(
    ("source", "expects", "problems"),
    [
        ("entity.customer.id", "string", []),
        ("entity.quantity", "string", [("type_mismatch", 0)]),
        ("entity.grand_total", "number", []),
        ("'{entity.name}'", "string", []),
        ("'{entity.tags}'", "string", [("type_mismatch", 2)]),
        ("[entity.name]", "list", []),
        ("entity.name", "bool", [("not_boolean", 0)]),
        ("entity.anything", "date", []),
    ],
)
def test_a_place_may_expect_a_kind(source: str, expects: str, problems: list[tuple[str, int]]) -> None:
    """A mapping into a field of known type is checked against that type."""
    assert found(source, expects) == problems


def test_a_problem_is_told_once() -> None:
    """A wrong name inside a list is one problem, not one for the list and one for the comparison."""
    assert found("actor.user_id in ['x', entity.nope]") == [("unknown_name", 23)]
    assert found("[entity.nope] contains actor.user_id") == [("unknown_name", 1)]


def test_checking_keeps_the_meaning_of_everything_but_times() -> None:
    """A checked expression differs from the unchecked one only where ISO texts became times."""
    assert parse("entity.quantity > 5").check(SCHEMA) == parse("entity.quantity > 5")
    assert parse("entity.due_date < now").check(SCHEMA) != parse("entity.due_date < now")


@pytest.mark.parametrize("form", ["integer", 5, None, ["string", "number"], [], {"entity": {"a": "text"}}])
def test_a_wrong_schema_is_refused(form: object) -> None:
    """A type that does not exist is a mistake of the caller and named as such."""
    with pytest.raises(ExpressionError) as caught:
        schema_type(form)
    assert caught.value.reason == "bad_schema"
