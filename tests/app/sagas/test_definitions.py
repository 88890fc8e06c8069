"""Definitions of sagas: registered, found, started, and what each call of the builder does when it runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import msgspec
import pytest

from app.sagas.acting import BROKEN, Stage, run, status, statuses, step
from standfast import (
    Actor,
    ConfigurationError,
    Definition,
    DefinitionError,
    NotFoundError,
    RequestContext,
    Saga,
    StepContext,
    ask,
    event,
    task,
)
from standfast.calls.catalog.definitions import version_age
from standfast.graph.compiler import graph_bytes, graph_data
from standfast.graph.definition import definition_of
from standfast.store.records.instances import SHARED_TENANT, StoredDefinition
from standfast.testing.manual import START
from support.engines import Place
from support.samples import Puppet

GOOD_DATA: dict[str, Any] = {
    "name": "small",
    "version": "1",
    "entry": "work",
    "nodes": {
        "work": {"id": "work", "op": {"op": "task", "work": {"handler": "work"}}},
        "end": {"id": "end", "op": {"op": "end"}},
    },
    "edges": [{"source": "work", "target": "end"}],
}


@pytest.mark.row("F-001", "F-003")
def test_what_cannot_be_built_cannot_be_started(place: Place) -> None:
    """The error comes from `build`; nothing is registered, and nothing begins."""
    engine = place.engine()
    with pytest.raises(DefinitionError):
        engine.register(Saga("order").step("a", "work").step("a", "work").build())
    assert isinstance(engine.futures.start("order").exception(), NotFoundError)
    assert engine.runs.list().items == []


@pytest.mark.row("F-002")
@pytest.mark.row("C-37")
def test_a_definition_is_started_by_name_or_id(place: Place) -> None:
    """`order` is the newest version; `order-v1`, or a name and a version, is that one; another version does not exist."""
    engine = place.engine()
    for version in (9, 10):
        engine.register(Saga("order", version).step("a", "work").build())
    asked = [engine.futures.start("order"), engine.futures.start("order-v9"), engine.futures.start("order", version=9)]
    assert [engine.run(each.result().id).describe().definition_version for each in asked] == ["10", "9", "9"]
    for unknown in (
        engine.futures.start("order-v1"),
        engine.futures.start("order", version=1),
        engine.futures.start("orde"),
    ):
        assert isinstance(unknown.exception(), NotFoundError)


@pytest.mark.row("F-002")
def test_an_id_is_looked_up_and_not_taken_apart(place: Place) -> None:
    """A name may itself end like an id."""
    engine = place.engine()
    engine.register(Saga("a-v1", 2).step("x", "work").build()).register(Saga("a", 1).step("y", "work").build())
    named = {given: engine.start(given).describe() for given in ("a-v1", "a-v1-v2", "a")}
    assert {given: found.definition_id for given, found in named.items()} == {
        "a-v1": "a-v1-v2",
        "a-v1-v2": "a-v1-v2",
        "a": "a-v1",
    }
    assert engine.start("a", version=1).describe().definition == "a"


@pytest.mark.row("F-003")
def test_only_what_is_registered_can_be_started(place: Place) -> None:
    """Before it is registered nobody knows it, and no instance is made; afterwards every process does."""
    engine, other = place.engine(), place.engine()
    refused = engine.futures.start("order").exception()
    assert isinstance(refused, NotFoundError)
    assert "register it first" in str(refused)
    assert engine.runs.list().items == []
    engine.register(Saga("order").step("a", "work").build())
    assert status(engine, other.start("order").id) == "pending"


@pytest.mark.row("F-003", "EC-24")
def test_nothing_that_is_given_beside_a_workflow_is_dropped(place: Place) -> None:
    """Two workflows in one call, or a setting of deciders, are refused: what would be ignored without a word is not there when it is needed."""
    first, second = (Saga(name).step("ship", dict).build() for name in ("first", "second"))
    register: Callable[..., object] = place.engine().register
    for given in ((second,), (dict,)):
        with pytest.raises(ConfigurationError, match="register\\(first\\)"):
            register(first, *given)
    with pytest.raises(ConfigurationError, match="by itself"):
        register(first, concurrency=5)


@pytest.mark.row("EC-24", "F-003")
def test_the_same_definition_can_be_registered_again_and_another_cannot(place: Place) -> None:
    """Equal content is no change; other content under the same name and version is refused, from any process."""
    place.engine().register(Saga("order").step("a", "work").build())
    other = place.engine().register(Saga("order").step("a", "work").build())
    with pytest.raises(ConfigurationError, match="another version"):
        other.register(Saga("order").step("b", "work").build())
    assert list(other.definitions.get("order").nodes) == ["a"]


@pytest.mark.row("E-610")
def test_conditions_that_nobody_checked_never_run(place: Place) -> None:
    """A condition beyond the limits cannot be built, and a definition that was not compiled with it is not run by any process."""
    with pytest.raises(DefinitionError, match="500 characters"):
        Saga("order").condition("ask", "count > 5" + " " * 500).then("a", "work").build()
    saga = Saga("order").condition("ask", "count > 12345").then("a", "work").build()
    stored = StoredDefinition(
        tenant=SHARED_TENANT,
        name="order",
        version="1",
        kind="saga",
        source=b"",
        compiled=graph_bytes(saga.graph).replace(b"12345", b"99999"),
        hash=saga.graph.hash,
        compiler="1",
        status="published",
    )
    place.store.definitions().publish(stored, place.clock.now())
    engine = place.engine()
    refused = engine.futures.start("order", {"count": 1}).exception()
    assert isinstance(refused, DefinitionError)
    assert [each.code for each in refused.diagnostics] == ["changed_graph"]
    assert engine.runs.list().items == []


@pytest.mark.row("F-004")
def test_an_instance_keeps_its_version(place: Place) -> None:
    """An instance goes on as it began, whatever is registered meanwhile."""
    stage, engine = Stage(), place.engine()
    engine.register(Saga("order", 1).step("a", stage.does("a")).step("old", stage.does("old")).build())
    first = engine.start("order").id
    engine.register(Saga("order", 2).step("a", stage.does("a")).step("new", stage.does("new")).build())
    engine.drain()
    assert stage.calls == ["a", "old"]
    second = run(engine, "order")
    assert stage.calls == ["a", "old", "a", "new"]
    assert [engine.run(each).describe().definition_id for each in (first, second)] == ["order-v1", "order-v2"]


@pytest.mark.row("F-005", "F-038", "F-039")
def test_a_start_gives_the_id_of_an_instance(place: Place) -> None:
    """The instance has its definition, its input and an active status."""
    engine = place.engine().register(Saga("order", 3).step("a", "work").build())
    given = {"items": [{"sku": "x", "count": 2}], "note": None, "total": 9.5, "gift": True}
    instance = engine.start("order-v3", given).id
    assert isinstance(instance, UUID)
    found = engine.run(instance).describe()
    assert (found.id, found.definition_id, found.input, found.status) == (instance, "order-v3", given, "pending")
    assert engine.run(str(instance)).describe() == found
    assert not found.is_terminal


@pytest.mark.row("F-006")
def test_steps_follow_one_another(place: Place) -> None:
    """Steps and thens are called in the order in which they are written, each after the one before."""
    stage, engine = Stage(), place.engine()
    for name, saga in (
        ("steps", Saga("steps").step("a", stage.does("a")).step("b", stage.does("b")).step("c", stage.does("c"))),
        ("thens", Saga("thens").step("a", stage.does("a")).then("b", stage.does("b")).then("c", stage.does("c"))),
    ):
        engine.register(saga.build())
        instance = run(engine, name)
        assert (status(engine, instance), stage.calls) == ("completed", ["a", "b", "c"])
        stage.forget()


@pytest.mark.row("F-007", "F-073")
def test_a_compensation_is_no_part_of_the_way(place: Place) -> None:
    """A run that goes well never calls it, and it is not among the steps."""
    stage, engine = Stage(), place.engine()
    saga = Saga("s").step("a", stage.does("a")).on_failure("undo", stage.does("undo")).step("b", stage.does("b"))
    instance = run(engine.register(saga.build()), "s")
    assert stage.calls == ["a", "b"]
    assert statuses(engine, instance) == {"a": "completed", "b": "completed"}


@pytest.mark.row("F-008")
def test_parallel_tasks_are_steps(place: Place) -> None:
    """Each task runs and is shown, and what follows waits for both."""
    stage, engine = Stage(), place.engine()
    saga = Saga("s").parallel("both", task("a", stage.does("a")), task("b", stage.does("b"))).then("c", stage.does("c"))
    instance = engine.register(saga.build()).start("s").id
    assert {name: each for name, each in statuses(engine, instance).items() if name in "abc"} == {
        "a": "pending",
        "b": "pending",
    }
    engine.drain()
    assert sorted(stage.calls[:2]) == ["a", "b"]
    assert stage.calls[2:] == ["c"]
    assert {name: statuses(engine, instance)[name] for name in ("both", "a", "b", "c")} == dict.fromkeys(
        ("both", "a", "b", "c"), "completed"
    )


@pytest.mark.row("F-009", "F-010", "F-030")
def test_branches_run_by_themselves_and_meet(place: Place) -> None:
    """A fork begins all its branches; each goes its own length, and the join waits for the last step of each."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("s")
        .fork(
            "fork",
            lambda one: one.step("a1", stage.does("a1")).step("a2", stage.does("a2")).step("a3", stage.does("a3")),
            lambda two: two.step("b1", stage.does("b1")),
        )
        .join("met")
        .then("end", stage.does("end"))
    )
    instance = engine.register(saga.build()).start("s").id
    assert [name for name, each in statuses(engine, instance).items() if each == "pending"] == ["a1", "b1"]
    engine.drain()
    assert [each for each in stage.calls if each.startswith("a")] == ["a1", "a2", "a3"]
    assert sorted(stage.calls) == ["a1", "a2", "a3", "b1", "end"]
    assert stage.calls[-1] == "end"
    assert status(engine, instance) == "completed"


@pytest.mark.row("F-011")
@pytest.mark.row("C-12")
def test_the_old_join_runs(place: Place) -> None:
    """A join with a list of names waits for them and goes on."""
    stage, engine = Stage(), place.engine()
    fork = Saga("s").fork(
        "fork",
        lambda one: one.step("a", stage.does("a")),
        lambda two: two.step("b", stage.does("b")),
    )
    with pytest.warns(DeprecationWarning, match="use join"):
        saga = fork.join_step("met", ["a", "b"], "all").then("end", stage.does("end"))
    instance = run(engine.register(saga.build()), "s")
    assert (status(engine, instance), stage.calls) == ("completed", ["a", "b", "end"])


@pytest.mark.row("F-012")
@pytest.mark.parametrize(("count", "expected"), [(6, ["many", "more"]), (5, ["few", "fewer"])])
def test_a_condition_chooses_one_way(place: Place, count: int, expected: list[str]) -> None:
    """The chain after it if it holds, else the other way, and never both."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("s")
        .condition(
            "enough",
            "{{ gt .count 5 }}",
            lambda no: no.step("few", stage.does("few")).then("fewer", stage.does("fewer")),
        )
        .then("many", stage.does("many"))
        .then("more", stage.does("more"))
    )
    instance = run(engine.register(saga.build()), "s", {"count": count})
    assert stage.calls == expected
    assert statuses(engine, instance) == dict.fromkeys(["enough", *expected], "completed")


@pytest.mark.row("F-015")
def test_the_registered_definition_knows_its_mode(place: Place) -> None:
    """Another process reads from the database whether failures wait for an operator."""
    place.engine().register(Saga("plain").step("a", "work").build()).register(
        Saga("patient", dlq=True).step("a", "work").build()
    )
    reader = place.engine()
    modes = {name: reader.definitions.get(name).policies.on_failure for name in ("plain", "patient")}
    assert modes == {"plain": "compensate", "patient": "dlq"}


@pytest.mark.row("F-026", "F-105")
def test_a_handler_is_found_by_its_name(place: Place) -> None:
    """A step calls what was registered under the name of its handler, in whichever way that was given."""
    engine = place.engine()
    called: list[str] = []

    @engine.handler("by decorator")
    def any_name(amount: int) -> dict[str, int]:
        called.append("decorated")
        return {"amount": amount + 1}

    class Shipping:
        name = "by object"

        def execute(self, ctx: StepContext, amount: int) -> None:
            called.append(f"{ctx.step} {amount}")

    engine.handle("by object", Shipping())
    saga = Saga("s").step("a", "by decorator").step("b", "by object").build()
    instance = run(engine.register(saga), "s", {"amount": 1})
    assert (status(engine, instance), called) == ("completed", ["decorated", "b 2"])
    with pytest.raises(ConfigurationError, match="already another handler"):
        engine.handle("by object", Shipping())


@pytest.mark.row("F-036")
def test_a_handler_sees_the_metadata_of_its_step(place: Place) -> None:
    """What the definition says about a step is handed to its handler and to its compensation."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("s")
        .step("a", stage.does("a"), metadata={"team": "cash", "codes": [1, 2]})
        .on_failure("undo", stage.does("undo"))
        .step("b", stage.does("b", BROKEN), attempts=1)
    )
    run(engine.register(saga.build()), "s")
    for name in ("a", "undo"):
        assert [dict(each.metadata) for each in stage.contexts(name)] == [{"team": "cash", "codes": [1, 2]}]
    assert [dict(each.metadata) for each in stage.contexts("b")] == [{}]


@pytest.mark.row("F-016", "F-028")
def test_the_limit_of_a_step_bounds_its_calls(place: Place) -> None:
    """Both spellings of the limit count all calls."""
    stage, engine = Stage(), place.engine()
    engine.register(Saga("one").step("a", stage.does("a", BROKEN), attempts=2).build())
    engine.register(Saga("two").step("b", stage.does("b", BROKEN), max_retries=2).build())
    counts = [step(engine, run(engine, name), of).retry_count for name, of in (("one", "a"), ("two", "b"))]
    assert counts == [2, 2]
    assert stage.calls == ["a", "a", "b", "b"]


@pytest.mark.row("F-026")
def test_a_method_serves_many_steps_and_sagas(place: Place) -> None:
    """A bound method is the same handler each time it is named."""

    class Shop:
        def __init__(self) -> None:
            self.served: list[str] = []

        def serve(self, ctx: StepContext) -> None:
            self.served.append(f"{ctx.workflow} {ctx.step}")

    shop, engine = Shop(), place.engine()
    for name in ("one", "two"):
        engine.register(Saga(name).step("a", shop.serve).step("b", shop.serve).build())
        run(engine, name)
    assert shop.served == ["one a", "one b", "two a", "two b"]


# -- lists, and definitions as data


def test_published_definitions_are_listed(place: Place) -> None:
    """Every version, from any process, with its kind, hash and time; deciders are code and not in the list."""
    engine = place.engine().register(Saga("b").step("x", "x").build()).register(Puppet())
    engine.advance(hours=1)
    engine.register(Saga("a").step("x", "x").build()).register(Saga("b", version=2).step("y", "y").build())
    found = place.engine().definitions.list()
    assert [(each.name, each.version, each.kind) for each in found] == [
        ("a", "1", "saga"),
        ("b", "1", "saga"),
        ("b", "2", "saga"),
    ]
    assert [each.published_at for each in found] == [place.clock.now(), START, place.clock.now()]
    assert found[1].hash == engine.definitions.get("b", 1).hash


def test_a_definition_can_be_published_as_data(place: Place) -> None:
    """What a published definition is as data can be written as JSON, changed, and published as another version, and it runs."""
    engine = place.engine().register(Saga("order").step("pay", "pay").step("ship", "ship").build())
    data = engine.definitions.data("order")
    assert engine.definitions.publish(json.dumps(data)) == engine.definitions.list()[0], "the same again does nothing"
    data["version"] = "2"
    data["nodes"]["pay"]["op"]["work"]["handler"] = "charge"  # type: ignore[index]
    other = place.engine()
    assert other.definitions.publish(data).version == "2"
    stage = Stage()
    for name in ("pay", "charge", "ship"):
        other.handle(name, stage.does(name))
    instance = other.start("order").id
    other.drain()
    assert (other.run(instance).describe().status, stage.calls) == ("completed", ["charge", "ship"])


def test_a_definition_by_hand_needs_no_more_than_it_says(place: Place) -> None:
    """What the compiler works out may be left out."""
    engine = place.engine()
    engine.definitions.publish(GOOD_DATA)
    engine.handle("work", lambda ctx: None)
    instance = engine.start("small").id
    engine.drain()
    assert engine.run(instance).describe().status == "completed"


BAD_DATA: dict[str, tuple[Any, set[str]]] = {
    "no JSON": ("{", {"unreadable_graph"}),
    "a name twice": (json.dumps(GOOD_DATA)[:-1] + ', "name": "y"}', {"duplicate_key"}),
    "no graph": ({"name": "x"}, {"unreadable_graph"}),
    "a word too much": ({**GOOD_DATA, "color": "red"}, {"unreadable_graph"}),
    "newer": ({**GOOD_DATA, "ir_version": 99}, {"unknown_ir_version"}),
    "two ids": ({**GOOD_DATA, "nodes": {"end": {"id": "other", "op": {"op": "end"}}}}, {"wrong_id"}),
    "two mistakes": (
        {**GOOD_DATA, "entry": "nowhere", "edges": [{"source": "work", "target": "gone"}]},
        {"unknown_step", "unknown_entry"},
    ),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_data_is_refused_with_every_finding(place: Place, name: str) -> None:
    """Data is checked like what a builder builds; nothing is published."""
    data, codes = BAD_DATA[name]
    with pytest.raises(DefinitionError) as caught:
        place.engine().definitions.publish(data)
    assert {each.code for each in caught.value.diagnostics} == codes
    assert place.engine().definitions.list() == []


def test_data_cannot_take_the_place_of_a_decider(place: Place) -> None:
    """A name is a decider's or a workflow's."""
    engine = place.engine().register(Puppet())
    with pytest.raises(ConfigurationError, match="already a decider"):
        engine.definitions.publish({**GOOD_DATA, "name": "puppet"})


# -- Definitions of one tenant.

RIVAL = RequestContext(tenant="rival", actor=Actor(id="eve"))


def data(name: str, step: str, version: int = 1) -> dict[str, object]:
    """A workflow of one step, as data."""
    return graph_data(Saga(name, version, replaceable=True).step(step, "work").build().graph)


def test_a_tenants_own_definition_stands_before_the_shared_one(place: Place) -> None:
    """Whoever has published one starts his own; everybody else starts the shared one, also in a process that has met neither."""
    engine = place.engine()
    engine.handle("work", lambda: None)
    engine.definitions.publish(data("order", "shared"))
    engine.acting(RIVAL).definitions.publish(data("order", "own", 2))
    other = place.engine()
    other.handle("work", lambda: None)
    for process in (engine, other):
        for tenant, node in (("default", "shared"), ("rival", "own")):
            calls = process.as_tenant(tenant)
            instance = calls.start("order", {}).id
            process.drain()
            assert [each.name for each in calls.run(instance).steps()] == [node]
            assert calls.definitions.get("order").version == {"shared": "1", "own": "2"}[node]


def test_a_name_that_is_no_text_is_told() -> None:
    """The finding says what the name is, and how a saga is named."""
    wrong: Any = 5
    with pytest.raises(DefinitionError, match='the name of a saga is a text, not 5; write Saga\\("order"\\)'):
        Saga(wrong).step("a", "a").build()


def test_other_tenants_do_not_see_a_tenants_definition(place: Place) -> None:
    """Neither in lists, nor by name and version, nor can they start it or draw it."""
    engine = place.engine()
    engine.handle("work", lambda: None)
    graph = definition_of(data("secret", "own")).graph
    made = Definition(graph=graph, source=b"name: secret", media_type="application/yaml", description="ours")
    engine.acting(RIVAL).definitions.publish(made)
    (seen,) = engine.as_tenant("rival").definitions.list()
    assert (seen.tenant, seen.name, seen.description, seen.published_by) == ("rival", "secret", "ours", "eve")
    assert engine.definitions.list() == []
    for asked in (
        engine.futures.start("secret", {}),
        engine.futures.start("secret", {}, version=1),
        engine.futures.definitions.get("secret"),
        engine.futures.definitions.diagram("secret"),
    ):
        refused = asked.exception()
        assert isinstance(refused, NotFoundError)
        assert "known here are: secret" not in str(refused)
    assert engine.as_tenant("rival").futures.start("secret", {}).exception() is None


def test_a_shared_version_is_not_replaced_for_one_tenant(place: Place) -> None:
    """Instances of the tenant may be pinned to it: another content needs another version."""
    engine = place.engine()
    engine.handle("work", lambda: None)
    engine.definitions.publish(data("order", "shared"))
    with pytest.raises(ConfigurationError, match="another version"):
        engine.acting(RIVAL).definitions.publish(data("order", "own"))
    engine.acting(RIVAL).definitions.publish(data("order", "shared"))
    assert [each.tenant for each in engine.as_tenant("rival").definitions.list()] == ["*"]


def test_a_new_shared_version_is_taken_by_tenants_that_have_met_the_old_one(place: Place) -> None:
    """What a tenant takes when it names no version is looked up again when a shared one is published."""
    engine = place.engine()
    engine.handle("work", lambda: None)
    engine.definitions.publish(data("order", "a"))
    rival = engine.as_tenant("rival")
    assert rival.definitions.get("order").version == "1"
    engine.definitions.publish(data("order", "b", 2))
    assert rival.definitions.get("order").version == "2"
    assert engine.definitions.get("order").version == "2"


def test_children_are_those_of_the_tenant(place: Place) -> None:
    """A shared workflow that calls another one calls the tenant's own, if it has one."""
    engine = place.engine()
    engine.handle("work", lambda: None)
    engine.definitions.publish(data("child", "shared"))
    engine.register(Saga("parent").call("sub", "child").build())
    engine.acting(RIVAL).definitions.publish(data("child", "own", 2))
    rival = engine.as_tenant("rival")
    parent = rival.start("parent", {}).id
    engine.drain()
    (child,) = rival.runs.list(parent=parent).items
    assert [each.name for each in rival.run(child.id).steps()] == ["own"]


@pytest.mark.parametrize(
    "where",
    [
        lambda data: data["nodes"]["work"].update(capabilty="x"),
        lambda data: data["nodes"]["work"]["op"].update(rols="x"),
        lambda data: data["edges"][0].update(capabilites="x"),
        lambda data: data.update(rights={"starts": "x"}),
        lambda data: data.update(policies={"on_failur": "dlq"}),
        lambda data: data["nodes"]["work"]["op"]["work"].update(handlr="x"),
    ],
)
def test_a_misspelt_field_of_published_data_is_refused(place: Place, where: Callable[[dict[str, Any]], object]) -> None:
    """Whoever misspells a right would believe that something is guarded which is not."""
    given = json.loads(json.dumps(GOOD_DATA))
    where(given)
    with pytest.raises(DefinitionError):
        place.engine().definitions.publish(given)


@pytest.mark.parametrize("wrong", [None, 5, ["a"]])
def test_what_is_no_data_is_not_published(place: Place, wrong: Any) -> None:
    """The sentence says what is."""
    with pytest.raises(ConfigurationError, match="as a dict or as JSON"):
        place.engine().definitions.publish(wrong)


# -- options that were read from a file


def from_file(value: object) -> Any:
    """A value as a file has it: equal, and another object."""
    return json.loads(json.dumps(value))


def two(saga: Saga) -> Saga:
    """A fork of two branches."""
    return saga.fork("f", lambda one: one.step("a", "work"), lambda other: other.step("c", "work"))


OPTIONS: dict[str, Callable[[Callable[[Any], Any]], Saga]] = {
    "strategy": lambda given: two(Saga("s")).join("j", given("all")),
    "losers": lambda given: two(Saga("s")).join("j", "any", losers=given("undo")),
    "backoff": lambda given: Saga("s").step("a", "work", backoff=given("fixed")),
    "backoff of a task": lambda given: Saga("s").parallel("p", task("x", "work", backoff=given("fixed"))),
    "backoff of an undo": lambda given: Saga("s").step("a", "work").on_failure("undo", "work", backoff=given("fixed")),
    "need": lambda given: Saga("s").wait_for_events("w", event("x"), event("y"), need=given("all")),
    "pick": lambda given: Saga("s").human("h", ask=[ask("role:a", pick=given("any")), "user:b"]),
    "agree": lambda given: Saga("s").human("h", ask=["user:a", "user:b"], agree=given("any")),
    "time zone": lambda given: Saga("s").wait("w", cron="0 9 * * *", time_zone=given("UTC")),
    "item": lambda given: Saga("s").for_each("e", "items", lambda each: each.step("x", "work"), item=given("item")),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_from_a_file_is_the_option(place: Place, option: str) -> None:
    """A saga whose options come from JSON is the one with the same literals: both register under one version, in any process."""
    place.engine().register(OPTIONS[option](from_file).build())
    place.engine().register(OPTIONS[option](lambda literal: literal).build())
    engine = place.engine().handle("work", lambda: None)
    assert status(engine, run(engine, "s", {"items": []})) != "failed"


def test_what_is_refused_after_all_is_not_stored(place: Place) -> None:
    """A definition that could not be read back is refused before anything of it is stored, and its version stays free."""
    good = Saga("s").step("a", "work").build()
    spoilt = msgspec.structs.replace(good.graph, hash="0" * 64)
    engine = place.engine()
    with pytest.raises(DefinitionError, match="changed_graph"):
        engine.register(msgspec.structs.replace(good, graph=spoilt))
    with pytest.raises(DefinitionError, match="changed_graph"):
        engine.definitions.publish(msgspec.structs.replace(good, graph=spoilt))
    assert engine.definitions.list() == []
    assert engine.register(good).definitions.list()[0].hash == good.graph.hash


def test_versions_are_ordered_as_people_do() -> None:
    """Numbers by value, words by the alphabet and before numbers, part by part; a longer version comes after its beginning."""
    rising = ["", "1", "1-rc1", "1-rc2", "1.0", "1.0.1", "1.2", "1.10", "2-beta", "2.0", "10"]
    assert sorted(sorted(rising), key=version_age) == rising
    assert version_age("1.01") == version_age("1.1")
    assert version_age("a") < version_age("0")
    assert version_age("²") < version_age("0")  # No number that Python could read.
