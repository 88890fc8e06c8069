from __future__ import annotations

import operator

import pytest

from expressions.trying import failed, refused, value
from standfast.expressions import ExpressionOptions, parse


def go(source: str, data: dict[str, object]) -> object:
    """What a Go-template condition makes of the data."""
    return value(source, data, spelling="go")


@pytest.mark.parametrize(("count", "result"), [(6, True), (5, False)])
def test_a_condition_is_true_or_false(count: int, *, result: bool) -> None:
    """A condition chooses a branch: it has no outcome but true and false."""
    assert go("{{ gt .count 5 }}", {"count": count}) is result


@pytest.mark.row("F-185", "F-198")
@pytest.mark.parametrize(("count", "result"), [(5, True), (5.0, True), (6, False), ("5", False), (True, False)])
def test_eq(count: object, *, result: bool) -> None:
    """`eq` compares numbers across their types; a text or a truth value never equals a number."""
    assert go("{{ eq .count 5 }}", {"count": count}) is result


@pytest.mark.row("F-185")
def test_a_truth_value_is_not_one() -> None:
    """True does not equal 1, though Python says it does."""
    assert go("{{ eq .flag 1 }}", {"flag": True}) is False


@pytest.mark.row("F-186", "F-199", "F-202")
@pytest.mark.parametrize(("status", "result"), [("active", False), ("Active", True), ("", True), ("active ", True)])
def test_ne_compares_texts_exactly(status: str, *, result: bool) -> None:
    """`ne` is the opposite of equality, and texts differ by case and by blanks."""
    assert go('{{ ne .status "active" }}', {"status": status}) is result


@pytest.mark.row("F-187", "F-188", "F-189", "F-190")
@pytest.mark.parametrize(
    ("function", "results"),
    [
        ("gt", (False, False, True)),
        ("lt", (True, False, False)),
        ("ge", (False, True, True)),
        ("le", (True, True, False)),
    ],
)
@pytest.mark.parametrize("kind", [int, float])
def test_orderings_at_the_boundary(function: str, results: tuple[bool, ...], kind: type[float]) -> None:
    """Below, at and above the bound each ordering answers as its name says, for int and float alike."""
    answers = tuple(go(f"{{{{ {function} .amount 100 }}}}", {"amount": kind(each)}) for each in (99, 100, 101))
    assert answers == results


def test_evaluation_leaves_the_data_alone() -> None:
    """The input that a condition looked at is passed on unchanged."""
    data: dict[str, object] = {"user": {"age": 20}, "tags": ["a"]}
    go("{{ ge .user.age 18 }}", data)
    assert data == {"user": {"age": 20}, "tags": ["a"]}


@pytest.mark.row("F-195", "F-196")
def test_fields_and_nested_fields() -> None:
    """Fields of the input and of objects in it can be read."""
    assert go("{{ ge .user.age 18 }}", {"user": {"age": 20}}) is True


@pytest.mark.row("F-196")
@pytest.mark.parametrize("data", [{}, {"user": {}}, {"user": None}])
def test_a_missing_object_on_the_way_is_a_missing_field(data: dict[str, object]) -> None:
    """What lies below something that is not there is not there either; that is no error."""
    assert go("{{ ge .user.age 18 }}", data) is False


@pytest.mark.row("F-196")
def test_a_value_on_the_way_that_is_no_object_is_an_error() -> None:
    """A path that leads through a text is a mistake, which leniency does not cover up."""
    error = failed(parse("{{ ge .user.age 18 }}", spelling="go"), {"user": "bob"})
    assert error.reason == "not_an_object"


def test_the_step_context_wins_over_input_fields() -> None:
    """`.instance_id` and `.step_name` are the step's own even if the input has fields of that name."""
    options = ExpressionOptions(root="input", namespaces=frozenset({"input", "instance_id", "step_name"}))
    data: dict[str, object] = {"input": {"step_name": "forged", "count": 6}, "step_name": "check", "instance_id": "i-1"}
    assert value('{{ and (eq .step_name "check") (gt .count 5) }}', data, spelling="go", options=options) is True


@pytest.mark.row("F-200")
@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("{{ gt .nope 5 }}", False),
        ("{{ lt .nope 5 }}", True),
        ("{{ ge .nope 0 }}", True),
        ("{{ le .nope -1 }}", False),
        ("{{ eq .nope 0 }}", True),
        ("{{ ne .nope 0 }}", False),
        ('{{ eq .nope "x" }}', False),
        ('{{ ne .nope "x" }}', True),
        ("{{ eq .nope nil }}", True),
        ("{{ gt .nope .count }}", False),
        ("{{ lt .nope .count }}", True),
        ("{{ .nope }}", False),
        ("{{ not .nope }}", True),
        ("{{ or .nope (gt .count 5) }}", True),
    ],
)
@pytest.mark.parametrize("absent", [{}, {"nope": None}])
def test_a_missing_field_counts_as_zero_in_numeric_operations(
    source: str, *, result: bool, absent: dict[str, object]
) -> None:
    """Absent or null, a field is 0 beside numbers, false as a condition, and equal to nothing else."""
    assert go(source, {"count": 6, **absent}) is result


@pytest.mark.row("F-200")
@pytest.mark.parametrize("count", [0, 0.0, 5, -5])
@pytest.mark.parametrize("absent", [{}, {"nope": None}])
def test_an_absent_value_beside_a_field_is_zero_for_all_six(count: float, absent: dict[str, object]) -> None:
    """A field that holds a number is a number like a literal: the absent one is smaller, equal or larger, and only one of these."""
    functions = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt}
    for name, function in {**functions, "ge": operator.ge}.items():
        assert go(f"{{{{ {name} .nope .count }}}}", {"count": count, **absent}) is function(0, count)
        assert go(f"{{{{ {name} .count .nope }}}}", {"count": count, **absent}) is function(count, 0)


@pytest.mark.row("F-200")
@pytest.mark.parametrize(("other", "result"), [("x", False), ("", False), (False, False), ([], False), (None, True)])
def test_an_absent_value_equals_no_other_field(other: object, *, result: bool) -> None:
    """Beside a field that holds anything but a number it is nothing, and equals only nothing."""
    assert go("{{ eq .nope .other }}", {"other": other}) is result
    assert go("{{ ne .other .nope }}", {"other": other}) is not result


@pytest.mark.row("F-201")
@pytest.mark.parametrize(
    ("source", "reason"), [("{{ gt .count 5 }}", "type_mismatch"), ("{{ .count }}", "not_boolean")]
)
def test_an_evaluation_error_fails_and_is_not_false(source: str, reason: str) -> None:
    """A text where a number or a truth value is needed is an error with a reason, never a silent no."""
    assert failed(parse(source, spelling="go"), {"count": "abc"}).reason == reason


@pytest.mark.row("F-203")
@pytest.mark.parametrize(
    ("source", "native"),
    [
        ('{{ and (gt .a 1) (eq .b "x") }}', "a? > 1 && b? == 'x'"),
        ("{{ or (gt .a 1) (not .b) .c }}", "a? > 1 || !b? || c?"),
        ("{{ not (and .a .b) }}", "!(a? && b?)"),
        ("{{ .flag }}", "flag?"),
        ("{{ .count | lt 5 }}", "5 < count?"),
        ("{{ gt .a 1 | not }}", "!(a? > 1)"),
        ("{{ .a | eq 1 | and .b }}", "b? && 1 == a?"),
        ("{{ eq .a 1 2 }}", "a? == 1 || a? == 2"),
        ("{{ eq .a `raw \\ text` }}", "a? == 'raw \\\\ text'"),
        ('{{ eq .a "say \\"x\\"" }}', "a? == 'say \"x\"'"),
        ("{{- true -}}", "true"),
        ("{{gt .a 1}}", "a? > 1"),
        ("  {{ gt (.a) -1.5 }}\n", "a? > -1.5"),
        ("{{ ((gt .a 1)) }}", "a? > 1"),
    ],
)
def test_familiar_template_syntax(source: str, native: str) -> None:
    """And, or, not, parentheses, pipes, several values after `eq`, raw strings and trim marks are understood."""
    assert str(parse(source, spelling="go")) == native


@pytest.mark.row("F-203", "E-602")
@pytest.mark.parametrize(
    ("source", "reason", "position"),
    [
        ("{{ len .items }}", "unknown_function", 3),
        ('{{ printf "%d" .a }}', "unknown_function", 3),
        ("{{ index .a 1 }}", "syntax", 12),
        ("{{ if }}", "unknown_function", 3),
        ("{{ if .a }}x{{ end }}", "syntax", 11),
        ("{{ range .items }}{{ end }}", "syntax", 18),
        ("{{ $x := 1 }}", "syntax", 3),
        ("{{ . }}", "syntax", 3),
        ("{{ .a == 1 }}", "syntax", 6),
        ("{{ .a .b }}", "syntax", 6),
        ("{{ gt .a }}", "syntax", 3),
        ("{{ gt .a 1 2 }}", "syntax", 3),
        ("{{ not .a .b }}", "syntax", 3),
        ("{{ and .a }}", "syntax", 3),
        ("{{ gt .a 1 | .b }}", "syntax", 13),
        ("{{ eq .a 'x' }}", "bad_string", 9),
        ('{{ eq .a "x }}', "bad_string", 9),
        ("{{ }}", "syntax", 3),
        ("{{ gt .a 1 }", "syntax", 11),
        ("{{ gt .a 1", "syntax", 10),
        ("gt .a 1", "syntax", 0),
        ("", "syntax", 0),
        ("{{ 5 }}", "not_boolean", 3),
        ("{{/* note */}}", "syntax", 2),
        ("{{ .__class__ }}", "bad_name", 3),
    ],
)
def test_the_rest_of_go_templates_is_refused(source: str, reason: str, position: int) -> None:
    """Control structures, other functions, variables and comments are refused at definition time."""
    error = refused(source, spelling="go")
    assert (error.reason, error.position) == (reason, position)


def test_strictness_can_be_asked_for() -> None:
    """The same template read strictly treats an absent field as an error."""
    strict = parse("{{ gt .nope 5 }}", spelling="go", options=ExpressionOptions(lenient=False))
    assert failed(strict, {}).reason == "missing_value"
