"""What a call hands on: no field that is hidden or sensitive, because the run that it starts shows what it is given to all who may read it."""

from __future__ import annotations

import msgspec
import pytest

from app.documents.bills import CLERK, CONTRACT, by, created, draft_body, publish
from standfast import Actor, Definition, DefinitionError, Saga
from standfast.features.documents.body.checks import read_body
from standfast.features.documents.compiler.compiler import compile_effective
from standfast.features.documents.compiler.graph import graph_of
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.loading import read_contract
from support.engines import Place

EVE = Actor(id="eve", capabilities=frozenset({"execution:read"}))
HR = Actor(id="hera", roles=frozenset({"hr"}), capabilities=frozenset({"execution:read"}))
SALARY = 4711
KEPT = "{id: s, type: script, formula: 'entity.salary', into: kept}"
ECHO = Saga("echo").step("say", lambda pay: {"said": pay}).build()
FORBIDDEN = {
    "hidden": [CALL := "{id: c, type: call, workflow: echo, input: {pay: entity.salary}}"],
    "sensitive": ["{id: c, type: call, workflow: echo, input: {pay: entity.iban}}"],
    "whole": ["{id: c, type: call, workflow: echo, input: {pay: entity}}"],
    "detached": ["{id: c, type: call, workflow: echo, detached: true, input: {pay: entity.salary}}"],
    "script": [KEPT, "{id: c, type: call, workflow: echo, input: {pay: context.kept}}"],
    "sensitive script": [
        KEPT.replace("salary", "iban"),
        "{id: c, type: call, workflow: echo, input: {pay: context.kept}}",
    ],
    "context": [KEPT, "{id: c, type: call, workflow: echo, input: {pay: context}}"],
}


@pytest.mark.row("E-571")
@pytest.mark.parametrize("nodes", FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_call_is_given_no_field_that_is_hidden_or_sensitive(place: Place, nodes: list[str]) -> None:
    """A body whose call reads such a field, directly or by what a step has kept of it, is not published; the finding stands at the call, and says what to do."""
    engine = publish(place.engine())
    text = draft_body(*nodes)
    found = engine.bodies.check(text).problems
    assert [each.code for each in found] == ["private_input"]
    line = next(at for at, each in enumerate(text.splitlines(), 1) if "id: c," in each)
    assert (found[0].position.split(":")[0].split(" ")[-1].rstrip(","), found[0].node) == (
        str(line),
        "usr:slot:draft:c",
    ), found
    assert "entity.id" in found[0].message
    draft = engine.bodies.save(text)
    with pytest.raises(DefinitionError, match="private_input"):
        engine.bodies.publish(draft.id)
    assert engine.bodies.get("bill").version == 1


def test_a_call_is_given_all_else(place: Place) -> None:
    """Fields that are for everybody, the id of the document and what the application's own handlers have answered may be handed on."""
    engine = place.engine().register(ECHO).handle("look", lambda: {"n": 1})
    task = "{id: t, type: task, handler: look, input: {pay: entity.salary}, into: seen}"
    publish(
        engine,
        draft_body(KEPT, task, "{id: c, type: call, workflow: echo, input: {pay: entity.id, seen: context.seen}}"),
    )
    created(engine, salary=SALARY)
    by(engine, CLERK).documents.transition("bill", "B-1", "submit")
    engine.drain()
    (child,) = [each for each in engine.runs.list() if each.definition == "echo"]
    assert engine.run(child.id).history()[0].data["input"]["pay"] == "B-1"  # type: ignore[index]


@pytest.mark.row("E-571")
@pytest.mark.parametrize("into", ["", ", into: answer"])
def test_what_a_call_answers_is_hidden_like_what_it_was_given(place: Place, into: str) -> None:
    """In a workflow that was published before such calls were refused, the steps and the history of the document show the answer of one to those alone who may see what it was given."""
    engine = place.engine().register(ECHO)
    envelope = generate_envelope(read_contract(CONTRACT))
    body = read_body(
        draft_body(
            CALL.replace("}}", "}" + into + "}"),
            "{id: t, type: script, formula: 'context.answer', into: more}" if into else KEPT,
        )
    )
    engine.register(Definition(graph=graph_of(compile_effective(envelope, body))))
    run = created(engine, salary=SALARY).instance
    by(engine, CLERK).documents.transition("bill", "B-1", "submit")
    engine.drain()
    for actor in (EVE, HR):
        mine = by(engine, actor).run(run)
        told = [msgspec.json.encode(each).decode() for each in (mine.steps(), mine.history(), mine.describe())]
        assert ["4711" in each for each in told] == [actor is HR] * 3
