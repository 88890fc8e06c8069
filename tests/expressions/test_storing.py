from __future__ import annotations

import copy
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from expressions.strategies import ROOMY, plain_data, trees, untimed
from expressions.trying import answer, failed
from standfast.errors import ExpressionError
from standfast.expressions import Expression, ExpressionLimits, ExpressionOptions, Spelling, parse
from standfast.expressions.model.tree import Node, canonical, digest

KNOWN = {
    "entity.grand_total > 10000 && actor.roles contains 'finance_manager'": (
        "d3debbc45b7c62a8420d7903dc5f4564e39cc7791005697c7444c8009b06755a"
    ),
    "input.count? > 5": "4448b0cc5cdaeb390972b36a0f5ee5d1bbe3c64b6cd2a38f943c61c56a6784fb",
    "a in [1, 0.5, 'x', null, true] || !b": "f07c685ed91ff4d1d6b5f042316571ce08e9bc4496afa00e963143a0306d3cd6",
}


def reloaded(expression: Expression) -> Expression:
    """The expression after it was stored as JSON and read back."""
    return Expression.from_data(json.loads(json.dumps(expression.to_data())))


@pytest.mark.row("E-204")
@pytest.mark.parametrize(("source", "known"), [*KNOWN.items()])
def test_known_hashes(source: str, known: str) -> None:
    """Hashes that were once published stay: stored definitions are pinned to them."""
    assert parse(source).hash == known


@pytest.mark.row("E-201", "E-204")
def test_the_hash_is_of_canonical_json() -> None:
    """Anybody can compute the hash: SHA-256 over the tree as JSON with sorted keys and no white space."""
    form = (
        '{"left":{"absent":"zero","node":"variable","path":["input","count"]},"node":"compare","operator":">",'
        '"right":{"node":"number","text":"5"}}'
    )
    assert parse("input.count? > 5").hash == hashlib.sha256(form.encode()).hexdigest()


@pytest.mark.row("E-201")
def test_key_order_of_a_json_condition_has_no_meaning() -> None:
    """Conditions that differ in the order of keys and in white space have one hash."""
    one = parse('{"field": "a", "operator": "eq", "value": 1}', spelling="json")
    other = parse('{"value":1,"operator":"eq","field":"a"}', spelling="json")
    assert one.hash == other.hash


@pytest.mark.row("E-202")
def test_null_is_kept_in_the_hash() -> None:
    """A literal null is part of the meaning."""
    assert parse("a in [1, null]").hash != parse("a in [1]").hash


@pytest.mark.row("E-203")
def test_numbers_are_hashed_as_text() -> None:
    """No floating point number enters the hash, so no platform can change it."""
    form = json.dumps(canonical(parse("a > 0.1 && b == 12345678901234567890").tree))
    assert '"text": "0.1"' in form
    assert '"text": "12345678901234567890"' in form


@pytest.mark.row("E-205")
def test_list_order_is_part_of_the_hash() -> None:
    """Lists that differ in their order differ."""
    assert parse("a == [1, 2]").hash != parse("a == [2, 1]").hash


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a == 1", "a == true"),
        ("a == '1'", "a == 1"),
        ("a == null", "a == 'null'"),
        ("a? == 1", "a == 1"),
        ("a == 'x'", "a == ['x']"),
        ("a.b == 1", "b.a == 1"),
    ],
)
def test_different_meanings_have_different_hashes(one: str, other: str) -> None:
    """What evaluates differently hashes differently, also where Python would call it equal."""
    assert parse(one).hash != parse(other).hash


def test_a_condition_and_a_mapping_of_one_variable_differ() -> None:
    """A bare variable as a condition must be true or false, as a mapping it may be anything: two meanings."""
    assert parse("context.flag") != parse("context.flag", spelling="mapping", options=ExpressionOptions(lenient=False))


@pytest.mark.parametrize(
    ("source", "spelling"),
    [
        ("entity.total? > 10.5 && !(actor.roles contains 'x')", "native"),
        ("{{ or .a (eq .b 1 2) }}", "go"),
        ('{"field": "a", "operator": "in", "value": [1, "x", null]}', "json"),
        ("workflow.order_id", "mapping"),
        ("pod:{entity.id}", "template"),
        ("flag", "native"),
    ],
)
def test_a_stored_expression_comes_back(source: str, spelling: Spelling) -> None:
    """An expression stored with a definition is the same after reading: text, meaning, hash."""
    expression = parse(source, spelling=spelling)
    again = reloaded(expression)
    assert again == expression
    assert (again.source, again.spelling, again.hash) == (source, spelling, expression.hash)


@pytest.mark.row("E-618")
def test_types_and_positions_are_stored() -> None:
    """A checked expression keeps its types, and its errors still point into the source."""
    expression = parse("true && entity.due < now").check({"entity": {"due": "date"}, "now": "datetime"})
    error = failed(reloaded(expression), {"entity": {"due": "soon"}, "now": None})
    assert (error.reason, error.position, error.source) == ("bad_time", 8, "true && entity.due < now")


@given(tree=trees)
@untimed
def test_any_tree_is_stored_and_hashed(tree: Node) -> None:
    """Every tree has a hash and a stored form that is read as the same tree or refused by a rule of the language."""
    stored = {"source": "", "spelling": "mapping", "tree": canonical(tree), "hash": digest(tree)}
    outcome = answer(lambda: Expression.from_data(stored, options=ROOMY).hash)
    if isinstance(outcome, ExpressionError):
        assert outcome.reason in {"type_mismatch", "not_boolean", "null_order"}
    else:
        assert outcome == digest(tree)


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        (("hash",), "0" * 64),
        (("tree", "right", "text"), "99999"),
        (("tree", "operator"), "<"),
        (("tree", "operator"), "**"),
        (("tree", "left", "path"), ["__class__ x"]),
        (("tree", "left", "path"), []),
        (("tree", "left", "path"), ["entity\n"]),
        (("tree", "right"), {"node": "constant", "value": "\ud800"}),
        (("tree", "left", "absent"), "anything"),
        (("tree", "node"), "call"),
        (("tree", "right", "text"), "1e9"),
        (("tree", "right"), None),
        (("spelling",), "python"),
        (("tree",), []),
        (("extra",), 1),
    ],
)
def test_a_changed_expression_is_refused(path: tuple[str, ...], changed: object) -> None:
    """What was altered after it was hashed, or is no expression at all, is never evaluated."""
    data = copy.deepcopy(parse("entity.total > 10000").to_data())
    place: dict[str, object] = data
    for key in path[:-1]:
        inner = place[key]
        assert isinstance(inner, dict)
        place = inner
    place[path[-1]] = changed
    with pytest.raises(ExpressionError) as caught:
        Expression.from_data(data)
    assert caught.value.reason == "bad_form"


@pytest.mark.parametrize(
    ("source", "limits", "reason"),
    [
        ("!(!(!a))", ExpressionLimits(depth=2), "too_deep"),
        ("a in [1, 2]", ExpressionLimits(list_items=1), "list_too_long"),
        ("a.b.c == 1", ExpressionLimits(dereferences=2), "too_many_dereferences"),
        ("a == 12345", ExpressionLimits(digits=4), "bad_number"),
    ],
)
def test_limits_hold_for_stored_expressions(source: str, limits: ExpressionLimits, reason: str) -> None:
    """A stored expression that breaks a limit is refused like a written one."""
    with pytest.raises(ExpressionError) as caught:
        Expression.from_data(parse(source).to_data(), options=ExpressionOptions(limits=limits))
    assert caught.value.reason == reason


def test_a_bottomless_form_is_refused() -> None:
    """Stored data nested without end is an error, not a crash."""
    tree: dict[str, object] = {"node": "constant", "value": True}
    for _ in range(100_000):
        tree = {"node": "not", "part": tree}
    with pytest.raises(ExpressionError):
        Expression.from_data({"source": "", "spelling": "native", "tree": tree, "hash": ""})


@given(data=st.one_of(plain_data, st.dictionaries(st.sampled_from(["source", "spelling", "tree", "hash"]), plain_data)))
@untimed
def test_garbage_is_refused(data: object) -> None:
    """Whatever is offered as a stored expression, the answer is an expression error."""
    with pytest.raises(ExpressionError):
        Expression.from_data(data)
