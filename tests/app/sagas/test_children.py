"""Workflows that start others: what goes down, what comes back, and how the end of one is the end of the other."""

from __future__ import annotations

import pytest

from app.sagas.acting import BROKEN, Gate, Stage, decide, history, run, status, statuses, step, until_told
from standfast import (
    Actor,
    DefinitionError,
    Engine,
    RejectedError,
    Saga,
    SagaDefinition,
    StepContext,
    WorkflowFailedError,
)
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Live, Place
from support.inside import clockwork_of
from support.waiting import LONG_SECONDS, eventually


def child(stage: Stage) -> SagaDefinition:
    """Two steps that can be undone."""
    return (
        Saga("child")
        .step("pick", stage.does("pick"))
        .on_failure("unpick", stage.does("unpick"))
        .step("pack", stage.does("pack"), attempts=1)
        .build()
    )


def parent(stage: Stage) -> SagaDefinition:
    """A step that can be undone, the child, and a step behind it."""
    return (
        Saga("parent")
        .step("order", stage.does("order"))
        .on_failure("revoke", stage.does("revoke"))
        .call("fulfil", "child")
        .then("bill", stage.does("bill"), attempts=1)
        .build()
    )


def both(engine: ManualEngine, stage: Stage) -> ManualEngine:
    """An engine that knows both, the child first."""
    engine.register(child(stage)).register(parent(stage))
    return engine


def asking(engine: ManualEngine, stage: Stage) -> ManualEngine:
    """An engine that knows the parent and a child of the same name that waits for a person after its first step."""
    saga = (
        Saga("child")
        .step("pick", stage.does("pick"))
        .on_failure("unpick", stage.does("unpick"), attempts=1)
        .human("ask")
        .build()
    )
    engine.register(saga).register(parent(stage))
    return engine


def child_of(engine: Engine, instance: InstanceId) -> InstanceId:
    """The one child of an instance."""
    (found,) = engine.runs.list(parent=instance).items
    assert found.parent == instance
    return found.id


# -- what goes down and comes back


@pytest.mark.row("G-19")
def test_the_result_of_a_child_is_found_under_the_name_of_its_step(place: Place) -> None:
    """The child gets the data of its parent; its result comes back under the name of the step that called it."""
    stage = Stage()
    stage.does("order", {"order": 7})
    stage.does("pack", {"parcel": "p-1"})
    engine = both(place.engine(), stage)
    instance = run(engine, "parent", {"customer": "ann"})
    assert stage.calls == ["order", "pick", "pack", "bill"]
    assert stage.contexts("pick")[0].input == {"customer": "ann", "order": 7}
    fulfilled = {"customer": "ann", "order": 7, "parcel": "p-1"}
    assert stage.contexts("bill")[0].input == {"customer": "ann", "order": 7, "fulfil": fulfilled}
    assert engine.run(child_of(engine, instance)).result() == fulfilled
    assert engine.run(instance).result() == {"customer": "ann", "order": 7, "fulfil": fulfilled}
    assert engine.run(child_of(engine, instance)).describe().parent == instance


def test_a_parent_waits_without_occupying_anybody(place: Place) -> None:
    """While the child runs the step of the parent is under way, and nothing of the parent is queued."""
    saga = Saga("asks").human("ask").build()
    engine = place.engine().register(saga).register(Saga("parent").call("wait", "asks").build())
    instance = run(engine, "parent")
    assert statuses(engine, instance) == {"wait": "running"}
    assert engine.admin.backlog() == []
    (task,) = engine.tasks.list()
    engine.acting("ann").tasks.decide(task.step_id, "confirmed")
    engine.drain()
    assert status(engine, instance) == "completed"


def test_children_of_children(place: Place) -> None:
    """A child may start a child of its own, and a saga may start another run of itself."""
    stage = Stage()
    stage.does("count", lambda ctx: {"n": int(str(ctx.input["n"])) - 1})
    saga = (
        Saga("countdown")
        .step("count", stage.does("count"))
        .condition("goes on", "{{ gt .n 0 }}")
        .call("again", "countdown")
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "countdown", {"n": 3})
    assert engine.run(instance).result() == {"n": 2, "again": {"n": 1, "again": {"n": 0}}}
    assert len(engine.runs.list(definition="countdown").items) == 3


def test_many_children_at_once(place: Place) -> None:
    """A branch for each item may start a child; the results come back in the order of the items."""
    stage = Stage()
    stage.does("double", lambda ctx: {"doubled": int(str(ctx.input["item"])) * 2})
    engine = place.engine().register(Saga("small").step("double", stage.does("double")).build())
    engine.register(Saga("big").for_each("all", "items", lambda body: body.call("one", "small")).build())
    instance = run(engine, "big", {"items": [1, 2, 3]})
    result = engine.run(instance).result()
    assert isinstance(result, dict)
    assert [each["doubled"] for each in result["all"]] == [2, 4, 6]
    assert len(engine.runs.list(parent=instance).items) == 3


def test_a_child_is_pinned_to_the_version_that_its_parent_names(place: Place) -> None:
    """Without a version the newest one at the start of the child is taken."""
    stage = Stage()
    engine = place.engine()
    for version in (1, 2):
        engine.register(Saga("child", version).step("work", stage.does(f"work {version}")).build())
    engine.register(Saga("pinned").call("sub", "child", version=1).build())
    engine.register(Saga("newest").call("sub", "child").build())
    for name, worked in (("pinned", "work 1"), ("newest", "work 2")):
        stage.forget()
        run(engine, name)
        assert stage.calls == [worked]


def test_a_child_must_be_known_before_its_parent(place: Place) -> None:
    """A saga that calls another one which nobody has published is refused."""
    with pytest.raises(DefinitionError) as caught:
        place.engine().register(parent(Stage()))
    assert [each.code for each in caught.value.diagnostics] == ["unknown_workflow"]


# -- how children fail


def test_the_failure_of_a_child_rolls_its_parent_back(place: Place) -> None:
    """The child undoes its own steps first; then the step that called it has failed, and the parent is rolled back."""
    stage = Stage()
    stage.does("pack", BROKEN)
    engine = both(place.engine(), stage)
    instance = run(engine, "parent")
    assert status(engine, child_of(engine, instance)) == "failed"
    assert status(engine, instance) == "failed"
    assert stage.calls == ["order", "pick", "pack", "unpick", "revoke"]
    assert "broken" in step(engine, instance, "fulfil").error
    assert statuses(engine, instance) == {"order": "rolled_back", "fulfil": "rolled_back"}


def test_the_failure_of_a_child_may_have_a_way_of_its_own(place: Place) -> None:
    """Where the parent says what follows, that is taken."""
    stage = Stage()
    stage.does("pack", BROKEN)
    saga = (
        Saga("tolerant")
        .call("fulfil", "child", on_error=lambda other: other.step("apologise", stage.does("apologise")))
        .then("bill", stage.does("bill"))
        .build()
    )
    engine = place.engine().register(child(stage)).register(saga)
    instance = run(engine, "tolerant")
    assert status(engine, instance) == "completed"
    assert stage.calls == ["pick", "pack", "unpick", "apologise"]


@pytest.mark.parametrize("word", ["cancel", "abort"])
def test_a_child_that_is_stopped_by_itself_fails_its_parent(place: Place, word: str) -> None:
    """However a child does not end well: the step that called it has failed."""
    stage = Stage()
    engine = asking(place.engine(), stage)
    instance = run(engine, "parent")
    below = child_of(engine, instance)
    ann = Actor(id="ann", capabilities=frozenset({"execution:override"}))  # Somebody is asked in it.
    stopped = engine.acting(ann).futures.run(below)
    stop = stopped.cancel if word == "cancel" else stopped.abort
    stop("not this one")
    engine.drain()
    assert status(engine, below) == ("cancelled" if word == "cancel" else "aborted")
    assert status(engine, instance) == "failed"
    assert stage.calls == ["order", "pick", *(["unpick"] if word == "cancel" else []), "revoke"]


def test_a_child_that_takes_too_long_is_cancelled(place: Place) -> None:
    """When the time of the step is over the step has failed, and the child undoes what it did."""
    stage = Stage()
    slow = Saga("slow").step("pick", stage.does("pick")).on_failure("unpick", stage.does("unpick")).human("ask").build()
    saga = (
        Saga("hurried")
        .step("order", stage.does("order"))
        .on_failure("revoke", stage.does("revoke"))
        .call("sub", "slow", timeout=60)
        .build()
    )
    engine = place.engine().register(slow).register(saga)
    instance = run(engine, "hurried")
    engine.advance(seconds=59)
    assert status(engine, instance) == "running"
    engine.advance(seconds=1)
    assert status(engine, instance) == "failed"
    assert status(engine, child_of(engine, instance)) == "cancelled"
    assert sorted(stage.calls) == ["order", "pick", "revoke", "unpick"]


def test_a_child_that_is_done_can_be_undone_by_its_parent(place: Place) -> None:
    """A step that calls a child may have a compensation; it is told what the child came to."""
    stage = Stage()
    stage.does("pack", {"parcel": 1})
    stage.does("bill", BROKEN)
    saga = (
        Saga("parent")
        .call("fulfil", "child")
        .on_failure("send back", stage.does("send back"))
        .then("bill", stage.does("bill"), attempts=1)
        .build()
    )
    engine = place.engine().register(child(stage)).register(saga)
    instance = run(engine, "parent")
    assert status(engine, instance) == "failed"
    assert stage.calls == ["pick", "pack", "bill", "send back"]
    (context,) = stage.contexts("send back")
    assert context.output == {"parcel": 1}
    assert context.previous is None
    assert status(engine, child_of(engine, instance)) == "completed"


# -- stopping


def test_a_child_is_cancelled_with_its_parent(live: Live) -> None:
    """The child undoes what it did, and only then the parent undoes its earlier steps; the reply comes after all that."""
    stage = Stage()
    stage.does("pack", until_told)
    engine = live.engine()
    engine.register(child(stage)).register(parent(stage)).start_worker()
    instance = engine.start("parent").id
    eventually(lambda: stage.count("pack"))
    assert engine.acting("ann").run(instance).cancel("no more", timeout=LONG_SECONDS) == "cancelled"
    assert status(engine, child_of(engine, instance)) == "cancelled"
    assert stage.calls == ["order", "pick", "pack", "unpick", "revoke"]
    assert statuses(engine, instance)["order"] == "rolled_back"
    assert statuses(engine, instance)["fulfil"] == "skipped"


def test_a_child_is_aborted_with_its_parent(live: Live) -> None:
    """Nothing is undone, neither in the parent nor in the child."""
    stage = Stage()
    stage.does("pack", until_told)
    engine = live.engine()
    engine.register(child(stage)).register(parent(stage)).start_worker()
    instance = engine.start("parent").id
    eventually(lambda: stage.count("pack"))
    assert engine.acting("ann").run(instance).abort("emergency", timeout=LONG_SECONDS) == "aborted"
    below = child_of(engine, instance)
    eventually(lambda: status(engine, below) == "aborted")
    assert stage.calls == ["order", "pick", "pack"]


def test_a_failure_beside_a_child_stops_the_child(place: Place) -> None:
    """Another branch fails: the child is cancelled, undoes what it did, and then the parent is rolled back."""
    stage = Stage()
    engine = place.engine()
    sub = Saga("sub").step("pick", stage.does("pick")).on_failure("unpick", stage.does("unpick")).human("ask").build()
    saga = (
        Saga("beside")
        .step("order", stage.does("order"))
        .on_failure("revoke", stage.does("revoke"))
        .fork(
            "fork",
            lambda branch: branch.call("fulfil", "sub"),
            lambda branch: branch.human("go").step("fragile", stage.does("fragile", BROKEN), attempts=1),
        )
        .join("join")
        .build()
    )
    engine.register(sub).register(saga)
    instance = run(engine, "beside")
    engine.acting("ann").tasks.decide(step(engine, instance, "go").id, "confirmed")
    engine.drain()
    assert status(engine, instance) == "failed"
    assert status(engine, child_of(engine, instance)) == "cancelled"
    assert stage.calls == ["order", "pick", "fragile", "unpick", "revoke"]


# -- children that cannot be undone


def stubborn(stage: Stage) -> SagaDefinition:
    """A child that waits for a person after a step whose compensation is called once."""
    undoable = Saga("sub").step("pick", stage.does("pick")).on_failure("unpick", stage.does("unpick"), attempts=1)
    return undoable.human("ask").build()


def halted(place: Place, stage: Stage, how: str) -> tuple[ManualEngine, InstanceId]:
    """A parent that has to undo a child which cannot be: it is cancelled, another branch fails, or the child fails by itself."""
    stage.does("unpick", BROKEN, None)
    saga = Saga("above").step("order", stage.does("order")).on_failure("revoke", stage.does("revoke"))
    if how == "fails beside":
        saga.fork(
            "fork",
            lambda branch: branch.call("fulfil", "sub"),
            lambda branch: branch.human("go").step("fragile", stage.does("fragile", BROKEN), attempts=1),
        ).join("join")
    else:
        saga.call("fulfil", "sub")
    engine = place.engine().register(stubborn(stage)).register(saga.build())
    instance = run(engine, "above")
    if how == "cancelled":
        engine.acting("ann").futures.run(instance).cancel("no more")
    elif how == "fails beside":
        decide(engine, instance, "go")
    else:
        engine.futures.run(child_of(engine, instance)).cancel("not this one")
    engine.drain()
    return engine, instance


@pytest.mark.row("F-158")
@pytest.mark.parametrize("how", ["cancelled", "fails beside", "fails by itself"])
def test_a_child_that_cannot_be_undone_halts_its_parent(place: Place, how: str) -> None:
    """The way back of the parent ends there and says so, with a letter that names the child; nothing before it is undone."""
    stage = Stage()
    engine, instance = halted(place, stage, how)
    below = child_of(engine, instance)
    found, sub = engine.run(instance).describe(), engine.run(below).describe()
    assert (sub.status, sub.reason) == ("failed", "compensation_failed")
    assert (found.status, found.reason) == ("failed", "compensation_failed")
    assert stage.count("revoke") == 0
    assert (step(engine, instance, "fulfil").status, step(engine, instance, "order").status) == ("failed", "completed")
    (letter,) = engine.dead_letters.list(instance=instance)
    assert (letter.source, letter.name, letter.reason, letter.attempts) == (
        "compensation",
        "fulfil",
        "compensation_failed",
        0,
    )
    for text in (letter.error, found.error, step(engine, instance, "fulfil").error):
        assert str(below) in text
        assert "'pick' could not be undone: ValueError: broken" in text
    assert engine.instances.verify(instance).is_sound


@pytest.mark.row("F-158")
def test_whoever_cancels_hears_that_a_child_could_not_be_undone(place: Place) -> None:
    """The reply does not say that everything is undone."""
    stage = Stage()
    stage.does("unpick", BROKEN)
    engine = asking(place.engine(), stage)
    instance = run(engine, "parent")
    reply = engine.acting("ann").futures.run(instance).cancel("no more")
    engine.drain()
    assert reply.result() == "failed"
    assert stage.calls == ["order", "pick", "unpick"]


@pytest.mark.parametrize("how", ["cancelled", "fails beside", "fails by itself"])
def test_a_parent_goes_on_when_its_child_is_undone_after_all(place: Place, how: str) -> None:
    """An operator has the child undone: its parent undoes the rest by itself, and ends as it would have."""
    stage = Stage()
    engine, instance = halted(place, stage, how)
    below = child_of(engine, instance)
    (letter,) = engine.dead_letters.list(instance=below)
    engine.dead_letters.retry_compensation(letter)
    engine.drain()
    found = engine.run(instance).describe()
    assert (found.status, found.reason) == ("cancelled" if how == "cancelled" else "failed", "")
    assert (engine.run(below).describe().reason, stage.calls[-2:]) == ("", ["unpick", "revoke"])
    assert {statuses(engine, instance)[name] for name in ("order", "fulfil")} == {"rolled_back"}
    assert engine.dead_letters.list() == []
    assert engine.instances.verify(instance).is_sound
    assert (engine.admin.inbox_depth(), engine.admin.backlog()) == (0, [])


def test_a_child_that_cannot_be_undone_again_changes_nothing(place: Place) -> None:
    """Its parent has halted already: there is one letter, and the history says nothing new."""
    stage = Stage()
    engine, instance = halted(place, stage, "cancelled")
    stage.does("unpick", BROKEN)
    before, letters = history(engine, instance), engine.dead_letters.list(instance=instance)
    for _ in range(2):
        (letter,) = engine.dead_letters.list(instance=child_of(engine, instance))
        engine.dead_letters.retry_compensation(letter)
        engine.drain()
    assert (history(engine, instance), engine.dead_letters.list(instance=instance)) == (before, letters)


def test_the_letter_of_a_parent_says_who_has_to_be_undone(place: Place) -> None:
    """There is nothing to call in the parent itself: to try it again is refused, and the child is named."""
    stage = Stage()
    engine, instance = halted(place, stage, "cancelled")
    (letter,) = engine.dead_letters.list(instance=instance)
    with pytest.raises(RejectedError) as caught:
        engine.dead_letters.retry_compensation(letter)
    assert caught.value.reason == "child_not_undone"
    assert str(child_of(engine, instance)) in str(caught.value)
    assert engine.dead_letters.list(instance=instance) == [letter]
    assert "have it undone there" in engine.run(instance).describe().error


def test_a_child_that_was_undone_in_time_does_not_halt_its_parent(place: Place) -> None:
    """The operator is faster than the handler beside it that the parent waits for: nobody ever hears of it."""
    stage, engine = Stage(), place.engine()
    stage.does("unpick", BROKEN, None)

    def stop(ctx: StepContext) -> None:
        engine.futures.run(ctx.instance).cancel("no more")
        engine.drain()
        (letter,) = engine.dead_letters.list()
        assert letter.name == "pick"
        engine.dead_letters.retry_compensation(letter)
        engine.drain()

    saga = (
        Saga("above")
        .step("order", stage.does("order"))
        .on_failure("revoke", stage.does("revoke"))
        .fork(
            "fork",
            lambda branch: branch.call("fulfil", "sub"),
            lambda branch: branch.human("go").step("slow", stage.does("slow", stop)),
        )
        .join("join")
        .build()
    )
    engine.register(stubborn(stage)).register(saga)
    instance = run(engine, "above")
    decide(engine, instance, "go")
    engine.drain()
    assert (status(engine, instance), stage.calls[-3:]) == ("cancelled", ["unpick", "unpick", "revoke"])
    assert history(engine, instance, "compensation_max_retries_exceeded") == []


def test_grandchildren_halt_the_whole_line(place: Place) -> None:
    """Each one above waits for the one below it; undone at the bottom, all of them go on."""
    stage, engine = Stage(), place.engine()
    stage.does("unpick", BROKEN, None)
    middle = Saga("middle").step("m", stage.does("m")).on_failure("undo m", stage.does("undo m")).call("down", "sub")
    top = Saga("top").step("t", stage.does("t")).on_failure("undo t", stage.does("undo t")).call("down", "middle")
    engine.register(stubborn(stage)).register(middle.build()).register(top.build())
    instance = run(engine, "top")
    engine.futures.run(instance).cancel("no more")
    engine.drain()
    line = [instance, child_of(engine, instance)]
    line.append(child_of(engine, line[1]))
    assert [engine.run(each).describe().reason for each in line] == ["compensation_failed"] * 3
    assert [engine.dead_letters.count(instance=each) for each in line] == [1, 1, 1]
    (letter,) = engine.dead_letters.list(instance=line[-1])
    engine.dead_letters.retry_compensation(letter)
    engine.drain()
    assert [status(engine, each) for each in line] == ["cancelled"] * 3
    assert stage.calls[-3:] == ["unpick", "undo m", "undo t"]
    assert engine.dead_letters.list() == []


@pytest.mark.parametrize("way", ["undone", "skipped", "cancelled"])
def test_a_child_of_a_loser_that_cannot_be_undone_waits_for_an_operator(place: Place, way: str) -> None:
    """The saga goes on, and does not complete as if nothing were left over."""
    stage, engine = Stage(), place.engine()
    stage.does("unpick", BROKEN, None)
    saga = (
        Saga("above")
        .fork("fork", lambda branch: branch.call("fulfil", "sub"), lambda branch: branch.wait_for("quick", "go"))
        .join("first", "any")
        .step("ship", stage.does("ship"))
        .build()
    )
    engine.register(stubborn(stage)).register(saga)
    instance = run(engine, "above")
    engine.run(instance).signal("go")
    engine.drain()
    found = engine.run(instance).describe()
    assert (found.status, found.reason, stage.calls) == ("dlq", "compensation_failed", ["pick", "ship", "unpick"])
    assert [each.name for each in engine.dead_letters.list(instance=instance)] == ["fulfil"]
    if way == "undone":
        engine.dead_letters.retry_compensation(engine.dead_letters.list(instance=child_of(engine, instance))[0])
    elif way == "skipped":
        (letter,) = engine.dead_letters.list(instance=instance)
        engine.run(instance).skip(letter.number, reason="undone by hand")
    else:
        engine.futures.run(instance).cancel("enough")
    engine.drain()
    ended = {"undone": "completed", "skipped": "completed", "cancelled": "failed"}[way]
    assert status(engine, instance) == ended
    assert step(engine, instance, "fulfil").status == ("rolled_back" if way == "undone" else "failed")
    left = ["fulfil"] if way == "cancelled" else []
    assert [each.name for each in engine.dead_letters.list(instance=instance)] == left
    assert engine.instances.verify(instance).is_sound


def test_a_saga_does_not_complete_before_the_child_of_a_loser_is_undone(place: Place) -> None:
    """Losers that are undone are waited for, and a child undoes itself."""
    stage, engine, seen = Stage(), place.engine(), list[str]()
    saga = (
        Saga("above")
        .fork("fork", lambda branch: branch.call("fulfil", "sub"), lambda branch: branch.wait_for("quick", "go"))
        .join("first", "any")
        .build()
    )
    engine.register(stubborn(stage)).register(saga)
    instance = run(engine, "above")
    stage.does("unpick", lambda _ctx: seen.append(status(engine, instance)))
    engine.run(instance).signal("go")
    engine.drain()
    assert (status(engine, instance), status(engine, child_of(engine, instance))) == ("completed", "cancelled")
    assert (seen, statuses(engine, instance)["fulfil"]) == (["running"], "skipped")


def test_another_way_may_follow_a_child_that_could_not_be_undone(place: Place) -> None:
    """Its author has thought of that: the saga takes the way, and is told what happened."""
    stage, engine = Stage(), place.engine()
    stage.does("unpick", BROKEN)
    saga = Saga("tolerant").call("fulfil", "sub", on_error=lambda other: other.step("see", stage.does("see"))).build()
    engine.register(stubborn(stage)).register(saga)
    instance = run(engine, "tolerant")
    engine.futures.run(child_of(engine, instance)).cancel("not this one")
    engine.drain()
    assert status(engine, instance) == "completed"
    assert "could not be undone" in str(stage.contexts("see")[0].input["error"])
    assert engine.dead_letters.list(instance=instance) == []


def test_a_call_waits_until_its_child_is_undone(place: Place) -> None:
    """A call that failed has a compensation of its own: it is not called beside what the child left behind, nor once the child has undone that itself."""
    stage, engine = Stage(), place.engine()
    stage.does("unpick", BROKEN, None)
    saga = Saga("above").call("fulfil", "sub").on_failure("apologise", stage.does("apologise")).build()
    engine.register(stubborn(stage)).register(saga)
    instance = run(engine, "above")
    engine.futures.run(child_of(engine, instance)).cancel("not this one")
    engine.drain()
    assert (engine.run(instance).describe().reason, stage.count("apologise")) == ("compensation_failed", 0)
    (letter,) = engine.dead_letters.list(instance=child_of(engine, instance))
    engine.dead_letters.retry_compensation(letter)
    engine.drain()
    assert (engine.run(instance).describe().reason, stage.calls) == ("", ["pick", "unpick", "unpick"])
    assert statuses(engine, instance) == {"fulfil": "rolled_back"}


def test_a_call_that_is_requeued_remembers_that_its_child_has_undone_itself(place: Place) -> None:
    """A child that failed has undone itself: the compensation of its call is not called, also if the call was requeued and the run is cancelled before the next child ends."""
    stage, engine = Stage(), place.engine()
    stage.does("pick", BROKEN, None)
    sub = (
        Saga("sub")
        .step("pick", stage.does("pick"), attempts=1)
        .on_failure("unpick", stage.does("unpick"))
        .human("ask")
        .build()
    )
    saga = Saga("above", dlq=True).call("fulfil", "sub").on_failure("apologise", stage.does("apologise")).build()
    engine.register(sub).register(saga)
    instance = run(engine, "above")
    (letter,) = engine.dead_letters.list(instance=instance)
    engine.dead_letters.requeue(letter)
    engine.drain()
    engine.futures.run(instance).cancel("no more")
    engine.drain()
    assert status(engine, instance) == "cancelled"
    assert stage.calls == ["pick", "unpick", "pick", "unpick"]


# -- stopping children that end by themselves


def test_a_child_that_completes_while_its_parent_is_cancelled_is_undone_by_its_parent(place: Place) -> None:
    """The child comes to its end before the cancellation reaches it: its parent undoes it as a whole, and then its own steps."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("parent")
        .step("order", stage.does("order"))
        .on_failure("revoke", stage.does("revoke"))
        .call("fulfil", "child")
        .on_failure("send back", stage.does("send back"))
        .then("bill", stage.does("bill"))
        .build()
    )
    engine.register(child(stage)).register(saga)

    def stop(_ctx: object) -> object:
        (top,) = engine.runs.list(definition="parent").items
        engine.acting("ann").futures.run(top.id).cancel("no more")
        return {"parcel": 1}

    stage.does("pack", stop)
    instance = run(engine, "parent")
    assert status(engine, instance) == "cancelled"
    assert status(engine, child_of(engine, instance)) == "completed"
    assert stage.calls == ["order", "pick", "pack", "send back", "revoke"]


# -- across engines


def apart(place: Place, stage: Stage) -> tuple[ManualEngine, ManualEngine]:
    """An engine with the handlers of the parent only, and one with those of the child only."""
    below = place.engine().register(child(stage))
    above = place.engine().register(parent(stage))
    return above, below


def settle(*engines: ManualEngine) -> None:
    """Let all engines work until none of them has anything to do."""
    while any([engine.drain() for engine in engines]):  # noqa: C419 - each of them has its turn
        pass


@pytest.mark.row("F-251")
def test_a_child_may_run_in_another_engine(place: Place) -> None:
    """Parent and child have their handlers in different processes: the result comes back all the same."""
    stage = Stage()
    stage.does("pack", {"parcel": "p-1"})
    above, below = apart(place, stage)
    instance = above.start("parent").id
    above.drain()
    assert stage.calls == ["order"]
    settle(above, below)
    assert above.run(instance).result() == {"fulfil": {"parcel": "p-1"}}


def test_a_child_in_another_engine_fails_its_parent(place: Place) -> None:
    """The failure comes back across processes, after the child has undone its own steps."""
    stage = Stage()
    stage.does("pack", BROKEN)
    above, below = apart(place, stage)
    instance = above.start("parent").id
    settle(above, below)
    assert status(above, instance) == "failed"
    assert stage.calls == ["order", "pick", "pack", "unpick", "revoke"]


@pytest.mark.parametrize("word", ["cancel", "abort"])
def test_a_child_in_another_engine_is_stopped_with_its_parent(place: Place, word: str) -> None:
    """The stop goes down across processes while the handler of the child runs."""
    stage = Stage()
    above, below = apart(place, stage)

    def stop(_ctx: object) -> None:
        stopped = above.acting("ann").futures.run(instance)
        stopped.cancel("no more") if word == "cancel" else stopped.abort("no more")
        above.drain()

    stage.does("pack", stop)
    instance = above.start("parent").id
    settle(above, below)
    below_status = status(below, child_of(below, instance))
    if word == "cancel":
        assert (status(above, instance), below_status) == ("cancelled", "cancelled")
        assert stage.calls == ["order", "pick", "pack", "unpick", "revoke"]
    else:
        assert (status(above, instance), below_status) == ("aborted", "aborted")
        assert stage.calls == ["order", "pick", "pack"]


def test_a_live_child_in_another_engine_is_told_to_stop(live: Live) -> None:
    """Cancelled from the parent's engine: the handler in the child's engine sees the signal, and both are undone."""
    stage = Stage()
    stage.does("pack", until_told)
    below = live.engine().register(child(stage)).start_worker()
    above = live.engine().register(parent(stage)).start_worker()
    instance = above.start("parent").id
    eventually(lambda: stage.count("pack"))
    assert above.acting("ann").run(instance).cancel("no more", timeout=LONG_SECONDS) == "cancelled"
    assert status(below, child_of(below, instance)) == "cancelled"
    assert stage.calls == ["order", "pick", "pack", "unpick", "revoke"]


def test_a_result_waits_for_the_child_in_another_engine(live: Live) -> None:
    """`result` on the parent answers when the child, which runs elsewhere, has come to its end."""
    stage, gate = Stage(), Gate({"parcel": 1})
    stage.does("pack", gate)
    live.engine().register(child(stage)).start_worker()
    above = live.engine().register(parent(stage)).start_worker()
    instance = above.start("parent").id
    reply = above.futures.run(instance).result()
    gate.entered()
    assert not reply.done()
    gate.open()
    assert reply.result(LONG_SECONDS) == {"fulfil": {"parcel": 1}}


def test_a_parent_that_ended_is_not_disturbed_by_its_child(place: Place) -> None:
    """A child that was told to end at once tells nobody anything any more, and no message is left over."""
    stage = Stage()
    engine = both(place.engine(), stage)
    instance = engine.start("parent").id
    while not engine.runs.list(parent=instance).items:
        engine.execute_next()
        clockwork_of(engine).deliver()
    engine.acting("ann").run(instance).abort("now")
    before = history(engine, instance)
    engine.drain()
    assert history(engine, instance) == before
    assert status(engine, child_of(engine, instance)) == "aborted"
    assert engine.admin.inbox_depth() == 0
    assert engine.dead_letters.list() == []
    with pytest.raises(WorkflowFailedError):
        engine.run(instance).result()


@pytest.mark.parametrize("how", ["cancel", "abort"])
def test_runs_below_are_told_who_stops_them_and_why(place: Place, how: str) -> None:
    """A cancellation or an abort is told with its author and reason at every depth, as repairs are."""
    engine = place.engine()
    engine.register(Saga("low").wait_for("wait", "go").build())
    engine.register(Saga("child").call("down", "low").build())
    engine.register(Saga("parent").call("fulfil", "child").build())
    instance = run(engine, "parent")
    below = child_of(engine, instance)
    lowest = child_of(engine, below)
    olga = Actor(id="olga", capabilities=frozenset({"execution:*"}))
    getattr(engine.acting(olga).futures.run(instance), how)("the customer left")
    engine.drain()
    told = [engine.run(each).describe().error for each in (below, lowest)]
    assert told == [
        f"the workflow that started it was stopped at '{step}' by 'olga': the customer left"
        for step in ("fulfil", "down")
    ]
