"""What callers of a process learn of failures: a mapping that cannot be told is one, and only operators see the text of an error."""

from __future__ import annotations

import pytest

from app.processes.acting import BOB, EVE, INPUT, asking, ends, person, process, published, system
from standfast import Actor, Capabilities, RequestContext
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place

OPS = Actor(id="ops", capabilities=frozenset({"execution:read"}))
SECRET = "db-7.internal:5432"
WAYS = "call completed done, call error lost"


def called(engine: ManualEngine, output: dict[str, str], ways: str = WAYS) -> InstanceId:
    """A process whose only call keeps this of its answer, which is {"at": "noon", "noise": 1}."""
    others = {each.split()[2] for each in ways.split(",")}
    published(engine, process(system("call", output=output), *ends(*others), ways=ways))
    started = engine.processes.start("w", {"a": 1})
    engine.drain()
    return started.id


def failing(engine: ManualEngine) -> InstanceId:
    """A process that is suspended by an error which names another system."""
    published(engine, process(system("call", "broken"), *ends("done"), ways="call completed done"))

    def broken() -> None:
        raise OSError(f"connection refused by {SECRET}")

    engine.handle("broken", broken)
    started = engine.processes.start("w", INPUT)
    engine.drain()
    return started.id


@pytest.mark.row("P-091", "P-092")
@pytest.mark.parametrize(
    "output", [{"n": "response.at > 2"}, {"n": "response.noise > 'x'"}, {"n": "'id-{response.no}'"}]
)
def test_an_output_that_cannot_be_told_fails_its_step(place: Place, output: dict[str, str]) -> None:
    """A value of another type, or a hole in a text, is an error of the step, which says the name; it never becomes null."""
    engine = place.engine()
    seen = engine.processes.get(called(engine, output)).instance
    assert (seen.status, seen.current_step) == ("completed", "lost")
    assert "n" not in seen.state
    assert "'n'" in str(seen.state["_last_error"])
    assert "output cannot be told" in str(seen.state["_last_error"])


def test_an_output_that_cannot_be_told_suspends_where_no_way_leads_on(place: Place) -> None:
    """The instance waits for an operator, and the trail tells why."""
    engine = place.engine()
    instance = called(engine, {"n": "response.at > 2"}, "call completed done")
    assert engine.processes.get(instance).instance.status == "suspended"
    last = engine.processes.events(instance)[-1]
    assert (last.event, "output cannot be told" in str(last.data["error"])) == ("step_failed", True)


def test_a_name_that_the_answer_lacks_is_still_null(place: Place) -> None:
    """A mapping that is nothing but a path reads null where nothing is, as the format says."""
    engine = place.engine()
    seen = engine.processes.get(called(engine, {"n": "response.nothing", "at": "response.at"})).instance
    assert (seen.current_step, seen.state["n"], seen.state["at"]) == ("done", None, "noon")


@pytest.mark.row("P-049")
def test_only_operators_see_the_text_of_an_error(place: Place) -> None:
    """Others are told the step, a code and a neutral sentence: in the state, in the history of the descriptor and in the trail."""
    engine = place.engine()
    instance = failing(engine)
    for calls in (engine, asking(engine, OPS)):
        shown = calls.processes.get(instance)
        assert SECRET in str(shown.instance.state["_last_error"])
        assert SECRET in str(calls.processes.events(instance, with_lifecycle=True))
    for actor in (BOB, EVE):
        calls = asking(engine, actor)
        shown = calls.processes.get(instance)
        error = shown.instance.state["_last_error"]
        assert isinstance(error, dict)
        assert (error["step"], error["code"]) == ("call", "STEP_FAILED")
        trail = calls.processes.events(instance, with_lifecycle=True)
        assert trail[-1].event in {"step_failed", "workflow_paused"}
        assert SECRET not in f"{shown} {trail}"
        assert "STEP_FAILED" in str(trail)


def test_whoever_waits_for_a_process_is_not_told_the_text_either(place: Place) -> None:
    """The instance that a resume brings back is shown as `get` shows it; a role of the directory makes an operator."""
    engine = place.engine(capabilities=Capabilities({"ops": ["execution:*"], "clerk": ["execution:resume"]}))
    instance = failing(engine)
    for name in ("ops", "clerk"):
        engine.directory.put(name)
        engine.directory.grant(name, name)
    told = {}
    for name in ("ops", "clerk"):
        calls = engine.acting(RequestContext(actor=Actor(id=name)))
        calls.processes.resume(instance)
        engine.drain()
        told[name] = SECRET in str(calls.processes.get(instance))
    assert told == {"ops": True, "clerk": False}


@pytest.mark.row("P-124")
def test_processes_and_runs_of_one_millisecond_are_listed_in_the_order_of_their_starts(place: Place) -> None:
    """Lists begin with the newest; those that were started within one millisecond keep the order in which they were."""
    engine = place.engine()
    published(engine, process(person("ask"), *ends("done"), ways="ask sent done"))
    started = [engine.processes.start("w", {"n": n}).id for n in range(40)]
    assert [each.id for each in engine.processes.list(limit=100).items] == started[::-1]
    assert [each.id for each in engine.runs.list(limit=100).items] == started[::-1]
