"""What operators do to runs that do not go on: each repair is in the history with actor and reason, or is refused and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from app.sagas.acting import BROKEN, Gate, Stage, history, run, status, statuses, step
from standfast import (
    Actor,
    ForbiddenError,
    NotFoundError,
    PayloadError,
    RejectedError,
    Run,
    Saga,
    SagaDefinition,
    Settings,
)
from standfast.graph.model import HumanOp, TaskOp
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Live, Place
from support.inside import claim_one
from support.waiting import LONG_SECONDS, eventually

PAT = Actor(id="pat", capabilities=frozenset({"execution:read"}))
OLGA = Actor(id="olga", capabilities=frozenset({"execution:read", "execution:repair", "execution:override"}))
WHY = "ticket 7"


def payment(stage: Stage, *, dlq: bool = True) -> SagaDefinition:
    """A reservation, a save point, a payment and a shipment; the first two can be undone."""
    return (
        Saga("payment", dlq=dlq)
        .step("reserve", stage.does("reserve"))
        .on_failure("release", stage.does("release"))
        .save_point("safe")
        .step("charge", stage.does("charge"), attempts=1)
        .on_failure("refund", stage.does("refund"))
        .step("ship", stage.does("ship"), attempts=1)
        .build()
    )


def dead(place: Place, *, at: str = "charge") -> tuple[Stage, ManualEngine, Run[object]]:
    """A payment that waits for an operator because a step gave up, and the calls of one."""
    stage = Stage()
    stage.does("reserve", {"reservation": "r-1"})
    stage.does(at, BROKEN)
    engine = place.engine().register(payment(stage))
    instance = run(engine, "payment", {"amount": 5})
    assert status(engine, instance) == "dlq"
    stage.does(at, {"done": at})
    return stage, engine, engine.acting(OLGA).run(instance)


def number(engine: ManualEngine, instance: InstanceId, name: str) -> int:
    """The number of the last step with this name."""
    return step(engine, instance, name).number


# -- retry


@pytest.mark.row("G-27")
def test_a_step_that_gave_up_is_tried_again_for_a_reason(place: Place) -> None:
    """The step is called again, with another input if one is given, and the history tells who wanted it and why."""
    stage, engine, saga = dead(place)
    saga.retry(step(engine, saga.id, "charge"), reason=WHY, input={"amount": 6})
    engine.drain()
    assert saga.result() == {"amount": 6, "done": "charge"}
    assert stage.contexts("charge")[-1].input == {"amount": 6}
    (told,) = history(engine, saga.id, "step_requeued")
    assert (told.actor, told.data["reason"], told.comment) == ("olga", WHY, WHY)


@pytest.mark.row("G-27")
def test_a_step_that_waits_for_its_next_call_is_called_now(place: Place) -> None:
    """The wait of a retry rule is cut short, and the call counts as the one that it would have been."""
    stage = Stage()
    stage.does("send", BROKEN, {"sent": True})
    saga = Saga("mail").step("send", stage.does("send"), attempts=3, delay=timedelta(hours=1)).build()
    engine = place.engine().register(saga)
    instance = run(engine, "mail")
    assert stage.count("send") == 1
    engine.acting(OLGA).run(instance).retry(number(engine, instance, "send"), reason=WHY)
    engine.drain()
    assert (stage.count("send"), status(engine, instance)) == (2, "completed")
    assert step(engine, instance, "send").retry_count == 2
    (told,) = history(engine, instance, "step_repaired")
    assert (told.actor, told.data["repair"], told.data["reason"]) == ("olga", "retry", WHY)


def test_a_first_call_that_is_put_off_is_called_now(place: Place) -> None:
    """An operator does not wait for a start delay, which does not begin anew either."""
    stage = Stage()
    engine = place.engine().register(Saga("late").step("go", stage.does("go"), start_after=3600).build())
    instance = run(engine, "late")
    engine.acting(OLGA).run(instance).retry(step(engine, instance, "go").id, reason=WHY)
    engine.drain()
    assert status(engine, instance) == "completed"


def test_a_step_that_runs_is_not_called_a_second_time(live: Live) -> None:
    """While a live worker has the step in hand, to retry and to re-enqueue it is refused, and the refusal names the worker."""
    stage, gate = Stage(), Gate()
    stage.does("charge", gate)
    engine = live.engine().register(payment(stage)).start_worker()
    saga = engine.acting(OLGA).run(engine.start("payment"))
    gate.entered()
    there = engine.run(saga).history()
    for repair in (saga.retry, saga.reenqueue):
        with pytest.raises(RejectedError, match="runs on worker") as refusal:
            repair(step(engine, saga.id, "charge"), reason=WHY)
        assert refusal.value.reason == "still_running"
    assert engine.run(saga).history() == there
    gate.open()
    assert engine.run(saga).result(timeout=LONG_SECONDS) is not None
    assert stage.count("charge") == 1


@pytest.mark.row("G-27")
def test_work_of_a_worker_that_is_gone_is_given_to_another(place: Place) -> None:
    """A step in the hands of a dead worker is called at once by another one; what the dead one brings later changes nothing."""
    stage = Stage()
    engine = place.engine().register(Saga("order").step("pay", "payment").step("pack", stage.does("pack")).build())
    instance = run(engine, "order")
    gone, alive = (place.engine().handle("payment", stage.does("payment")) for _ in range(2))
    assert claim_one(gone, "payment")
    saga, held = engine.acting(OLGA).run(instance), step(engine, instance, "pay")
    with pytest.raises(RejectedError, match="its worker is gone: reenqueue it"):
        saga.retry(held, reason=WHY)
    saga.reenqueue(held, reason=WHY)
    alive.drain()
    engine.drain()
    assert (status(engine, instance), stage.calls) == ("completed", ["payment", "pack"])
    alive.advance(hours=1)
    assert (engine.admin.backlog(), stage.count("payment")) == ([], 1)
    (told,) = history(engine, instance, "step_repaired")
    assert (told.data["repair"], told.actor) == ("reenqueue", "olga")


# -- skip


@pytest.mark.row("G-27", "EO-10")
def test_a_step_that_gave_up_is_skipped(place: Place) -> None:
    """The run goes on behind it, its row reads skipped, its letter goes, and nothing of it is undone."""
    stage, engine, saga = dead(place)
    saga.skip(step(engine, saga.id, "charge"), reason=WHY)
    engine.drain()
    assert saga.result() == {"amount": 5, "reservation": "r-1"}
    assert statuses(engine, saga.id)["charge"] == "skipped"
    assert engine.dead_letters.list() == []
    assert stage.calls == ["reserve", "charge", "ship"]
    repaired, skipped = history(engine, saga.id, "step_repaired", "step_skipped")
    assert (repaired.actor, repaired.data["reason"], repaired.data["repair"]) == ("olga", WHY, "skip")
    assert (skipped.status, skipped.data["outcome"]) == ("skipped", "ok")


def test_a_skipped_step_is_not_undone_later_either(place: Place) -> None:
    """A rollback after a skip undoes the steps around it, but not the one that was skipped, nor the try before it."""
    stage, engine, saga = dead(place)
    stage.does("charge", BROKEN)
    saga.retry(step(engine, saga.id, "charge"), reason=WHY)
    engine.drain()
    stage.does("ship", BROKEN)
    saga.skip(step(engine, saga.id, "charge"), reason=WHY)
    engine.drain()
    stage.forget()
    reply = engine.acting(OLGA).futures.run(saga).cancel()
    engine.drain()
    assert reply.result() == "cancelled"
    assert stage.calls == ["release"]


@pytest.mark.row("EO-10")
def test_a_question_is_skipped_by_an_outcome(place: Place) -> None:
    """An operator who may override people leaves the step by the way that he names, or the approving one; the question is closed."""
    stage = Stage()
    approval = Saga("approval").human("ask", subject="may we?", role="boss").step("pay", stage.does("pay")).build()
    engine = place.engine().register(approval)
    approved, rejected = run(engine, "approval"), run(engine, "approval")
    barred = engine.acting(Actor(id="pat", capabilities=frozenset({"execution:repair"})))
    with pytest.raises(ForbiddenError, match="execution:override"):
        barred.run(approved).skip(step(engine, approved, "ask"), reason=WHY)
    engine.acting(OLGA).run(approved).skip(step(engine, approved, "ask"), reason=WHY)
    engine.acting(OLGA).run(rejected).skip(step(engine, rejected, "ask"), reason=WHY, outcome="rejected")
    engine.drain()
    assert (status(engine, approved), stage.count("pay")) == ("completed", 1)
    assert engine.tasks.list() == []
    assert [task.decision for task in engine.run(approved).tasks()] == ["overridden"]


def test_waits_are_skipped(place: Place) -> None:
    """A timer and a signal are not waited for any more, and nothing fires later."""
    saga = Saga("waits").wait("pause", 3600).wait_for("word", "go", timeout=3600).wait_for("other", "go").build()
    engine = place.engine().register(saga)
    instance = run(engine, "waits")
    waiting = engine.acting(OLGA).run(instance)
    waiting.skip(step(engine, instance, "pause"), reason=WHY)
    waiting.skip(step(engine, instance, "word"), reason=WHY)
    assert engine.admin.backlog() == []
    waiting.skip(step(engine, instance, "other"), reason=WHY)
    assert status(engine, instance) == "completed"


def test_a_call_that_waits_is_not_made_once_its_step_is_skipped(place: Place) -> None:
    """Nobody takes up the work of a step that was skipped."""
    stage = Stage()
    saga = Saga("mail").step("send", stage.does("send", BROKEN), attempts=3, delay=60).wait("pause", 3600).build()
    engine = place.engine().register(saga)
    instance = run(engine, "mail")
    engine.acting(OLGA).run(instance).skip(step(engine, instance, "send"), reason=WHY)
    assert [each.kind for each in engine.admin.backlog()] == ["timer"]
    engine.advance(hours=1)
    assert (status(engine, instance), stage.count("send")) == ("completed", 1)
    assert step(engine, instance, "send").retry_count == 1


def test_a_child_that_nobody_waits_for_any_more_is_stopped(place: Place) -> None:
    """The workflow that a skipped step started is cancelled, as if its time were over."""
    engine = place.engine()
    engine.register(Saga("child").wait("pause", 3600).build())
    engine.register(Saga("parent").call("sub", "child").build())
    instance = run(engine, "parent")
    (child,) = engine.runs.list(parent=instance).items
    engine.acting(OLGA).run(instance).skip(step(engine, instance, "sub"), reason=WHY)
    engine.drain()
    assert (status(engine, instance), status(engine, child.id)) == ("completed", "cancelled")


def test_a_running_handler_does_not_hold_a_skipped_step(live: Live) -> None:
    """A handler that hangs is left behind, and what it brings later counts no more."""
    stage, gate = Stage(), Gate({"late": True})
    stage.does("charge", gate)
    engine = live.engine().register(payment(stage)).start_worker()
    started = engine.start("payment", {"amount": 5})
    gate.entered()
    engine.acting(OLGA).run(started).skip(step(engine, started.id, "charge"), reason=WHY)
    assert started.result(timeout=LONG_SECONDS) == {"amount": 5}
    gate.open()
    eventually(lambda: engine.admin.backlog() == [])
    assert statuses(engine, started.id)["charge"] == "skipped"


# -- complete


@pytest.mark.row("G-27")
def test_a_step_is_completed_by_hand(place: Place) -> None:
    """The answer that an operator gives is found in the data like that of the handler, and a later rollback undoes the step."""
    stage, engine, saga = dead(place)
    saga.complete_step(step(engine, saga.id, "charge"), {"charge": "by hand"}, reason=WHY)
    stage.does("ship", BROKEN)
    engine.drain()
    assert engine.run(saga).describe().context == {"amount": 5, "reservation": "r-1", "charge": "by hand"}
    assert (statuses(engine, saga.id)["charge"], stage.count("charge")) == ("completed", 1)
    reply = engine.acting(OLGA).futures.run(saga).cancel()
    engine.drain()
    assert reply.result() == "cancelled"
    refund, charge = stage.contexts("refund")[0], stage.contexts("charge")[0]
    assert refund.output == {"charge": "by hand"}
    assert refund.idempotency_key.startswith(charge.idempotency_key)
    (told,) = history(engine, saga.id, "step_repaired")
    assert (told.data["repair"], told.data["reason"]) == ("complete", WHY)


def test_an_answer_by_hand_is_checked_like_that_of_a_handler(place: Place) -> None:
    """What does not fit into the data is refused, and the step waits as before."""
    _, engine, saga = dead(place)
    there = engine.run(saga).history()
    with pytest.raises(PayloadError, match="limit"):
        saga.complete_step(step(engine, saga.id, "charge"), {"much": "x" * 2_000_000}, reason=WHY)
    half = {"half": "x" * 700_000}
    engine.run(saga).change_data({"other": half}, reason=WHY)
    with pytest.raises(RejectedError) as refusal:
        saga.complete_step(step(engine, saga.id, "charge"), half, reason=WHY)
    assert refusal.value.reason == "too_large"
    assert len(engine.run(saga).history()) == len(there) + 1


def test_a_question_is_not_completed_but_decided(place: Place) -> None:
    """Nobody can answer for people with data alone; the refusal says what can be done."""
    engine = place.engine().register(Saga("approval").human("ask", subject="may we?").build())
    instance = run(engine, "approval")
    with pytest.raises(RejectedError, match="have it decided, or skip it") as refusal:
        engine.run(instance).complete_step(step(engine, instance, "ask"), {"a": 1}, reason=WHY)
    assert refusal.value.reason == "not_repairable"


# -- data


@pytest.mark.row("G-27")
def test_data_is_changed_by_a_patch(place: Place) -> None:
    """Objects are laid over the data name by name, null takes a name away; the history has the patch and both hashes."""
    stage, engine, saga = dead(place)
    saga.change_data({"amount": 7, "reservation": None, "more": {"a": 1}}, reason=WHY)
    saga.change_data({"more": {"b": 2}}, reason=WHY)
    saga.retry(step(engine, saga.id, "charge"), reason=WHY)
    engine.drain()
    assert stage.contexts("charge")[-1].input == {"amount": 7, "more": {"a": 1, "b": 2}}
    first, second = history(engine, saga.id, "data_changed")
    assert (first.actor, first.data["reason"]) == ("olga", WHY)
    assert first.data["patch"] == {"amount": 7, "reservation": None, "more": {"a": 1}}
    assert first.data["hashes"]["0"][1] == second.data["hashes"]["0"][0]  # type: ignore[index]
    assert first.data["hashes"]["0"][0] != first.data["hashes"]["0"][1]  # type: ignore[index]


@pytest.mark.row("G-27")
def test_data_that_is_too_large_already_is_made_smaller_step_by_step(place: Place) -> None:
    """Where the limit was another one, or a refusal by people took its place, a patch may leave more than the limit, and never more than there was."""
    saga = Saga("wide").human("ask").build()
    instance = run(place.engine().register(saga), "wide", {"one": "x" * 900, "two": "y" * 900})
    small = place.engine(Settings(max_payload_bytes=1000)).register(saga)
    wide = small.acting(OLGA).run(instance)
    for patch in ({"one": "x" * 901}, {"three": 3}):
        with pytest.raises(RejectedError) as refusal:
            wide.change_data(patch, reason=WHY)
        assert refusal.value.reason == "too_large"
    for patch in ({"one": "x" * 800}, {"two": "y"}, {"three": 3}):
        wide.change_data(patch, reason=WHY)
    assert small.run(instance).describe().context == {"one": "x" * 800, "two": "y", "three": 3}


def test_the_data_of_one_branch_is_changed(place: Place) -> None:
    """A token that is named is changed alone; one that is not there is refused with those that are."""
    stage = Stage()
    forked = (
        Saga("forked")
        .fork(
            "fork",
            lambda way: way.wait_for("left", "go").step("a", stage.does("a")),
            lambda way: way.wait_for("right", "go").step("b", stage.does("b")),
        )
        .join("join")
        .build()
    )
    engine = place.engine().register(forked)
    instance = run(engine, "forked", {"n": 1})
    saga = engine.acting(OLGA).run(instance)
    saga.change_data({"n": 2}, reason=WHY, token=step(engine, instance, "left").token)
    with pytest.raises(RejectedError, match=r"there are: '0/1\.1', '0/1\.2', '0'") as refusal:
        saga.change_data({"n": 3}, reason=WHY, token="0/9.9")
    assert refusal.value.reason == "unknown_token"
    engine.run(instance).signal("go")
    engine.run(instance).signal("go")
    engine.drain()
    assert (stage.contexts("a")[0].input["n"], stage.contexts("b")[0].input["n"]) == (2, 1)


# -- moving back


@pytest.mark.row("G-27")
def test_a_run_moves_back_to_a_save_point(place: Place) -> None:
    """What was done behind it is undone, the data is that of then, and the steps behind it are done anew."""
    stage, engine, saga = dead(place, at="ship")
    stage.does("charge", {"charge": "c-2"})
    stage.forget()
    saga.move_back("safe", reason=WHY)
    engine.drain()
    assert stage.calls == ["refund", "charge", "ship"]
    assert stage.contexts("charge")[-1].input == {"amount": 5, "reservation": "r-1"}
    assert saga.result() == {"amount": 5, "reservation": "r-1", "charge": "c-2", "done": "ship"}
    assert engine.dead_letters.list() == []
    started, moved = history(engine, saga.id, "move_back_started", "moved_back")
    assert (started.actor, started.data["reason"], started.step_name, moved.step_name) == ("olga", WHY, "safe", "safe")


def test_a_run_that_somebody_has_paused_is_not_moved_back(place: Place) -> None:
    """A pause lasts until somebody ends it, and nothing is undone meanwhile; after it the run can be moved back."""
    stage = Stage()
    saga = Saga("held").save_point("safe").step("a", stage.does("a")).on_failure("undo a", stage.does("undo a"))
    engine = place.engine().register(saga.wait("pause", 3600).build())
    instance = run(engine, "held")
    engine.run(instance).pause("hold it")
    before = len(engine.run(instance).history())
    with pytest.raises(RejectedError, match="resume it first") as refusal:
        engine.acting(OLGA).run(instance).move_back(reason=WHY)
    engine.drain()
    assert refusal.value.reason == "already_paused"
    assert (status(engine, instance), stage.calls, len(engine.run(instance).history())) == ("paused", ["a"], before)
    engine.run(instance).resume()
    engine.acting(OLGA).run(instance).move_back(reason=WHY)
    engine.drain()
    assert stage.calls == ["a", "undo a", "a"]


def test_what_was_undone_on_the_way_back_is_not_undone_again(place: Place) -> None:
    """After a move back a cancellation undoes what was done since, and what was done before the save point, once."""
    stage, engine, saga = dead(place, at="ship")
    stage.does("ship", BROKEN)
    saga.move_back(reason=WHY)
    engine.drain()
    assert status(engine, saga.id) == "dlq"
    stage.forget()
    reply = engine.acting(OLGA).futures.run(saga).cancel()
    engine.drain()
    assert reply.result() == "cancelled"
    assert stage.calls == ["refund", "release"]


@pytest.mark.parametrize("again", [None, BROKEN])
def test_a_letter_goes_with_the_move_back_that_undoes_its_step(place: Place, again: object) -> None:
    """What a branch that was not needed could not undo is undone with the rest: its letter goes, and there is one anew only if that fails again."""
    stage = Stage()
    stage.does("undo a", BROKEN, again)
    forked = (
        Saga("forked")
        .save_point("safe")
        .fork(
            "fork",
            lambda way: (
                way.step("a", stage.does("a")).on_failure("undo a", stage.does("undo a"), attempts=1).wait_for("w", "w")
            ),
            lambda way: way.step("b", stage.does("b")),
        )
        .join("join", "any")
        .wait_for("hold", "go")
    )
    engine = place.engine().register(forked.build())
    instance = run(engine, "forked")
    (first,) = engine.dead_letters.list()
    engine.acting(OLGA).run(instance).move_back("safe", reason=WHY)
    with pytest.raises(NotFoundError):
        engine.dead_letters.get(first)
    engine.drain()
    letters = engine.dead_letters.list()
    assert [each.id == first.id for each in letters] == ([] if again is None else [False])
    assert sum(each.count for each in engine.admin.given_up()) == len(letters)
    for letter in letters:
        stage.does("undo a", None)
        engine.dead_letters.retry_compensation(letter)
        engine.drain()
    assert engine.dead_letters.list() == []
    assert engine.instances.verify(instance).is_sound


def test_a_move_back_waits_for_branches_and_ends_them(place: Place) -> None:
    """Branches that began behind the save point are stopped and undone, and begin anew."""
    stage = Stage()
    forked = (
        Saga("forked")
        .save_point("safe")
        .fork(
            "fork",
            lambda way: way.step("a", stage.does("a")).on_failure("undo a", stage.does("undo a")),
            lambda way: way.wait_for("word", "go"),
        )
        .join("join")
        .then("end", stage.does("end"))
        .build()
    )
    engine = place.engine().register(forked)
    instance = run(engine, "forked", {"n": 1})
    engine.acting(OLGA).run(instance).move_back(reason=WHY)
    engine.drain()
    assert stage.calls == ["a", "undo a", "a"]
    engine.run(instance).signal("go")
    engine.drain()
    assert (status(engine, instance), stage.count("end")) == ("completed", 1)


def test_a_deadline_that_passes_on_the_way_back_undoes_nothing_twice(place: Place) -> None:
    """A cancellation takes over where the way back is: what was undone by then stays undone, and the rest follows."""
    stage = Stage()
    saga = (
        Saga("late", deadline=60)
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a"))
        .save_point("safe")
        .step("b", stage.does("b"))
        .on_failure("undo b", stage.does("undo b"), start_after=100)
        .step("c", stage.does("c"))
        .on_failure("undo c", stage.does("undo c"))
        .wait("pause", 3600)
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "late")
    engine.acting(OLGA).run(instance).move_back(reason=WHY)
    engine.drain()
    assert stage.calls == ["a", "b", "c", "undo c"]
    engine.advance(seconds=200)
    assert (status(engine, instance), stage.calls[4:]) == ("cancelled", ["undo b", "undo a"])


def test_a_child_that_began_behind_the_save_point_is_undone(place: Place) -> None:
    """The way back waits until the child has undone what it did; then another one is started."""
    stage = Stage()
    engine = place.engine()
    child = Saga("child").step("book", stage.does("book")).on_failure("unbook", stage.does("unbook"))
    engine.register(child.wait_for("word", "go").build())
    engine.register(Saga("parent").save_point("safe").call("sub", "child").build())
    instance = run(engine, "parent")
    engine.acting(OLGA).run(instance).move_back(reason=WHY)
    engine.drain()
    assert stage.calls == ["book", "unbook", "book"]
    assert sorted(each.status for each in engine.runs.list(parent=instance).items) == ["cancelled", "running"]


def test_a_move_back_that_cannot_undo_goes_on_when_it_can(place: Place) -> None:
    """A compensation that gives up halts the way back; once it is tried again, the run goes on from the save point."""
    stage, engine, saga = dead(place, at="ship")
    stage.does("refund", BROKEN)
    saga.move_back(reason=WHY)
    engine.drain()
    engine.advance(hours=1)
    assert engine.run(saga).describe().reason == "compensation_failed"
    stage.does("refund", None)
    (letter,) = engine.dead_letters.list()
    engine.dead_letters.retry_compensation(letter)
    engine.drain()
    assert status(engine, saga.id) == "completed"


def test_a_run_moves_back_only_to_what_it_has_passed(place: Place) -> None:
    """A save point that does not exist, or lies behind a point of no return, is refused with those that are possible."""
    stage, engine, saga = dead(place)
    with pytest.raises(RejectedError, match="can be moved back to 'safe'") as refusal:
        saga.move_back("elsewhere", reason=WHY)
    assert refusal.value.reason == "no_save_point"
    sent = Saga("sent").save_point("safe").point_of_no_return("sent").wait("pause", 60).build()
    engine.register(sent)
    instance = run(engine, "sent")
    with pytest.raises(RejectedError, match="point of no return; fork"):
        engine.run(instance).move_back(reason=WHY)
    assert stage.count("refund") == 0


# -- failing


@pytest.mark.row("G-27")
def test_a_run_is_forced_to_fail(place: Place) -> None:
    """It is rolled back as if its step had failed for good, up to the save point, and says why it failed."""
    stage, engine, saga = dead(place)
    stage.forget()
    reply = engine.acting(OLGA).futures.run(saga).fail(WHY)
    engine.drain()
    assert reply.result() == "failed"
    assert stage.calls == ["refund"]
    assert WHY in engine.run(saga).describe().error
    assert engine.dead_letters.list() == []
    (told,) = history(engine, saga.id, "rollback_started")
    assert (told.actor, told.data["requested_by"], told.data["error"]) == ("olga", "olga", WHY)


def test_a_run_that_waits_is_forced_to_fail(place: Place) -> None:
    """What it waits for is not waited for any more, and what was done before is undone."""
    stage = Stage()
    saga = Saga("waits").step("a", stage.does("a")).on_failure("undo", stage.does("undo")).wait("pause", 60).build()
    engine = place.engine().register(saga)
    instance = run(engine, "waits")
    reply = engine.futures.run(instance).fail(WHY)
    engine.drain()
    assert (reply.result(), stage.calls) == ("failed", ["a", "undo"])


@pytest.mark.row("E-534")
def test_a_branch_is_cancelled_and_undone_and_the_others_meet_without_it(place: Place) -> None:
    """Also one whose step gave up, for which the run waited; not the last one, nor one that has arrived, nor past people without the right."""
    stage = Stage()
    stage.does("right", BROKEN)
    saga = (
        Saga("cut", dlq=True)
        .fork(
            "fork",
            lambda way: way.step("left", stage.does("left")).on_failure("back", stage.does("back")).human("ask"),
            lambda way: way.step("right", stage.does("right"), attempts=1),
            lambda way: way.step("last", stage.does("last")),
        )
        .join("join")
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "cut")
    assert status(engine, instance) == "dlq"
    mending = engine.acting(OLGA).run(instance)
    tokens = {each.name: each.token for each in mending.steps()}
    mending.cancel_branch(tokens["right"], reason=WHY)
    engine.drain()
    assert (status(engine, instance), engine.dead_letters.list()) == ("running", [])
    with pytest.raises(RejectedError, match="has arrived"):
        mending.cancel_branch(tokens["last"], reason=WHY)
    repairer = Actor(id="rob", capabilities=frozenset({"execution:repair", "execution:read"}))
    with pytest.raises(ForbiddenError, match="execution:override"):
        engine.acting(repairer).run(instance).cancel_branch(tokens["ask"], reason=WHY)
    mending.cancel_branch(tokens["ask"], reason=WHY)
    engine.drain()
    assert (status(engine, instance), stage.calls[-1], engine.tasks.list()) == ("completed", "back", [])
    waits = (
        Saga("two").fork("fork", lambda way: way.wait_for("a", "a"), lambda way: way.wait_for("b", "b")).join("join")
    )
    engine.register(waits.build())
    two = engine.acting(OLGA).run(run(engine, "two"))
    first, second = (each.token for each in two.steps() if each.name in {"a", "b"})
    two.cancel_branch(first, reason=WHY)
    with pytest.raises(RejectedError, match="is the last branch of 'fork'"):
        two.cancel_branch(second, reason=WHY)
    two.signal("b")
    assert two.describe().status == "completed"


# -- what is refused

REPAIRS: dict[str, Callable[[Run[object], int, str], object]] = {
    "retry": lambda saga, number, why: saga.retry(number, reason=why),
    "reenqueue": lambda saga, number, why: saga.reenqueue(number, reason=why),
    "skip": lambda saga, number, why: saga.skip(number, reason=why),
    "complete_step": lambda saga, number, why: saga.complete_step(number, {"a": 1}, reason=why),
    "change_data": lambda saga, _, why: saga.change_data({"a": 1}, reason=why),
    "cancel_branch": lambda saga, _, why: saga.cancel_branch("0/1.1", reason=why),
    "move_back": lambda saga, _, why: saga.move_back(reason=why),
    "fail": lambda saga, _, why: saga.fail(why),
    "fork": lambda saga, _, why: saga.fork(len(saga.history()), reason=why),
}


@pytest.mark.parametrize("name", REPAIRS)
def test_a_repair_needs_a_reason_and_a_right(place: Place, name: str) -> None:
    """Without a reason, or by somebody without the capability, nothing is repaired and nothing written; other tenants find nothing."""
    _, engine, saga = dead(place)
    charge = number(engine, saga.id, "charge")
    there = engine.run(saga).history()
    for why in ("", "  "):
        with pytest.raises(RejectedError) as refusal:
            REPAIRS[name](saga, charge, why)
        assert refusal.value.reason == "no_reason"
    with pytest.raises(ForbiddenError, match="execution:repair"):
        REPAIRS[name](engine.acting(PAT).run(saga.id), charge, WHY)
    with pytest.raises(NotFoundError):
        REPAIRS[name](engine.as_tenant("other").run(saga.id), charge, WHY)
    assert engine.run(saga).history() == there
    assert len(engine.runs.list().items) == 1


@pytest.mark.parametrize("name", [name for name in REPAIRS if name != "fork"])
def test_nothing_is_repaired_after_the_end_or_on_the_way_back(place: Place, name: str) -> None:
    """A run that undoes itself is left alone until it has ended, and afterwards for ever."""
    stage = Stage()
    stage.does("charge", BROKEN)
    stage.does("refund", BROKEN, None)
    engine = place.engine().register(
        Saga("payment")
        .save_point("safe")
        .step("charge", stage.does("charge"), attempts=1)
        .on_failure("refund", stage.does("refund"), attempts=2, delay=timedelta(hours=1))
        .build()
    )
    instance = run(engine, "payment")
    saga, charge = engine.acting(OLGA).run(instance), number(engine, instance, "charge")
    with pytest.raises(RejectedError) as refusal:
        REPAIRS[name](saga, charge, WHY)
    assert refusal.value.reason == "rollback_in_progress"
    engine.advance(hours=1)
    assert status(engine, instance) == "failed"
    with pytest.raises(RejectedError) as refusal:
        REPAIRS[name](saga, charge, WHY)
    assert refusal.value.reason == "already_terminal"


@pytest.mark.parametrize("name", ["retry", "reenqueue", "skip", "complete_step"])
def test_a_step_that_has_ended_is_refused_with_those_that_have_not(place: Place, name: str) -> None:
    """Who names the wrong step is told which ones there are."""
    _, engine, saga = dead(place)
    charge = number(engine, saga.id, "charge")
    with pytest.raises(RejectedError, match=rf"have not ended: {charge} \('charge'\)") as refusal:
        REPAIRS[name](saga, number(engine, saga.id, "reserve"), WHY)
    assert refusal.value.reason == "not_open"


def test_a_step_cannot_be_left_by_an_outcome_that_it_does_not_have(place: Place) -> None:
    """The refusal names those that it has."""
    _, engine, saga = dead(place)
    with pytest.raises(RejectedError, match="there are 'error', 'ok'") as refusal:
        saga.skip(step(engine, saga.id, "charge"), reason=WHY, outcome="maybe")
    assert refusal.value.reason == "unknown_outcome"


def test_a_step_of_another_run_is_refused(place: Place) -> None:
    """The id of a step says which run it is of."""
    stage, engine, saga = dead(place)
    other = run(engine, "payment")
    assert stage.count("reserve") == 2
    with pytest.raises(PayloadError, match="is a step of another run"):
        saga.skip(step(engine, other, "reserve"), reason=WHY)


@pytest.mark.row("EO-10")
@pytest.mark.parametrize("name", ["reenqueue", "skip", "complete_step", "change_data"])
def test_nobody_goes_past_a_protected_gate(place: Place, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kind of node that says so is left alone, whatever the operator may do. A retry has one that failed look again, and goes past nothing."""
    _, engine, saga = dead(place)
    charge = number(engine, saga.id, "charge")
    there = engine.run(saga).history()
    monkeypatch.setattr(TaskOp, "is_protected", True)
    with pytest.raises(RejectedError, match="'charge' is a protected gate") as refusal:
        REPAIRS[name](saga, charge, WHY)
    assert refusal.value.reason == "protected"
    assert engine.run(saga).history() == there


@pytest.mark.row("EO-10")
def test_nobody_moves_back_or_forks_over_a_protected_gate(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that was passed is not passed a second time without its leave, in this run or in another."""
    stage = Stage()
    gated = (
        Saga("gated")
        .save_point("safe")
        .human("gate", subject="may we?")
        .step("pay", stage.does("pay", BROKEN), attempts=1)
        .build()
    )
    engine = place.engine().register(gated)
    instance = run(engine, "gated")
    engine.tasks.approve(step(engine, instance, "gate"))
    monkeypatch.setattr(HumanOp, "is_protected", True)
    saga = engine.acting(OLGA).run(instance)
    with pytest.raises(RejectedError) as refusal:
        saga.move_back(reason=WHY)
    assert refusal.value.reason == "protected"
    with pytest.raises(RejectedError, match="a protected gate") as refusal:
        saga.fork(len(saga.history()), reason=WHY)
    assert refusal.value.reason == "no_fork"
    assert len(engine.runs.list().items) == 1
