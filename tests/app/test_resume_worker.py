"""The worker that lets paused runs go on now and then, with a virtual clock and with several processes."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from app.sagas.acting import Stage, history, run, status, step
from standfast import Actor, ForbiddenError, NotFoundError, RequestContext, Saga, SagaDefinition, Settings
from standfast.engine.commit.submission import Submission
from standfast.engine.loops.resume import Resuming
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph, graph_data
from standfast.kernel.ids import InstanceId
from standfast.store.records.instances import Address
from standfast.testing import ManualEngine
from support.engines import QUICK, Live, Place
from support.waiting import arrives, eventually

OPERATOR = Actor(id="olga", capabilities=frozenset({"execution:*"}))
LATER = Settings(auto_resume_after_approval=False)


def asking(stage: Stage) -> SagaDefinition:
    """A question, and a step behind it."""
    return Saga("asking").human("ask").step("after", stage.does("after")).build()


def rules(first: g.Op = g.HumanOp(), on: str = "confirmed") -> bytes:  # noqa: B008 - it is frozen
    """A workflow of rules that asks somebody, or does something else first."""
    graph = compile_graph(
        kind="rules",
        name="rules",
        version="1",
        entry="ask",
        nodes=[g.Node(id="ask", op=first), g.Node(id="end", op=g.EndOp())],
        edges=[g.Edge(source="ask", target="end", on=on)],
        policies=g.Policies(),
    )
    return msgspec.json.encode(graph_data(graph))


def paused(engine: ManualEngine) -> InstanceId:
    """A run that somebody has paused."""
    instance = run(engine, "asking")
    engine.run(instance).pause()
    return instance


@pytest.mark.row("R-085")
def test_a_stop_waits_for_the_look_that_is_under_way(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker comes to the end of its look before the engine has stopped, and what was asked for is done or still open, never half."""
    inside, gate, ended = threading.Event(), threading.Event(), threading.Event()
    look = Resuming._look

    def held(self: Resuming, *given: Any) -> int:
        inside.set()
        arrives(gate)
        return look(self, *given)

    monkeypatch.setattr(Resuming, "_look", held)
    engine = live.engine(Settings(resume_worker_interval=timedelta(milliseconds=50))).register(asking(Stage()))
    run = engine.start("asking")
    run.pause()
    asked = engine.acting(OPERATOR).run(run.id).request_resume("later")
    engine.start_worker()
    arrives(inside)

    def stop() -> None:
        engine.stop()
        ended.set()

    stopping = threading.Thread(target=stop)
    stopping.start()
    assert not ended.wait(0.2)
    gate.set()
    stopping.join(30)
    assert ended.is_set()
    with live.engine() as other:
        found = next(each for each in other.run(run.id).resume_requests() if each.id == asked.id)
        assert (found.executed_at is not None) == (other.run(run.id).describe().status != "paused")


@pytest.mark.row("R-085", "R-086", "R-090", "R-095")
def test_a_request_that_was_written_down_is_carried_out_at_the_next_look(place: Place) -> None:
    """Not before; the row that was written says then when that was, and the history who had asked."""
    engine = place.engine().register(asking(Stage()))
    engine.drain()
    instance = paused(engine)
    asked = engine.acting(OPERATOR).run(instance).request_resume("later", data={"n": 1})
    engine.drain()
    assert [each.id for each in engine.runs.resumable()] == [instance]
    assert (status(engine, instance), engine.run(instance).describe().resume_attempted_at) == ("paused", None)
    engine.advance(minutes=5)
    assert status(engine, instance) == "running"
    [found] = engine.run(instance).resume_requests()
    assert (found.id, found.requested_at, found.executed_at) == (asked.id, asked.requested_at, place.clock.now())
    assert (found.requested_by, found.reason, found.trigger_data) == ("olga", "later", {"n": 1})
    assert history(engine, instance, "workflow_resumed")[0].actor == "olga"
    assert engine.runs.resumable() == []


@pytest.mark.row("R-090")
def test_a_request_that_cannot_be_carried_out_says_why(place: Place) -> None:
    """It is looked at once, and never again."""
    engine = place.engine().register(asking(Stage()))
    engine.drain()
    instance = paused(engine)
    engine.run(instance).request_resume()
    engine.run(instance).resume()
    engine.advance(minutes=10)
    late, executed = sorted(engine.run(instance).resume_requests(), key=lambda each: each.executed_at is not None)
    assert ("not paused" in late.error_message, executed.error_message) == (True, "")
    assert len(history(engine, instance, "workflow_resumed")) == 1


def test_only_those_who_may_ask_for_it(place: Place) -> None:
    """Whoever may not resume a run may not leave that to the worker; a run that is not there is not found."""
    engine = place.engine().register(asking(Stage()))
    instance = paused(engine)
    with pytest.raises(ForbiddenError, match="execution:resume"):
        engine.acting(Actor(id="eve")).run(instance).request_resume()
    with pytest.raises(NotFoundError):
        engine.run("00000000-0000-7000-8000-000000000000").request_resume()
    assert engine.run(instance).resume_requests() == []


@pytest.mark.row("R-091")
def test_several_processes_resume_a_run_once(place: Place) -> None:
    """Each of them looks, and the run takes the same request once."""
    first, second = (place.engine().register(asking(Stage())) for _ in range(2))
    first.drain()
    second.drain()
    instance = paused(first)
    first.run(instance).request_resume()
    place.clock.move(timedelta(minutes=6))
    requests = second.service.store.resumes().open(limit=9)
    assert len(requests) == 1
    first.drain()
    told = second.runtime.housekeeping.resuming.resumption.requested(requests[0])
    second.run(instance).pause()
    second.service.shared.submit(submission(second, instance, told.command, told.request))
    assert status(second, instance) == "paused"
    second.drain()
    assert len(history(second, instance, "workflow_resumed")) == 1
    assert [each.error_message for each in second.run(instance).resume_requests()] == [""]


def submission(engine: ManualEngine, instance: InstanceId, command: object, request: RequestContext) -> Submission:
    """What another process was about to tell a run."""
    address = Address(tenant=engine.request.tenant, instance=instance)
    return Submission(
        address=address, command=command, cause="again", request=request, settled=lambda _outcome, _error: None
    )


@pytest.mark.row("C-47", "R-095")
@pytest.mark.row("R-088", "R-103")
def test_what_was_decided_goes_on_at_the_next_look(place: Place) -> None:
    """Where approvals do not resume by themselves, a run of rules stays paused until the worker looks, or somebody resumes it."""
    engine = place.engine(LATER)
    engine.definitions.publish(rules())
    engine.drain()
    waiting, resumed = (run(engine, "rules") for _ in range(2))
    for each in (waiting, resumed):
        engine.tasks.approve(step(engine, each, "ask"))
    engine.drain()
    assert {each.reason for each in engine.runs.resumable()} == {"approved"}
    engine.run(resumed).resume()
    assert (status(engine, waiting), status(engine, resumed)) == ("paused", "completed")
    engine.advance(minutes=5)
    assert status(engine, waiting) == "completed"
    assert [each.triggered_by for each in engine.run(waiting).resume_requests()] == ["approval"]


@pytest.mark.row("C-38")
@pytest.mark.row("R-089", "R-101", "R-118")
def test_pauses_of_rules_end_after_a_day(place: Place) -> None:
    """Such a run fails then; those of other kinds are paused for as long as anybody likes."""
    engine = place.engine().register(asking(Stage()))
    engine.definitions.publish(rules(g.TaskOp(work=g.HandlerCall(handler="h")), g.OK))
    engine.drain()
    short, long = engine.start("rules").id, run(engine, "asking")
    for each in (short, long):
        engine.run(each).pause()
    engine.advance(hours=23)
    assert status(engine, short) == "paused"
    engine.advance(hours=2)
    assert (status(engine, short), status(engine, long)) == ("failed", "paused")
    assert "pause timeout" in engine.run(short).describe().error


def test_the_worker_can_be_switched_off(place: Place) -> None:
    """Then paused runs stay paused, and requests stay open."""
    engine = place.engine(Settings(resume_worker_interval=None)).register(asking(Stage()))
    instance = paused(engine)
    engine.run(instance).request_resume()
    engine.advance(days=3)
    assert status(engine, instance) == "paused"


@pytest.mark.row("R-086", "R-104")
def test_a_live_worker_looks_by_itself(live: Live) -> None:
    """As often as it is told to."""
    settings = msgspec.structs.replace(
        QUICK, resume_worker_interval=timedelta(milliseconds=1), missing_handler_cooldown=timedelta(milliseconds=1)
    )
    with live.engine(settings) as engine:
        engine.register(asking(Stage())).start_worker()
        found = engine.start("asking")
        found.pause()
        found.request_resume()
        eventually(lambda: found.describe().status != "paused")
