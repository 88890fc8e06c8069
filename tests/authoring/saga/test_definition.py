"""The fields of a step's definition, as its author reads them back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from standfast import DefinitionError, Saga, handler, task
from standfast.graph.compiler import graph_bytes, graph_hash, read_graph

H = "work"


def every_kind() -> Saga:
    """A saga with each kind of step."""
    return (
        Saga("s")
        .step("task", H)
        .parallel("parallel", task("p1", H), task("p2", H))
        .fork("fork", lambda one: one.step("f1", H), lambda two: two.step("f2", H))
        .join("join")
        .parallel("joined", task("q1", H), task("q2", H))
        .join("own")
        .save_point("save")
        .condition("condition", "{{ .a }}")
        .human("human")
    )


@pytest.mark.row("F-024", "F-025")
def test_each_call_of_the_builder_has_its_type() -> None:
    """Every step carries its name and the type that its call stands for."""
    steps = every_kind().build().steps
    assert all(name == step.name for name, step in steps.items())
    types = {name: steps[name].type for name in ("task", "parallel", "fork", "join", "save", "condition", "human")}
    assert types == {
        "task": "task",
        "parallel": "parallel",
        "fork": "fork",
        "join": "join",
        "save": "save_point",
        "condition": "condition",
        "human": "human",
    }
    assert (steps["joined"].type, steps["own"].type) == ("parallel", "join"), "also with a join of its own"


@pytest.mark.row("F-025")
def test_an_unknown_type_in_a_stored_definition_is_refused() -> None:
    """A graph is read back only if every step is of a known type."""
    stored = graph_bytes(Saga("s").save_point("a").build().graph)
    assert read_graph(stored).name == "s"
    with pytest.raises(DefinitionError, match="cannot be read"):
        read_graph(stored.replace(b'"op":"save_point"', b'"op":"teleport"'))


@pytest.mark.row("F-026")
def test_a_handler_is_a_name() -> None:
    """A text is the name itself; a function goes by the name it was given, else by its own; a lambda by saga, version and step."""

    @handler("charge the card")
    def charge() -> None: ...

    def ship() -> None: ...

    saga = Saga("s").step("a", "reserve").step("b", charge).step("c", ship).step("d", lambda: None).build()
    assert [saga.steps[name].handler for name in "abcd"] == ["reserve", "charge the card", "ship", "s-v1.d"]
    assert set(saga.handlers) == {"charge the card", "ship", "s-v1.d"}


@pytest.mark.row("F-028", "F-029", "F-068")
@pytest.mark.row("C-17")
def test_a_step_is_called_up_to_three_times_by_default() -> None:
    """The limit counts all calls and is 3, for steps and compensations; steps may be repeated unless they say no."""
    saga = Saga("s").step("a", H).on_failure("undo", H).build()
    undoing = saga.graph.nodes["a"].compensation
    assert (saga.steps["a"].max_retries, saga.steps["a"].no_idempotent) == (3, False)
    assert undoing is not None
    assert (undoing.retry.max_calls, undoing.once) == (3, False)


@pytest.mark.row("F-030")
def test_a_step_leads_to_the_next() -> None:
    """In a chain there is one next step, at the end none; a fork leads to all its branches."""
    saga = (
        Saga("s").step("a", H).fork("f", lambda one: one.step("b", H), lambda two: two.step("c", H)).join("j").build()
    )
    assert (saga.steps["a"].next, saga.steps["j"].next) == (("f",), ())
    assert (saga.steps["f"].next, saga.steps["f"].parallel) == ((), ("b", "c"))


@pytest.mark.row("F-032")
@pytest.mark.parametrize("text", ["{{ gt .count 5 }}", '{{and (eq .kind "book")  .paid}}', "count > 5 and paid"])
def test_the_text_of_a_condition_is_kept(text: str) -> None:
    """It is stored as it was written, also in the compiled graph."""
    saga = Saga("s").condition("c", text).then("a", H).build()
    assert saga.steps["c"].condition == text
    assert text.encode() in graph_bytes(saga.graph).replace(b'\\"', b'"')


@pytest.mark.row("F-033")
def test_a_fork_lists_the_first_steps_of_its_branches() -> None:
    """They are listed in the order in which they are written, whatever their names."""
    saga = (
        Saga("s")
        .fork(
            "f",
            lambda one: one.step("z", H).step("z2", H),
            lambda two: two.step("m", H),
            lambda three: three.step("a", H),
        )
        .join("j")
        .build()
    )
    assert saga.steps["f"].parallel == ("z", "m", "a")


@pytest.mark.row("F-035")
def test_a_join_has_a_strategy() -> None:
    """All branches by default, or any; nothing else that is not a number of branches."""

    def fork() -> Saga:
        return Saga("s").fork("f", lambda one: one.step("a", H), lambda two: two.step("b", H))

    assert fork().join("j").build().steps["j"].join_strategy == "all"
    assert fork().join("j", "any").build().steps["j"].join_strategy == "any"
    wrong: list[Any] = ["most", "", 0, -1, 3, None]
    for strategy in wrong:
        with pytest.raises(DefinitionError, match="'j'"):
            fork().join("j", strategy).build()


@pytest.mark.row("F-036")
def test_metadata_is_carried_as_it_is() -> None:
    """Plain data of any shape is read back unchanged; what cannot be stored as it is, is refused."""
    data: dict[str, object] = {"team": "cash", "tags": ["a", 1, True, None, {"deep": []}], "ü": {}}
    saga = Saga("s").step("a", H, metadata=data).build()
    assert saga.steps["a"].metadata == data
    assert read_graph(graph_bytes(saga.graph)).nodes["a"].metadata == data
    with pytest.raises(DefinitionError, match="metadata"):
        Saga("s").step("a", H, metadata={"when": object()}).build()


@pytest.mark.row("F-037")
@pytest.mark.row("C-18")
def test_a_step_has_a_priority() -> None:
    """It lies between 0 and 100 and is 0 by default."""
    saga = Saga("s").step("a", H).step("b", H, priority=0).step("c", H, priority=100).build()
    assert [saga.steps[name].priority for name in "abc"] == [0, 0, 100]
    wrong: list[Any] = [-1, 101, 1.5, "high", None]
    for priority in wrong:
        with pytest.raises(DefinitionError, match="priority of 'a'"):
            Saga("s").step("a", H, priority=priority).build()


@pytest.mark.row("F-015")
def test_a_definition_comes_back_from_its_stored_form() -> None:
    """Nothing that was said in the builder gets lost on the way to the database and back; a change is noticed."""
    saga = Saga("s", 3, dlq=True).step("a", H, attempts=7, metadata={"x": 1}).on_failure("undo", H).build()
    stored = graph_bytes(saga.graph)
    assert read_graph(stored) == saga.graph
    assert graph_hash(msgspec.structs.replace(saga.graph, version="4")) != saga.graph.hash
    with pytest.raises(DefinitionError, match="not the one that was compiled"):
        read_graph(stored.replace(b'"max_calls":7', b'"max_calls":8'))
