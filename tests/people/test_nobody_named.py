"""Nothing that is empty means everybody: what is written and empty is refused, and what turns out empty when it is asked stops the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec import inspect

from standfast import (
    Actor,
    DefinitionError,
    PayloadError,
    RejectedError,
    Saga,
    ask,
    load_processes,
    load_rules,
)
from standfast.features.documents.body.format import Body
from standfast.features.documents.contract.format import Contract
from standfast.features.process_files.format import Domain
from standfast.graph.source_files.values import EMPTY
from standfast.graph.values.approver_rules import Ask
from standfast.testing import ManualEngine
from support.engines import Place

HARMLESS = {
    "Body.context",
    "Body.scenarios",
    "Body.slots",
    "Contract.actions",
    "Contract.policies",
    "Contract.slots",
    "Contract.system_fields",
    "Lifecycle.terminal",
    "Lifecycle.transitions",
    "ObjectField.fields",
    "Patch.edges",
    "Workflow.transitions",
    "Workflow.triggers",
}
"""Lists of parts: an empty one adds nothing, grants nothing, and asks nobody. What it would leave without an end is found elsewhere."""
SUPPOSED = ("Scenario.", "Player.", "Act.", "Expectation.")
"""What a test of a body supposes: it grants nothing."""
TIMES_AND_DATA = {"remind", "arguments", "input", "output", "payload", "shows", "form", "default", "schema", "params"}
"""An empty one reminds nobody, or gives nothing along."""


def _lists(form: type) -> Iterator[tuple[str, int | None, str]]:
    """Every list and object of a format: its name, the least that it holds, and what an empty one would come to."""
    met: set[object] = set()
    waiting: list[inspect.Type] = [inspect.type_info(form)]
    while waiting:
        kind = waiting.pop()
        match kind:
            case inspect.Metadata(type=inner):
                waiting.append(inner)
            case inspect.UnionType(types=types):
                waiting += types
            case inspect.ListType(item_type=item):
                waiting.append(item)
            case inspect.DictType(value_type=value):
                waiting.append(value)
            case inspect.StructType(cls=cls, fields=fields) if cls not in met:
                met.add(cls)
                for each in fields:
                    waiting.append(each.type)
                    extra: dict[str, str] = {}
                    bare = each.type
                    while isinstance(bare, inspect.Metadata):
                        extra |= bare.extra or {}
                        bare = bare.type
                    if isinstance(bare, inspect.ListType | inspect.DictType):
                        yield f"{cls.__name__}.{each.encode_name}", bare.min_length, extra.get(EMPTY, "")
            case _:
                pass


@pytest.mark.parametrize("form", [Domain, Contract, Body])
def test_every_list_of_a_format_says_what_an_empty_one_means(form: type) -> None:
    """A list that is written names at least one, unless it is one of the parts, times and data that an empty list says nothing by."""
    silent = [
        name
        for name, least, then in _lists(form)
        if not least
        and not then
        and not name.startswith(SUPPOSED)
        and name not in HARMLESS
        and name.partition(".")[2] not in TIMES_AND_DATA
    ]
    assert silent == []


# -- what is written


def _process(step: str) -> Callable[[], object]:
    text = f"""
domain: d
workflows:
  - id: p
    steps: [{{id: r, type: approval, {step}}}, {{id: y, type: terminal}}]
    transitions: [{{from: r, event: approved, to: y}}]
"""
    return lambda: load_processes(text)


def _rules(**requires: object) -> Callable[[], object]:
    block = {"id": "b", "type": "action", "action": "block", "requires": {"type": "approval", **requires}}
    return lambda: load_rules({"workflow_id": "w", "steps": [block, {"id": "ok", "type": "action", "action": "allow"}]})


WRITTEN: dict[str, Callable[[], object]] = {
    "a saga asks no people": lambda: Saga("s").human("q", ask=[]).build(),
    "a saga asks no people in a tuple": lambda: Saga("s").human("q", ask=()).build(),
    "a saga asks a role without a name": lambda: Saga("s").human("q", role="").build(),
    "a saga names no chain": lambda: Saga("s").human("q", chain="").build(),
    "a saga keeps nobody apart": lambda: Saga("s").human("q", role="r", distinct_from=[]).build(),
    "a saga tells by no channel": lambda: Saga("s").human("q", role="r", notify=[]).build(),
    "a form for no outcome": lambda: Saga("s").human("q", role="r", form={"type": "object"}, form_for=[]).build(),
    "a notice to nobody": lambda: Saga("s").notify("n", to=[], subject="x").build(),
    "a notice by no channel": lambda: Saga("s").notify("n", to="ann", subject="x", channel=[]).build(),
    "a way without steps": lambda: Saga("s").human("q", role="r", on_rejected=lambda way: way).build(),
    "a way for nobody in time": lambda: Saga("s").human("q", role="r", timeout=5, on_timeout=lambda way: way).build(),
    "a wait for no events": lambda: Saga("s").wait_for_events("w").build(),
    "a fork without branches": lambda: Saga("s").fork("f").join("j").build(),
    "a process without assignees": _process("assignees: []"),
    "a process with null for assignees": _process("assignees:"),
    "a process that keeps nobody apart": _process("assignee: {role: r}, distinct_from: []"),
    "a process with a form for no event": _process("assignee: {role: r}, form: {type: object}, form_for: []"),
    "rules without users": _rules(users=[]),
    "rules without a role": _rules(role=""),
}


@pytest.mark.row("E-682")
@pytest.mark.parametrize("case", sorted(WRITTEN))
def test_what_is_written_and_empty_is_refused(case: str) -> None:
    """A definition with an empty list is no definition: the message says what the list would come to, or what it lacks."""
    with pytest.raises(DefinitionError) as refused:
        WRITTEN[case]()
    assert refused.value.diagnostics


CONTRACT = """
entity_type: memo
version: 1
fields:
  text: {{type: string{field}}}
lifecycle:
  version: 1
  initial: draft
  terminal: [done]
  states: {{draft: {{window: editable}}, done: {{window: locked}}}}
  transitions: [{{name: finish, from: [draft], to: done}}]
slots:
  - {{id: "slot:way", entry: "sys:state:draft", exit: "sys:gate:finish", window: editable, stable: false}}
{more}
"""


def _contract(field: str = "", more: str = "") -> str:
    return CONTRACT.format(field=field, more=more)


@pytest.mark.parametrize(
    "text",
    [
        _contract(field=", visible_to: []"),
        _contract(more="policies: [{name: p, actions: [memo.update], roles: []}]"),
        _contract(more="policies: [{name: p, actions: []}]"),
    ],
    ids=["visible_to", "roles", "actions"],
)
def test_a_contract_names_somebody(place: Place, text: str) -> None:
    """A field that no role sees, and a policy that holds for no role, are refused when they are published."""
    with pytest.raises(DefinitionError, match="is empty"):
        place.engine().contracts.publish(text)


@pytest.mark.parametrize(
    "said", ["approvers: []", "approvers: [{user: ann}], covers: []", "approvers: [{user: ann}], distinct_from: []"]
)
def test_a_body_names_somebody(place: Place, said: str) -> None:
    """An approval that nobody could give, or that is about nothing, is refused when it is saved."""
    engine = place.engine()
    engine.contracts.publish(_contract())
    text = f"""
base: {{entity_type: memo, envelope_version: 1}}
slots:
  "slot:way":
    nodes: [{{id: a, type: approval, {said}}}]
"""
    with pytest.raises(DefinitionError, match="is empty, so"):
        engine.bodies.publish(engine.bodies.save(text).id)


@pytest.mark.parametrize("listed", ["on", "to", "channels"])
def test_a_rule_of_an_organisation_names_something(place: Place, listed: str) -> None:
    """A rule about no action, or that tells nobody, is refused; it is not one about all of them."""
    engine = place.engine()
    engine.contracts.publish(_contract())
    rule = {"name": "r", "effect": "notify", "to": ["ann"], "subject": "s"} | {listed: []}
    with pytest.raises(DefinitionError, match="is empty, so"):
        engine.charters.publish_rules("memo", [rule])


@pytest.mark.parametrize("given", [[], [{"asks": []}], [{"asks": ["ann"]}, {"asks": []}]])
def test_a_chain_names_somebody(place: Place, given: list[dict[str, Any]]) -> None:
    """A chain without stages, and a stage that asks nobody, are refused."""
    with pytest.raises(RejectedError):
        place.engine().chains.publish("c", given)


# -- what something is done to


@pytest.mark.parametrize(
    "given",
    [
        {"verb": "cancel", "runs": [], "definition": "w"},
        {"verb": "cancel", "definition": "w", "status": []},
        {"verb": "requeue", "letters": [], "definition": "w"},
        {"verb": "start", "inputs": [], "definition": "w"},
    ],
    ids=["runs", "status", "letters", "inputs"],
)
def test_a_batch_about_nothing_is_not_about_everything(place: Place, given: dict[str, Any]) -> None:
    """Whoever computes a list of runs and gets none has no run touched."""
    engine = place.engine().register(Saga("w").wait_for("x", signal="x").build())
    run = engine.start("w")
    engine.drain()
    with pytest.raises(PayloadError, match="is empty, so the batch would do nothing"):
        engine.batches.begin(**given)
    engine.advance(minutes=5)
    assert run.describe().status == "running"


def test_a_redaction_of_no_field_takes_nothing_out(place: Place) -> None:
    """No field is named: nothing is redacted, and not all that is sensitive."""
    engine = place.engine()
    engine.contracts.publish(_contract(field=", sensitive: true"))
    engine.documents.create("memo", {"text": "secret"}, id="m")
    with pytest.raises(PayloadError, match="nothing would be redacted"):
        engine.documents.redact("memo", "m", [], reason="asked for")
    assert engine.documents.get("memo", "m").data["text"] == "secret"
    with pytest.raises(PayloadError, match="no document would be moved"):
        engine.workflows.move("memo", "1", "2", documents=[], reason="better")


# -- what turns out empty


def _nobody(_request: object) -> list[str]:
    return []


EMPTIED: dict[str, dict[str, Any]] = {
    "a rule gives an empty list": {"ask": "rule:owners"},
    "a rule gives nothing": {"ask": "rule:owner"},
    "a rule gives a blank": {"ask": "rule:blank"},
    "a resolver finds nobody": {"ask": "nobody_there"},
    "there is no manager": {"ask": "manager"},
    "nobody holds the role": {"role": "auditor"},
    "nobody of the role is picked": {"ask": ask("role:auditor", pick="all")},
    "nobody of the role is next": {"ask": ask("role:auditor", pick="in_turn")},
    "a stage of a chain": {"chain": "emptied"},
}


def _asked(place: Place, **options: Any) -> tuple[ManualEngine, Any]:
    engine = place.engine()
    engine.resolver("nobody_there")(_nobody)
    for name in ("ann", "bob", "cat"):
        engine.directory.put(name)
    engine.directory.grant("ann", "finance")
    engine.chains.publish("emptied", [{"asks": ["role:auditor"]}])
    engine.register(Saga("pay").human("approve", **options).step("pay", lambda: {"paid": True}).build())
    run = engine.acting("rita").start("pay", {"owners": [], "owner": None, "blank": ""})
    engine.drain()
    return engine, engine.run(run.id)


@pytest.mark.row("E-682")
@pytest.mark.parametrize("case", sorted(EMPTIED))
def test_whom_nobody_was_found_for_stops_the_run(place: Place, case: str) -> None:
    """The run pauses with `no_approver`, a stranger cannot decide, and whoever is added can."""
    engine, run = _asked(place, **EMPTIED[case])
    assert run.describe().reason == "no_approver"
    with pytest.raises(RejectedError):
        engine.acting("stranger").tasks.approve(run.tasks()[0])
    engine.acting(Actor(id="ops", capabilities=frozenset({"task:*"}))).tasks.reassign(run.tasks()[0], "ann")
    engine.drain()
    engine.acting("ann").tasks.approve(run.tasks()[0])
    engine.drain()
    assert run.describe().status == "completed"
    assert run.verify().is_sound


@pytest.mark.row("E-682")
@pytest.mark.parametrize("empty", ["rule:owner", "nobody_there", "manager", ask("role:auditor", pick="all")], ids=str)
def test_where_all_have_to_agree_nobody_is_left_out(place: Place, empty: str | Ask) -> None:
    """One part of the question finds nobody: the others decide, which is kept, and it takes somebody who is added in that place."""
    engine, run = _asked(place, ask=["user:ann", empty], agree="all")
    assert run.describe().reason == "no_approver"
    engine.acting("ann").tasks.approve(run.tasks()[0])
    engine.drain()
    assert run.describe().reason == "no_approver"
    ops = engine.acting(Actor(id="ops", capabilities=frozenset({"task:*"})))
    ops.tasks.add_approver(run.tasks()[0], "bob", reason="stands for the missing one")
    engine.acting("bob").tasks.approve(run.tasks()[0])
    engine.drain()
    assert run.describe().status == "completed"
    assert run.verify().is_sound


RESOLVED: dict[str, dict[str, Any]] = {
    "the resolver alone": {"ask": "board", "agree": "all"},
    "a list of parts": {"ask": ["board", "user:bob"]},
    "a stage of a chain": {"chain": "resolved"},
}
"""Ways to ask whom a resolver names, where all have to agree."""
HOLDERS = {"nobody": "", "a deactivated person": "cat", "the requester alone": "rita"}
"""Who has the role that the resolver names."""
BOARD_PROCESS = """
domain: d
workflows:
  - id: p
    steps:
      - {id: r, type: approval, assignees: [{resolver: board}], agree: all, self_approval: false}
      - {id: y, type: terminal}
    transitions: [{from: r, event: approved, to: y}]
"""


@pytest.mark.row("E-677", "E-682")
@pytest.mark.parametrize("holders", HOLDERS)
@pytest.mark.parametrize("way", [*RESOLVED, "a process"])
def test_a_role_that_a_resolver_names_stays_a_place(place: Place, way: str, holders: str) -> None:
    """All have to agree: a named role that nobody can decide for holds the run up, and the others do not pass without it."""
    engine = place.engine()
    engine.resolve_people("board", lambda _request: ["role:auditor", "ann"])
    for name in ("ann", "bob", "cat", "dan"):
        engine.directory.put(name)
    engine.directory.grant("bob", "finance")
    if HOLDERS[holders]:
        engine.directory.put(HOLDERS[holders])
        engine.directory.grant(HOLDERS[holders], "auditor")
    engine.directory.deactivate("cat")
    if way == "a process":
        engine.register(*load_processes(BOARD_PROCESS))
        run = engine.run(engine.acting("rita").processes.start("p").id)
    else:
        engine.chains.publish("resolved", [{"asks": [{"by": "board"}], "agree": "all"}])
        engine.register(Saga("pay").human("approve", **RESOLVED[way], self_approval=False).build())
        run = engine.run(engine.acting("rita").start("pay").id)
    engine.drain()
    assert run.describe().reason == "no_approver"
    assert "role:auditor" in run.why().words
    assert [(each.kind, each.instance) for each in engine.admin.incidents()] == [("no_approver", run.id)]
    for name in ("ann", "bob") if way == "a list of parts" else ("ann",):
        engine.acting(name).tasks.approve(run.tasks()[0])
    engine.advance(minutes=2)
    assert run.describe().reason == "no_approver"
    engine.directory.grant("dan", "auditor")
    engine.advance(minutes=2)
    engine.acting("dan").tasks.approve(run.tasks()[0])
    engine.drain()
    assert run.describe().status == "completed"
    assert run.verify().is_sound


def test_a_place_that_is_handed_on_does_not_fill_another(place: Place) -> None:
    """Ann hands her own place on: the one that nobody was found for is as empty as before."""
    engine, run = _asked(place, ask=["user:ann", "rule:owner"], agree="all")
    engine.acting("ann").tasks.delegate(run.tasks()[0], "cat")
    engine.acting("cat").tasks.approve(run.tasks()[0])
    engine.drain()
    assert run.describe().reason == "no_approver"


def test_a_stranger_is_not_told_who_is_asked(place: Place) -> None:
    """A refusal names nobody: neither those who are asked by name, nor the role."""
    for name, options in {"named": {"ask": ["user:ann", "user:bob"]}, "role": {"role": "finance"}}.items():
        engine = place.engine().register(Saga(name).human("q", **options).build())  # type: ignore[arg-type]
        run = engine.start(name)
        engine.drain()
        with pytest.raises(RejectedError) as refused:
            engine.acting("stranger").tasks.approve(run.tasks()[0])
        assert not any(name in str(refused.value) for name in ("ann", "bob", "finance"))
