"""The states of steps: which there are, what leads from one to the next, and that nothing else happens."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from app.sagas.acting import BROKEN, Stage, decide, history, life, run, status, statuses, step
from standfast import Saga, StepContext
from standfast.graph.status_words.saga import STEP_STATUSES
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.desks import Desk
from support.engines import Place

STATUSES = {
    "pending",
    "running",
    "completed",
    "failed",
    "paused",
    "compensation",
    "rolled_back",
    "skipped",
    "waiting_decision",
    "confirmed",
    "rejected",
}

TABLE = {
    ("pending", "running"),
    ("running", "completed"),
    ("running", "failed"),
    ("running", "paused"),
    ("failed", "compensation"),
    ("compensation", "rolled_back"),
    ("compensation", "failed"),
    ("paused", "pending"),
}
"""The transitions that the specification lists."""

IMPLIED = {
    ("completed", "compensation"),
    ("completed", "rolled_back"),
    ("failed", "rolled_back"),
    ("running", "waiting_decision"),
    ("waiting_decision", "confirmed"),
    ("waiting_decision", "rejected"),
    ("waiting_decision", "skipped"),
    ("pending", "skipped"),
    ("running", "skipped"),
    ("confirmed", "rolled_back"),
    ("paused", "completed"),
    ("skipped", "rolled_back"),
}
"""Those that its text requires besides (F-058)."""

SETTLED = {
    ("pending", "waiting_decision"),  # A question is asked the moment its step begins.
    ("pending", "completed"),  # A step that takes no time.
    ("skipped", "compensation"),  # C-01: a branch that was stopped half-way is undone by its compensation.
    ("paused", "skipped"),  # C-21: cancel and abort of an instance in the dead letter queue.
    ("paused", "failed"),
    ("paused", "running"),  # The instance goes on, and the step waits for its next call.
    ("running", "pending"),  # Nobody has the handler that was to be called.
}
"""Those that settled contradictions add."""


@pytest.mark.row("F-049")
def test_there_are_eleven_statuses() -> None:
    """The words for the status of a step are those of the specification, and no others."""
    assert set(STEP_STATUSES) == STATUSES
    assert len(STEP_STATUSES) == 11


@pytest.mark.row("F-050", "F-051")
def test_a_step_is_running_in_its_handler_and_completed_after_it(place: Place) -> None:
    """`pending` until a worker calls the handler, `running` inside of it, `completed` with a time afterwards."""
    engine, stage, seen = place.engine(), Stage(), list[str]()
    work = stage.does("a", lambda ctx: seen.append(step(engine, ctx.instance, "a").status))
    instance = engine.register(Saga("s").step("a", work).build()).start("s").id
    before = step(engine, instance, "a")
    assert (before.status, before.started_at, before.completed_at) == ("pending", None, None)
    engine.advance(seconds=5)
    after = step(engine, instance, "a")
    assert (seen, after.status) == (["running"], "completed")
    assert after.started_at is not None
    assert after.completed_at is not None
    assert life(engine, instance, "a") == ["pending", "running", "completed"]


@pytest.mark.row("F-050")
def test_a_step_is_running_in_dead_letter_mode_too(place: Place) -> None:
    """Both modes begin a step in the same way."""
    engine, stage, seen = place.engine(), Stage(), list[str]()
    work = stage.does("a", lambda ctx: seen.append(step(engine, ctx.instance, "a").status))
    instance = run(engine.register(Saga("s", dlq=True).step("a", work).build()), "s")
    assert (seen, step(engine, instance, "a").status) == (["running"], "completed")


@pytest.mark.row("F-052", "F-061")
@pytest.mark.row("C-16")
def test_a_step_fails_when_its_calls_are_used_up(place: Place) -> None:
    """Between two calls it stays `running`; only the last failure makes it `failed`."""
    engine, stage = place.engine(), Stage()
    instance = engine.register(Saga("s").step("a", stage.does("a", BROKEN), attempts=2).build()).start("s").id
    assert engine.execute_next()
    between = step(engine, instance, "a")
    assert (between.status, between.retry_count, between.error) == ("running", 1, "ValueError: broken")
    engine.drain()
    assert stage.count("a") == 2
    told = [(each.event_type, each.status) for each in history(engine, instance) if each.step_name == "a"]
    assert told == [
        ("step_started", "running"),
        ("step_retry", "running"),
        ("step_failed", "failed"),
        ("step_rolled_back", "rolled_back"),
    ]


@pytest.mark.row("F-053", "F-057")
def test_a_step_is_paused_in_dead_letter_mode_and_pending_when_requeued(place: Place) -> None:
    """It waits for an operator instead of failing, and is as new once it is requeued."""
    engine, stage = place.engine(), Stage()
    engine.register(Saga("s", dlq=True).step("a", stage.does("a", BROKEN, BROKEN, None), attempts=2).build())
    instance = run(engine, "s")
    paused = step(engine, instance, "a")
    assert (paused.status, paused.retry_count) == ("paused", 2)
    (letter,) = engine.dead_letters.list()
    engine.dead_letters.requeue(letter.id)
    again = step(engine, instance, "a")
    assert (again.status, again.retry_count, again.error, again.completed_at) == ("pending", 0, "", None)
    engine.drain()
    assert life(engine, instance, "a") == ["pending", "running", "paused", "pending", "running", "completed"]


@pytest.mark.row("F-054", "F-055", "F-075")
def test_a_step_is_in_compensation_while_it_is_undone(place: Place) -> None:
    """From inside of the compensation the step that failed reads `compensation`; afterwards it is `rolled_back`."""
    engine, stage, seen = place.engine(), Stage(), list[dict[str, str]]()
    saga = (
        Saga("s")
        .step("a", stage.does("a", BROKEN), attempts=1)
        .on_failure("undo a", stage.does("undo a", lambda ctx: seen.append(statuses(engine, ctx.instance))))
    )
    instance = run(engine.register(saga.build()), "s")
    assert seen == [{"a": "compensation"}]
    assert statuses(engine, instance) == {"a": "rolled_back"}
    assert life(engine, instance, "a") == ["pending", "running", "failed", "compensation", "rolled_back"]


@pytest.mark.row("F-056")
def test_a_step_fails_when_it_cannot_be_undone(place: Place) -> None:
    """A compensation that gives up leaves its step `failed`, with a dead letter that names it."""
    engine, stage = place.engine(), Stage()
    saga = (
        Saga("s")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a", BROKEN), attempts=2)
        .step("b", stage.does("b", BROKEN), attempts=1)
    )
    instance = run(engine.register(saga.build()), "s")
    assert statuses(engine, instance) == {"a": "failed", "b": "rolled_back"}
    assert life(engine, instance, "a") == ["pending", "running", "completed", "compensation", "failed"]
    (letter,) = engine.dead_letters.list(instance=instance)
    assert (letter.source, letter.name, letter.reason) == ("compensation", "a", "compensation max retries exceeded")


@pytest.mark.row("F-059")
def test_steps_that_are_stopped_are_skipped(place: Place) -> None:
    """Cancel and abort skip what waits and what nobody has begun; the step says why."""
    engine, stage = place.engine(), Stage()
    saga = Saga("s").fork("f", lambda one: one.human("ask"), lambda two: two.step("a", stage.does("a"))).join("met")
    engine.register(saga.build())
    for word in ("cancel", "abort"):
        instance = engine.start("s").id
        run = engine.futures.run(instance)
        reply = run.cancel("enough") if word == "cancel" else run.abort("enough")
        engine.drain()
        reply.result()
        found = {each.name: (each.status, each.error) for each in engine.run(instance).steps() if each.name != "f"}
        assert found == dict.fromkeys(("ask", "a"), ("skipped", "Stopped due to workflow cancellation/abort"))
    assert stage.calls == []


@pytest.mark.row("F-059")
def test_a_step_that_was_stopped_in_its_handler_is_skipped(place: Place) -> None:
    """Its handler is told, its answer changes nothing, and what would follow never begins."""
    engine, stage = place.engine(), Stage()

    def stop(ctx: StepContext) -> dict[str, bool]:
        engine.futures.run(ctx.instance).cancel()
        assert ctx.cancelled
        return {"late": True}

    saga = Saga("s").step("a", stage.does("a", stop)).step("b", stage.does("b"))
    instance = run(engine.register(saga.build()), "s")
    assert (status(engine, instance), statuses(engine, instance)) == ("cancelled", {"a": "skipped"})
    assert (stage.calls, engine.run(instance).describe().context) == (["a"], {})


def frozen(engine: ManualEngine, stage: Stage, other: ManualEngine) -> InstanceId:
    """A saga in the dead letter queue: one branch failed while another one was in its handler, and a third had not begun."""
    seen: dict[str, str] = {}

    def work(ctx: StepContext) -> None:
        other.drain()
        seen.update(statuses(engine, ctx.instance))

    saga = (
        Saga("frozen", dlq=True)
        .fork(
            "fork",
            lambda one: one.step("busy", stage.does("busy", work), priority=9).then("next", stage.does("next")),
            lambda two: two.step("bad", stage.does("bad", BROKEN, None), attempts=1, priority=5),
            lambda three: three.step("cold", stage.does("cold")),
        )
        .join("met")
        .build()
    )
    other.register(saga)
    instance = run(engine.register(saga), "frozen")
    assert {name: seen[name] for name in ("busy", "bad", "cold")} == dict.fromkeys(("busy", "bad", "cold"), "paused")
    return instance


@pytest.mark.row("F-060", "F-058")
def test_what_an_instance_in_the_dead_letter_queue_had_open_is_paused(place: Place) -> None:
    """Branches beside the one that failed are frozen: running ones may finish, others wait, and all go on after a requeue."""
    engine, stage = place.engine(), Stage()
    instance = frozen(engine, stage, place.engine())
    assert (status(engine, instance), stage.calls) == ("dlq", ["busy", "bad"])
    now = statuses(engine, instance)
    assert (now["busy"], now["bad"], now["cold"], "next" in now) == ("completed", "paused", "paused", False)
    (letter,) = engine.dead_letters.list()
    engine.dead_letters.requeue(letter.id)
    engine.drain()
    assert status(engine, instance) == "completed"
    assert sorted(stage.calls) == ["bad", "bad", "busy", "cold", "next"]


# -- every transition


def happy(engine: ManualEngine, stage: Stage, _other: ManualEngine) -> InstanceId:
    """Nothing goes wrong."""
    saga = (
        Saga("happy")
        .step("a", stage.does("a", BROKEN, None))
        .human("ask")
        .condition("c", "{{ .yes }}", lambda no: no.step("n", stage.does("n")))
        .fork("f", lambda one: one.step("x", stage.does("x")), lambda two: two.save_point("sp"))
        .join("met")
    )
    instance = run(engine.register(saga.build()), "happy", {"yes": True})
    decide(engine, instance, "ask")
    return instance


def undone(engine: ManualEngine, stage: Stage, _other: ManualEngine) -> InstanceId:
    """A failure after a bit of everything, with a compensation that works at its second call."""
    saga = (
        Saga("undone")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a", BROKEN, None))
        .step("plain", stage.does("plain"))
        .human("ask")
        .fork(
            "f",
            lambda one: one.step("x", stage.does("x", BROKEN), attempts=2).on_failure("undo x", stage.does("undo x")),
            lambda two: two.human("other"),
            lambda three: three.step("late", stage.does("late"), priority=0),
        )
        .join("met")
    )
    instance = run(engine.register(saga.build()), "undone")
    decide(engine, instance, "ask")
    return instance


def stuck(engine: ManualEngine, stage: Stage, _other: ManualEngine) -> InstanceId:
    """A compensation that gives up, is tried again by an operator and works."""
    saga = (
        Saga("stuck")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a", BROKEN, None), attempts=1)
        .step("b", stage.does("b", BROKEN), attempts=1)
    )
    instance = run(engine.register(saga.build()), "stuck")
    (letter,) = engine.dead_letters.list(instance=instance)
    engine.dead_letters.retry_compensation(letter.id)
    return instance


def refused(engine: ManualEngine, stage: Stage, _other: ManualEngine) -> InstanceId:
    """A person says no while a branch has not begun."""
    saga = Saga("refused").fork("f", lambda one: one.human("ask"), lambda two: two.step("x", "nobody has it")).join("m")
    instance = run(engine.register(saga.build()), "refused")
    decide(engine, instance, "ask", "rejected")
    return instance


def stopped(engine: ManualEngine, stage: Stage, _other: ManualEngine) -> InstanceId:
    """Cancelled from inside of a branch."""
    saga = (
        Saga("stopped")
        .step("a", stage.does("a"))
        .fork(
            "f",
            lambda one: one.step(
                "x", stage.does("x", lambda ctx: engine.futures.run(ctx.instance).cancel()), priority=9
            ).on_failure("undo x", stage.does("undo x")),
            lambda two: two.step("y", stage.does("y")),
            lambda three: three.human("ask"),
        )
        .join("met")
    )
    return run(engine.register(saga.build()), "stopped")


def swept(engine: ManualEngine, stage: Stage, _other: ManualEngine) -> InstanceId:
    """Cancelled from inside of a branch that has nothing to undo it."""
    stop = stage.does("x", lambda ctx: engine.futures.run(ctx.instance).cancel())
    saga = Saga("swept").fork("f", lambda one: one.step("x", stop), lambda two: two.human("ask")).join("met")
    return run(engine.register(saga.build()), "swept")


def thawed(engine: ManualEngine, stage: Stage, other: ManualEngine) -> InstanceId:
    """Requeued from the dead letter queue."""
    instance = frozen(engine, stage, other)
    (letter,) = engine.dead_letters.list(instance=instance)
    engine.dead_letters.requeue(letter.id)
    return instance


def cancelled(engine: ManualEngine, stage: Stage, other: ManualEngine) -> InstanceId:
    """Cancelled in the dead letter queue."""
    instance = frozen(engine, stage, other)
    engine.futures.run(instance).cancel()
    return instance


def aborted(engine: ManualEngine, stage: Stage, other: ManualEngine) -> InstanceId:
    """Aborted in the dead letter queue."""
    instance = frozen(engine, stage, other)
    engine.futures.run(instance).abort()
    return instance


STORIES = [happy, undone, stuck, refused, stopped, swept, frozen, thawed, cancelled, aborted]


@pytest.mark.row("F-049", "F-058", "EC-11")
@pytest.mark.parametrize("story", STORIES)
def test_only_known_transitions_happen(
    place: Place, story: Callable[[ManualEngine, Stage, ManualEngine], InstanceId]
) -> None:
    """Whatever happens to a run, each change of a step's status is one of the closed set, and each status is known."""
    engine, stage = place.engine(), Stage()
    instance = story(engine, stage, place.engine())
    engine.drain()
    lives = {each.name: life(engine, instance, each.name) for each in engine.run(instance).steps()}
    changes = {change for each in lives.values() for change in pairwise(each)}
    assert changes <= TABLE | IMPLIED | SETTLED, changes - TABLE - IMPLIED - SETTLED
    assert {each for story in lives.values() for each in story} <= STATUSES
    assert set(statuses(engine, instance).values()) <= STATUSES


@pytest.mark.row("F-058")
def test_the_transitions_that_the_text_implies_happen(place: Place) -> None:
    """Taken together the stories go through every transition that can be told from a history."""
    seen: set[tuple[str, str]] = set()
    for story in STORIES:
        engine, stage = place.engine(), Stage()
        instance = story(engine, stage, place.engine())
        engine.drain()
        for each in engine.run(instance).steps():
            seen |= set(pairwise(life(engine, instance, each.name)))
        # Each story has handlers and instances of its own; what is open is ended, so that no other engine touches it.
        if not engine.run(instance).describe().is_terminal:
            engine.run(instance).abort()
    # A question and a queued call have begun before anybody could see them otherwise.
    hidden = {("running", "waiting_decision"), ("pending", "skipped"), ("paused", "completed")}
    assert seen | hidden >= TABLE | IMPLIED, (TABLE | IMPLIED) - seen - hidden


@pytest.mark.row("F-058", "EC-05")
def test_a_stored_step_that_has_ended_cannot_be_moved(place: Place) -> None:
    """A transition that nothing allows is refused by the database itself."""
    engine, stage = place.engine(), Stage()
    instance = run(engine.register(Saga("s").step("a", stage.does("a")).build()), "s")
    with pytest.raises(Exception, match="HF105"):
        Desk(place.store).run("update {}steps set status = 'running'")
    assert statuses(engine, instance) == {"a": "completed"}
