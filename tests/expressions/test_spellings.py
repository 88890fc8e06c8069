from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expressions.strategies import BUILDER, ROOMY, names, numbers, paths, shown_texts, trees, untimed
from standfast.expressions import ExpressionOptions, parse
from standfast.expressions.model.paths import is_word
from standfast.expressions.model.printing import printed
from standfast.expressions.model.tree import (
    And,
    Comparison,
    Constant,
    Node,
    Not,
    Number,
    Or,
    Variable,
    canonical,
)
from standfast.expressions.syntax.native import read_native
from standfast.expressions.syntax.tree_builder import Builder

GO_NAMES = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def plain_path(variable: Node) -> str:
    """The path of a variable without its mark."""
    assert isinstance(variable, Variable)
    return variable.name


def double_braces(text: str) -> str:
    """The text as a template writes it."""
    return text.replace("{", "{{").replace("}", "}}")


def to_go(node: Node) -> str:
    """A condition as a Go template writes it."""
    match node:
        case Comparison(operator=operator, left=left, right=right):
            return f"({GO_NAMES[operator]} {to_go(left)} {to_go(right)})"
        case Not(part=part):
            return f"(not {to_go(part)})"
        case And(parts=parts):
            return f"(and {' '.join(map(to_go, parts))})"
        case Or(parts=parts):
            return f"(or {' '.join(map(to_go, parts))})"
        case Number(text=text):
            return text
        case Constant(value=value):
            return "nil" if value is None else json.dumps(value)
        case _:
            assert isinstance(node, Variable)
            if all(map(is_word, node.path)):
                return f".{plain_path(node)}"
            first, *others = node.path
            return f"(index .{first} {' '.join(json.dumps(name, ensure_ascii=False) for name in others)})"


def to_json(node: Node) -> object:
    """A condition as JSON writes it."""
    match node:
        case Comparison(operator=operator, left=left, right=right):
            operand = json.loads(right.text) if isinstance(right, Number) else getattr(right, "value", None)
            return {"field": plain_path(left), "operator": operator, "value": operand}
        case Not(part=part):
            return {"not": to_json(part)}
        case And(parts=parts):
            return {"all": [to_json(part) for part in parts]}
        case Or(parts=parts):
            return {"any": [to_json(part) for part in parts]}
        case _:
            return {"expression": plain_path(node)}


comparisons = st.one_of(
    st.builds(
        lambda operator, path, number: BUILDER.comparison(operator, BUILDER.variable(path, 0), number, 0),
        st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
        paths,
        st.integers(-(10**9), 10**9).map(lambda each: BUILDER.number(str(each), 0))
        | numbers.filter(lambda n: len(n.text) < 16),
    ),
    st.builds(
        lambda operator, path, value: BUILDER.comparison(operator, BUILDER.variable(path, 0), Constant(value=value), 0),
        st.sampled_from(["==", "!="]),
        paths,
        st.one_of(st.none(), st.booleans(), names),
    ),
)
conditions = st.recursive(
    comparisons | paths.map(lambda path: BUILDER.variable(path, 0)),
    lambda parts: st.one_of(
        parts.map(lambda part: BUILDER.negation(part, 0)),
        st.lists(parts, min_size=2, max_size=3).map(BUILDER.conjunction),
        st.lists(parts, min_size=2, max_size=3).map(BUILDER.disjunction),
    ),
    max_leaves=8,
)
"""Conditions that all three spellings can express."""


@pytest.mark.row("E-617", "E-190", "EC-15")
@pytest.mark.parametrize("lenient", [True, False])
def test_one_condition_three_spellings(*, lenient: bool) -> None:
    """With the same leniency a condition has the same tree and hash, whichever way it is written."""
    options = ExpressionOptions(lenient=lenient)
    native = parse("count > 5 && status != 'x'", options=options)
    go = parse('{{ and (gt .count 5) (ne .status "x") }}', spelling="go", options=options)
    structured = parse(
        {
            "all": [
                {"field": "count", "operator": "gt", "value": 5},
                {"field": "status", "operator": "neq", "value": "x"},
            ]
        },
        options=options,
    )
    assert native == go == structured
    assert native.hash == go.hash == structured.hash
    assert canonical(native.tree) == canonical(go.tree) == canonical(structured.tree)


def test_equal_expressions_are_one_in_a_set() -> None:
    """Expressions that mean the same are interchangeable as keys, and show their native form when printed."""
    same = {parse("a>1"), parse("a > 1.0"), parse({"field": "a", "op": "gt", "value": 1})}
    assert repr(same) == "{Expression('a > 1')}"
    assert parse("a > 1") != "a > 1"


def test_a_root_namespace_is_shared_by_all_spellings() -> None:
    """Bare names fall into the namespace that the caller names; names of namespaces stay."""
    options = ExpressionOptions(root="input", lenient=True)
    expressions = [
        parse("count > 5 && now != null", options=options),
        parse("{{ and (gt .count 5) (ne .now nil) }}", spelling="go", options=options),
        parse(
            {"all": [{"field": "count", "op": "gt", "value": 5}, {"field": "now", "op": "ne", "value": None}]},
            options=options,
        ),
    ]
    assert {each.hash for each in expressions} == {parse("input.count? > 5 && now? != null").hash}


def test_the_root_namespace_can_be_named() -> None:
    """A path that names the root is not put into the root a second time, so printed text reads back."""
    options = ExpressionOptions(root="data", namespaces=frozenset({"now"}))
    expression = parse("count > 5 && data.count < 9", options=options)
    assert str(expression) == "data.count > 5 && data.count < 9"
    assert parse(str(expression), options=options) == expression


@pytest.mark.row("E-617")
@given(tree=conditions, lenient=st.booleans())
@untimed
def test_any_condition_three_spellings(tree: Node, *, lenient: bool) -> None:
    """Whatever three spellings can all express, they express as the same tree."""
    options = ExpressionOptions(lenient=lenient, limits=ROOMY.limits)
    native = parse(printed(tree), options=options)
    assert parse(f"{{{{ {to_go(tree)} }}}}", spelling="go", options=options).hash == native.hash
    assert parse(json.dumps(to_json(tree)), spelling="json", options=options).hash == native.hash


@given(tree=trees)
@untimed
def test_a_printed_tree_reads_back(tree: Node) -> None:
    """The native text of a tree is read as that tree: nothing of its meaning is lost in print."""
    assert canonical(read_native(printed(tree), Builder(ROOMY, lenient=False))) == canonical(tree)


@given(pieces=st.lists(st.one_of(shown_texts.map(double_braces), paths.map("{{{}}}".format)), max_size=5))
@untimed
def test_a_printed_template_reads_back(pieces: list[str]) -> None:
    """A template prints as the quoted text of a mapping, which is read as the same template."""
    expression = parse("".join(pieces), spelling="template", options=ROOMY)
    assert parse(str(expression), spelling="mapping", options=ROOMY) == expression


@pytest.mark.parametrize("spelling", ["native", "go", "json"])
def test_printing_does_not_depend_on_options(spelling: str) -> None:
    """The native text carries leniency and namespaces with it: it reads back the same under default options."""
    sources = {"native": "count > 5", "go": "{{ gt .count 5 }}", "json": '{"field":"count","op":"gt","value":5}'}
    expression = parse(
        sources[spelling],
        spelling=spelling,  # type: ignore[arg-type]
        options=ExpressionOptions(lenient=True, root="input"),
    )
    assert str(expression) == "input.count? > 5"
    assert parse(str(expression)) == expression
