"""Who sees what of a document through the directory, tasks, notices and runs: by the roles of the reader, wherever a value turns up."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import msgspec
import pytest

from app.documents.blueprints import of
from standfast import Actor, Capabilities, ForbiddenError
from standfast.app.api.sync import Calls
from standfast.graph.field_visibility import MASKED
from standfast.testing import ManualEngine
from support.engines import Place

CONTRACT = """
entity_type: raise
version: 1
fields:
  name: {type: string, required: true}
  pay: {type: money, visible_to: [hr]}
  memo: {type: string, visible_to: [board]}
  lines: {type: list, items: {type: object, fields: {text: {type: string}, cost: {type: money, visible_to: [hr]}}}}
lifecycle:
  version: 1
  initial: draft
  terminal: [done]
  amended: amended
  states: {draft: {window: editable}, sent: {window: amend_only}, done: {window: locked}, amended: {window: editable}}
  transitions:
    - {name: send, from: [draft, amended], to: sent}
    - {name: accept, from: [sent], to: done, begins: by_itself, on_reject: draft}
slots:
  - {id: "slot:check", entry: "sys:state:sent", exit: "sys:gate:accept", window: amend_only, stable: true}
policies:
  - {name: clerks, actions: [raise.send], roles: [clerk]}
"""
SHOWS = """
  - id: ask
    type: approval
    approvers: [{role: finance}]
    title: "Pay {entity.pay} to {entity.name}?"
    shows: {pay: entity.pay, who: entity.name, lines: entity.lines}
    channels: [in_app]
"""
GIVEN: dict[str, object] = {
    "name": "Rita",
    "pay": 424242,
    "memo": "SECRET-MEMO",
    "lines": [{"text": "bonus", "cost": 515151}],
}
RITA = Actor(id="rita", roles=frozenset({"hr", "board", "clerk"}))
AUDITOR = Actor(id="audra", capabilities=frozenset({"execution:read", "documents:read"}))
READING_HR = Actor(id="hera", capabilities=frozenset({"execution:read"}))
SECRETS = ("424242", "515151", "SECRET-MEMO")


def body(nodes: str, edges: str = "") -> str:
    """A body of the one slot."""
    return f'base: {{entity_type: raise, envelope_version: 1}}\nslots:\n "slot:check":\n  exit: join\n  nodes:{nodes}  edges: [{edges}]\n'


def sent(place: Place, nodes: str = SHOWS, edges: str = "", **options: object) -> tuple[ManualEngine, Calls]:
    """A raise of rita's that waits for finance; fay and hera hold their roles by the directory alone."""
    engine = place.engine(**options)  # type: ignore[arg-type]
    engine.contracts.publish(CONTRACT)
    calls = engine.as_tenant("acme")
    draft = calls.bodies.save(body(nodes, edges))
    assert not draft.problems
    calls.bodies.publish(draft.id)
    for name, roles in {"fay": "finance", "hera": "hr finance", "stan": "", "rita": "clerk"}.items():
        calls.directory.put(name)
        for role in roles.split():
            calls.directory.grant(name, role)
    of(engine, RITA).documents.create("raise", GIVEN, id="R-1")
    of(engine, RITA).documents.transition("raise", "R-1", "send")
    engine.drain()
    return engine, calls


def leaks(told: object) -> list[str]:
    """What an answer tells that is for some roles alone."""
    text = told if isinstance(told, str) else msgspec.json.encode(told).decode()
    return [each for each in SECRETS if each in text]


@pytest.mark.row("EH-07", "EO-42")
def test_somebody_who_is_asked_by_a_role_of_the_directory_reads_what_they_decide_on(place: Place) -> None:
    """Roles of the directory count for reading a document and its fields exactly as those that a request brings along."""
    engine, _ = sent(place)
    for who in (Actor(id="fay"), Actor(id="fay", roles=frozenset({"finance"}))):
        theirs = of(engine, who).documents
        assert theirs.get("raise", "R-1").data["name"] == "Rita"
        assert theirs.version("raise", "R-1", 1).data["pay"] == MASKED
        assert "Rita" in theirs.page("raise", "R-1", 1)
    hers = of(engine, Actor(id="hera")).documents
    assert hers.get("raise", "R-1").data == {**GIVEN, "memo": MASKED}
    assert leaks(hers.versions("raise", "R-1")) == ["424242", "515151"]
    with pytest.raises(ForbiddenError):
        of(engine, Actor(id="stan")).documents.get("raise", "R-1")


def test_whoever_stands_in_for_somebody_who_is_asked_reads_the_document(place: Place) -> None:
    """A stand-in sees what the role by which they are asked may see, and nothing once the delegation is over."""
    engine, calls = sent(place)
    calls.directory.delegate("hera", "stan", ends_at=engine.clock.now() + timedelta(days=1))
    theirs = of(engine, Actor(id="stan")).documents
    assert leaks(theirs.get("raise", "R-1").data) == []
    assert theirs.get("raise", "R-1").data["name"] == "Rita"
    engine.advance(days=2)
    with pytest.raises(ForbiddenError):
        theirs.get("raise", "R-1")


def test_a_deactivated_person_reads_nothing(place: Place) -> None:
    """A reader whom the directory has deactivated is refused, whatever the request says of them."""
    engine, calls = sent(place)
    calls.directory.deactivate("hera")
    with pytest.raises(ForbiddenError, match="deactivated"):
        of(engine, Actor(id="hera", capabilities=frozenset({"execution:read"}))).documents.get("raise", "R-1")


@pytest.mark.row("EH-06")
def test_policies_count_roles_of_the_directory(place: Place) -> None:
    """A policy of the contract that asks for a role is met by somebody who holds it by the directory alone."""
    engine, calls = sent(place)
    mine = of(engine, Actor(id="rita")).documents
    mine.create("raise", {"name": "x"}, id="R-2")
    assert [each.is_allowed for each in mine.get("raise", "R-2").transitions] == [True]
    calls.directory.revoke("rita", "clerk")
    assert [each.is_allowed for each in mine.get("raise", "R-2").transitions] == [False]
    with pytest.raises(ForbiddenError):
        mine.transition("raise", "R-2", "send")
    calls.directory.grant("rita", "clerk")
    made = mine.transition("raise", "R-2", "send")
    assert made.status == "sent"


@pytest.mark.row("E-240", "EO-42")
def test_what_a_question_shows_of_a_hidden_field_is_masked_for_each_reader(place: Place) -> None:
    """Titles and shown values are masked for approvers and operators without the role, and are whole for those who have it."""
    engine, calls = sent(place)
    (row,) = calls.run(calls.documents.get("raise", "R-1").instance).tasks()
    run, fay, hera = row.instance, Actor(id="fay"), Actor(id="hera")
    reads: list[Callable[[Calls], object]] = [
        lambda who: who.tasks.list(mine=True),
        lambda who: who.tasks.list(role="finance"),
        lambda who: who.tasks.get(row),
    ]
    for read in reads:
        assert leaks(read(of(engine, fay))) == []
        assert leaks(read(of(engine, hera))) == ["424242", "515151"]
    (seen,) = of(engine, fay).tasks.list(mine=True)
    assert seen.subject == f"Pay {MASKED} to Rita?"
    assert seen.data == {"pay": MASKED, "who": "Rita", "lines": [{"text": "bonus", "cost": MASKED}]}
    assert of(engine, hera).tasks.get(row).subject == "Pay 424242 to Rita?"
    of_runs: list[Callable[[Calls], object]] = [
        lambda who: who.run(run).tasks(),
        lambda who: who.tasks.list(),
        lambda who: who.run(run).steps(),
        lambda who: who.run(run).describe(),
        lambda who: who.run(run).history(),
        lambda who: who.run(run).why(),
        lambda who: who.documents.audit("raise", "R-1"),
        lambda who: who.documents.choices("raise", "R-1"),
    ]
    assert [leaks(read(of(engine, AUDITOR))) for read in of_runs] == [[]] * len(of_runs)
    assert leaks(of(engine, READING_HR).run(run).tasks()) == ["424242", "515151"]
    of(engine, fay).tasks.decide(row, "approved", document_version="1")
    assert leaks(of(engine, fay).tasks.decided()) == []


def test_notices_tell_a_hidden_field_to_its_roles_alone(place: Place) -> None:
    """A notice to somebody without the role has a mask; one to the role, or to a holder of it, has the value."""
    nodes = """
  - {id: tell, type: notification, to: [stan, hera, "role:hr", "role:finance"], subject: "{entity.pay} for {entity.name}", body: "It is {entity.pay}."}
"""
    engine, _ = sent(place, nodes + SHOWS, "{from: tell, to: ask}")
    told = {
        name: [(each.subject, each.body) for each in of(engine, Actor(id=name)).notifications.mine()]
        for name in ("stan", "hera", "fay")
    }
    masked, full = (f"{MASKED} for Rita", f"It is {MASKED}."), ("424242 for Rita", "It is 424242.")
    assert told["stan"] == [masked]
    assert sorted(told["hera"]) == sorted(
        [full, (f"Pay {MASKED} to Rita?", "")]
    )  # One notice for one occasion: her own.
    assert sorted(told["fay"]) == sorted([masked, (f"Pay {MASKED} to Rita?", "")])
    by_role = of(engine, Actor(id="hal", roles=frozenset({"hr"}))).notifications.mine()
    assert [(each.subject, each.body) for each in by_role] == [full]


def test_what_scripts_and_lists_take_from_hidden_fields_is_masked_in_runs(place: Place) -> None:
    """A value that the workflow keeps is followed to the field that it came from: in steps, data, histories and choices."""
    nodes = """
  - {id: keep, type: script, formula: entity.pay, into: kept}
  - {id: again, type: script, formula: context.kept, into: copied}
  - {id: choose, type: condition}
  - {id: each, type: for_each, items: entity.lines, item: line}
  - {id: line, type: approval, title: "{context.line.text} for {context.line.cost}", approvers: [{user: fay}]}
  - {id: all, type: parallel_join}
"""
    edges = (
        "{from: keep, to: again}, {from: again, to: choose}, {from: choose, to: each, when: context.copied > 0}, "
        "{from: choose, to: out}, {from: each, to: line}, {from: line, to: all}, {from: all, to: out}"
    )
    engine, calls = sent(place, nodes, edges)
    run = calls.documents.get("raise", "R-1").instance
    reads: list[Callable[[Calls], object]] = [
        lambda who: who.run(run).steps(),
        lambda who: who.run(run).describe(),
        lambda who: who.run(run).history(),
        lambda who: who.documents.choices("raise", "R-1"),
        lambda who: who.run(run).tasks(),
    ]
    assert [leaks(read(of(engine, AUDITOR))) for read in reads] == [[]] * len(reads)
    (asked,) = of(engine, AUDITOR).run(run).tasks()
    assert asked.subject == f"bonus for {MASKED}"
    assert all("424242" in leaks(read(of(engine, READING_HR))) for read in reads[:4])
    assert "515151" in leaks(of(engine, READING_HR).run(run).tasks())


@pytest.mark.row("E-240")
@pytest.mark.parametrize("key", ["k:{entity.pay}", "k:{context.kept}"])
def test_why_tells_no_key_of_an_event_that_reads_a_hidden_field(place: Place, key: str) -> None:
    """The key is masked in the words, and no call is offered that would say it; those who see the field are told all of it."""
    nodes = f"""
  - {{id: keep, type: script, formula: entity.pay, into: kept}}
  - {{id: paid, type: wait_event, event: paid, key: "{key}", match: "event.amount == entity.pay"}}
"""
    engine, calls = sent(place, nodes, "{from: keep, to: paid}")
    run = calls.documents.get("raise", "R-1").instance
    calls.publish("paid", "k:424242", {"amount": "many"})
    engine.drain()
    told = of(engine, AUDITOR).run(run).why()
    assert (leaks(told), f"'k:{MASKED}'" in told.words) == ([], True)
    hal = Actor(id="hal", roles=frozenset({"hr"}), capabilities=frozenset({"execution:read"}))
    whole = of(engine, hal).run(run).why()
    assert "publish('paid', 'k:424242')" in whole.reasons[0].remedy


def test_dead_letters_of_documents_are_masked(place: Place) -> None:
    """An operator without the role reads why a step of a document gave up, and nothing of its hidden fields."""
    nodes = """
  - {id: keep, type: script, formula: entity.pay, into: kept}
  - {id: work, type: task, handler: work, input: {pay: entity.pay}, attempts: 1}
"""
    engine, _ = sent(place, nodes, "{from: keep, to: work}")

    @engine.handler("work")
    def work() -> None:
        raise ValueError("it does not work")

    engine.drain()
    operator = Actor(id="olga", capabilities=frozenset({"execution:read", "execution:repair"}))
    (letter,) = of(engine, operator).dead_letters.list()
    assert leaks(letter) == []
    assert leaks(of(engine, operator).dead_letters.get(letter)) == []
    assert leaks(engine.as_tenant("acme").dead_letters.list()) == ["424242"]


def test_capabilities_of_roles_count_with_the_directory(place: Place) -> None:
    """A role of the directory that grants `execution:read` lets its holder read, and still masks what is for other roles."""
    engine, calls = sent(place, capabilities=Capabilities({"controller": ["execution:read"]}))
    calls.directory.put("cora")
    calls.directory.grant("cora", "controller")
    assert leaks(of(engine, Actor(id="cora")).documents.get("raise", "R-1")) == []
