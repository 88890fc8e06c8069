from __future__ import annotations

import pytest

from expressions.trying import refused
from standfast.errors import ConfigurationError
from standfast.expressions import ExpressionLimits, ExpressionOptions, parse


def limited(**limits: int) -> ExpressionOptions:
    """Options with some limits of their own."""
    return ExpressionOptions(limits=ExpressionLimits(**limits))


def nested(levels: int) -> str:
    """An expression whose tree has this many levels."""
    return "!" * (levels - 1) + "a"


@pytest.mark.row("E-606")
def test_depth() -> None:
    """Ten levels are allowed and eleven are not; the error points at the level that goes too far."""
    parse(nested(10))
    error = refused(nested(11))
    assert (error.reason, error.position) == ("too_deep", 0)


@pytest.mark.row("E-606")
@pytest.mark.parametrize("operator", ["&&", "||"])
def test_a_long_chain_is_not_deep(operator: str) -> None:
    """Eleven parts of one conjunction are one level, also when parentheses group them."""
    parse(f" {operator} ".join("abcdefghijk"))
    parse("(" * 10 + f" {operator} ".join(f"{name})" for name in "abcdefghij") + f" {operator} k")


@pytest.mark.row("E-606")
def test_parentheses_are_not_depth() -> None:
    """Parentheses that group nothing add no level."""
    parse("(" * 200 + "a" + ")" * 200)


@pytest.mark.row("E-606")
def test_depth_of_other_spellings() -> None:
    """The limit is on the tree, so every spelling has it."""
    go = "{{ " + "not (" * 10 + "eq .a 1" + ")" * 10 + " }}"
    assert refused(go, spelling="go").reason == "too_deep"
    structured: dict[str, object] = {"field": "a", "op": "eq", "value": 1}
    for _ in range(10):
        structured = {"not": structured}
    assert refused(structured).reason == "too_deep"
    for _ in range(100):
        structured = {"all": [structured]}
    assert refused(structured).reason == "too_deep"


@pytest.mark.row("E-607")
def test_dereferences() -> None:
    """Twenty names after namespaces are allowed in sum; the variable with the twenty-first is pointed at."""
    parse(" && ".join(["entity.a.b == 1"] * 10))
    error = refused(" && ".join(["entity.a.b == 1"] * 10 + ["actor.x"]))
    assert (error.reason, error.position) == ("too_many_dereferences", len(" && ".join(["entity.a.b == 1"] * 10)) + 4)


@pytest.mark.row("E-607")
def test_what_counts_as_a_dereference() -> None:
    """A namespace alone is free, `now` is free, and a bare name is one."""
    parse(" && ".join(["now == now"] * 21))
    assert refused(" && ".join(["a == 1"] * 21)).reason == "too_many_dereferences"
    assert refused(f"entity.{'.'.join('x' * 21)}").reason == "too_many_dereferences"


@pytest.mark.row("E-608")
def test_length() -> None:
    """Five hundred characters are allowed; with one more the source is refused before it is looked at."""
    parse("a == 1" + " " * 494)
    error = refused("a == 1" + " " * 495)
    assert (error.reason, error.position) == ("too_long", 500)
    assert refused("\x00" * 501).reason == "too_long"


@pytest.mark.row("E-608")
def test_length_of_json_conditions() -> None:
    """A JSON condition is as long as its native form, and its text has a bound of its own."""
    condition = {"field": "a", "operator": "eq", "value": "x" * 490}
    parse(condition)
    assert refused({**condition, "value": "x" * 500}).reason == "too_long"
    assert (
        refused('{"field": "a", "operator": "eq", "value": 1' + " " * 4000 + "}", spelling="json").reason == "too_long"
    )


@pytest.mark.row("E-608")
def test_length_of_templates() -> None:
    """A message may be longer than a condition."""
    parse("x" * 2000, spelling="template")
    assert refused("x" * 2001, spelling="template").reason == "too_long"


def test_list_items() -> None:
    """A list has at most a hundred items."""
    parse(f"a in [{','.join('1' * 100)}]")
    assert refused(f"a in [{','.join('1' * 101)}]").reason == "list_too_long"


@pytest.mark.parametrize("number", ["9" * 30, f"-{'9' * 30}", "1e29", "0." + "1" * 29, "1e-29", "0e999", "0.0"])
def test_numbers_within_the_digits(number: str) -> None:
    """A number may have thirty digits, written out."""
    parse(f"a == {number}")


@pytest.mark.parametrize("number", ["9" * 31, "1e30", "1e-30", "1e999999999", "1e-999999999", "1e99999999999999999999"])
def test_numbers_beyond_the_digits(number: str) -> None:
    """A number that would be longer is refused without being written out."""
    error = refused(f"a == {number}")
    assert (error.reason, error.position) == ("bad_number", 5)


def test_limits_can_be_configured() -> None:
    """Each limit is a setting of the caller, up or down."""
    assert refused("a == 1", options=limited(length=5)).reason == "too_long"
    assert refused("!(!a)", options=limited(depth=2)).reason == "too_deep"
    assert refused("a.b == 1", options=limited(dereferences=1)).reason == "too_many_dereferences"
    assert refused("a in [1, 2]", options=limited(list_items=1)).reason == "list_too_long"
    assert refused("a == 10", options=limited(digits=1)).reason == "bad_number"
    parse(nested(50), options=limited(depth=50))
    parse("a == 1" + " " * 1000, options=limited(length=2000))


@pytest.mark.parametrize("limits", [{"length": 0}, {"depth": -1}, {"depth": 101}])
def test_senseless_limits_are_refused(limits: dict[str, int]) -> None:
    """A limit below one, or a depth that recursion could not bear, is a configuration error."""
    with pytest.raises(ConfigurationError):
        ExpressionLimits(**limits)


@pytest.mark.parametrize("options", [{"root": "a b"}, {"namespaces": frozenset({"a.b"})}, {"root": "größe"}])
def test_senseless_namespaces_are_refused(options: dict[str, object]) -> None:
    """A namespace that no path could name is a configuration error."""
    with pytest.raises(ConfigurationError):
        ExpressionOptions(**options)  # type: ignore[arg-type]
