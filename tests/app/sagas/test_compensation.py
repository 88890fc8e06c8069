"""Compensation: what a failure undoes, in which order, what the compensations are told, and what is left alone."""

from __future__ import annotations

import pytest

from app.sagas.acting import BROKEN, Gate, Stage, decide, history, life, run, status, statuses, step
from standfast import Fail, Saga, StepContext, task
from standfast.kernel.row_kinds.steps import STEPS
from support.engines import Live, Place
from support.waiting import eventually


def chain(stage: Stage, *names: str) -> Saga:
    """Steps in a row, each with a compensation."""
    saga = Saga("s")
    for name in names:
        saga.step(name, stage.does(name), attempts=1).on_failure(f"undo {name}", stage.does(f"undo {name}"))
    return saga


@pytest.mark.row("F-073")
def test_nothing_is_undone_when_all_goes_well(place: Place) -> None:
    """No compensation is called or queued on the way forward."""
    stage, engine = Stage(), place.engine()
    instance = engine.register(chain(stage, "a", "b").build()).start("s").id
    queued = []
    while waiting := engine.admin.backlog():
        queued += [each.name for each in waiting]
        engine.execute_next()
    assert (queued, stage.calls, status(engine, instance)) == (["a", "b"], ["a", "b"], "completed")
    assert [each for each in history(engine, instance) if "compensation" in each.event_type] == []


@pytest.mark.row("F-074")
def test_a_compensation_has_its_own_limit(place: Place) -> None:
    """What is called, and how often, is said by the compensation and not by its step."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("s")
        .step("a", stage.does("a", BROKEN), attempts=4)
        .on_failure("undo a", stage.does("undo", BROKEN, BROKEN), attempts=2)
    )
    instance = run(engine.register(saga.build()), "s")
    assert stage.calls == ["a"] * 4 + ["undo"] * 2
    assert [(each.step, each.is_compensation) for each in stage.contexts("undo")] == [("a", True)] * 2
    assert step(engine, instance, "a").compensation_retry_count == 2


@pytest.mark.row("F-075", "EC-05", "EC-11")
def test_a_compensation_is_no_step_of_its_own(place: Place) -> None:
    """The original step moves; nobody sees a step with the name of the compensation, in lists or in the history. In the rows it is one, and the old ones stay."""
    stage, engine = Stage(), place.engine()
    stage.does("b", BROKEN)
    instance = run(engine.register(chain(stage, "a", "b").build()), "s")
    assert statuses(engine, instance) == {"a": "rolled_back", "b": "rolled_back"}
    listed = {each.number: each.name for each in engine.run(instance).steps()}
    told = {(each.step_number, each.step_name) for each in history(engine, instance) if each.step_number is not None}
    assert told == set(listed.items())
    rows = engine.service.store.reader("default").rows(STEPS, instance)
    assert [(row.number, row.status) for row in rows if row.kind == "forward"] == [(1, "completed"), (2, "failed")]
    assert [(row.compensates, row.status) for row in rows if row.kind == "compensation"] == [
        (2, "completed"),
        (1, "completed"),
    ]


@pytest.mark.row("F-076", "F-077", "F-079", "F-093")
def test_a_failure_undoes_everything_in_reverse(place: Place) -> None:
    """The step that failed first, then the others from the last to the first; handlers know nothing of it."""
    stage, engine = Stage(), place.engine()
    stage.does("d", BROKEN)
    instance = run(engine.register(chain(stage, "a", "b", "c", "d", "e").build()), "s")
    assert stage.calls == ["a", "b", "c", "d", "undo d", "undo c", "undo b", "undo a"]
    assert statuses(engine, instance) == dict.fromkeys("abcd", "rolled_back")
    assert status(engine, instance) == "failed"


@pytest.mark.row("F-077")
@pytest.mark.row("G-36")
def test_steps_of_branches_are_undone_in_reverse_order_of_their_ends(place: Place) -> None:
    """Across branches it counts when a step ended, whatever branch it lies on, and one is undone after the other."""
    stage, engine = Stage(), place.engine()
    saga = Saga("s").fork(
        "f",
        lambda one: one.step("a", stage.does("a"), priority=30).on_failure("undo a", stage.does("undo a")),
        lambda two: two.step("b", stage.does("b"), priority=50).on_failure("undo b", stage.does("undo b")),
        lambda three: three.step("c", stage.does("c"), priority=40).on_failure("undo c", stage.does("undo c")),
    )
    saga.join("met").then("end", stage.does("end", BROKEN), attempts=1)
    run(engine.register(saga.build()), "s")
    assert stage.calls == ["b", "c", "a", "end", "undo a", "undo c", "undo b"]


@pytest.mark.row("F-078")
def test_a_step_without_a_compensation_is_rolled_past(place: Place) -> None:
    """It is `rolled_back` without any call: the one that failed too, and its failure stays in the history."""
    stage, engine = Stage(), place.engine()
    saga = Saga("s").step("a", stage.does("a")).step("b", stage.does("b", BROKEN), attempts=1)
    instance = run(engine.register(saga.build()), "s")
    assert stage.calls == ["a", "b"]
    assert statuses(engine, instance) == {"a": "rolled_back", "b": "rolled_back"}
    assert life(engine, instance, "a") == ["pending", "running", "completed", "rolled_back"]
    assert life(engine, instance, "b") == ["pending", "running", "failed", "rolled_back"]


def parted(stage: Stage) -> Saga:
    """The example of the specification: a fork with a condition in one branch, and something to undo everywhere."""
    return (
        Saga("parted")
        .step("begin", stage.does("begin"))
        .on_failure("undo begin", stage.does("undo begin"))
        .fork(
            "fork",
            lambda one: (
                one.condition(
                    "check_condition",
                    "{{ gt .count 5 }}",
                    lambda no: no.step("else_action", stage.does("else_action", BROKEN), attempts=1).on_failure(
                        "undo else", stage.does("undo else")
                    ),
                )
                .then("next_action", stage.does("next_action", BROKEN), attempts=1)
                .on_failure("undo next", stage.does("undo next"))
            ),
            lambda two: two.step("other", stage.does("other"), priority=9).on_failure(
                "undo other", stage.does("undo o")
            ),
        )
        .join("met")
    )


@pytest.mark.row("F-084", "F-085", "F-087", "F-088")
@pytest.mark.parametrize(
    ("count", "ran", "idle"),
    [(6, ("next_action", "undo next"), "else_action"), (5, ("else_action", "undo else"), "next_action")],
)
def test_only_the_way_that_was_taken_is_undone(place: Place, count: int, ran: tuple[str, str], idle: str) -> None:
    """The branch of a condition that never ran is neither undone nor listed; what ran is, with its condition and fork."""
    stage, engine = Stage(), place.engine()
    instance = run(engine.register(parted(stage).build()), "parted", {"count": count})
    action, undoing = ran
    assert stage.calls == ["begin", "other", action, undoing, "undo o", "undo begin"]
    found = statuses(engine, instance)
    assert found == dict.fromkeys(("begin", "fork", "check_condition", action, "other"), "rolled_back")
    assert idle not in found


@pytest.mark.row("F-086")
def test_every_compensation_is_told_the_same(place: Place) -> None:
    """Instance, failed step and its error, and what the undone step had worked on and answered: in branches and outside."""
    stage, engine = Stage(), place.engine()
    stage.does("begin", {"token": 1})
    stage.does("other", "done")
    instance = run(engine.register(parted(stage).build()), "parted", {"count": 6})

    def told(name: str) -> tuple[object, ...]:
        (ctx,) = stage.contexts(name)
        return ctx.instance, ctx.failed_step, ctx.error, ctx.is_compensation, ctx.step, ctx.input, ctx.output

    same = (instance, "next_action", "ValueError: broken", True)
    assert told("undo next") == (*same, "next_action", {"count": 6, "token": 1}, None)
    assert told("undo o") == (*same, "other", {"count": 6, "token": 1}, "done")
    assert told("undo begin") == (*same, "begin", {"count": 6}, {"token": 1})


@pytest.mark.row("F-087")
def test_steps_that_call_nobody_are_rolled_past(place: Place) -> None:
    """Conditions, forks, joins, parallels and confirmed questions read `rolled_back` after a rollback."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("s")
        .condition("c", "{{ .yes }}")
        .fork("f", lambda one: one.step("a", stage.does("a")), lambda two: two.step("b", stage.does("b")))
        .join("met")
        .parallel("p", task("x", stage.does("x")), task("y", stage.does("y")))
        .human("ask")
        .then("end", stage.does("end", BROKEN), attempts=1)
    )
    instance = run(engine.register(saga.build()), "s", {"yes": True})
    decide(engine, instance, "ask")
    engine.drain()
    found = statuses(engine, instance)
    assert set(found) >= {"c", "f", "a", "b", "met", "p", "x", "y", "ask", "end"}
    assert set(found.values()) == {"rolled_back"}


@pytest.mark.row("F-088")
def test_the_branch_beside_a_failure_is_undone_once(place: Place) -> None:
    """A branch that went well is undone when another one fails, and what it had not begun never begins."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("s")
        .fork(
            "f",
            lambda one: one.step("bad", stage.does("bad", BROKEN), attempts=1),
            lambda two: (
                two.step("good", stage.does("good"), priority=9)
                .on_failure("undo good", stage.does("undo good"))
                .then("more", stage.does("more"))
            ),
        )
        .join("met")
    )
    instance = run(engine.register(saga.build()), "s")
    assert stage.calls == ["good", "bad", "undo good"]
    found = statuses(engine, instance)
    assert (found["good"], found["bad"], found["more"]) == ("rolled_back", "rolled_back", "skipped")


@pytest.mark.row("F-089")
def test_a_rollback_waits_for_handlers_that_run(place: Place) -> None:
    """A branch that is in its handler when another one fails is undone after the handler came back, and not before."""
    stage, engine, other = Stage(), place.engine(), place.engine()
    seen: list[object] = []

    def slow(ctx: StepContext) -> dict[str, int]:
        other.drain()
        seen.extend([*stage.calls, status(engine, ctx.instance), ctx.cancelled])
        return {"charge": 7}

    saga = (
        Saga("s")
        .fork(
            "f",
            lambda one: (
                one.step("slow", stage.does("slow", slow), priority=9)
                .on_failure("undo slow", stage.does("undo slow"))
                .then("more", stage.does("more"))
            ),
            lambda two: two.step("bad", stage.does("bad", BROKEN), attempts=1).on_failure(
                "undo bad", stage.does("undo bad")
            ),
        )
        .join("met")
        .build()
    )
    other.register(saga)
    instance = run(engine.register(saga), "s")
    assert seen == ["slow", "bad", "running", False]
    assert stage.calls == ["slow", "bad", "undo bad", "undo slow"]
    assert [each.output for each in stage.contexts("undo slow")] == [{"charge": 7}]
    assert statuses(engine, instance)["slow"] == "rolled_back"


@pytest.mark.row("F-089")
def test_a_rollback_waits_for_handlers_on_other_threads(live: Live) -> None:
    """The same with real threads: as long as the slow handler stands, nothing is undone."""
    stage, gate = Stage(), Gate()

    def fail(ctx: StepContext) -> None:
        gate.entered()
        raise BROKEN

    saga = (
        Saga("s")
        .step("first", stage.does("first"))
        .on_failure("undo first", stage.does("undo first"))
        .fork(
            "f",
            lambda one: one.step("slow", stage.does("slow", gate)).on_failure("undo slow", stage.does("undo slow")),
            lambda two: two.step("bad", stage.does("bad", fail), attempts=1),
        )
        .join("met")
    )
    engine = live.engine().register(saga.build()).start_worker()
    instance = engine.start("s").id
    eventually(lambda: history(engine, instance, "rollback_started"))
    assert not [each for each in stage.calls if each.startswith("undo")]
    assert status(engine, instance) == "running"
    gate.open()
    eventually(lambda: status(engine, instance) == "failed")
    assert stage.calls[-2:] == ["undo slow", "undo first"]


@pytest.mark.row("F-089")
def test_a_sibling_that_fails_as_well_changes_nothing(place: Place) -> None:
    """Handlers under way may end badly: they are not called again, and they are undone like the others."""
    stage, engine, other = Stage(), place.engine(), place.engine()

    def slow(ctx: StepContext) -> None:
        other.drain()
        raise BROKEN

    saga = (
        Saga("s")
        .fork(
            "f",
            lambda one: one.step("slow", stage.does("slow", slow), priority=9).on_failure(
                "undo slow", stage.does("us")
            ),
            lambda two: two.step("bad", stage.does("bad", BROKEN), attempts=1),
        )
        .join("met")
        .build()
    )
    other.register(saga)
    instance = run(engine.register(saga), "s")
    assert stage.calls == ["slow", "bad", "us"]
    assert engine.run(instance).describe().status == "failed"


@pytest.mark.row("F-090")
def test_a_step_stays_in_compensation_between_two_calls(place: Place) -> None:
    """A failed attempt leaves its step in `compensation`, counts, and is told."""
    stage, engine = Stage(), place.engine()
    stage.does("a", BROKEN)
    stage.does("undo a", BROKEN, None)
    instance = engine.register(chain(stage, "a").build()).start("s").id
    engine.execute_next()
    engine.execute_next()
    between = step(engine, instance, "a")
    assert (between.status, between.compensation_retry_count) == ("compensation", 1)
    (told,) = history(engine, instance, "compensation_retry")
    assert (told.step_name, told.status, told.retry_count, told.error) == ("a", "compensation", 1, "ValueError: broken")
    engine.drain()
    assert (step(engine, instance, "a").status, stage.calls) == ("rolled_back", ["a", "undo a", "undo a"])


@pytest.mark.row("F-091")
def test_a_rollback_halts_where_something_cannot_be_undone(place: Place) -> None:
    """The rest stays as it is, the instance is `failed`, and a dead letter names the step; an operator lets it go on."""
    stage, engine = Stage(), place.engine()
    stage.does("c", BROKEN)
    stage.does("undo b", BROKEN, BROKEN, BROKEN, None)
    instance = run(engine.register(chain(stage, "a", "b", "c").build()), "s")
    assert stage.calls == ["a", "b", "c", "undo c", "undo b", "undo b", "undo b"]
    assert statuses(engine, instance) == {"a": "completed", "b": "failed", "c": "rolled_back"}
    assert (status(engine, instance), engine.run(instance).describe().reason) == ("failed", "compensation_failed")
    (letter,) = engine.dead_letters.list(instance=instance)
    assert (letter.source, letter.name, letter.error) == ("compensation", "b", "ValueError: broken")
    stage.forget()
    engine.dead_letters.retry_compensation(letter.id)
    engine.drain()
    assert stage.calls == ["undo b", "undo a"]
    assert statuses(engine, instance) == dict.fromkeys("abc", "rolled_back")
    assert engine.dead_letters.list(instance=instance) == []
    found = engine.run(instance).describe()
    assert (found.status, found.reason) == ("failed", "")


@pytest.mark.row("F-092")
def test_compensations_are_called_like_everything_else(place: Place) -> None:
    """The same queue and the same calls of a worker bring a rollback to its end, one compensation at a time."""
    stage, engine = Stage(), place.engine()
    stage.does("b", BROKEN)
    instance = engine.register(chain(stage, "a", "b").build()).start("s").id
    steps = 0
    while engine.execute_next():
        steps += 1
        assert len(stage.calls) == steps, "each look makes one call"
    assert stage.calls == ["a", "b", "undo b", "undo a"]
    assert status(engine, instance) == "failed"


@pytest.mark.row("F-093")
def test_compensations_are_declared(place: Place) -> None:
    """Which handler undoes what stands in the stored definition, so any process can roll back what another one began."""
    stage, other = Stage(), Stage()
    saga = Saga("s").step("a", "pay").on_failure("undo a", "refund").step("b", "ship", attempts=1).build()
    first = place.engine().register(saga).handle("pay", stage.does("pay")).handle("ship", stage.does("ship", BROKEN))
    instance = run(first, "s")
    assert (stage.calls, status(first, instance)) == (["pay", "ship"], "running")
    place.engine().handle("refund", other.does("refund")).drain()
    assert (other.calls, status(first, instance)) == (["refund"], "failed")


def test_a_compensation_may_have_metadata_and_priority_of_its_own(place: Place) -> None:
    """One generic handler is told by them what to undo; also behind a person or a child, which have none themselves."""
    stage = Stage()
    stage.does("bad", BROKEN)
    undo = stage.does("undo")
    child = Saga("child").step("c", stage.does("c")).build()
    saga = (
        Saga("generic")
        .step("a", stage.does("a"), metadata={"what": "do a"}, priority=3)
        .on_failure("undo a", undo, metadata={"what": "undo a"}, priority=70)
        .step("b", stage.does("b"), metadata={"what": "b"}, priority=4)
        .on_failure("undo b", undo)
        .human("ask")
        .on_failure("undo ask", undo, metadata={"what": "undo ask"})
        .call("deliver", "child")
        .on_failure("undo deliver", undo, metadata={"what": "undo deliver"})
        .step("bad", stage.does("bad"), attempts=1)
        .build()
    )
    engine = place.engine().register(child).register(saga)
    instance = run(engine, "generic")
    (question,) = engine.tasks.list()
    engine.acting("ann").tasks.decide(question.step_id, "confirmed")
    engine.drain()
    assert status(engine, instance) == "failed"
    assert [each.metadata["what"] for each in stage.contexts("undo")] == ["undo deliver", "undo ask", "b", "undo a"]
    assert [each.metadata["what"] for each in stage.contexts("a")] == ["do a"]
    nodes = saga.graph.nodes
    assert (nodes["a"].compensation_priority, nodes["b"].compensation_priority) == (70, None)


def test_a_step_whose_handler_could_not_be_called_is_not_undone(place: Place) -> None:
    """What a handler asks for is missing: it has done nothing, so that nothing is undone, and the steps before it are."""
    undone: list[str] = []
    saga = (
        Saga("misspelt")
        .step("reserve", lambda: None)
        .on_failure("release", lambda: undone.append("release"))
        .step("pay", lambda amount: None)
        .on_failure("refund", lambda: undone.append("refund"))
        .build()
    )
    engine = place.engine().register(saga)
    instance = engine.start("misspelt", {"amuont": 5}).id
    engine.drain()
    assert (undone, engine.run(instance).describe().status) == (["release"], "failed")


def test_what_a_failed_step_would_have_answered_needs_a_default(place: Place) -> None:
    """A compensation that asks for the answer of a step that failed says what to do, and its letter waits for the correction."""

    def charge() -> None:
        raise Fail("no")

    def refund(charge: str) -> None: ...

    engine = place.engine().register(Saga("s").step("charge", charge).on_failure("refund", refund).build())
    instance = engine.start("s").id
    engine.drain()
    (letter,) = engine.dead_letters.list(instance=instance)
    assert "give the parameter a default" in letter.error
