"""What the starter of a run may do bounds what the run does, whoever has published its definition."""

from __future__ import annotations

import pytest

from app.sagas.acting import BROKEN, Stage, history, status, statuses
from app.sagas.test_children import child_of
from standfast import Actor, ConfigurationError, DefinitionError, RequestContext, Saga, handler, load_processes
from standfast.app.api.sync import Calls
from standfast.graph.compiler import graph_data
from standfast.testing import ManualEngine
from support.engines import Place

PAY = "payout:pay"
START = "payout:start"


def as_person(engine: ManualEngine, *capabilities: str, tenant: str = "default") -> Calls:
    """What somebody calls who has these capabilities."""
    return engine.acting(RequestContext(tenant=tenant, actor=Actor(id="mallory", capabilities=frozenset(capabilities))))


def payout(stage: Stage, **options: object) -> Saga:
    """A workflow that not everybody may start."""
    saga = Saga("payout", capability=START, **options)  # type: ignore[arg-type]
    return saga.step("pay", stage.does("pay")).on_failure("take back", stage.does("take back"))


# -- a call


@pytest.mark.row("E-572")
@pytest.mark.parametrize("depth", [1, 2])
def test_a_call_asks_the_starter_for_the_right_to_start_the_child(place: Place, depth: int) -> None:
    """Whoever may not start a workflow cannot have it started by another one, however many lie between."""
    stage = Stage()
    engine = place.engine().register(payout(stage).build()).register(Saga("between").call("go", "payout").build())
    engine.register(Saga("mine").call("go", "payout" if depth == 1 else "between").build())
    run = as_person(engine).start("mine")
    engine.drain()
    assert (status(engine, run.id), stage.calls) == ("failed", [])
    told = engine.run(run.id).describe().error
    assert "'mallory', who started the run, may not start 'payout'" in told
    assert repr(START) in told
    last = child_of(engine, run.id)
    last = last if depth == 1 else child_of(engine, last)
    found = engine.run(last).describe()
    assert (found.status, found.reason) == ("failed", "not_allowed")
    assert engine.instances.verify(last).is_sound


@pytest.mark.parametrize("who", ["a person", "the engine"])
def test_a_starter_who_may_start_the_child_has_it_started(place: Place, who: str) -> None:
    """The right counts, whoever started the run; the engine itself may do everything."""
    stage = Stage()
    engine = place.engine().register(payout(stage).build()).register(Saga("mine").call("go", "payout").build())
    run = (as_person(engine, START) if who == "a person" else engine).start("mine")
    engine.drain()
    assert (status(engine, run.id), stage.calls) == ("completed", ["pay"])


@pytest.mark.row("E-572")
def test_a_starter_who_was_deactivated_starts_no_child(place: Place) -> None:
    """Authority counts at the moment of acting: the directory is asked in the commit that starts the child."""
    stage = Stage()
    saga = Saga("mine").wait_for("go", "go").call("pay", "payout").build()
    engine = place.engine().register(payout(stage).build()).register(saga)
    engine.directory.put("mallory")
    run = as_person(engine, START).start("mine")
    engine.drain()
    engine.directory.deactivate("mallory")
    engine.run(run.id).signal("go")
    engine.drain()
    assert (status(engine, run.id), stage.calls) == ("failed", [])
    assert "they are deactivated" in engine.run(run.id).describe().error


# -- a handler


def restricted(engine: ManualEngine, stage: Stage) -> ManualEngine:
    """An engine with a handler that requires a capability."""
    return engine.handle("pay", stage.does("pay"), capability=PAY)


@pytest.mark.row("E-572")
@pytest.mark.parametrize(("may", "ends"), [((), "failed"), ((PAY,), "completed"), (("payout:*",), "completed")])
def test_a_step_asks_the_starter_for_what_its_handler_requires(place: Place, may: tuple[str, ...], ends: str) -> None:
    """When the step is entered; what was done before is undone if the starter lacks it."""
    stage = Stage()
    engine = restricted(place.engine(), stage)
    saga = Saga("mine").step("order", stage.does("order")).on_failure("revoke", stage.does("revoke"))
    engine.register(saga.step("pay", "pay", capability=PAY).build())
    run = as_person(engine, *may).start("mine")
    engine.drain()
    assert (status(engine, run.id), stage.count("pay"), stage.count("revoke")) == (
        ends,
        int(bool(may)),
        int(not may),
    )
    if not may:
        assert f"may not have 'pay' done: that needs the capability {PAY!r}" in engine.run(run.id).describe().error


def test_a_handler_that_requires_a_capability_is_called_by_no_step_that_does_not_ask(place: Place) -> None:
    """A definition that was published where nobody knew of it fails closed, also for those who have the capability."""
    stage = Stage()
    other = place.engine()
    other.definitions.publish(graph_data(Saga("mine").step("pay", "pay", attempts=3).build().graph))
    engine = restricted(place.engine(), stage)
    run = as_person(engine, "*").start("mine")
    engine.drain()
    assert (status(engine, run.id), stage.count("pay")) == ("failed", 0)
    assert "publish another version whose step names that capability" in engine.run(run.id).describe().error


@pytest.mark.parametrize("part", ["step", "compensation"])
def test_a_definition_that_does_not_ask_for_what_a_handler_requires_is_refused(place: Place, part: str) -> None:
    """Where the handler is known, that is told before anything is stored; another capability is not the one."""
    engine = restricted(place.engine(), Stage())
    for asked in ({}, {"capability": "other"}):
        saga = Saga("mine").step("order", "order")
        saga = saga.step("pay", "pay", **asked) if part == "step" else saga.on_failure("pay", "pay", **asked)  # type: ignore[arg-type]
        with pytest.raises(DefinitionError, match=f"requires the capability {PAY!r}") as refusal:
            engine.definitions.publish(graph_data(saga.build().graph))
        assert [each.code for each in refusal.value.diagnostics] == ["handler_capability"]
    assert engine.definitions.list() == []


def test_what_undoes_a_step_is_asked_for_when_the_step_is_entered(place: Place) -> None:
    """Nobody reaches a handler by naming it as a compensation; and an undo that was granted is not refused later."""
    stage = Stage()
    engine = restricted(place.engine(), stage)
    engine.directory.put("mallory")
    saga = Saga("mine").step("order", stage.does("order")).on_failure("undo", "pay", capability=PAY)
    engine.register(saga.wait_for("go", "go").step("bill", stage.does("bill", BROKEN), attempts=1).build())
    refused = as_person(engine).start("mine")
    granted = as_person(engine, PAY).start("mine")
    engine.drain()
    engine.directory.deactivate("mallory")
    engine.run(granted.id).signal("go")
    engine.drain()
    assert statuses(engine, refused.id)["order"] != "completed"
    assert (stage.calls, status(engine, granted.id)) == (["order", "bill", "pay"], "failed")


def test_a_marked_function_is_asked_for_by_its_steps(place: Place) -> None:
    """A function that is marked with a capability needs no other word in the saga."""
    paid: list[int] = []

    @handler("pay", capability=PAY)
    def pay() -> None:
        paid.append(1)

    engine = place.engine().register(Saga("mine").step("pay", pay, attempts=1).build())
    for may, count in (((), 0), ((PAY,), 1)):
        as_person(engine, *may).start("mine")
        engine.drain()
        assert len(paid) == count
    with pytest.raises(ConfigurationError, match="register it once"):
        engine.handle("pay", pay, capability="other")


def test_an_operation_of_a_process_asks_the_starter(place: Place) -> None:
    """Processes have the same word; a process whose starter lacks the capability waits for an operator."""
    stage = Stage()
    engine = restricted(place.engine(), stage)
    for each in load_processes("""
domain: money
workflows:
  - id: money.out
    steps:
      - {id: pay, type: system, operation: {name: pay, capability: "payout:pay"}}
      - {id: paid, type: terminal}
    transitions:
      - {from: pay, event: completed, to: paid}
"""):
        engine.register(each)
    refused, granted = as_person(engine).start("money.out"), as_person(engine, PAY).start("money.out")
    engine.drain()
    assert (status(engine, refused.id), status(engine, granted.id)) == ("suspended", "completed")
    assert stage.calls == ["pay"]


def test_a_fork_asks_whoever_forked_the_run(place: Place) -> None:
    """Somebody who repairs the run of another one does not act with that one's rights."""
    stage = Stage()
    engine = restricted(place.engine(), stage)
    engine.register(Saga("mine").wait_for("go", "go").step("pay", "pay", capability=PAY).build())
    run = as_person(engine, PAY).start("mine")
    engine.drain()
    ann = engine.acting(Actor(id="ann", capabilities=frozenset({"execution:*"})))
    forked = ann.run(run.id).fork(history(engine, run.id)[-1].sequence, reason="try").id
    engine.drain()
    engine.run(forked).signal("go")
    engine.drain()
    assert (status(engine, forked), stage.calls) == ("failed", [])
    assert "'ann', who started the run" in engine.run(forked).describe().error


def test_what_helps_a_step_that_was_refused_is_told(place: Place) -> None:
    """`why` tries remedies on a copy of the run, which asks the directory too: it names the lack, and a retry goes on once the starter is there again."""
    stage = Stage()
    engine = restricted(place.engine(), stage)
    engine.directory.put("mallory")
    saga = Saga("mine", dlq=True).wait_for("go", "go").step("pay", "pay", capability=PAY).build()
    run = as_person(engine.register(saga), PAY).start("mine")
    engine.drain()
    engine.directory.deactivate("mallory")
    engine.run(run.id).signal("go")
    engine.drain()
    assert "they are deactivated" in engine.run(run.id).why().words
    engine.directory.activate("mallory")
    (letter,) = engine.dead_letters.list()
    engine.dead_letters.requeue(letter)
    engine.drain()
    assert (status(engine, run.id), stage.calls) == ("completed", ["pay"])


# -- a name


def own(name: str = "payout", version: int = 2, **options: object) -> dict[str, object]:
    """A workflow of a tenant, as data."""
    return graph_data(Saga(name, version, **options).step("pay", "pay").build().graph)  # type: ignore[arg-type]


@pytest.mark.row("E-572")
def test_a_tenant_cannot_take_the_name_of_a_shared_workflow(place: Place) -> None:
    """Neither by one definition nor by a file; `validate` says so too; the shared one is still what the tenant starts."""
    stage = Stage()
    engine = place.engine().register(payout(stage).build())
    acme = as_person(engine, "*", tenant="acme")
    with pytest.raises(DefinitionError, match="give this one another name") as refusal:
        acme.definitions.publish(own())
    assert [each.code for each in refusal.value.diagnostics] == ["shared_name"]
    assert [each.code for each in acme.definitions.validate(own()).findings] == ["shared_name"]
    assert acme.definitions.get("payout").version == "1"
    acme.definitions.publish(own("mine"))


def test_the_same_content_is_no_other_workflow(place: Place) -> None:
    """A tenant that publishes what all share already is not refused."""
    stage = Stage()
    definition = payout(stage).build()
    engine = place.engine().register(definition)
    found = as_person(engine, "*", tenant="acme").definitions.publish(graph_data(definition.graph))
    assert (found.tenant, found.version) == ("*", "1")


@pytest.mark.row("E-572")
@pytest.mark.parametrize(
    ("options", "positions"),
    [
        ({}, {"start", "cancel"}),
        ({"capability": "mine:start"}, {"start", "cancel"}),
        ({"capability": START, "cancel_capability": "mine"}, {"cancel"}),
    ],
)
def test_a_tenants_own_workflow_asks_for_what_the_shared_one_asks_for(
    place: Place, options: dict[str, object], positions: set[str]
) -> None:
    """Where a shared one may be replaced, the other has its rights: a tenant cannot weaken them."""
    engine = place.engine().register(payout(Stage(), replaceable=True).build())
    acme = as_person(engine, "*", tenant="acme")
    with pytest.raises(DefinitionError) as refusal:
        acme.definitions.publish(own(**options))  # type: ignore[arg-type]
    assert {(each.code, each.position) for each in refusal.value.diagnostics} == {
        ("fewer_rights", one) for one in positions
    }
    acme.definitions.publish(own(capability=START))
    assert acme.definitions.get("payout").version == "2"
    assert engine.definitions.get("payout").version == "1"
