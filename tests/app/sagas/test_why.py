"""Why a run does not move: for everything that can wake it there is a reason, in words and as data; without any it is an incident."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from app.sagas.acting import BROKEN, Gate, Stage, run, status, step
from people.test_webhook import LOCAL, SECRET, Receiver, receiver
from standfast import Engine, NotFoundError, Notice, Reason, Saga, SagaDefinition, Settings, Webhook, event
from standfast.engine.common.telemetry import CallHangs, Happening, InstanceStuck
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.desks import Desk
from support.engines import Live, Place
from support.inside import beat, claim_one, identity_of
from support.waiting import LONG_SECONDS, eventually

__all__ = ["receiver"]

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SOON = Settings(stuck_after=MINUTE)


def only(engine: Engine, instance: InstanceId) -> Reason:
    """The one reason that there is, of a run that does not move."""
    found = engine.run(instance).why()
    assert (len(found.reasons), found.is_incident, found.is_moving) == (1, False, False), found
    assert found.words == found.reasons[0].words
    return found.reasons[0]


def waiting(place: Place, saga: SagaDefinition) -> tuple[ManualEngine, InstanceId]:
    """A run that has come as far as it comes by itself."""
    engine = place.engine().register(saga)
    return engine, run(engine, saga.name)


ORDER = Saga("order").step("pay", "payment").build()
"""Its handler is known by name only, so that each engine may have it or not."""


def test_it_waits_for_a_time(place: Place) -> None:
    """A timer says until when, and since when."""
    engine, instance = waiting(place, Saga("s").wait("pause", HOUR).build())
    found, now = only(engine, instance), place.clock.now()
    assert (found.kind, found.step, found.since, found.until) == ("timer", "pause", now, now + HOUR)
    assert found.words == f"'pause' waits until {now + HOUR}"
    assert found.step_number == step(engine, instance, "pause").number


def test_it_has_not_begun(place: Place) -> None:
    """A start that is put off says when it will be."""
    engine = place.engine().register(ORDER)
    instance = engine.start("order", delay=HOUR).id
    found = only(engine, instance)
    assert (found.kind, found.until, found.step) == ("timer", place.clock.now() + HOUR, "")
    assert found.words.startswith("it begins at ")


def test_it_waits_for_a_signal(place: Place) -> None:
    """A signal is named, with the end of the waiting if there is one."""
    engine, instance = waiting(place, Saga("s").wait_for("word", "go", timeout=HOUR).build())
    found = only(engine, instance)
    assert (found.kind, found.waits_for, found.until) == ("signal", "go", place.clock.now() + HOUR)
    assert (found.since, found.remedy) == (place.clock.now(), "signal('go') brings it on")


def test_it_waits_for_a_published_event(place: Place) -> None:
    """Named as it is published, with its key; of several, those that have not come yet."""
    saga = Saga("s").wait_for_event("paid", "payment", key="order", timeout=HOUR).build()
    engine = place.engine().register(saga)
    instance = run(engine, "s", {"order": "o-1"})
    found, now = only(engine, instance), place.clock.now()
    assert (found.kind, found.waits_for, found.since, found.until) == ("event", "payment", now, now + HOUR)
    assert found.words == f"'paid' waits for the event 'payment' for 'o-1' since {now} and at most until {now + HOUR}"
    assert found.remedy == "publish('payment', 'o-1') brings it on"
    engine.register(Saga("both").wait_for_events("all", event("billed"), event("shipped")).build())
    both = run(engine, "both")
    assert "waits for the events 'billed', 'shipped' since" in only(engine, both).words
    engine.publish("billed")
    engine.drain()
    assert (only(engine, both).waits_for, "the event 'shipped' since" in only(engine, both).words) == ("shipped", True)


@pytest.mark.parametrize(
    ("match", "told"),
    [
        ("event.amount >= input.total", "2 events that are kept do not match event.amount >= input.total"),
        ("event.amount >= input.totl", "2 events that are kept do not match event.amount >= input.totl: "),
    ],
)
def test_events_that_do_not_match_are_told(place: Place, match: str, told: str) -> None:
    """What came for the key and was not taken is counted, with what the condition did not find; other keys are no matter."""
    engine = place.engine().register(Saga("s").wait_for_event("paid", "pay", key="order", match=match).build())
    instance = run(engine, "s", {"order": "o-1", "total": 10})
    assert "match" not in only(engine, instance).words
    for key, amount in (("o-1", 3), ("o-1", 4), ("o-2", 5)):
        engine.publish("pay", key, {"amount": amount})
    engine.drain()
    words = only(engine, instance).words
    assert told in words
    assert ("totl" in words.partition(told)[2]) == told.endswith(": ")


def test_it_waits_for_several_people(place: Place) -> None:
    """Those are named who have not decided yet, and those who have, with what."""
    engine, instance = waiting(
        place, Saga("s").human("ask", ask=["user:ann", "user:bob", "role:boss"], agree="all").build()
    )
    assert only(engine, instance).waits_for == "ann, bob, boss"
    engine.acting("ann").tasks.approve(step(engine, instance, "ask").id)
    found, now = only(engine, instance), place.clock.now()
    assert found.waits_for == "bob, boss"
    assert found.words == (
        f"'ask' waits for a decision by 'bob', somebody with the role 'boss' since {now} (ask); so far have decided: 'ann' (confirmed)"
    )


def test_people_are_not_told(place: Place) -> None:
    """A notice that is waited for and cannot be delivered says when it is tried again."""

    class Dead:
        def send(self, notice: Notice) -> None:
            raise OSError("the line is dead")

    engine = place.engine().channel("post", Dead())
    engine.register(Saga("s").notify("tell", to="ann", subject="x", channel="post", wait=True).build())
    found = only(engine, run(engine, "s"))
    assert (found.kind, found.until is not None) == ("retry", True)
    assert "tries again at" in found.words
    assert "the line is dead" in found.words


def test_what_nobody_was_told_is_told(place: Place) -> None:
    """A question, or a notice that nobody waits for, that did not reach its people stands beside the reasons."""
    engine = place.engine()
    saga = Saga("s").notify("tell", to="ann", subject="{nope}").human("ask", ask="user:ann", notify="emial").build()
    instance = run(engine.register(saga), "s")
    found = engine.run(instance).why()
    assert [each.kind for each in found.reasons] == ["person"]
    hole, channel = found.untold
    assert hole.startswith("'ann' could not be told by 'in_app' at ")
    assert "nope" in hole
    assert "there is no channel 'emial' here" in channel
    assert all(each in found.words for each in found.untold)


SCOPES: dict[str, tuple[dict[str, str], str]] = {
    "definition": ({"definition": "order"}, "'order' of tenant 'default'"),
    "version": ({"definition": "order", "version": "1"}, "'order' version 1 of tenant 'default'"),
    "step": ({"definition": "order", "step": "pay"}, "step 'pay' of 'order' of tenant 'default'"),
    "tenant": ({}, "everything of tenant 'default'"),
    "engine": ({"tenant": "*"}, "everything of all tenants"),
}


@pytest.mark.parametrize("name", SCOPES)
def test_a_pause_of_a_wider_scope_holds_it(place: Place, name: str) -> None:
    """What is paused is named, with who paused it, why, since and until when; besides what the run itself waits for."""
    asked, scope = SCOPES[name]
    engine, instance = waiting(place, ORDER)
    engine.pauses.pause(reason="stock-taking", until=HOUR, **asked)  # type: ignore[arg-type]
    why, now = engine.run(instance).why(), place.clock.now()
    held, own = why.reasons
    assert (held.kind, held.since, held.until, own.step, why.is_moving) == ("held", now, now + HOUR, "pay", False)
    assert held.words == f"{scope} has been paused by 'system' since {now} (stock-taking)"
    engine.pauses.resume(**asked)
    assert only(engine, instance).step == "pay"


def test_a_pause_of_another_step_does_not_hold_it(place: Place) -> None:
    """Only what keeps the run is a reason."""
    engine, instance = waiting(place, Saga("order").step("pay", "payment").step("ship", "shipping").build())
    engine.pauses.pause("order", step="ship")
    assert only(engine, instance).step == "pay"


@pytest.mark.row("C-02")
def test_it_waits_for_people(place: Place) -> None:
    """Who is asked is named, and since when."""
    engine, instance = waiting(place, Saga("s").human("ask", subject="may we?", role="boss").build())
    found, now = only(engine, instance), place.clock.now()
    assert (found.kind, found.waits_for, found.since) == ("person", "boss", now)
    assert found.words == f"'ask' waits for a decision by somebody with the role 'boss' since {now} (may we?)"


def test_it_waits_for_another_workflow(place: Place) -> None:
    """The child is named, with how it stands."""
    engine = place.engine().register(Saga("child").wait("pause", HOUR).build())
    engine.register(Saga("parent").call("sub", "child").build())
    instance = run(engine, "parent")
    (child,) = engine.runs.list(parent=instance).items
    found = only(engine, instance)
    assert (found.kind, found.waits_for, found.remedy) == ("child", str(child.id), "ask why() of that run")
    assert "(which is running)" in found.words


def test_no_worker_runs(place: Place) -> None:
    """Work waits, and nobody is alive who could do it."""
    engine, instance = waiting(place, ORDER)
    Desk(place.store).run("delete from {}workers")
    found = only(engine, instance)
    assert (found.kind, found.step, found.handler, found.since) == ("no_worker", "pay", "payment", place.clock.now())
    assert found.remedy == "start_worker() starts one"


def test_no_live_worker_has_the_handler(place: Place) -> None:
    """Workers are alive, and none of them has what is needed."""
    engine, instance = waiting(place, ORDER)
    beat(engine)
    found = only(engine, instance)
    assert (found.kind, found.handler) == ("no_handler", "payment")
    assert found.words.endswith("no live worker has the handler 'payment'")


def test_it_waits_for_a_free_worker(place: Place) -> None:
    """Somebody has the handler, and has not come to it yet."""
    engine, instance = waiting(place, ORDER)
    beat(place.engine().handle("payment", Stage().does("payment")))
    found = only(engine, instance)
    assert (found.kind, found.step, found.since) == ("worker", "pay", place.clock.now())


def test_its_worker_is_gone(place: Place) -> None:
    """A worker had it in hand and is not alive any more; re-enqueued, it waits for another one."""
    engine, instance = waiting(place, ORDER)
    other = place.engine().handle("payment", Stage().does("payment"))
    assert claim_one(other, "payment")
    found = only(engine, instance)
    assert (found.kind, found.worker) == ("lost_worker", str(identity_of(other)))
    engine.run(instance).reenqueue(step(engine, instance, "pay"), reason="the host burnt down")
    beat(other)
    assert only(engine, instance).kind == "worker"


def test_a_call_that_takes_long_may_hang(place: Place) -> None:
    """It moves, as far as anybody knows; what can be done if it does not is told after a while."""
    engine, instance = waiting(place, ORDER)
    other = place.engine().handle("payment", Stage().does("payment"))
    beat(other)
    assert claim_one(other, "payment")
    [short] = engine.run(instance).why().reasons
    assert (short.kind, short.remedy) == ("running", "")
    place.clock.move(2 * MINUTE)
    beat(other)
    [long] = engine.run(instance).why().reasons
    assert (long.kind, long.remedy.split(",")[0]) == ("running", "if it hangs")


def test_a_call_past_a_bound_is_an_incident(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody knows whether it hangs, so nothing says that it moves: `why`, health, metrics and `admin.incidents` name it. One with a timeout ends by itself."""
    place.must_fold = False
    limited = Saga("limited").step("pay", "payment", timeout=HOUR).build()
    engine = place.engine().register(ORDER).register(limited)
    hung, patient = run(engine, "order"), run(engine, "limited")
    other = place.engine().handle("payment", Stage().does("payment"))
    heard: list[Happening] = []
    other.listen(heard.append)
    beat(other)
    assert claim_one(other, "payment")
    assert claim_one(other, "payment")
    place.clock.move(6 * MINUTE)
    beat(other)
    found = engine.run(hung).why()
    assert (found.is_moving, [each.kind for each in found.reasons]) == (False, ["hung"])
    assert "longer than 0:05:00, so that it may hang" in found.words
    assert [each.kind for each in engine.run(patient).why().reasons] == ["running"]
    other.runtime.housekeeping.incidents.look()
    (told,) = other.health().incidents
    assert (str(hung) in told, other.incident_counts()["hung_call"]) == (True, 1)
    (shown,) = engine.admin.incidents()
    assert (shown.kind, shown.instance, "give it a timeout" in shown.remedy) == ("hung_call", hung, True)
    assert [each.instance for each in heard if isinstance(each, CallHangs)] == [hung]
    assert f"call_hangs handler=payment instance={hung}" in caplog.text


def test_its_handler_runs(live: Live) -> None:
    """A run that moves says so, and on which worker since when."""
    gate = Gate()
    engine = live.engine().register(Saga("s").step("work", gate).build()).start_worker()
    started = engine.start("s")
    gate.entered()
    eventually(lambda: bool(engine.admin.workers()))
    found = started.why()
    (reason,) = found.reasons
    assert (reason.kind, found.is_moving, reason.step) == ("running", True, "work")
    assert reason.worker in {worker.name for worker in engine.admin.workers()}
    assert found.words.startswith("it moves: 'work' runs on worker ")
    gate.open()
    started.result(timeout=LONG_SECONDS)


def test_it_is_called_again_later(place: Place) -> None:
    """A step that failed says when it is called again, for which time, and what it said."""
    stage = Stage()
    saga = Saga("s").step("send", stage.does("send", BROKEN), attempts=3, delay=60).build()
    engine, instance = waiting(place, saga)
    found = only(engine, instance)
    assert (found.kind, found.until) == ("retry", place.clock.now() + timedelta(minutes=1))
    assert found.words.endswith("for the 2. time: ValueError: broken")
    assert found.remedy == "retry calls it now"


def test_its_first_call_is_put_off(place: Place) -> None:
    """A start delay says until when."""
    engine, instance = waiting(place, Saga("s").step("send", Stage().does("send"), start_after=60).build())
    found = only(engine, instance)
    assert (found.kind, found.until) == ("delay", place.clock.now() + timedelta(minutes=1))


def test_a_step_gave_up(place: Place) -> None:
    """A dead letter says what gave up, when, why, and what can be done."""
    stage = Stage()
    saga = Saga("s", dlq=True).step("send", stage.does("send", BROKEN), attempts=1).build()
    engine, instance = waiting(place, saga)
    found = only(engine, instance)
    assert (found.kind, found.step, found.since) == ("dead_letter", "send", place.clock.now())
    assert found.words == f"'send' gave up at {place.clock.now()}, after 1 call: ValueError: broken"
    assert found.remedy == "retry, skip or complete the step, or cancel the run"


def test_it_is_paused(place: Place) -> None:
    """A run that waits for an operator says since when, why, and by whom it was paused."""
    stage = Stage()
    saga = (
        Saga("s")
        .fork(
            "f",
            lambda way: (
                way.step("a", stage.does("a"))
                .on_failure("undo a", stage.does("undo a", BROKEN), attempts=1)
                .wait("late", 60)
            ),
            lambda way: way.wait_for("word", "go"),
        )
        .join("j", "any")
        .build()
    )
    engine, instance = waiting(place, saga)
    engine.run(instance).signal("go")
    engine.drain()
    assert status(engine, instance) == "dlq"
    paused, letter = engine.run(instance).why().reasons
    assert (paused.kind, letter.kind, letter.step) == ("paused", "dead_letter", "a")
    assert paused.since == place.clock.now()
    assert paused.words.startswith(f"it has been paused by 'system' since {place.clock.now()} (compensation_failed): ")


@pytest.mark.row("C-02")
def test_it_undoes_what_it_did(place: Place) -> None:
    """A run on its way back says so, and what the compensation waits for."""
    stage = Stage()
    saga = (
        Saga("s")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a", BROKEN), attempts=2, delay=60)
        .step("b", stage.does("b", BROKEN), attempts=1)
        .build()
    )
    engine, instance = waiting(place, saga)
    back, retried = engine.run(instance).why().reasons
    assert (back.kind, back.words) == ("compensation", "it undoes what it did: ValueError: broken")
    assert (retried.kind, retried.step) == ("retry", "a")
    assert retried.words.startswith("the compensation of 'a' failed and is called again at ")


def test_it_waits_for_a_handler_that_was_told_to_stop(live: Live) -> None:
    """A cancellation waits for the handler that runs."""
    gate = Gate()
    engine = live.engine().register(Saga("s").step("work", gate).build()).start_worker()
    started = engine.start("s")
    gate.entered()
    reply = engine.futures.run(started).cancel()
    eventually(lambda: len(started.why().reasons) == 2)
    back, stopping = started.why().reasons
    assert (back.kind, stopping.kind, stopping.step) == ("compensation", "running", "work")
    assert "'work', which was told to stop, runs on worker " in stopping.words
    gate.open()
    assert reply.result(LONG_SECONDS) == "cancelled"


def test_maintenance_holds_up_all_work(place: Place) -> None:
    """Maintenance is told besides what the run itself waits for, and nothing counts as moving."""
    engine, instance = waiting(place, ORDER)
    engine.admin.pause_processing()
    held, own = engine.run(instance).why().reasons
    assert (held.kind, own.step) == ("maintenance", "pay")
    assert held.remedy == "admin.resume_processing() ends it"
    engine.admin.resume_processing()


def test_a_message_waits_to_be_delivered(place: Place) -> None:
    """A child that has ended has told its parent, which has not heard it yet; that is on its way, so the parent moves."""
    engine = place.engine().register(Saga("child").wait_for("word", "go").build())
    engine.register(Saga("parent").call("sub", "child").build())
    instance = run(engine, "parent")
    (child,) = engine.runs.list(parent=instance).items
    engine.run(child).signal("go")
    found = engine.run(instance).why()
    assert [reason.kind for reason in found.reasons] == ["child", "message"]
    assert found.is_moving
    assert "the message 'EndChild' waits in the inbox" in found.words
    engine.drain()
    assert status(engine, instance) == "completed"


def test_it_has_ended(place: Place) -> None:
    """A run that has ended says how, when, and what is left to do."""
    stage = Stage()
    saga = (
        Saga("s")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a", BROKEN), attempts=1)
        .step("b", stage.does("b"), attempts=1)
        .build()
    )
    engine, instance = waiting(place, saga)
    found = only(engine, instance)
    assert (found.kind, found.words) == ("ended", f"it has ended: completed at {place.clock.now()}")
    stage.does("b", BROKEN)
    ended, letter = engine.run(run(engine, "s")).why().reasons
    assert (ended.kind, letter.kind, letter.step) == ("ended", "dead_letter", "a")
    [stuck] = engine.dead_letters.list()
    assert letter.remedy.startswith(f"dead_letters.retry_compensation({stuck.id}) tries it again")


@pytest.mark.parametrize("saga", [ORDER, Saga("s").wait("pause", HOUR).build()], ids=["effect", "timer"])
def test_a_run_that_nothing_can_wake_is_an_incident(place: Place, saga: SagaDefinition) -> None:
    """If what would wake it is gone, the run says so, and the list of such runs has it, and no other run."""
    place.must_fold = False
    engine, instance = waiting(place, saga)
    others = [run(engine, saga.name), *_of_every_kind(engine)]
    assert engine.runs.stuck().items == []
    Desk(place.store).run("delete from {}effects where instance = '" + str(instance) + "'")
    Desk(place.store).run("delete from {}timers where instance = '" + str(instance) + "'")
    found = engine.run(instance).why()
    assert (found.is_incident, found.is_moving, [each.kind for each in found.reasons]) == (True, False, ["incident"])
    assert [each.id for each in engine.runs.stuck().items] == [instance]
    assert engine.as_tenant("other").runs.stuck().items == []
    assert not any(engine.run(other).why().is_incident for other in others)


def test_the_engine_looks_for_such_runs_by_itself(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """Now and then, of all tenants; the log, listeners and health tell of them, and of no other run. Once it is gone, nobody does."""
    place.must_fold = False
    engine = place.engine(SOON).register(ORDER)
    heard: list[InstanceStuck] = []
    engine.listen(lambda each: heard.append(each) if isinstance(each, InstanceStuck) else None)
    instance = engine.as_tenant("acme").start("order").id
    run(engine, "order")
    _of_every_kind(engine)
    engine.advance(minutes=3)
    assert (heard, engine.health().incidents) == ([], [])
    Desk(place.store).run("delete from {}effects where instance = '" + str(instance) + "'")
    engine.advance(minutes=3)
    assert {(each.tenant, each.definition, each.instance) for each in heard} == {("acme", "order", instance)}
    assert any("instance_stuck" in record.message for record in caplog.records)
    (said,) = engine.health().incidents
    assert (said.startswith(f"'order' {instance} of tenant 'acme', since "), engine.health().is_healthy) == (True, True)
    engine.as_tenant("acme").run(instance).abort()
    engine.advance(minutes=3)
    assert engine.health().incidents == []


@pytest.mark.row("E-788")
def test_how_long_a_run_may_stand_still_is_a_setting(place: Place) -> None:
    """Fifteen minutes if nobody says otherwise: then it is counted, and named by health."""
    place.must_fold = False
    usual, other = (
        place.engine().register(ORDER),
        place.engine(Settings(stuck_after=timedelta(hours=2))).register(ORDER),
    )
    run(usual, "order")
    Desk(place.store).run("delete from {}effects")
    for minutes, found in ((14, (0, 0)), (3, (1, 0)), (110, (1, 1))):
        place.clock.move(timedelta(minutes=minutes))
        usual.drain()
        other.drain()
        assert (len(usual.health().incidents), len(other.health().incidents)) == found


@pytest.mark.row("E-789")
def test_operators_are_told_of_such_runs_once_a_day(place: Place, receiver: Receiver) -> None:
    """By the channels that the settings name, whichever processes find the run and however often; a channel that nobody has is a dead letter."""
    place.must_fold = False
    settings = Settings(stuck_after=MINUTE, alerts=("pager:role:operators", "in_app:ann", "nothing:ann"))

    def opened() -> ManualEngine:
        engine = place.engine(settings).register(ORDER)
        return engine.channel("pager", Webhook(receiver.url, secret=SECRET, allow=LOCAL))

    first, second = opened(), opened()
    instance = first.as_tenant("acme").start("order").id
    Desk(place.store).run("delete from {}effects where instance = '" + str(instance) + "'")

    def told() -> list[dict[str, object]]:
        return [json.loads(each.body)["data"] for each in receiver.requests]

    for engine in (first, second, opened()):
        for _ in range(3):
            engine.advance(minutes=3)
    (alert,) = told()
    assert (alert["instance"], alert["tenant"], alert["definition"]) == (str(instance), "acme", "order")
    assert alert["to"] == {"kind": "role", "name": "operators"}
    assert f"standfast why {instance}" in str(alert["body"])
    acme = first.as_tenant("acme")
    (shown,) = acme.acting("ann").notifications.mine()
    assert (shown.instance, shown.subject) == (instance, "a run of 'order' stands still")
    (letter,) = acme.dead_letters.list()
    assert "there is no channel 'nothing' here" in letter.error
    first.advance(days=1)
    second.advance(minutes=3)
    assert [each["instance"] for each in told()] == [str(instance)] * 2
    receiver.requests.clear()
    acme.run(instance).abort()
    first.advance(days=2)
    assert told() == []


def test_such_runs_are_found_a_few_at_a_time(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, a round looks at some of them, and the next one at those behind."""
    monkeypatch.setattr("standfast.engine.loops.stuck_instances._MOST", 2)
    place.must_fold = False
    engine = place.engine(SOON).register(ORDER)
    born = sorted(run(engine, "order") for _ in range(5))
    Desk(place.store).run("delete from {}effects where instance in ('" + f"{born[1]}', '{born[4]}')")
    engine.advance(minutes=2)
    counts = []
    for _ in range(3):
        engine.advance(minutes=2)
        counts.append(len(engine.health().incidents))
    assert counts[-1] == 2


def test_stuck_runs_come_in_pages(place: Place) -> None:
    """The newest first, and the next page behind the last one of the page before."""
    place.must_fold = False
    engine = place.engine().register(ORDER)
    born = sorted(run(engine, "order") for _ in range(3))
    Desk(place.store).run("delete from {}effects")
    first = engine.runs.stuck(limit=2)
    assert ([each.id for each in first], len(first)) == (born[:0:-1], 2)
    last = engine.runs.stuck(limit=2, cursor=first.next)
    assert ([each.id for each in last.items], last.next) == ([born[0]], None)


def _of_every_kind(engine: ManualEngine) -> list[InstanceId]:
    """Runs that wait for each of the things that can be waited for."""
    stage = Stage()
    sagas = [
        Saga("signal").wait_for("word", "go").build(),
        Saga("human").human("ask").build(),
        Saga("parent").call("sub", "signal").build(),
        Saga("dead", dlq=True).step("send", stage.does("send", BROKEN), attempts=1).build(),
        Saga("done").step("work", stage.does("work")).build(),
    ]
    for saga in sagas:
        engine.register(saga)
    return [run(engine, saga.name) for saga in sagas]


def test_other_tenants_are_told_nothing(place: Place) -> None:
    """A run of another tenant does not exist."""
    engine, instance = waiting(place, ORDER)
    with pytest.raises(NotFoundError):
        engine.as_tenant("other").run(instance).why()
