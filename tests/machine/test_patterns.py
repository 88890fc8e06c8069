"""Patterns of users: which are taken, what they mean, and that no pattern and no text costs more than its bound."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standfast.graph.values.forms import LONGEST_TEXT, MOST_INSTRUCTIONS, PatternError, read_pattern
from support.untimed import untimed

USUAL = {
    "an account": r"^[A-Z]{2}\d{2}[A-Z0-9]{4,30}$",
    "a post code": r"^\d{5}(-\d{4})?$",
    "an address": r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
    "alternatives": "^(a|b)?c*$",
    "a letter": "x",
    "a name": r"^[\p{L}\p{M}' -]+$",
    "a thousand": "^.{1,1000}$",
    "nested": "^(a+)+$",
    "a code point": r"^[\u00e0-\u00ff]+$",
    "two halves": r"\ud83d\ude00",
    "a group with a name": "(?P<year>[0-9]{4})",
    "words": "(?i)^yes|no$",
    "braces in a class": "[{99999}]",
    "braces as text": r"\{99999\}",
    "a class of POSIX": "[[:alpha:]{99999}]",
    "a bracket first": "[]{99999}]",
}


@pytest.mark.parametrize("name", USUAL)
def test_usual_patterns_are_taken(name: str) -> None:
    """What people write into forms is taken, and tried on texts as long as people give."""
    assert read_pattern(USUAL[name]).longest >= 1_000


REFUSED = {
    "(?=a)": "at character 1: '(?=' looks ahead",
    "a(?!b)": "at character 2: '(?!' looks ahead",
    "(?<=a)b": "at character 1: '(?<=' looks back",
    "(?<!a)b": "at character 1: '(?<!' looks back",
    r"(\w)\1": r"at character 5: '\\1' refers to what was matched before",
    "(?P<a>b)(?P=a)": "at character 9: '(?P=' refers to what was matched before",
    r"(?<a>b)\k<a>": r"at character 8: '\\k' refers to what was matched before",
    "a{1001}": "at character 2: '{1001}' repeats more than 1000 times",
    "a{5,1001}": "at character 2: '{5,1001}' repeats more than 1000 times",
    "^(?:^){4000000000}": "at character 7: '{4000000000}' repeats more than 1000 times",
    "^(?:^){100000000}": "at character 7: '{100000000}' repeats more than 1000 times",
    "(a{100}){100}": "at character 3: '{100}' repeats too often",
    "a{,5}": "at character 2: '{,5}' is no number of times; write it as '{0,5}'",
    "a{2,1}": "at character 2: '{2,1}' is no number of times",
    r"\p{L}{100}": "it is too large",
    r"a\Z": r"at character 2: '\Z' is not taken; use '$'",
    "[a": "at character 1: missing ]",
    "a)": "unexpected )",
    "a**": "at character 2: bad repetition operator '**'",
    "(?>a)": "at character 1: invalid perl operator '(?>'",
    r"\ud83d": "at character 1: half of a character",
    "a\ud800": "at character 2: half of a character",
    r"\u00": r"at character 1: '\u' needs four digits",
    "\\": "trailing",
    "a{1000}" * 11: "it is too large once its repeats are written out",
}


@pytest.mark.parametrize("pattern", REFUSED)
def test_other_patterns_are_refused(pattern: str) -> None:
    """What looks around or back, repeats too often or is no pattern is refused, with the place and what to do."""
    with pytest.raises(PatternError) as refused:
        read_pattern(pattern)
    assert REFUSED[pattern] in str(refused.value)


MEANT: list[tuple[str, str, bool]] = [
    (r"^\d+$", "12", True),
    (r"^\d+$", "١٢", False),
    (r"^\w+$", "ab_1", True),
    (r"^\w+$", "é", False),
    (r"^\p{L}+$", "é", True),
    (r"a\b", "aé", True),
    ("^a$", "a\n", False),
    ("^a$", "b\na", False),
    ("(?m)^a$", "b\na", True),
    ("a.b", "a\nb", False),
    ("(?s)a.b", "a\nb", True),
    ("(?i)É", "é", True),
    ("^.$", "😀", True),
    ("^[^a]$", "é", True),
    (r"^\ud83d\ude00$", "😀", True),
    (r"^[\u00e0-\u00ff]$", "é", True),
    (r"^\x{e9}$", "é", True),
    ("^$", "", True),
    ("", "anything", True),
]


@pytest.mark.parametrize(("pattern", "text", "is_found"), MEANT)
def test_what_patterns_mean(pattern: str, text: str, is_found: bool) -> None:  # noqa: FBT001 - a table
    """Classes are about ASCII and a text ends where it ends, as JSON Schema has it; other letters have classes of their own."""
    assert read_pattern(pattern).is_found_in(text) == is_found


PATTERNS = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "é"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{0,3}", "{2}"])).map(lambda pair: f"({pair[0]}){pair[1]}"),
    ),
    max_leaves=8,
)


@untimed
@given(PATTERNS, st.text("abé\n", max_size=8))
def test_a_pattern_means_what_it_means_in_python(pattern: str, text: str) -> None:
    """Where the two languages agree on the words, they agree on what is found."""
    assert read_pattern(pattern).is_found_in(text) == (re.search(pattern, text) is not None)


@pytest.mark.parametrize(
    "pattern", [r"(a|b)*a(a|b){900}$", "(?:a?){900}a{900}c", "(?:[ab]?[ab]?){450}c$", "(x+x+)+y", "(a*)*b"]
)
def test_no_text_takes_long(pattern: str) -> None:
    """The size of a pattern and the length of a text bound what is done; a text beyond is not tried at all."""
    made = read_pattern(pattern)
    assert made.size <= MOST_INSTRUCTIONS
    assert made.longest * made.size <= 10_000_000 or made.size <= 100
    text = ("ab" * made.longest)[: made.longest]
    assert made.allows(text)
    assert not made.allows(text + "a")
    made.is_found_in(text)
    assert made.longest <= LONGEST_TEXT


def test_half_of_a_character_is_matched_as_one() -> None:
    """A text that no database keeps makes no pattern fail."""
    assert read_pattern("^a.$").is_found_in("a\ud800")


BOUNDED = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))
from standfast.graph.values.forms import PatternError, read_pattern
for number in range(400):
    pattern = "(?:[ab]?[ab]?){4%02d}%s" % (number % 90, "c" * (number // 90))
    try:
        made = read_pattern(pattern)
    except PatternError:
        continue
    made.is_found_in(("abbab" * 200)[:made.longest])
print("bounded")
"""


def test_memory_has_a_bound() -> None:
    """However many patterns are read and matched, a process with little memory goes on."""
    ran = subprocess.run([sys.executable, "-c", BOUNDED], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "bounded", ran.stderr[-500:]
