from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expressions.strategies import ROOMY, plain_data, trees, untimed
from expressions.trying import answer
from standfast.errors import ExpressionError
from standfast.expressions import ExpressionErrorCode, ExpressionOptions, Spelling, parse, point
from standfast.expressions.evaluation import compile_tree
from standfast.expressions.model.characters import is_hidden
from standfast.expressions.model.tree import Node

WORDS: dict[Spelling, list[str]] = {
    "native": ["a", "b.c", "d?", "(", ")", "[", "]", ",", "!", "not ", " and ", "&&", "||", "==", "<", " in ", " contains ", " starts_with ", "['x-y']", "'x'", "1", "null", "true", " ", "'", "\\", "."],
    "go": ["{{", "}}", "gt ", "eq ", "and ", "not ", "index ", "hasPrefix ", ".", ".a", ".b.c", " 1", ' "x"', "(", ")", "|", "`", "nil", "true", " ", "-", '"'],
    "json": ["{", "}", "[", "]", ":", ",", '"field"', '"operator"', '"value"', '"all"', '"not"', '"expression"', '"a"', '"eq"', '"exists"', '"a > 1"', "1", "null", " ", '"', "\\u"],
    "mapping": ["workflow.a", "context.b", "'", "{", "}", "{entity.a}", '{entity["x-y"]}', "\\", "==", "1", "[", "]", " ", "?"],
    "template": ["{", "}", "{a}", "{a.b?}", "{a['x-y']}", "text", "\\", "{{", "}}", "!", ":", " "],
}  # fmt: skip

STRICT = ExpressionOptions(lenient=False, limits=ROOMY.limits)
"""Printed text carries its leniency with it, so that it is read back strictly."""

SPELLINGS: list[Spelling] = [*WORDS]


def check_answer(source: str, spelling: Spelling) -> None:
    """Parsing either works or raises the one error, with a reason, a place in the source and a drawing of it."""
    outcome = answer(lambda: parse(source, spelling=spelling))
    if isinstance(outcome, ExpressionError):
        assert ExpressionErrorCode(outcome.reason)
        assert outcome.source == source
        assert outcome.position is not None
        assert 0 <= outcome.position <= len(source)
        assert not any(is_hidden(character) for character in point(outcome) if character != "\n")
    else:
        printed_spelling: Spelling = "mapping" if spelling in {"mapping", "template"} else "native"
        assert parse(str(outcome), spelling=printed_spelling, options=STRICT) == outcome


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(source=st.text(max_size=500))
@untimed
def test_arbitrary_text_never_escapes_the_error(spelling: Spelling, source: str) -> None:
    """Whatever is typed, the answer is an expression or an expression error that points."""
    check_answer(source, spelling)


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_almost_right_text_never_escapes_the_error(spelling: Spelling, data: st.DataObject) -> None:
    """Text made of the language's own words, in any order, is answered like any other."""
    words = data.draw(st.lists(st.sampled_from(WORDS[spelling]), max_size=40))
    check_answer("".join(words)[:500], spelling)


@given(tree=trees, scope=st.dictionaries(st.sampled_from("abcd"), plain_data))
@untimed
def test_evaluation_never_escapes_the_error(tree: Node, scope: dict[str, object]) -> None:
    """Any tree over any data gives a value or the one error, even a tree that no check has seen."""
    outcome = answer(lambda: compile_tree(tree)(scope, {}))
    if isinstance(outcome, ExpressionError):
        assert ExpressionErrorCode(outcome.reason)
        assert outcome.position is not None


@pytest.mark.parametrize("operator", ["==", "!=", "<", "<=", ">", ">=", "in", "contains", "starts_with", "ends_with"])
@given(left=plain_data, right=plain_data)
@untimed
def test_operators_never_escape_the_error(operator: str, left: object, right: object) -> None:
    """Any operator over any two values answers with true or false, or with an error that points at it."""
    outcome = answer(lambda: parse(f"a {operator} b").evaluate({"a": left, "b": right}))
    if isinstance(outcome, ExpressionError):
        assert ExpressionErrorCode(outcome.reason)
        assert outcome.position == 2
    else:
        assert isinstance(outcome, bool)
