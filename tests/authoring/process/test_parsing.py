"""From text to a tree: what scalars are, where things stand, and what is refused before it can do harm."""

from __future__ import annotations

import json

import pytest

from authoring.process.examples import codes, found, load, text_of
from standfast.errors import Diagnostic
from standfast.graph.source_files import parsing
from standfast.graph.source_files.parsing import DEEPEST, LARGEST, MOST_ALIASES, MOST_VALUES
from standfast.graph.source_files.tree import Fields, FileItems, Scalar, Tree, plain


def parsed(text: str | bytes) -> Tree:
    """The tree of a text with which nothing is wrong."""
    wrong: list[Diagnostic] = []
    tree = parsing.parse(text, wrong)
    assert not wrong
    assert tree is not None
    return tree


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("null", None), ("~", None), ("true", True), ("false", False), ("7", 7), ("-7", -7), ("0", 0), ("1.5", 1.5), ("1e3", 1000.0),
        ("no", "no"), ("on", "on"), ("True", "True"), ("NULL", "NULL"), ("017", "017"), ("0o17", "0o17"), ("0x1F", "0x1F"),
        ("1_000", "1_000"), ("2026-01-01", "2026-01-01"), ("12:30", "12:30"), (".5", ".5"), ("+7", "+7"), (".inf", ".inf"),
        ("=", "="), ("'7'", "7"), ('"true"', "true"), ("9" * 40, "9" * 40), ("1e999", "1e999"),
    ],
)  # fmt: skip
def test_scalars_are_what_json_says(text: str, value: object) -> None:
    """Nothing becomes a date, an octal number or a truth value by surprise."""
    tree = parsed(f"a: {text}")
    assert plain(tree) == {"a": value}
    assert type(plain(tree)["a"]) is type(value)  # type: ignore[index]


def test_names_are_texts_as_they_are_written() -> None:
    """Also those that would be something else as values."""
    assert plain(parsed("{on: 1, 7: 2, true: 3, null: 4}")) == {"on": 1, "7": 2, "true": 3, "null": 4}


def test_every_part_knows_its_place() -> None:
    """Lines and columns are counted from 1; a field knows where its name stands, too."""
    tree = parsed("a:\n  - x\n  - {b: 7}\n")
    assert isinstance(tree, Fields)
    items = tree.fields["a"].tree
    assert isinstance(items, FileItems)
    first, second = items.items
    assert isinstance(second, Fields)
    inner = second.fields["b"]
    assert isinstance(inner.tree, Scalar)
    places = [tree.at, tree.fields["a"].name, items.at, first.at, second.at, inner.name, inner.tree.at]
    assert [str(each) for each in places] == ["1:1", "1:1", "2:3", "2:5", "3:5", "3:6", "3:9"]


@pytest.mark.parametrize(
    "text", ['{"a":"\\ud83d\\ude00\\/\\n","b":[1,{"c":null}]}', '\t{"a":\t"😀/\\n",\n\t"b":[1,{"c":null}]}']
)
def test_json_is_read_too(text: str) -> None:
    """All of it: halves of characters, escaped slashes, tabs, and no space behind a colon."""
    assert plain(parsed(text)) == json.loads(text)


def test_yaml_and_json_make_the_same_graph(subtests: pytest.Subtests) -> None:
    """It is one format in two spellings; a byte order mark and bytes change nothing either."""
    text = "domain: d\nworkflows:\n- id: w\n  steps:\n  - {id: a, type: wait, duration: 1h}\n  - {id: z, type: terminal}\n  transitions:\n  - {from: a, event: completed, to: z}\n"
    as_json = text_of(plain(parsed(text)))
    hashes = set()
    for each in (text, as_json, text.encode(), "\ufeff" + text, text.replace("\n", "\r\n")):
        with subtests.test(text=each):
            hashes.add(load(plain(parsed(each))).graph.hash)
    assert len(hashes) == 1


LAUGHS = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))]
)


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        ("", "empty", "1:1"),
        ("# only a comment\n", "empty", "1:1"),
        ("a: [1", "syntax", "2:1"),
        ("a: b\n\tc: d", "syntax", "2:1"),
        ("a: 'x", "syntax", "1:6"),
        ("a: \x01b", "syntax", "1:4"),
        ("é: \x00", "syntax", "1:4"),
        ('a: "\\ud800"', "syntax", "1:7"),
        ("%YAML 9.9\n---\na: 1", "syntax", "1:1"),
        (b"a: 1\nb: \xff", "encoding", "2:4"),
        ("a: \ud800", "encoding", "1:4"),
        ("a: 1\n---\nb: 2", "many_documents", "2:1"),
        ("a: 1\nb: 2\na: 3", "duplicate_key", "3:1"),
        ('{"a": {"b": 1, "b": 2}}', "duplicate_key", "1:16"),
        ("a: !!python/object:os.system x", "tag", "1:4"),
        ("a: !local [1]", "tag", "1:4"),
        ("? [a, b]\n: 1", "key", "1:3"),
        ("{{a: 1}: 2}", "key", "1:2"),
        ("x: &k a\n*k : 1", "key", "2:1"),
        ("a: *nowhere", "aliases", "1:4"),
        ("a: &a [*a]", "aliases", "1:8"),
        ("a: &a 1\nb: [" + "*a, " * (MOST_ALIASES + 1) + "]", "aliases", f"2:{4 * MOST_ALIASES + 5}"),
        (LAUGHS, "too_many_values", "6:30"),
        ("[" * (DEEPEST + 1), "too_deep", f"1:{DEEPEST + 1}"),
        ("- " * 100_000, "too_deep", f"1:{2 * DEEPEST + 1}"),
        ("[" * 1_000_000, "too_deep", f"1:{DEEPEST + 1}"),
        ("a: &a " + "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1) + "\nb: [*a]", "too_deep", "2:5"),
        ("[" + "[]," * (MOST_VALUES + 1) + "]", "too_many_values", f"1:{3 * MOST_VALUES - 1}"),
        ("a" * (LARGEST + 1), "too_large", "1:1"),
        (b"#" * (LARGEST + 1), "too_large", "1:1"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str | bytes) else None,
)  # fmt: skip
def test_what_cannot_be_read_is_refused_where_it_stands(text: str | bytes, code: str, position: str) -> None:
    """A limit, a tag, a name that comes twice, and what is no YAML: one finding with a place, and no traceback."""
    assert (code, position) in [(each.code, each.position) for each in found(text)]


def test_a_file_at_the_limits_is_read() -> None:
    """The limits themselves are allowed: only what is beyond is refused."""
    text = "[" + "[]," * (MOST_VALUES - 1) + "]"
    assert codes(text + " " * (LARGEST - len(text))) == ["wrong_type"]
    assert codes("[" * DEEPEST + "]" * DEEPEST) == ["wrong_type"]


def test_all_names_that_come_twice_are_found_with_what_else_is_wrong() -> None:
    """They do not hide other mistakes: the first one of them is read."""
    assert codes("domain: a\ndomain: b\nworkflows: 7\nworkflows: 8\n") == [
        "duplicate_key",
        "wrong_type",
        "duplicate_key",
    ]


def test_whoever_made_very_many_mistakes_sees_the_first_hundred() -> None:
    """The last line says that there are more."""
    many = "domain: d\nworkflows:\n" + "- 7\n" * 5000
    listed = found(many)
    assert len(listed) == 101
    assert listed[-1].code == "too_many_findings"
    assert len(found("a: 1\n" * 5000)) == 101
