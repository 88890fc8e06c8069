"""Rules files as they are read: the format, and every mistake in one go."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from standfast import ConfigurationError, DefinitionError, load_rules
from standfast.graph.model import HumanOp

ORDER: dict[str, Any] = {
    "workflow_id": "order_approval",
    "version": "1.0.0",
    "name": "Order Approval Workflow",
    "steps": [
        {
            "id": "check_order_value",
            "type": "condition",
            "condition": {"field": "order.total", "operator": "gte", "value": 10000},
            "on_true": "require_approval",
            "on_false": "allow_order",
        },
        {
            "id": "require_approval",
            "type": "action",
            "action": "block",
            "reason": "Order requires approval",
            "requires": {"type": "approval", "role": "sales_manager", "timeout": "24h"},
            "execute": [{"type": "notify", "recipients": ["sales_manager"], "message": "..."}],
        },
        {"id": "allow_order", "type": "action", "action": "allow"},
    ],
}
"""The worked example of the specification."""


def changed(**changes: Any) -> dict[str, Any]:
    """The example with other values: `steps__1__action="stop"`."""
    made = copy.deepcopy(ORDER)
    for path, value in changes.items():
        *way, last = [int(part) if part.isdigit() else part for part in path.split("__")]
        place: Any = made
        for part in way:
            place = place[part]
        place[last] = value
    return made


def codes(data: object) -> list[tuple[str, str]]:
    """What is wrong with a file: the code and the place of each finding."""
    with pytest.raises(DefinitionError) as caught:
        load_rules(data)  # type: ignore[arg-type]
    return [(each.code, each.position) for each in caught.value.diagnostics]


@pytest.mark.row("R-106", "R-107", "R-109")
def test_the_example_loads_as_text_and_as_data() -> None:
    """The same file gives the same graph, whichever way it is given, and keeps its source, its name and its version."""
    as_text, as_data = load_rules(json.dumps(ORDER)), load_rules(ORDER)
    assert as_text.graph.hash == as_data.graph.hash == load_rules(json.dumps(ORDER).encode()).graph.hash
    assert (as_text.name, as_text.version, as_text.description) == ("order_approval", "1.0.0", ORDER["name"])
    assert json.loads(as_text.source) == ORDER
    assert as_text.graph.kind == "rules"


@pytest.mark.row("R-050")
def test_the_action_may_stand_in_an_object_of_its_own() -> None:
    """`action: {type: block, requires: …}` is the same as `action: block` with `requires` beside it."""
    inner = {"type": "block", "requires": ORDER["steps"][1]["requires"]}
    nested = changed(steps__1__action=inner)
    del nested["steps"][1]["requires"]
    assert load_rules(nested).graph.hash == load_rules(ORDER).graph.hash


@pytest.mark.row("R-053", "R-113")
def test_a_step_without_a_successor_leads_to_the_next_in_the_list() -> None:
    """An approval without `on_true` leads to the step behind it; naming that step makes no difference."""
    named = changed(steps__1__on_true="allow_order")
    assert load_rules(named).graph.hash == load_rules(ORDER).graph.hash
    graph = load_rules(ORDER).graph
    assert [edge.target for edge in graph.edges if edge.source == "require_approval" and edge.on == "approved"] == [
        "allow_order"
    ]


@pytest.mark.row("R-137")
def test_only_an_approval_can_be_required() -> None:
    """A `requires` of another type is refused when the file is loaded."""
    assert codes(changed(steps__1__requires={"type": "foo"})) == [("requires_type", "steps[1].requires")]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"workflow_id": ""}, [("not_a_text", "workflow_id")]),
        ({"workflow_id": 7}, [("not_a_text", "workflow_id")]),
        ({"steps": []}, [("steps", "steps")]),
        ({"steps": {"a": 1}}, [("steps", "steps")]),
        ({"stepz": []}, [("unknown_field", "stepz")]),
        ({"steps__2": "allow"}, [("not_an_object", "steps[2]")]),
        ({"steps__2__type": "acton"}, [("step_type", "steps[2]")]),
        ({"steps__2__type": "acton", "steps__2__reson": "x", "steps__2__id": 7}, [("step_type", "steps[2]"), ("unknown_field", "steps[2]"), ("not_a_text", "steps[2].id")]),
        ({"steps__2__action": "alow"}, [("action", "steps[2]")]),
        ({"steps__2__action": None}, [("action", "steps[2]")]),
        ({"steps__2__requires": {}}, [("unknown_field", "steps[2]")]),
        ({"steps__1__requires__timeout": "1 day"}, [("duration", "steps[1].requires.timeout")]),
        ({"steps__1__requires__timeout": "0s"}, [("duration", "steps[1].requires.timeout")]),
        ({"steps__1__requires__timeout": 24}, [("duration", "steps[1].requires.timeout")]),
        ({"steps__1__requires__rle": "x"}, [("unknown_field", "steps[1].requires")]),
        ({"steps__1__execute": {"type": "notify"}}, [("execute", "steps[1]")]),
        ({"steps__1__execute__0__type": "notfy"}, [("execute_type", "steps[1].execute[0]")]),
        ({"steps__1__execute__0": {}}, [("execute_type", "steps[1].execute[0]")]),
        ({"steps__1__execute__0": {"recipients": ["ann"]}}, [("execute_type", "steps[1].execute[0]")]),
        ({"steps__1__execute__0": "notify"}, [("not_an_object", "steps[1].execute[0]")]),
        ({"steps__1__execute": [{"type": "call", "handler": "x"}, {}]}, [("execute_type", "steps[1].execute[1]")]),
        ({"steps__1__execute__0__recipients": []}, [("recipients", "steps[1].execute[0]")]),
        ({"steps__1__execute__0__message": ""}, [("not_a_text", "steps[1].execute[0].message")]),
        ({"steps__1__execute__0": {"type": "call"}}, [("not_a_text", "steps[1].execute[0].handler")]),
        ({"steps__1__execute__0": {"type": "call", "handler": "x", "attempts": 0}}, [("attempts", "steps[1].execute[0]")]),
        ({"steps__1__requires": None, "steps__1__on_false": "allow_order"}, [("requires", "steps[1]")]),
        ({"steps__2": {"id": "w", "type": "wait"}}, [("wait", "steps[2]")]),
        ({"steps__2": {"id": "w", "type": "wait", "event": "e", "duration": "1h"}}, [("wait", "steps[2]")]),
        ({"steps__2": {"id": "w", "type": "wait", "duration": "1h", "timeout": "2h"}}, [("wait", "steps[2]")]),
        ({"steps__2": {"id": "w", "type": "action", "action": "execute"}}, [("execute", "steps[2]")]),
        ({"trigger": 7}, [("not_an_object", "trigger"), ("not_a_text", "trigger.event")]),
        ({"trigger": {"evnt": "x"}}, [("unknown_field", "trigger"), ("not_a_text", "trigger.event")]),
        ({"steps__0__on_true": "require_aproval"}, [("unknown_step", "check_order_value")]),
        ({"steps__0__condition": {"field": "order.total", "operator": "gtee", "value": 1}}, [("bad_expression", "check_order_value")]),
        ({"steps__0__condition": "order.total >"}, [("bad_expression", "check_order_value")]),
    ],
)  # fmt: skip
def test_a_mistake_is_found_where_it_is(changes: dict[str, Any], found: list[tuple[str, str]]) -> None:
    """Each mistake has a code, a place in the file, and a sentence."""
    assert codes(changed(**changes)) == found


def test_all_mistakes_are_found_at_once() -> None:
    """Whoever mends a file sees all that is wrong with it, not one thing after the other."""
    wrong = changed(
        version=["1"],
        steps__0__on_treu="x",
        steps__1__requires__timeout="soon",
        steps__2__action="deny",
    )
    assert codes(wrong) == [
        ("unknown_field", "steps[0]"),
        ("duration", "steps[1].requires.timeout"),
        ("action", "steps[2]"),
        ("not_a_text", "version"),
    ]


def test_a_misspelt_word_gets_a_suggestion() -> None:
    """The sentence names what was probably meant."""
    with pytest.raises(DefinitionError, match="did you mean 'require_approval'"):
        load_rules(changed(steps__0__on_true="require_aproval"))
    with pytest.raises(DefinitionError, match="did you mean 'on_true'"):
        load_rules(changed(steps__0__on_treu="x"))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "not_json"),
        (b"\xff", "not_json"),
        ("[]", "not_an_object"),
        ('{"workflow_id": "a", "workflow_id": "b"}', "duplicate_key"),
        ("[" * 100_000, "not_json"),
    ],
)
def test_what_is_no_rules_file_is_refused(text: str | bytes, code: str) -> None:
    """Text that is no JSON, or no object, is a finding and never a traceback."""
    assert [each for each, _ in codes(text)] == [code]


def test_the_name_of_a_file_is_none(tmp_path: Path) -> None:
    """Whoever gives the name of a file instead of its text is told so."""
    with pytest.raises(DefinitionError, match="give the text of a rules file"):
        load_rules(str(tmp_path / "rules.json"))


def test_the_reason_of_a_block_may_have_holes() -> None:
    """They are read as those of every other text, and a hole that is none is a finding."""
    (human,) = (
        node.op
        for node in load_rules(changed(steps__1__reason="Order of {order.total}?")).graph.nodes.values()
        if isinstance(node.op, HumanOp)
    )
    assert human.template
    with pytest.raises(DefinitionError, match="the reason of 'require_approval' is wrong"):
        load_rules(changed(steps__1__reason="Order of {order.}?"))


def test_rules_are_text_or_data() -> None:
    """Anything else is told what to give."""
    with pytest.raises(ConfigurationError, match="as JSON or as a dict"):
        load_rules(7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("requires", "asked", "agreement"),
    [
        ({"role": "sales_manager"}, ["role:sales_manager"], "any"),
        ({"users": ["ann", "user:bob"]}, ["user:ann", "user:bob"], "all"),
        ({"users": ["ann", "user:bob"], "agree": "any"}, ["user:ann", "user:bob"], "any"),
        ({"users": ["ann"]}, ["user:ann"], "any"),
        ({"role": "sales_manager", "users": ["ann"], "agree": "all"}, ["role:sales_manager", "user:ann"], "all"),
        ({"users": ["ann", "bob", "cat"], "agree": 2}, ["user:ann", "user:bob", "user:cat"], "n"),
        ({"role": "role:sales_manager"}, ["role:sales_manager"], "any"),
        ({"role": "finance", "pick": "all", "agree": 2}, ["role:finance"], "n"),
        ({"role": "finance", "pick": "in_turn", "users": ["ann"]}, ["role:finance", "user:ann"], "all"),
    ],
)
def test_an_approval_asks_a_role_and_users(requires: dict[str, Any], asked: list[str], agreement: str) -> None:
    """Whoever has the role and each of the users is asked; all of them have to approve unless `agree` says how many."""
    graph = load_rules(changed(steps__1__requires={"type": "approval", **requires})).graph
    op = graph.nodes["require_approval"].op
    assert isinstance(op, HumanOp)
    assert ([each.words for each in op.all_asks], op.agreement) == (asked, agreement)


@pytest.mark.parametrize(
    ("requires", "found"),
    [
        ({}, ("role", "steps[1].requires")),
        ({"role": None}, ("role", "steps[1].requires")),
        ({"role": " "}, ("role", "steps[1].requires")),
        ({"role": "role:"}, ("role", "steps[1].requires")),
        ({"role": "user:ann"}, ("role", "steps[1].requires.role")),
        ({"role": 7}, ("not_a_text", "steps[1].requires.role")),
        ({"users": ["ann"], "pick": "all"}, ("pick", "steps[1].requires.pick")),
        ({"role": "finance", "pick": "some"}, ("pick", "steps[1].requires.pick")),
        ({"role": "finance", "agree": 2}, ("agree", "require_approval")),
        ({"users": []}, ("users", "steps[1].requires.users")),
        ({"users": "ann"}, ("users", "steps[1].requires.users")),
        ({"users": ["ann", 7]}, ("users", "steps[1].requires.users")),
        ({"users": ["ann"], "agree": "some"}, ("agree", "steps[1].requires.agree")),
        ({"users": ["ann"], "agree": 0}, ("agree", "steps[1].requires.agree")),
        ({"users": ["ann"], "agree": True}, ("agree", "steps[1].requires.agree")),
        ({"users": ["ann", "bob"], "agree": 3}, ("agree", "require_approval")),
        ({"users": ["ann", "ann"]}, ("asks", "require_approval")),
        ({"role": "finance", "requires_reason": "yes"}, ("not_a_flag", "steps[1].requires.requires_reason")),
        ({"role": "finance", "self_approval": 0}, ("not_a_flag", "steps[1].requires.self_approval")),
    ],
)
def test_nobody_in_particular_cannot_be_asked(requires: dict[str, Any], found: tuple[str, str]) -> None:
    """What `users` and `agree` cannot mean is found with its place, before anything is registered."""
    assert codes(changed(steps__1__requires={"type": "approval", **requires})) == [found]


def test_what_stands_beside_an_action_and_inside_of_it_says_one_thing() -> None:
    """Two approvals for one block are a mistake with its place, and not the nested one in silence; the same twice is none."""
    cfo, clerk = ({"type": "approval", "role": role} for role in ("cfo", "clerk"))
    block = {"id": "b", "type": "action", "requires": cfo, "action": {"type": "block", "requires": clerk}}
    steps = [block, {"id": "ok", "type": "action", "action": "allow"}]
    assert codes({"workflow_id": "w", "steps": steps}) == [("two_meanings", "steps[0].requires")]
    block["action"] = {"type": "block", "requires": cfo}
    assert load_rules({"workflow_id": "w", "steps": steps}).graph.name == "w"


def test_a_number_of_a_role_is_told_how_to_say_it() -> None:
    """Those who have a role share one place: whoever wants two of them is told to have each of them asked."""
    given = changed(steps__1__requires={"type": "approval", "role": "finance", "agree": 2})
    with pytest.raises(
        DefinitionError,
        match="needs 2, and those whom it asks come to 1: all who have a role share one place; have each",
    ):
        load_rules(given)
