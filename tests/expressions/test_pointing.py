from __future__ import annotations

from expressions.trying import failed, refused
from standfast.errors import ExpressionError
from standfast.expressions import parse, point


def drawn(error: ExpressionError) -> tuple[str, str]:
    """The line of the source that is shown, and the character that the caret stands under."""
    line, caret, _message = point(error).split("\n")
    return line, line[caret.index("^") :][:1]


def test_the_caret_stands_under_the_mistake() -> None:
    """The source, a caret under the character, and the message with its code."""
    assert point(refused("a.b > 1 && c = 'x'")) == (
        "a.b > 1 && c = 'x'\n"
        "             ^\n"
        "expected a comparison, &&, || or the end, found '='; write == to compare [syntax]"
    )


def test_evaluation_errors_are_drawn_too() -> None:
    """An error in the data is shown at the operator or variable that met it."""
    assert drawn(failed(parse("a > 1 && b > 1"), {"a": 2, "b": "x"})) == ("a > 1 && b > 1", ">")


def test_the_end_can_be_pointed_at() -> None:
    """A mistake at the end of the source has its caret behind the last character."""
    assert point(refused("a &&")).split("\n")[1] == "    ^"


def test_only_the_line_of_the_mistake_is_shown() -> None:
    """Of a source with several lines the one with the mistake is shown."""
    assert drawn(refused("a > 1 &&\n  b = 2 &&\n  c > 3")) == ("  b = 2 &&", "=")


def test_long_lines_are_cut_around_the_mistake() -> None:
    """A long source is shown in part, with the caret still in its place."""
    line, character = drawn(refused("a > 1 && " * 20 + "b = 1" + " && a > 1" * 20))
    assert character == "="
    assert line.startswith("…")
    assert line.endswith("…")
    assert len(line) < 130


def test_wide_characters_take_two_columns() -> None:
    """The caret keeps its place behind characters that a terminal draws wide, and behind combining marks."""
    assert point(refused("a == '\u6f22\u5b57' = 1")).split("\n")[1] == " " * 12 + "^"
    assert point(refused("a == 'e\u0301' = 1")).split("\n")[1] == " " * 9 + "^"


def test_hidden_characters_are_drawn_as_escapes() -> None:
    """A control character in the source cannot reach the terminal."""
    error = refused("a == '\x1b[31m' = 1")
    assert drawn(error) == ("a == '\\u001b[31m' = 1", "\\")


def test_an_error_without_a_place_is_its_message() -> None:
    """Where there is nothing to point into, the message stands alone."""
    assert point(ExpressionError("no", reason="bad_form")) == "no [bad_form]"
