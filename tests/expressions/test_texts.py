"""Parts of texts: how one begins, how it ends, and what it holds, in every spelling."""

from __future__ import annotations

import pytest

from expressions.trying import failed, refused, value
from standfast.expressions import ExpressionOptions, parse


@pytest.mark.parametrize(
    ("native", "go", "operator"),
    [
        ("a starts_with 'Ac'", '{{ hasPrefix .a "Ac" }}', "starts_with"),
        ("a ends_with 'td'", '{{ hasSuffix .a "td" }}', "ends_with"),
        ("a contains 'me L'", '{{ contains .a "me L" }}', "contains"),
    ],
)
def test_the_parts_of_a_text_can_be_asked_for_in_every_spelling(native: str, go: str, operator: str) -> None:
    """Beginning, end and middle; the text stands first and the part second, also in Go templates."""
    part = native.split("'")[1]
    strict = ExpressionOptions(lenient=False)
    spellings = [
        parse(native),
        parse(go, spelling="go", options=strict),
        parse({"field": "a", "operator": operator, "value": part}),
    ]
    assert len({each.hash for each in spellings}) == 1
    assert [spellings[0].evaluate({"a": text}) for text in ("Acme Ltd", "ACME LTD", "")] == [True, False, False]


@pytest.mark.parametrize(("text", "result"), [("", True), ("x", False)])
def test_every_text_begins_and_ends_with_nothing(text: str, *, result: bool) -> None:
    """The empty text is part of every one."""
    for word in ("starts_with", "ends_with"):
        assert value(f"a {word} b", {"a": "", "b": text}) is result


@pytest.mark.row("F-200")
@pytest.mark.parametrize("function", ["hasPrefix", "hasSuffix", "contains"])
def test_an_absent_text_begins_with_nothing(function: str) -> None:
    """A missing field has no part; a missing part is an error, as no question was asked."""
    condition = parse(f'{{{{ {function} .nope "x" }}}}', spelling="go")
    assert [condition.evaluate(data) for data in ({}, {"nope": None})] == [False, False]
    asked = parse(f"{{{{ {function} .a .nope }}}}", spelling="go")
    assert failed(asked, {"a": "text"}).reason == "type_mismatch"


@pytest.mark.parametrize("word", ["starts_with", "ends_with"])
def test_only_texts_have_a_beginning_and_an_end(word: str) -> None:
    """Lists and numbers have neither: an error when the data shows it, or at once where the expression does."""
    condition = parse(f"a {word} b")
    for data in ({"a": 5, "b": "5"}, {"a": "5", "b": 5}, {"a": ["5"], "b": "5"}, {"a": None, "b": ""}):
        assert failed(condition, data).reason == "type_mismatch"
    assert refused(f"a {word} 5").reason == "type_mismatch"
    assert [str(each) for each in condition.problems({"a": "number", "b": "string"})] == [
        "a string is needed here, and this is of type number"
    ]


def test_the_words_are_reserved_and_explained() -> None:
    """No path begins with one of them; other ways of writing them are pointed to the right one."""
    assert refused("starts_with == 1").reason == "bad_name"
    assert value("a.starts_with == 1", {"a": {"starts_with": 1}}) is True
    assert "write starts_with" in str(refused("a startswith 'x'"))
    assert "write ends_with" in str(refused("a endswith 'x'"))
