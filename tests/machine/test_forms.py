"""Forms: what an answer has to look like, what is filled in, and that no form can take long."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.machine.graphs.forms import MOST_FAULTS, Form
from holdfast.machine.graphs.patterns import MOST_WAYS, SlowPatternError, longest_text
from support.untimed import untimed

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


@pytest.mark.parametrize(
    "pattern", [r"^[A-Z]{2}\d{2}[A-Z0-9]{4,30}$", r"^\d{5}(-\d{4})?$", r"^[^@\s]+@[^@\s]+\.[^@\s]+$", "^(a|b)?c*$", "x"]
)
def test_usual_patterns_are_taken(pattern: str) -> None:
    """What people write into forms is not refused."""
    assert longest_text(pattern) >= 64


@pytest.mark.parametrize(
    "pattern",
    ["^(a+)+$", "(a|aa)+$", "(a|a?)*b", r"(\w+\s?)*$", "a?" * 30 + "a" * 30, "a*a*a*a*a*b", r"(\w)\1", "(?=a)"],
)
def test_patterns_that_can_take_for_ever_are_refused(pattern: str) -> None:
    """Whether a pattern can be slow is seen from the pattern alone, before there is a text."""
    with pytest.raises(SlowPatternError):
        longest_text(pattern)


PATTERNS = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{0,3}", "{2}"])).map(lambda pair: f"({pair[0]}){pair[1]}"),
    ),
    max_leaves=8,
)


@untimed
@given(PATTERNS)
def test_a_pattern_that_is_taken_is_tried_in_few_ways(pattern: str) -> None:
    """Whatever is taken can be tried against its longest text, also where it fails only at the end."""
    try:
        longest = longest_text(f"^{pattern}!$")
    except SlowPatternError:
        return
    assert re.search(f"^{pattern}!$", "a" * min(longest, 2000)) is None


def test_a_text_that_is_too_long_for_its_pattern_is_a_fault() -> None:
    """A pattern is not tried on a text on which it could take long."""
    pattern = "^[a-z]*[a-z]*[a-z]*!$"
    longest = longest_text(pattern)
    assert longest**3 <= MOST_WAYS
    form = Form({"pattern": pattern})
    assert form.faults("a" * longest + "!") == [
        f"data: it has {longest + 1} characters; the pattern {pattern!r} allows at most {longest}"
    ]
    assert form.faults("abc!") == []


def test_a_long_list_of_objects_is_compared_quickly() -> None:
    """Whether elements are unique is not found out by comparing each with each: that would take hours here."""
    assert Form({"uniqueItems": True}).faults([{"n": number} for number in range(50_000)]) == []
    assert Form({"uniqueItems": True}).faults([{"n": 1}, {"n": 1}]) == ["data: it has the same element twice"]


def test_the_validator_is_not_loaded_without_a_form() -> None:
    """Whoever has no forms does not pay for them."""
    program = "import sys, holdfast; holdfast.Saga('s').human('a').build(); sys.exit('jsonschema' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
