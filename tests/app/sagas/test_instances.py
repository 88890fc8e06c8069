"""Instances: what they hold, which statuses they go through, how they are listed, and that an end is an end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.sagas.acting import BROKEN, Stage, decide, run, status, statuses, step
from standfast import NotFoundError, PayloadError, RejectedError, Saga
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place
from support.rows import new_id


def asking(stage: Stage, name: str = "asking") -> Saga:
    """A saga that does something, asks a person, and goes on."""
    return (
        Saga(name)
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a"))
        .human("ask")
        .then("b", stage.does("b"))
    )


@pytest.mark.row("F-038", "F-047")
def test_an_instance_shows_all_that_it_holds(place: Place) -> None:
    """Its definition, its context, its status, and the state of every step."""
    stage, engine = Stage(), place.engine()
    stage.does("a", {"reserved": 3})
    instance = run(engine.register(asking(stage).build()), "asking", {"order": 7})
    found = engine.run(instance).describe()
    assert (found.definition_id, found.status) == ("asking-v1", "running")
    assert (found.input, found.context) == ({"order": 7}, {"order": 7, "reserved": 3})
    assert set(engine.definitions.get(found.definition, found.definition_version).nodes) == {"a", "ask", "b"}
    first, second = engine.run(instance).steps()
    assert (first.name, first.status, first.input, first.output) == ("a", "completed", {"order": 7}, {"reserved": 3})
    assert (first.instance, first.retry_count, first.error) == (instance, 1, "")
    assert (second.name, second.status, second.completed_at) == ("ask", "waiting_decision", None)
    assert len({first.id, second.id}) == 2


@pytest.mark.row("F-039", "F-040")
def test_an_instance_is_pending_until_somebody_works_on_it(place: Place) -> None:
    """It is `running` from the first call of a handler, seen from inside of it, to its end."""
    engine = place.engine()
    seen: list[str] = []
    stage = Stage()
    looks = stage.does("a", lambda ctx: seen.append(status(engine, ctx.instance)))
    engine.register(Saga("s").step("a", looks).step("b", stage.does("b")).build())
    instance = engine.start("s").id
    assert status(engine, instance) == "pending"
    assert engine.execute_next()
    assert (seen, status(engine, instance)) == (["running"], "running")
    engine.drain()
    assert status(engine, instance) == "completed"


@pytest.mark.row("F-142")
@pytest.mark.parametrize("first", ["person", "time", "signal", "child"])
def test_an_instance_whose_first_step_waits_is_running(place: Place, first: str) -> None:
    """It has begun, and what it waits for is not a worker; it is found under that status."""
    engine = place.engine().register(Saga("sub").human("below").build())
    begin = {
        "person": Saga("s").human("ask"),
        "time": Saga("s").wait("w", 60),
        "signal": Saga("s").wait_for("w", "go"),
        "child": Saga("s").call("c", "sub"),
    }[first]
    engine.register(begin.build())
    instance = engine.start("s").id
    assert status(engine, instance) == "running"
    assert instance in {each.id for each in engine.runs.list(status="running").items}
    assert engine.runs.list(status="pending", definition="s").items == []


@pytest.mark.row("F-039", "F-098")
def test_an_instance_that_begins_later_is_pending(place: Place) -> None:
    """A start may be put off; until then nothing is called and the instance is `pending`."""
    stage, engine = Stage(), place.engine()
    engine.register(Saga("s").step("a", stage.does("a")).build())
    instance = engine.start("s", delay=60).id
    engine.advance(seconds=59)
    assert (status(engine, instance), stage.calls) == ("pending", [])
    assert not engine.execute_next()
    engine.advance(seconds=1)
    assert (status(engine, instance), stage.calls) == ("completed", ["a"])


@pytest.mark.row("F-040")
@pytest.mark.row("C-02")
def test_an_instance_is_running_while_it_waits_or_goes_back(place: Place) -> None:
    """Neither a question to a person nor a rollback has an instance status of its own."""
    stage, engine, seen = Stage(), place.engine(), list[str]()
    stage.does("undo a", lambda ctx: seen.append(status(engine, ctx.instance)))
    stage.does("b", BROKEN)
    instance = run(engine.register(asking(stage).build()), "asking")
    assert status(engine, instance) == "running"
    decide(engine, instance, "ask")
    engine.drain()
    assert (seen, status(engine, instance)) == (["running"], "failed")


@pytest.mark.row("F-041")
def test_an_instance_is_completed_when_all_its_steps_are(place: Place) -> None:
    """Nothing is open, nothing failed, and its data is the result."""
    stage, engine = Stage(), place.engine()
    stage.does("b", {"sent": True})
    instance = run(engine.register(asking(stage).build()), "asking", {"order": 7})
    decide(engine, instance, "ask")
    assert status(engine, instance) == "running"
    engine.drain()
    found = engine.run(instance).describe()
    assert (found.status, found.is_terminal) == ("completed", True)
    assert engine.run(instance).result() == found.result
    assert isinstance(found.result, dict)
    assert {name: found.result[name] for name in ("order", "sent")} == {"order": 7, "sent": True}
    assert set(statuses(engine, instance).values()) == {"completed", "confirmed"}
    assert engine.admin.backlog() == []


@pytest.mark.row("F-042", "F-079")
def test_an_instance_fails_at_the_end_of_its_rollback(place: Place) -> None:
    """While steps are being undone it is not over; afterwards it is `failed`, with the error of the step."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("s")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a"))
        .step("b", stage.does("b", BROKEN), attempts=1)
    )
    instance = engine.register(saga.build()).start("s").id
    assert engine.execute_next()
    assert engine.execute_next()
    assert (stage.calls, status(engine, instance)) == (["a", "b"], "running")
    engine.drain()
    found = engine.run(instance).describe()
    assert (found.status, found.error, found.is_terminal) == ("failed", "'b' failed: ValueError: broken", True)
    assert stage.calls == ["a", "b", "undo a"]


@pytest.mark.row("F-042")
def test_an_instance_fails_when_something_cannot_be_undone(place: Place) -> None:
    """A compensation that gives up ends the instance as `failed` too, and the reason says so."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("s")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a", BROKEN), attempts=2)
        .step("b", stage.does("b", BROKEN), attempts=1)
    )
    instance = run(engine.register(saga.build()), "s")
    found = engine.run(instance).describe()
    assert (found.status, found.reason) == ("failed", "compensation_failed")


def completed(engine: ManualEngine, stage: Stage) -> InstanceId:
    """An instance that ended well."""
    instance = run(engine.register(asking(stage).build()), "asking")
    decide(engine, instance, "ask")
    engine.drain()
    return instance


def failed(engine: ManualEngine, stage: Stage) -> InstanceId:
    """An instance that was rolled back."""
    stage.does("b", BROKEN)
    return completed(engine, stage)


def cancelled(engine: ManualEngine, stage: Stage) -> InstanceId:
    """An instance that was cancelled while it waited for a person."""
    instance = run(engine.register(asking(stage).build()), "asking")
    reply = engine.acting("ann").futures.run(instance).cancel("no longer needed")
    engine.drain()
    assert reply.result() == "cancelled"
    return instance


def aborted(engine: ManualEngine, stage: Stage) -> InstanceId:
    """An instance that was ended at once."""
    instance = run(engine.register(asking(stage).build()), "asking")
    assert engine.acting("ann").run(instance).abort("fire") == "aborted"
    return instance


def rejected(engine: ManualEngine, stage: Stage) -> InstanceId:
    """An instance that a person refused."""
    instance = run(engine.register(asking(stage).build()), "asking")
    decide(engine, instance, "ask", "rejected")
    return instance


@pytest.mark.row("F-043")
def test_a_cancelled_instance_has_undone_its_steps(place: Place) -> None:
    """A graceful stop ends `cancelled`, after the compensations."""
    stage, engine = Stage(), place.engine()
    instance = cancelled(engine, stage)
    assert (status(engine, instance), stage.calls) == ("cancelled", ["a", "undo a"])
    assert statuses(engine, instance) == {"a": "rolled_back", "ask": "skipped"}


@pytest.mark.row("F-044")
@pytest.mark.parametrize("end", [aborted, rejected])
def test_an_aborted_instance_has_undone_nothing(place: Place, end: Callable[[ManualEngine, Stage], InstanceId]) -> None:
    """An immediate stop, or the rejection by a person, ends `aborted` without compensations."""
    stage, engine = Stage(), place.engine()
    instance = end(engine, stage)
    engine.drain()
    assert (status(engine, instance), stage.calls) == ("aborted", ["a"])
    assert statuses(engine, instance)["a"] == "completed"


@pytest.mark.row("F-045")
def test_an_instance_in_the_dead_letter_queue_can_go_on(place: Place) -> None:
    """`dlq` is no end: an operator requeues the step, and the instance completes."""
    stage, engine = Stage(), place.engine()
    engine.register(Saga("s", dlq=True).step("a", stage.does("a", BROKEN, None), attempts=1).build())
    instance = run(engine, "s")
    found = engine.run(instance).describe()
    assert (found.status, found.is_terminal, found.ended_at) == ("dlq", False, None)
    (letter,) = engine.dead_letters.list(instance=instance)
    engine.dead_letters.requeue(letter.id)
    engine.drain()
    assert status(engine, instance) == "completed"


@pytest.mark.row("F-046")
@pytest.mark.parametrize("end", [completed, failed, cancelled, aborted, rejected])
def test_an_end_is_an_end(place: Place, end: Callable[[ManualEngine, Stage], InstanceId]) -> None:
    """No control operation changes an instance that has ended: it is refused, and nothing moves."""
    stage, engine = Stage(), place.engine()
    instance = end(engine, stage)
    asked = step(engine, instance, "ask").id
    assert isinstance(engine.futures.run(instance).resume().exception(), RejectedError)  # Which is written down.
    before = engine.run(instance).describe(), engine.run(instance).steps(), engine.run(instance).history()
    for attempt in (
        engine.futures.run(instance).cancel(),
        engine.futures.run(instance).abort(),
        engine.futures.tasks.decide(asked, "confirmed"),
        engine.futures.run(instance).signal("hello"),
        engine.futures.run(instance).resume(),
    ):
        refusal = attempt.exception()
        assert isinstance(refusal, RejectedError)
        told = {"already_terminal": before[0].status, "already_decided": "an answer stands"}
        assert told[refusal.reason] in str(refusal)
    engine.advance(hours=1)
    after = engine.run(instance).describe(), engine.run(instance).steps(), engine.run(instance).history()
    assert after == before


@pytest.mark.row("F-047")
def test_steps_of_nobody_are_an_error(place: Place) -> None:
    """An instance that does not exist has no steps, no history and no state; text that is no id is told apart."""
    engine = place.engine().register(Saga("s").step("a", "work").build())
    nobody = engine.futures.run(new_id())
    for reply in (
        nobody.steps(),
        nobody.history(),
        nobody.describe(),
        nobody.result(),
        nobody.cancel(),
        nobody.abort(),
    ):
        assert isinstance(reply.exception(), NotFoundError), reply
    assert isinstance(engine.futures.runs.get(new_id()).exception(), NotFoundError)
    assert isinstance(engine.futures.runs.get("nonsense").exception(), PayloadError)
    with pytest.raises(PayloadError, match="is not the id of an instance"):
        engine.run("nonsense")


@pytest.mark.row("F-047")
def test_a_tenant_sees_only_its_own(place: Place) -> None:
    """To another tenant an instance does not exist."""
    engine = place.engine().register(Saga("s").step("a", "work").build())
    instance = engine.as_tenant("acme").start("s").id
    assert [each.name for each in engine.as_tenant("acme").run(instance).steps()] == ["a"]
    assert isinstance(engine.futures.run(instance).steps().exception(), NotFoundError)
    assert isinstance(engine.futures.run(instance).describe().exception(), NotFoundError)
    assert isinstance(engine.futures.run(instance).abort().exception(), NotFoundError)


@pytest.mark.row("F-048")
@pytest.mark.row("C-19")
def test_active_instances_are_those_that_have_not_ended(place: Place) -> None:
    """Pending, running and dead-letter ones are listed with id and status; ended ones are found by their status."""
    stage, engine = Stage(), place.engine()
    ended = {cancelled(engine, stage): "cancelled", aborted(engine, stage): "aborted"}
    engine.register(Saga("patient", dlq=True).step("x", stage.does("x", BROKEN), attempts=1).build())
    dead, running = run(engine, "patient"), run(engine, "asking")
    pending = engine.start("asking").id
    active = {each.id: each.status for each in engine.runs.list(is_active=True).items}
    assert active == {pending: "pending", running: "running", dead: "dlq"}
    stopped = engine.runs.list(status=("cancelled", "aborted")).items
    assert {each.id: each.status for each in stopped} == ended
    for word, instance in (("pending", pending), ("running", running), ("dlq", dead)):
        assert [each.id for each in engine.runs.list(status=word).items] == [instance]


@pytest.mark.row("F-048")
def test_lists_come_in_pages(place: Place) -> None:
    """Newest first; each page says where the next one begins, and together they hold each instance once."""
    engine = place.engine().register(Saga("s").step("a", "work").build())
    started = []
    for _ in range(5):
        started.append(engine.start("s").id)
        engine.advance(seconds=1)
    pages, cursor = list[list[InstanceId]](), None
    while True:
        page = engine.runs.list(is_active=True, cursor=cursor, limit=2)
        pages.append([each.id for each in page.items])
        cursor = page.next
        if cursor is None:
            break
    assert [each for page in pages for each in page] == started[::-1]
    assert [len(page) for page in pages] == [2, 2, 1]


def test_a_version_is_asked_for_with_its_definition(place: Place) -> None:
    """Every definition counts its own versions, so that one without its definition names nothing."""
    engine = place.engine().register(Saga("s").human("ask").build())
    instance = run(engine, "s")
    for version in ("1", 1, 0):
        with pytest.raises(
            PayloadError, match=f"version {version!r} is that of no definition: give the definition too"
        ):
            engine.runs.list(version=version)
    assert [each.id for each in engine.runs.list(definition="s", version=1).items] == [instance]
