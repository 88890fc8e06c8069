"""What the checks of contracts and bodies let through has a graph: whatever the compiler of graphs would refuse is found before, at its place in the file."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from authoring.document.examples import (
    ACTIVE,
    APPROVE,
    CONTRACT,
    SUBMIT,
    Plain,
    ask,
    bills,
    body,
    body_data,
    changed,
    compiled,
    contract,
    mistakes,
    patch,
    way,
)
from standfast import DefinitionError
from standfast.features.documents.body.checks import read_body
from standfast.features.documents.compiler.compiler import check_body, compile_effective
from standfast.features.documents.compiler.graph import graph_of
from standfast.features.documents.contract.checks import MOST_STATES
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.graph.model import HumanOp
from standfast.graph.scopes import DEEPEST_FORKS

SCRIPT: Plain = {"type": "script", "formula": "1"}
FOREVER = "9999999w"


def script(name: str) -> Plain:
    """A step that computes something."""
    return {"id": name, **SCRIPT}


def rule(**fields: object) -> Plain:
    """A step with one rule."""
    return {"id": "r", "type": "rule", "rules": [{"name": "one", **fields}]}


def forks(kind: str, depth: int) -> Plain:
    """Forks inside of one another."""
    given: Plain = {"items": "entity.tags"} if kind == "for_each" else {}
    nodes = [{"id": f"s{at}", "type": kind, **given, **({"item": f"i{at}"} if given else {})} for at in range(depth)]
    ways: list[Plain | str] = [f"s{at} s{at + 1}" for at in range(depth - 1)]
    if kind == "parallel_split":
        ways += [f"s{at} out" for at in range(depth)] + [f"s{depth - 1} out"]
    return patch(nodes, ways, exit="join")


def waiting(**fields: object) -> Plain:
    """A slot with one step that has a time of its own."""
    return patch([{"id": "a", **fields}])


LATE: list[tuple[str, Plain]] = [
    ("outcome", patch([script("a")], ["in a approved"])),
    ("outcome", patch([script("a"), script("b")], ["in a", "in b true"], entry="branch", exit="join")),
    ("outcome", patch([], ["in out rejected"])),
    *(
        ("timeout", each)
        for time in ("0s", "0.1ms", FOREVER)
        for each in (
            patch([ask("a", timeout=time)], ["a out", "a out timeout"], exit="join"),
            waiting(type="wait_event", event="e", timeout=time),
            waiting(type="call", workflow="w", timeout=time),
        )
    ),
    ("hidden_character", patch([ask("a", capability="pay\u200b")])),
    ("long_name", patch([ask("a", capability="\U0001f600" * 200)])),
    ("hidden_character", waiting(type="webhook_out", url="https://x.example", secret="key\u202e")),
    ("hidden_character", waiting(type="webhook_out", url="https://x.example", secret="key\u200b")),
    ("nested", forks("parallel_split", DEEPEST_FORKS + 1)),
    ("nested", forks("for_each", DEEPEST_FORKS + 1)),
    ("rule", patch([rule(effect="outcome", outcome="timeout")], ["r out", "r out timeout"], exit="join")),
    ("edge_shadowed", patch([ask("a"), script("b")], ["a out", "a out error", "a b *"], exit="join")),
    ("undo", waiting(type="action", action="order.create", undo="order.")),
    ("undo", waiting(type="action", action="order.create", undo="order")),
    ("unknown_action", waiting(type="action", action="order.pay.twice", target="entity.number")),
    *(
        ("edge_id", patch([script("a")], [way("in a", id=name)]))
        for name in (
            f"edge:sys:state:submitted->sys:{APPROVE}:in",
            f"edge:sys:{APPROVE}:out->sys:gate:approve",
            f"edge:sys:gate:approve->sys:{APPROVE}:in",
            f"edge:usr:{APPROVE}:b->sys:{APPROVE}:out",
            f"edge:sys:{APPROVE}:in->usr:{APPROVE}:a#x",
        )
    ),
]  # fmt: skip


@pytest.mark.row("E-133", "E-192", "E-894")
@pytest.mark.parametrize(("code", "given"), LATE)
def test_what_has_no_graph_is_found_at_its_place(code: str, given: Plain) -> None:
    """Line and column, and the same for a body that is no text: nothing is left to be refused by the compiler of graphs."""
    text = json.dumps(body_data({APPROVE: given}))
    found = check_body(bills(), text)
    assert code in [each.code for each in found]
    assert all(each.position.count(":") == 1 and each.slot == APPROVE for each in found)
    with pytest.raises(DefinitionError, match=code):
        compile_effective(bills(), read_body(text))


@pytest.mark.row("E-133")
def test_an_edge_has_no_id_that_the_compiler_gives_to_others() -> None:
    """Nor one of another slot, which is put together before; its own one, as pictures and exports name it, it may have."""
    taken = {
        SUBMIT: patch([script("a")]),
        ACTIVE: patch([{"id": "a", "type": "action", "action": "bill.mark"}]),
    }
    for name in (
        f"edge:sys:{SUBMIT}:out->sys:gate:submit",
        f"edge:sys:policy:usr:{ACTIVE}:a->usr:{ACTIVE}:a",
        f"edge:usr:{SUBMIT}:a->sys:{SUBMIT}:out",
    ):
        slots = {**taken, APPROVE: patch([script("a")], [way("in a", id=name)])}
        assert "edge_id" in [each.code for each in check_body(bills(), json.dumps(body_data(slots)))]
    own = f"edge:sys:{APPROVE}:in->usr:{APPROVE}:a"
    for name in (own, f"{own}#7"):
        graph_of(compiled({**taken, APPROVE: patch([script("a")], [way("in a", id=name)])}))


@pytest.mark.row("E-133")
def test_an_approval_in_a_list_covers_fields_alone() -> None:
    """A list that is made of what every document has of itself adds nothing to what an approval covers."""
    given = patch(
        [
            {"id": "f", "type": "for_each", "items": "[entity.status, entity.owner, entity.vendor.name]"},
            ask("a", covers=["number"]),
        ],
        ["f a"],
    )
    op = graph_of(compiled({APPROVE: given})).nodes[f"usr:{APPROVE}:a"].op
    assert isinstance(op, HumanOp)
    assert op.covers == ("number", "owner", "vendor")


@pytest.mark.row("E-133")
def test_a_rule_may_have_the_word_of_a_policy() -> None:
    """`denied` is what a policy gate is left by, and no other node."""
    given = patch([rule(effect="outcome", outcome="denied")], ["r out", "r out denied"], exit="join")
    assert any(each.on == "denied" for each in graph_of(compiled({APPROVE: given})).edges)


def test_a_way_for_any_outcome_leads_on_from_every_kind_of_node() -> None:
    """Joins and the way into a slot are no exception."""
    nodes: list[Plain] = [
        {"id": "s", "type": "parallel_split"},
        script("a"),
        script("b"),
        {"id": "j", "type": "parallel_join"},
    ]
    ways = ["in s *", "s a", "s b", "a j *", "b j *", "j out *"]
    assert any(each.source.endswith(":j") for each in graph_of(compiled({APPROVE: patch(nodes, ways)})).edges)


@pytest.mark.row("E-011")
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"lifecycle__states__draft": {"window": "editable", "timeout": "0s", "on_timeout": "cancel"}}, "timeout"),
        ({"lifecycle__states__draft": {"window": "editable", "timeout": FOREVER, "on_timeout": "cancel"}}, "timeout"),
        ({"policies": [{"name": "two\u200b", "actions": ["bill.post"]}]}, "hidden_character"),
        ({"policies": [{"name": "\U0001f600" * 200, "actions": ["bill.post"]}]}, "long_name"),
        ({"actions__0__handler": "$documents"}, "reserved_handler"),
        ({"actions__0__handler": "pay\u200b"}, "hidden_character"),
        ({"fields__deepest": {"type": "object", "fields": {"x" * 64: {"type": "object", "fields": {"y" * 64: {"type": "object", "fields": {"z" * 64: {"type": "int"}}}}}}}}, "long_name"),
    ],
)  # fmt: skip
def test_a_contract_that_has_no_graph_is_refused_at_its_place(changes: Plain, code: str) -> None:
    """Times that are none, names that nobody can read, handlers that are the engine's."""
    found = mistakes(changed(CONTRACT, changes))
    assert [each.code for each in found] == [code]
    assert found[0].position.count(":") == 1


@pytest.mark.row("EO-35")
def test_a_lifecycle_is_of_a_size_that_somebody_can_look_at() -> None:
    """More states or transitions than there may be are one finding, and all else is not looked for."""
    states = {f"s{at}": {"window": "locked"} for at in range(MOST_STATES + 1)}
    ways = [{"name": f"t{at}", "from": ["s0"], "to": "ghost"} for at in range(MOST_STATES + 1)]
    given = changed(CONTRACT, {"lifecycle__states": states, "lifecycle__transitions": ways})
    assert [each.code for each in mistakes(given)] == ["too_many", "too_many"]


@pytest.mark.row("E-133")
def test_a_contract_that_nobody_has_checked_lets_nothing_through() -> None:
    """What is made in code and not read from a file is judged with the whole: the problem says which node of the envelope it is."""
    made = contract(lifecycle__states__draft={"window": "editable", "timeout": "1d", "on_timeout": "cancel"})
    states = {**made.lifecycle.states, "draft": replace(made.lifecycle.states["draft"], timeout="0s")}
    envelope = generate_envelope(replace(made, lifecycle=replace(made.lifecycle, states=states)))
    given = body({APPROVE: patch([ask("a")])})
    assert [(each.code, each.position) for each in check_body(envelope, given)] == [("timeout", "sys:state:draft")]
