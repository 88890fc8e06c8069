"""Forms: what an answer has to look like, what is filled in, and that no form can take long."""

from __future__ import annotations

import subprocess
import sys

import pytest

from standfast.graph.values.forms import MOST_FAULTS, Form, form_faults, read_pattern

FORM: dict[str, object] = {
    "type": "object",
    "properties": {
        "amount": {"type": "integer", "minimum": 1},
        "note": {"type": "string", "pattern": "^[a-z]+$"},
        "day": {"type": "string", "format": "date"},
        "currency": {"enum": ["EUR", "USD"], "default": "EUR"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}, "uniqueItems": True},
    },
    "required": ["amount", "note"],
    "additionalProperties": False,
    "$defs": {"line": {"type": "object", "properties": {"count": {"type": "integer", "default": 1}}}},
}


def test_all_faults_are_told_at_once_each_with_its_place() -> None:
    """Nobody corrects one field after the other: every fault of an answer is told, and where it is."""
    given = {"amount": 0, "day": "soon", "lines": [{"count": "x"}, {"count": 2}, {"count": 2}], "more": 1}
    assert [fault.partition(": ")[0] for fault in Form(FORM).faults(given)] == [
        "data.amount",
        "data.day",
        "data.lines",
        "data.lines[0].count",
        "data",
        "data",
    ]


def test_defaults_are_filled_in_at_every_level() -> None:
    """What an answer leaves out and the form has a default for is there afterwards, in lists too; what was given stays."""
    form = Form(FORM)
    given = {"lines": [{}, {"count": 5}], "currency": "USD"}
    assert form.filled(given) == {"lines": [{"count": 1}, {"count": 5}], "currency": "USD"}
    assert given == {"lines": [{}, {"count": 5}], "currency": "USD"}
    assert form.filled(None) == {"currency": "EUR"}
    assert form.filled("text") == "text"
    assert Form({"type": "string"}).filled(None) is None


@pytest.mark.parametrize(
    ("format_", "right", "wrong"),
    [
        ("date", "2030-01-31", "2030-02-31"),
        ("time", "23:59", "24:01"),
        ("date-time", "2030-01-31T10:00:00Z", "2030-01-31T10:00:00"),
        ("email", "ann@example.com", "ann at example"),
        ("uuid", "01b8dd58-e200-782f-b728-b4fa42485e3a", "01b8"),
    ],
)
def test_formats_are_looked_at(format_: str, right: str, wrong: str) -> None:
    """A field with a format that is known has to have it."""
    form = Form({"format": format_})
    assert form.faults(right) == []
    assert len(form.faults(wrong)) == 1
    assert form.faults(5) == []


def test_no_answer_is_told_more_faults_than_anybody_reads() -> None:
    """A long list of faults is cut, and says so."""
    faults = Form({"items": {"type": "string"}}).faults(list(range(MOST_FAULTS + 7)))
    assert len(faults) == MOST_FAULTS + 1
    assert faults[-1] == "and 7 more"


def test_a_pattern_is_searched_for() -> None:
    """As JSON Schema has it, a pattern may match anywhere; what anchors it are its own ^ and $, and a text does not end before its last line break."""
    form = Form({"pattern": "b+"})
    assert [bool(form.faults(each)) for each in ("abbc", "b", "ac", "")] == [False, False, True, True]
    anchored = Form({"pattern": "^b+$"})
    assert [bool(anchored.faults(each)) for each in ("bb", "bb\n", "abb")] == [False, True, True]


def test_a_text_that_is_too_long_for_its_pattern_is_a_fault() -> None:
    """A pattern is not tried on a text on which it could take long."""
    pattern = "^.{1,1000}$"
    longest = read_pattern(pattern).longest
    form = Form({"pattern": pattern})
    assert form.faults("é" * 500) == []
    assert form.faults("a" * (longest + 1)) == [
        f"data: it is a text of {longest + 1} characters; the pattern {pattern!r} is tried on at most {longest} bytes"
    ]


def test_a_pattern_that_an_older_release_took_fails_closed() -> None:
    """A form that is published already and whose pattern is not taken any more refuses every answer, and says why."""
    (fault,) = Form({"pattern": "^(?=a)"}).faults("a")
    assert fault == (
        "data: the pattern '^(?=a)' cannot be used: at character 2: '(?=' looks ahead; "
        "use characters, classes, groups, alternatives and repeats"
    )


def test_a_form_has_room_for_so_many_patterns() -> None:
    """All patterns of a form together have a bound, however many there are; the same one twice counts once."""
    properties = {f"f{number}": {"pattern": "^.{1,900}$" + "a" * number} for number in range(4)}
    (wrong,) = form_faults("ask", {"properties": properties})
    assert "too large together" in wrong.message
    assert wrong.path == ("properties", "f2", "pattern")
    same = {f"f{number}": {"pattern": "^.{1,900}$"} for number in range(9)}
    assert form_faults("ask", {"properties": same}) == []


def test_a_long_list_of_objects_is_compared_quickly() -> None:
    """Whether elements are unique is not found out by comparing each with each: that would take hours here."""
    assert Form({"uniqueItems": True}).faults([{"n": number} for number in range(50_000)]) == []
    assert Form({"uniqueItems": True}).faults([{"n": 1}, {"n": 1}]) == ["data: it has the same element twice"]


def test_the_validator_is_not_loaded_without_a_form() -> None:
    """Whoever has no forms does not pay for them."""
    program = "import sys, standfast; standfast.Saga('s').human('a').build(); sys.exit(bool({'jsonschema', 're2'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
