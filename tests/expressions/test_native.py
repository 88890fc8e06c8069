from __future__ import annotations

import pytest

from expressions.trying import refused, value
from standfast.expressions import parse

DATA: dict[str, object] = {
    "entity": {"grand_total": 25000, "status": "open", "vendor_id": "v1", "lines": [], "note": None},
    "actor": {"roles": ["finance_manager", "admin"], "user_id": "u1"},
    "org": {"id": "acme", "trusted_vendors": ["v1", "v2"], "currency": "EUR"},
    "context": {"approval_count": 2},
    "input": {"express": True},
    "steps": {"charge": {"ok": True}},
    "event": {"kind": "pod"},
    "workflow": {"order_id": "ord-123"},
    "now": 1,
}


@pytest.mark.row("E-601")
@pytest.mark.parametrize(
    "source",
    [
        "entity.grand_total > 10000",
        "actor.roles contains 'finance_manager'",
        "org.currency == 'EUR'",
        "now == 1",
        "context.approval_count >= 2",
        "input.express",
        "steps.charge.ok",
        "event.kind == 'pod'",
        "workflow.order_id == 'ord-123'",
    ],
)
def test_every_namespace_can_be_read(source: str) -> None:
    """Documents, the actor, the organisation, the moment, variables, inputs, steps and events are all readable."""
    assert value(source, DATA) is True


@pytest.mark.row("E-602")
@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("1 == 1", True),
        ("1 != 1", False),
        ("2 > 1", True),
        ("1 >= 2", False),
        ("1 < 2", True),
        ("2 <= 2", True),
        ("2 in [1, 2]", True),
        ("[1, 2] contains 3", False),
        ("true && false", False),
        ("true and false", False),
        ("true || false", True),
        ("false or true", True),
        ("!true", False),
        ("not false", True),
        ("null == null", True),
        ("\"x\" == 'x'", True),
        ("-1.5 < 0", True),
        ("1e2 == 100", True),
        ("entity.lines == []", True),
        ("entity.status in ['open', entity.note]", True),
        ("(1 < 2) == true", True),
    ],
)
def test_operators_and_literals(source: str, *, result: bool) -> None:
    """The whitelisted operators, their words, parentheses, and every literal mean what they say."""
    assert value(source, DATA) is result


@pytest.mark.row("E-602", "E-609", "E-029")
@pytest.mark.parametrize(
    ("source", "position"),
    [
        ("entity.a + 1 > 2", 9),
        ("entity.a * 2 > 2", 9),
        ("entity.a - 1 > 2", 9),
        ("entity.a / 2 > 2", 9),
        ("entity.a % 2 == 0", 9),
        ("'a' + 'b' == 'ab'", 4),
        ("entity.name ~ 'a.*'", 12),
        ("entity.name =~ 'a.*'", 12),
        ("entity.name matches 'a.*'", 12),
        ("len(entity.lines) > 1", 3),
        ("__import__('os')", 10),
        ("lambda x: x", 7),
        ("[x for x in entity.lines]", 3),
        ("entity.lines[0] == 1", 12),
        ("entity[status] == 1", 6),
        ("entity ['status'] == 1", 7),
        ("a if b else c", 2),
        ("a ? b : c", 2),
        ("a = 1", 2),
        ("a == 1; b == 2", 6),
        ("a & b", 2),
        ("a | b", 2),
        ("a ^ b", 2),
        ("a ?? b", 2),
        ("entity .status == 'x'", 7),
        ("entity. status == 'x'", 6),
        ("1 < 2 < 3", 6),
        ("a not in b", 2),
        ("[[1]] == a", 1),
        ("[1,] == a", 3),
        ("f'{a}' == 'x'", 1),
        ("0x10 == 16", 1),
        ("1_000 == 1000", 1),
        ("01 == 1", 1),
        (".5 == 1", 0),
        ("5. == 1", 1),
        ("", 0),
        ("   ", 3),
        ("a &&", 4),
        ("(a", 2),
        ("a)", 1),
        ("a b", 2),
    ],
)
def test_nothing_else_parses(source: str, position: int) -> None:
    """Arithmetic, joining of texts, regular expressions, calls, loops and indexing are refused where they stand."""
    error = refused(source)
    assert (error.reason, error.position) == ("syntax", position)


@pytest.mark.row("E-603")
@pytest.mark.parametrize(
    ("source", "grouped"),
    [
        ("!a == b", "(!a) == b"),
        ("!a in b", "(!a) in b"),
        ("!a && b", "(!a) && b"),
        ("not a == b", "!(a == b)"),
        ("not a && b", "(!a) && b"),
        ("not not a", "!(!a)"),
        ("a == 1 && b == 2", "(a == 1) && (b == 2)"),
        ("a || b && c", "a || (b && c)"),
        ("a && b || c && d", "(a && b) || (c && d)"),
        ("a && b && c", "(a && b) && c"),
        ("a || (b || c)", "a || b || c"),
        ("!a || b == c && d", "(!a) || ((b == c) && d)"),
    ],
)
def test_precedence(source: str, grouped: str) -> None:
    """`!` binds tighter than a comparison, that tighter than `&&`, that tighter than `||`; the word `not` is looser."""
    assert parse(source) == parse(grouped)


@pytest.mark.parametrize(
    ("source", "different"),
    [("(a || b) && c", "a || b && c"), ("!(a == b)", "!a == b"), ("a && b", "b && a"), ("a", "!(!a)")],
)
def test_grouping_and_order_matter(source: str, different: str) -> None:
    """Parentheses that change the meaning change the expression, and so does the order of parts."""
    assert parse(source) != parse(different)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a = 1", "write == to compare"),
        ("a < b < c", "comparisons do not chain"),
        ("f(1)", "there are no function calls"),
        ("a[0]", "there is no indexing"),
        ("a + b", "no joining of texts"),
        ("a not in b", "write !(a in b)"),
        ("a &&", "expected a value, found the end"),
        ("(a", "expected ')', found the end"),
        ("[1 2]", "expected ',' or ']', found '2'"),
        ("TRUE", "'TRUE' is written 'true'"),
        ("a AND b", "words of the language are written small"),
        ("a \uff1d b", "U+FF1D FULLWIDTH EQUALS SIGN"),
        ("a == \u201cx\u201d", "U+201C LEFT DOUBLE QUOTATION MARK"),
        ("a == 'x", "the text that begins here is not closed"),
    ],
)
def test_errors_say_what_was_expected(source: str, message: str) -> None:
    """A refusal names what could have stood there, what stood there, and the remedy for familiar mistakes."""
    assert message in str(refused(source))


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (r"'it\'s'", "it's"),
        (r'"say \"x\""', 'say "x"'),
        (r"'a\\b'", "a\\b"),
        (r"'\n\r\t'", "\n\r\t"),
        (r"'\u00e9\U0001F600'", "é😀"),
        (r"'\{\}{}'", "{}{}"),
        ("'é'", "é"),
        ("''", ""),
    ],
)
def test_strings_have_escapes(literal: str, text: str) -> None:
    """A string literal can hold any character, hidden ones by escape."""
    assert value(f"a == {literal}", {"a": text}) is True


@pytest.mark.parametrize(
    ("source", "position"), [(r"a == '\q'", 6), (r"a == 'x\ud800'", 7), (r"a == '\U00110000'", 6), (r"a == '\u12'", 6)]
)
def test_bad_escapes_are_pointed_at(source: str, position: int) -> None:
    """An unknown escape, a surrogate and a number beyond Unicode are refused at the backslash."""
    error = refused(source)
    assert (error.reason, error.position) == ("bad_string", position)


@pytest.mark.parametrize(
    "name", ["in_stock", "order", "android", "note", "nullable", "contains_x", "trueish", "x.in", "x.not"]
)
def test_words_of_the_language_are_whole_words(name: str) -> None:
    """A name may begin like a word of the language, and follow a dot even if it is one."""
    assert parse(f"{name} == 1").variables == (name,)


@pytest.mark.parametrize("source", ["in == 1", "contains == 1", "True == a", "not.x == 1", "And.x == 1"])
def test_words_of_the_language_are_no_variables(source: str) -> None:
    """A path that begins with a word of the language is refused instead of being read as data."""
    assert refused(source).reason in {"bad_name", "syntax"}


def test_white_space_has_no_meaning() -> None:
    """Blanks, tabs and line breaks between words leave the expression the same."""
    assert parse("a>1&&b==2").hash == parse("a  >\t1\r\n && b == 2 ").hash


def test_number_forms_have_no_meaning() -> None:
    """A number is the number it denotes, however it is written."""
    assert parse("a == 1").hash == parse("a == 1.0").hash == parse("a == 10e-1").hash
    assert parse("a == 0").hash == parse("a == -0.0").hash
