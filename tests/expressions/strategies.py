"""What hypothesis draws for these tests: names, trees in their canonical form, and data of every kind."""

from __future__ import annotations

from datetime import UTC
from decimal import Decimal
from typing import get_args

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from standfast.expressions import ExpressionLimits, ExpressionOptions
from standfast.expressions.model.characters import BLANK
from standfast.expressions.model.numbers import AnyNumber
from standfast.expressions.model.paths import path_text
from standfast.expressions.model.tree import Constant, Node, Number, Operator, Variable
from standfast.expressions.syntax.tree_builder import RESERVED, Builder

ROOMY = ExpressionOptions(
    limits=ExpressionLimits(length=100_000, depth=40, dereferences=10_000, digits=400, json_length=100_000)
)
"""Limits that the drawn trees cannot reach."""

untimed = settings(deadline=None)
"""For every property here: a busy machine must not fail a test."""

OPERATORS: tuple[Operator, ...] = get_args(Operator)

BUILDER = Builder(ROOMY, lenient=False)

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True).filter(
    lambda name: name.lower() not in RESERVED and not name.startswith("__")
)
odd_names = st.text(
    st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"], exclude_characters=BLANK), min_size=1, max_size=5
).filter(lambda name: not name.startswith("__"))
paths = st.builds(lambda first, others: path_text([first, *others]), names, st.lists(names | odd_names, max_size=2))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
shown_texts = st.text(
    st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"], exclude_characters=BLANK), max_size=12
)
decimals = st.decimals(min_value=-(10**12), max_value=10**12, allow_nan=False, places=6)

variables: SearchStrategy[Variable] = st.builds(
    lambda path, mark: BUILDER.variable(path + mark, 0), paths, st.sampled_from(["", "?"])
)
numbers: SearchStrategy[Number] = st.one_of(st.integers(), decimals).map(
    lambda number: BUILDER.number(f"{number:f}" if isinstance(number, Decimal) else str(number), 0)
)
constants: SearchStrategy[Constant] = st.one_of(st.none(), st.booleans(), texts).map(lambda each: Constant(value=each))
scalars: SearchStrategy[Constant | Number | Variable] = st.one_of(variables, numbers, constants)
operands: SearchStrategy[Node] = st.one_of(
    scalars, st.lists(scalars, max_size=4).map(lambda items: BUILDER.items(items, 0))
)


def _larger(parts: SearchStrategy[Node]) -> SearchStrategy[Node]:
    several = st.lists(parts, min_size=2, max_size=4)
    return st.one_of(
        st.builds(
            lambda operator, left, right: BUILDER.comparison(operator, left, right, 0),
            st.sampled_from(OPERATORS),
            parts,
            parts,
        ),
        parts.map(lambda part: BUILDER.negation(part, 0)),
        several.map(BUILDER.conjunction),
        several.map(BUILDER.disjunction),
    )


trees: SearchStrategy[Node] = st.recursive(operands, _larger, max_leaves=12)
"""Trees as the parsers build them, though not all of them make sense: types are left to chance."""

any_number: SearchStrategy[AnyNumber] = st.one_of(
    st.integers(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False),
    decimals,
    st.sampled_from([0.1, Decimal("0.1"), 2**53, float(2**53), 2**53 + 1, 1e23, 10**23, Decimal("1e23")]),
)

plain_scalars: SearchStrategy[object] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.text(max_size=8),
    st.datetimes(timezones=st.sampled_from([UTC, None])),
    st.dates(),
    st.timedeltas(),
)
plain_data: SearchStrategy[object] = st.recursive(
    st.one_of(plain_scalars, st.sampled_from([object(), b"x", {1}, (1, 2), 1j])),
    lambda each: st.one_of(st.lists(each, max_size=4), st.dictionaries(st.sampled_from("abcd"), each, max_size=4)),
    max_leaves=8,
)
"""Data of every kind that expressions know, and of some that they do not."""
