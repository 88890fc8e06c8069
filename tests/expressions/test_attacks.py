"""What somebody would try who may write conditions and wants more than that."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

import standfast.expressions
from expressions.trying import answer, failed, refused
from standfast.errors import ExpressionError
from standfast.expressions import Expression, ExpressionLimits, ExpressionOptions, Spelling, parse, point

PACKAGE = Path(standfast.expressions.__file__).parent

FORBIDDEN_CALLS = {"eval", "exec", "compile", "getattr", "setattr", "vars", "globals", "locals", "open", "__import__"}

FORBIDDEN_METHODS = {"format", "format_map", "substitute", "safe_substitute", "__dict__", "__getattribute__"}


class Trap:
    """An object that notices every attempt to look into it."""

    def __init__(self) -> None:
        self.touched: list[str] = []

    def __getattribute__(self, name: str) -> object:
        if name not in {"touched", "__class__"}:
            object.__getattribute__(self, "touched").append(name)
        return object.__getattribute__(self, name)

    def __eq__(self, other: object) -> bool:
        self.touched.append("__eq__")
        return True

    def __hash__(self) -> int:
        self.touched.append("__hash__")
        return 0

    def __getitem__(self, key: object) -> object:
        self.touched.append("__getitem__")
        return self

    def __str__(self) -> str:
        self.touched.append("__str__")
        return "trap"


class SneakyText(str):
    """A text that equals everything."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def syntax_nodes() -> Iterator[tuple[str, ast.AST]]:
    """Every piece of the package's source, with the file it is in."""
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            yield file.name, node


@pytest.mark.row("E-611")
def test_no_dynamic_code() -> None:
    """The package never evaluates, compiles or executes code, and never asks an object for an attribute by name."""
    calls = [(name, node.func) for name, node in syntax_nodes() if isinstance(node, ast.Call)]
    assert not [(name, call.id) for name, call in calls if isinstance(call, ast.Name) and call.id in FORBIDDEN_CALLS]


@pytest.mark.row("E-611")
def test_no_formatting_by_the_language() -> None:
    """No text from outside is ever a format string: `str.format`, `%` and `Template` are not used."""
    used = [(name, node.attr) for name, node in syntax_nodes() if isinstance(node, ast.Attribute)]
    assert not [each for each in used if each[1] in FORBIDDEN_METHODS]


@pytest.mark.row("E-029", "E-611")
@pytest.mark.parametrize(
    "source",
    [
        "__import__('os').system('id')",
        "entity.__class__.__mro__",
        "entity.__class__ == 'x'",
        "__builtins__.eval == 1",
        "().__class__",
        "[].__class__ == 1",
        "'x'.upper() == 'X'",
        "''.join == 1",
        "(lambda: 1)()",
        "entity.items()",
        "entity.keys",
        "exec('1')",
        "a := 1",
        "a; import os",
        "a\nimport os",
        "{{7*7}}",
        "${7*7}",
        "#{7*7}",
        "<%= 7*7 %>",
        "a == 1 -- comment",
        "a == 1 # comment",
        "a == 1 /* comment */",
        "' or '1'=='1",
        "a == 1) || (1 == 1",
    ],
)
def test_code_is_not_a_condition(source: str) -> None:
    """Calls, dunder names, comprehensions, other template languages and injections are refused or find only data."""
    outcome = answer(lambda: parse(source))
    if isinstance(outcome, Expression):
        assert failed(outcome, {"entity": {}}).reason == "missing_value"
    else:
        assert isinstance(outcome, ExpressionError)


@pytest.mark.row("E-029", "E-611")
@pytest.mark.parametrize("path", ["a.__class__", "__init__", "a.b.__dict__.x", "__a"])
@pytest.mark.parametrize("spelling", ["native", "go", "json", "mapping", "template"])
def test_dunder_names_are_refused_in_every_spelling(path: str, spelling: Spelling) -> None:
    """No spelling lets a name begin with two underscores."""
    source = {
        "native": f"{path} == 1",
        "go": f"{{{{ eq .{path} 1 }}}}",
        "json": f'{{"field": "{path}", "operator": "eq", "value": 1}}',
        "mapping": path,
        "template": f"{{{path}}}",
    }[spelling]
    assert refused(source, spelling=spelling).reason == "bad_name"


@pytest.mark.row("E-611")
@pytest.mark.parametrize(
    "source", ["a == 1", "a > 1", "a contains 'x'", "'x' in a", "a.b == 1", "a", "a == b", "[1] contains a"]
)
def test_foreign_objects_are_never_touched(source: str) -> None:
    """An object that is not plain data is refused by its type: none of its methods or attributes is used."""
    trap = Trap()
    assert failed(parse(source), {"a": trap, "b": trap}).reason in {"unsupported_type", "not_an_object"}
    assert trap.touched == []


@pytest.mark.parametrize("source", ["a == 'x'", "a contains 'x'", "a in ['x']", "b contains a"])
def test_subclasses_of_plain_types_are_foreign(source: str) -> None:
    """A subclass of a plain type could redefine equality, so only the exact types are values."""
    assert failed(parse(source), {"a": SneakyText("y"), "b": ["x"]}).reason in {"unsupported_type", "type_mismatch"}


@pytest.mark.parametrize(
    "source",
    [
        "a == 1" + "0" * 480,
        "a == 1e999999999",
        "a == 1e-999999999",
        "a == 1e" + "9" * 400,
        "a == -1" + "0" * 400 + ".5",
        "a == 0." + "0" * 400 + "1",
    ],
)
def test_huge_numbers_are_refused_unexpanded(source: str) -> None:
    """A short text that stands for a huge number is refused before the number exists."""
    assert refused(source).reason == "bad_number"


@pytest.mark.parametrize(
    ("source", "spelling"),
    [
        ("(" * 500, "native"),
        ("(" * 249 + "a" + ")" * 249, "native"),
        ("!" * 500, "native"),
        ("!" * 499 + "a", "native"),
        ("[" * 500, "native"),
        ("not " * 124 + "a", "native"),
        ("{{" + "(" * 498, "go"),
        ("{{ " + "not (" * 98 + ".a", "go"),
        ("[" * 4000, "json"),
        ('{"not":' * 500, "json"),
        ('{"not":' * 400 + "1" + "}" * 400, "json"),
        ('{"all":[' * 400 + "]}" * 400, "json"),
        ("{" * 2000, "template"),
        ("{a}" * 600, "template"),
        ("'" + "{a}" * 160 + "'", "mapping"),
    ],
)
def test_deep_nesting_does_not_reach_the_stack(source: str, spelling: Spelling) -> None:
    """Nesting to the length limit is an answer of the parser, never a crash of the interpreter."""
    assert isinstance(answer(lambda: parse(source, spelling=spelling)), Expression | ExpressionError)


def test_raised_limits_do_not_reach_the_stack() -> None:
    """Even with the highest limits that can be configured, depth stays within what recursion bears."""
    options = ExpressionOptions(limits=ExpressionLimits(length=200_000, depth=100, json_length=200_000))
    assert refused("!" * 20_000 + "a", options=options).reason == "too_deep"
    assert refused('{"not":' * 5_000 + "1" + "}" * 5_000, spelling="json", options=options).reason == "too_deep"
    deep = parse("!" * 99 + "a", options=options)
    assert deep.evaluate({"a": True}) is False
    assert parse(str(deep), options=options) == deep


LOOKALIKES = {
    "cyrillic a": "\u0430ctor.roles == 1",
    "fullwidth letters": "\uff41\uff43 == 1",
    "fullwidth sign": "a \uff1d\uff1d 1",
    "fullwidth dot": "a\uff0eb == 1",
    "one dot leader": "a\u2024b == 1",
    "curly quotes": "a == \u2018x\u2019",
    "mathematical letter": "\U0001d41a == 1",
    "arabic digits": "a == \u0661",
    "no-break space": "a\u00a0== 1",
    "ideographic space": "a\u3000== 1",
    "minus sign": "a == \u22121",
    "logical and": "a \u2227 b",
    "not equal sign": "a \u2260 1",
    "combining mark": "a\u0301 == 1",
    "superscript": "a\u00b2 == 1",
}


@pytest.mark.parametrize("source", LOOKALIKES.values(), ids=LOOKALIKES.keys())
def test_look_alikes_are_refused(source: str) -> None:
    """Outside of strings only ASCII has a meaning: nothing can look like a name or an operator and be another."""
    error = refused(source)
    assert error.reason in {"syntax", "bad_name"}
    assert "U+" in str(error)


HIDDEN = {
    "right-to-left override": "\u202e",
    "left-to-right isolate": "\u2066",
    "right-to-left mark": "\u200f",
    "zero width space": "\u200b",
    "zero width joiner": "\u200d",
    "byte order mark": "\ufeff",
    "soft hyphen": "\u00ad",
    "word joiner": "\u2060",
    "variation selector": "\ufe0f",
    "hangul filler": "\u3164",
    "braille blank": "\u2800",
    "tag letter": "\U000e0061",
    "line separator": "\u2028",
    "null": "\x00",
    "escape": "\x1b",
    "delete": "\x7f",
    "c1 control": "\x9b",
    "lone surrogate": "\ud800",
}


@pytest.mark.parametrize("hidden", HIDDEN.values(), ids=HIDDEN.keys())
@pytest.mark.parametrize("place", ["a == 'x{}'", "a {}== 1", "{}a == 1"])
def test_hidden_characters_are_refused(hidden: str, place: str) -> None:
    """What cannot be seen cannot stand in an expression, also not in a string; the error shows it as an escape."""
    source = place.replace("{}", hidden)
    error = refused(source)
    assert (error.reason, error.position) == ("forbidden_character", source.index(hidden))
    assert hidden not in point(error)


@pytest.mark.parametrize("hidden", [each for name, each in HIDDEN.items() if name != "lone surrogate"])
def test_hidden_characters_can_be_escaped(hidden: str) -> None:
    """A string can still hold any character; print shows it as the escape that it was written as."""
    escape = f"\\U{ord(hidden):08x}"
    expression = parse(f"a == '{escape}'")
    assert expression.evaluate({"a": hidden}) is True
    assert hidden not in str(expression)


@pytest.mark.parametrize(
    "source",
    [
        '{"\\u202e": 1}',
        '{"\\u001b[2J": 1, "\\u001b[2J": 2}',
        '{"field": "a", "operator": "\\u001b[2J", "value": 1}',
        '{"' + "x" * 3000 + '": 1}',
    ],
)
def test_messages_are_safe_to_print(source: str) -> None:
    """What an error repeats of its source is made visible and cut short, also where JSON escapes hid it."""
    message = str(refused(source, spelling="json"))
    assert message.isprintable()
    assert "\u202e" not in message
    assert len(message) < 200


FORMATS = ["%s", "%(a)s", "{0}", "{a.__class__}", "$a", "{!r}", "{:>9999999}", "\\x41", "%n%n%n"]


@pytest.mark.parametrize("text", FORMATS)
def test_format_strings_are_plain_text(text: str) -> None:
    """Nothing in a native string is interpreted as a format."""
    escaped = text.replace("\\", "\\\\")
    assert parse(f"a == '{escaped}'").evaluate({"a": text}) is True


@pytest.mark.parametrize("text", ["{a.b}", "{{x}}", "%s", "{a.__class__}"])
def test_data_is_never_interpreted(text: str) -> None:
    """A value that looks like a template or an expression is shown as it is: filling in happens once."""
    assert parse("{entity.x}", spelling="template").evaluate({"entity": {"x": text}}) == text


FAMILIES: dict[str, tuple[Spelling, Callable[[int], str]]] = {
    "parentheses": ("native", lambda n: "(" * (n // 2 - 1) + "a" + ")" * (n // 2 - 1)),
    "open parentheses": ("native", lambda n: "(" * n),
    "negations": ("native", lambda n: "!" * (n - 1) + "a"),
    "conjunctions": ("native", lambda n: "&&".join(["a"] * (n // 3))),
    "nested groups": ("native", lambda n: "(" * (n // 5 - 1) + "a" + "&&b)" * (n // 5 - 1)),
    "alternation": ("native", lambda n: "||".join(["a&&b"] * (n // 6))),
    "list": ("native", lambda n: f"a in [{','.join('1' * (n // 2 - 4))}]"),
    "digits": ("native", lambda n: "a==" + "1" * (n - 3)),
    "long name": ("native", lambda n: "a" * n),
    "long path": ("native", lambda n: ".".join("a" * (n // 2))),
    "open string": ("native", lambda n: "a=='" + "x" * (n - 4)),
    "escapes": ("native", lambda n: "a=='" + r"\n" * (n // 2 - 3) + "'"),
    "backslashes": ("native", lambda n: "a=='" + "\\" * (n - 4)),
    "blanks": ("native", lambda n: " " * n),
    "operators": ("native", lambda n: "==" * (n // 2)),
    "pipes": ("go", lambda n: "{{.a" + "|not" * ((n - 6) // 4) + "}}"),
    "go parentheses": ("go", lambda n: "{{" + "(" * (n // 2 - 3) + ".a" + ")" * (n // 2 - 3) + "}}"),
    "go values": ("go", lambda n: "{{eq .a" + " 1" * ((n - 9) // 2) + "}}"),
    "json lists": ("json", lambda n: "[" * n),
    "json nots": ("json", lambda n: '{"not":' * (n // 8 - 1) + "1" + "}" * (n // 8 - 1)),
    "json all": ("json", lambda n: '{"all":[' + ",".join(['{"expression":"a"}'] * ((n - 12) // 19)) + "]}"),
    "json text": ("json", lambda n: '{"expression":"' + "\\u0061" * ((n - 20) // 6) + '"}'),
    "holes": ("template", lambda n: "{a}" * (n // 3)),
    "open braces": ("template", lambda n: "{" * n),
    "brace pairs": ("template", lambda n: "{}" * (n // 2)),
    "quoted holes": ("mapping", lambda n: "'" + "{a}" * ((n - 2) // 3) + "'"),
    "quoted backslashes": ("mapping", lambda n: "'" + "\\" * (n - 2)),
}

WIDE = ExpressionLimits(dereferences=10_000, list_items=10_000, digits=10_000, template_length=4000, length=4000)


def steps(source: str, spelling: Spelling) -> int:
    """How many function calls, of Python and of C, it takes to answer for a source."""
    count = 0

    def counted(*_event: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(counted)
    try:
        parse(source, spelling=spelling, options=ExpressionOptions(limits=WIDE))
    except ExpressionError:
        pass
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("family", FAMILIES)
def test_the_work_grows_with_the_length_and_no_faster(family: str) -> None:
    """Twice the text takes at most about twice the steps, whatever it consists of: no input is quadratic."""
    spelling, make = FAMILIES[family]
    steps(make(500), spelling)  # The tables of the grammar are built once and do not count.
    half, whole = steps(make(1000), spelling), steps(make(2000), spelling)
    assert whole <= 2.2 * half + 500


@pytest.mark.parametrize("family", FAMILIES)
def test_the_work_at_the_limit_is_small(family: str) -> None:
    """At the length limit an answer takes at most some 100,000 steps, a few milliseconds: far from 50 on any machine."""
    spelling, make = FAMILIES[family]
    length = {"json": ExpressionLimits().json_length, "template": ExpressionLimits().template_length}.get(
        spelling, ExpressionLimits().length
    )
    steps(make(100), spelling)
    assert steps(make(length), spelling) < 300_000


@pytest.mark.parametrize("other", [datetime(2026, 3, 1, tzinfo=UTC), date(2026, 3, 1), timedelta(hours=1)])
@pytest.mark.parametrize("source", ["a == b", "a != b", "a < b", "b >= a", "a in [b]", "[b] contains a"])
def test_half_a_character_is_no_time(source: str, other: object) -> None:
    """Beside a time a text is read as one; half a character is none, and is told like any other text that is not."""
    with pytest.raises(ExpressionError, match="this text is not a d") as caught:
        parse(source).holds({"a": "\ud800", "b": other})
    assert caught.value.reason == "bad_time"
