"""Names that are no words: how they are read and written in every spelling, and that nothing is lost or confused on the way."""

from __future__ import annotations

import json

import pytest

from expressions.trying import refused, value
from standfast.expressions import Expression, ExpressionOptions, Spelling, parse

DATA: dict[str, object] = {"input": {"extract-source1": {"rows": 5, "über": "x"}, "a.b": 1, "a": {"b": 2}, "it's": 3}}
ROOTED = ExpressionOptions(root="input", namespaces=frozenset({"input", "now"}))


@pytest.mark.parametrize(
    ("source", "spelling"),
    [
        ('input["extract-source1"].rows > 4', "native"),
        ("input['extract-source1']['rows'] > 4", "native"),
        ('input["extract-source1"].rows? > 4', "native"),
        ('{{ gt (index .input "extract-source1" "rows") 4 }}', "go"),
        ("{{ gt (index .input `extract-source1` `rows`) 4 }}", "go"),
        ('{{ index .input "extract-source1" "rows" | lt 4 }}', "go"),
        ('{"field": "input[\'extract-source1\'].rows", "operator": "gt", "value": 4}', "json"),
        ('{"expression": "input[\'extract-source1\'].rows > 4"}', "json"),
        ('input["extract-source1"].rows > 4', "mapping"),
        ('input["extract-source1"]["über"] == \'x\'', "native"),
        ('input["a.b"] == 1 && input.a.b == 2', "native"),
        ("input[\"it's\"] == 3 and input['it\\'s'] == 3", "native"),
        ('input["extract\\u002dsource1"].rows == 5', "native"),
        ("input['a.b'] in [1, input['it\\'s']]", "native"),
    ],
)
def test_a_name_that_is_no_word_stands_in_quotes(source: str, spelling: Spelling) -> None:
    """Any name of the data can be read, in every spelling."""
    assert value(source, DATA, spelling=spelling) is True


@pytest.mark.parametrize(
    ("source", "spelling", "made"),
    [
        ('input["extract-source1"].rows', "mapping", 5),
        ("'rows:{input[\"extract-source1\"].rows}'", "mapping", "rows:5"),
        ("rows:{input['extract-source1'].rows}", "template", "rows:5"),
    ],
)
def test_mappings_and_templates_read_such_names_too(source: str, spelling: Spelling, made: object) -> None:
    """A value or a text can be made of them."""
    assert value(source, DATA, spelling=spelling) == made


@pytest.mark.parametrize(
    ("source", "spelling"),
    [
        ("input['extract-source1'].rows == 5", "native"),
        ('{{ eq (index . "extract-source1" "rows") 5 }}', "go"),
        ('{{ eq (index .input "extract-source1" "rows") 5 }}', "go"),
    ],
)
def test_the_whole_data_can_be_indexed_where_bare_names_live(source: str, spelling: Spelling) -> None:
    """With a root, `index .` reads below it, like a bare field."""
    assert value(source, DATA, spelling=spelling, options=ROOTED) is True


def test_a_word_in_quotes_is_the_word() -> None:
    """There is one tree for one meaning: what can be written with a dot is."""
    same = {parse("input.a.b == 2"), parse("input['a'].b == 2"), parse('input["a"]["b"] == 2')}
    assert repr(same) == "{Expression('input.a.b == 2')}"
    assert parse("input['a.b'] == 1") != parse("input.a.b == 1")


@pytest.mark.parametrize(
    "name", ["a-b", "a.b", "it's", 'say "x"', "{x}", "a\\b", "a]b", "a\u200bb", "ü", " ", "1", "a?"]
)
@pytest.mark.parametrize("quote", ["'", '"'])
def test_every_name_is_printed_so_that_it_reads_back(name: str, quote: str) -> None:
    """Quotes, braces, backslashes and hidden characters in a name are written as escapes."""
    escaped = "".join(f"\\u{ord(each):04x}" for each in name)
    written = f"input[{quote}{escaped}{quote}]"
    condition = parse(f"{written} == 1")
    assert parse(str(condition)) == condition
    assert condition.evaluate({"input": {name: 1}}) is True
    template = parse(f"{{{written}}}!", spelling="template")
    assert parse(str(template), spelling="mapping") == template
    assert template.evaluate({"input": {name: 1}}) == "1!"
    assert Expression.from_data(json.loads(json.dumps(condition.to_data()))) == condition


@pytest.mark.parametrize(
    ("source", "spelling", "reason"),
    [
        ("input[0] == 1", "native", "syntax"),
        ("input[a] == 1", "native", "syntax"),
        ("input['a' == 1", "native", "syntax"),
        ("input[''] == 1", "native", "bad_name"),
        ("input['__class__'] == 1", "native", "bad_name"),
        ("input['\\q'] == 1", "native", "bad_string"),
        ("['a-b'] == ['a']", "native", None),
        ("{{ index .a 1 }}", "go", "syntax"),
        ("{{ index .a }}", "go", "syntax"),
        ('{{ index "a" "b" }}', "go", "syntax"),
        ('{{ index .a "__b" }}', "go", "bad_name"),
        ('{{ index . "a-b" }}', "go", "bad_name"),
        ('{{ eq . "a" }}', "go", "syntax"),
        ('{{ . | index "a" }}', "go", "syntax"),
        ('{"field": "input[a-b]", "operator": "eq", "value": 1}', "json", "bad_name"),
    ],
)
def test_brackets_hold_names_in_quotes_and_nothing_else(source: str, spelling: Spelling, reason: str | None) -> None:
    """There is no indexing of lists, and no name that begins with two underscores; a list stays a list."""
    if reason is None:
        assert value(source, spelling=spelling) is False
    else:
        assert refused(source, spelling=spelling).reason == reason


def test_a_record_shows_and_masks_such_names() -> None:
    """The record writes paths as expressions do; a sensitive path may be given in any way of writing it."""
    condition = parse("input['a-b'].pin == 1")
    data = {"input": {"a-b": {"pin": 1}}}
    assert condition.explain(data).variables == {'input["a-b"].pin': 1}
    for sensitive in ("input['a-b'].pin", 'input["a-b"]', "input"):
        assert condition.explain(data, sensitive={sensitive}).variables == {'input["a-b"].pin': "[masked]"}
    whole = parse("input", spelling="mapping", options=ExpressionOptions(lenient=False))
    assert whole.explain(data, sensitive={"input['a-b'].pin"}).variables == {"input": {"a-b": {"pin": "[masked]"}}}
    assert parse("input['a.b'] == 1").explain({"input": {"a.b": 1}}, sensitive={"input.a"}).variables == {
        'input["a.b"]': 1
    }


def test_a_schema_knows_such_names() -> None:
    """What is not there is told with the path as it is written."""
    schema = {"input": {"a-b": {"rows": "number"}}}
    parse("input['a-b'].rows > 1").check(schema)
    (problem,) = parse("input['a-b'].row > 1").problems(schema)
    assert str(problem) == "there is no 'row' in 'input[\"a-b\"]'; did you mean 'rows'?"
