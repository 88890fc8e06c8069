from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given

from expressions.strategies import plain_data, untimed
from expressions.trying import answer
from standfast.errors import ExpressionError
from standfast.expressions import EvaluationFailure, Spelling, parse
from standfast.expressions.tracing import MASK, TOO_DEEP

DATA: dict[str, object] = {
    "entity": {
        "grand_total": 25000,
        "salary": 90,
        "customer": {"iban": "DE00", "name": "x", "cards": [{"pan": 1}]},
    },
    "actor": {"roles": ["finance_manager", "admin"]},
}


def test_the_record_of_the_specification() -> None:
    """An evaluation leaves the expression, the variables it read with their values, and the result."""
    source = "entity.grand_total > 10000 && actor.roles contains 'finance_manager'"
    assert parse(source).explain(DATA).to_data() == {
        "expression": source,
        "variables": {"entity.grand_total": 25000, "actor.roles": ["finance_manager", "admin"]},
        "result": True,
    }


def test_only_what_was_read_is_recorded() -> None:
    """What a short circuit passed over is not in the record, since it had no part in the decision."""
    explanation = parse("entity.grand_total < 10 && actor.nope > 1").explain(DATA)
    assert explanation.variables == {"entity.grand_total": 25000}
    assert explanation.result is False


@pytest.mark.row("F-200")
def test_absent_variables_are_told_apart_from_null() -> None:
    """The record says which variables were not there, also when leniency gave them a value."""
    explanation = parse("{{ and (lt .count 5) (eq .note nil) }}", spelling="go").explain({"note": None})
    assert explanation.to_data() == {
        "expression": "{{ and (lt .count 5) (eq .note nil) }}",
        "variables": {"count": None, "note": None},
        "result": True,
        "absent": ["count"],
    }


def test_a_failure_is_recorded_with_what_was_read() -> None:
    """When there is no result the record says why and where, and what had been read by then."""
    explanation = parse("entity.grand_total > 1 && entity.nope > 1").explain(DATA)
    assert explanation.to_data() == {
        "expression": "entity.grand_total > 1 && entity.nope > 1",
        "variables": {"entity.grand_total": 25000, "entity.nope": None},
        "result": None,
        "absent": ["entity.nope"],
        "failure": {"reason": "missing_value", "message": "there is no 'entity.nope' in the data", "position": 26},
    }


def test_values_of_related_documents_are_captured() -> None:
    """The record holds copies: it does not change when the data does later."""
    data: dict[str, object] = {"entity": {"customer": {"tags": ["a"]}}}
    explanation = parse("entity.customer.tags contains 'a'").explain(data)
    data["entity"]["customer"]["tags"].append("b")  # type: ignore[index]
    assert explanation.variables == {"entity.customer.tags": ["a"]}


@pytest.mark.parametrize(
    ("source", "spelling", "sensitive", "variables", "result"),
    [
        ("entity.salary > 5", "native", "entity.salary", {"entity.salary": MASK}, True),
        ("entity.customer.iban == 'DE00'", "native", "entity.customer", {"entity.customer.iban": MASK}, True),
        (
            "entity.customer != null",
            "native",
            "entity.customer.iban",
            {"entity.customer": {"iban": MASK, "name": "x", "cards": [{"pan": 1}]}},
            True,
        ),
        (
            "entity.customer != null",
            "native",
            "entity.customer.cards.pan",
            {"entity.customer": {"iban": "DE00", "name": "x", "cards": [{"pan": MASK}]}},
            True,
        ),
        ("entity.salary", "mapping", "entity.salary", {"entity.salary": MASK}, MASK),
        ("entity.customer.name", "mapping", "entity.customer.iban", {"entity.customer.name": "x"}, "x"),
        ("{entity.salary}!", "template", "entity.salary", {"entity.salary": MASK}, MASK),
        ("[entity.salary]", "mapping", "entity.salary", {"entity.salary": MASK}, MASK),
        ("entity.salary > 5", "mapping", "entity.salary", {"entity.salary": MASK}, True),
        ("entity.salary > 5", "native", "entity.sal", {"entity.salary": 90}, True),
    ],
)
def test_sensitive_values_are_masked(
    source: str, spelling: Spelling, sensitive: str, *, variables: dict[str, object], result: object
) -> None:
    """A sensitive path, everything below it, and a result made of it are masked; a decision about it is not."""
    explanation = parse(source, spelling=spelling).explain(DATA, sensitive={sensitive})
    assert explanation.variables == variables
    assert explanation.result == result


def test_a_sensitive_object_as_result_is_masked_whole() -> None:
    """A result that holds a sensitive value somewhere inside is masked."""
    explanation = parse("entity.customer", spelling="mapping").explain(DATA, sensitive={"entity.customer.iban"})
    assert explanation.result == MASK


@pytest.mark.parametrize(
    "source",
    ["entity.secret > 5", "entity.secret && true", "entity.secret.x == 1", "5 in entity.secret", "now < entity.secret"],
)
def test_messages_never_hold_values(source: str) -> None:
    """A failure names kinds and paths; a secret that caused it does not appear in any message."""
    data: dict[str, object] = {"entity": {"secret": "hunter2"}, "now": datetime(2026, 1, 1, tzinfo=UTC)}
    failure = parse(source).explain(data).failure
    assert failure is not None
    assert "hunter2" not in failure.message


@pytest.mark.parametrize(
    ("read", "shown"),
    [
        (Decimal("1.50"), "1.50"),
        (date(2026, 3, 31), "2026-03-31"),
        (datetime(2026, 3, 31, tzinfo=UTC), "2026-03-31T00:00:00Z"),
        (timedelta(hours=1), "PT3600S"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (object(), "[object]"),
        ({1: (2,)}, {"[int]": "[tuple]"}),
    ],
)
def test_the_record_is_plain_json(read: object, shown: object) -> None:
    """Whatever was read, the record can be written as JSON."""
    record = parse("a? != null").explain({"a": read}).to_data()
    assert record["variables"] == {"a": shown}
    json.dumps(record, allow_nan=False)


def test_a_bottomless_value_is_recorded_as_such() -> None:
    """Data nested beyond what a writer bears does not break the record."""
    bottomless: list[object] = []
    for _ in range(100_000):
        bottomless = [bottomless]
    assert parse("a != null").explain({"a": bottomless}).variables == {"a": TOO_DEEP}


@given(data=plain_data)
@untimed
def test_explaining_agrees_with_evaluating(data: object) -> None:
    """An explanation has the result that evaluation gives, or the failure that evaluation raises."""
    expression = parse("a.b? > 1 || a.c == 'x' && b contains a.d? || !c")
    scope = {"a": data, "b": data, "c": data}
    explanation = expression.explain(scope)
    json.dumps(explanation.to_data(), allow_nan=False)
    outcome = answer(lambda: expression.evaluate(scope))
    if isinstance(outcome, ExpressionError):
        assert explanation.failure == EvaluationFailure(outcome.reason, str(outcome), outcome.position)
    else:
        assert explanation.failure is None
        assert explanation.result is outcome


def test_variables_are_known_before_evaluation() -> None:
    """The paths that an expression may read are known from its text, each once."""
    assert parse("b.c > 1 && a && b.c < 5").variables == ("b.c", "a")
