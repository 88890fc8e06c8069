"""The times of questions: due dates, reminders and the ladder of escalation, told by a clock that the test moves."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from app.sagas.acting import Stage, history, person, run, status, statuses
from standfast import Actor, DefinitionError, Escalation, ForbiddenError, RejectedError, Saga, SagaDefinition
from standfast.kernel.ids import InstanceId
from standfast.testing import CrashScenario, ManualEngine
from support.crashing import NewStore, tried
from support.engines import Place
from support.inside import store_of

HOUR = timedelta(hours=1)
CLERK, HEAD, BOB = person("ann", "clerk"), person("dee", "head"), person("bob")


def timed(**options: object) -> SagaDefinition:
    """A question to clerks with these options."""
    return Saga("s").human("ask", subject="Pay {n}?", role="clerk", **options).build()  # type: ignore[arg-type]


def begun(place: Place, **options: object) -> tuple[ManualEngine, InstanceId]:
    """A run that waits at such a question."""
    engine = place.engine().register(timed(**options))
    return engine, run(engine, "s", {"n": 5})


def timers(engine: ManualEngine, instance: InstanceId) -> list[str]:
    """The keys of the timers that are still to fire."""
    return sorted(each.key for each in store_of(engine).reader("default").work(instance)[1])


def told(engine: ManualEngine, of: object) -> list[str]:
    """What somebody was told, oldest first."""
    return [each.subject for each in reversed(engine.acting(of).notifications.mine())]  # type: ignore[arg-type]


@pytest.mark.row("E-685", "EO-05")
def test_a_due_date_is_shown(place: Place) -> None:
    """A question says when an answer is due, counted from when it was asked, in lists and in its run; nothing happens then."""
    engine, instance = begun(place, due=4 * HOUR)
    (task,) = engine.tasks.list()
    assert task.due_at == task.asked_at + 4 * HOUR
    assert engine.run(instance).tasks()[0].due_at == task.due_at
    engine.advance(hours=5)
    assert statuses(engine, instance) == {"ask": "waiting_decision"}


@pytest.mark.row("E-685", "EO-05")
def test_people_are_reminded_at_each_time(place: Place) -> None:
    """Each time of the list is one reminder, told in the history and to those who are asked, and none comes after the last."""
    engine, instance = begun(place, remind=[8 * HOUR, 24 * HOUR])
    engine.advance(hours=7)
    assert told(engine, CLERK) == []
    engine.advance(hours=2)
    assert told(engine, CLERK) == ["Reminder: Pay 5?"]
    engine.advance(hours=100)
    assert told(engine, CLERK) == ["Reminder: Pay 5?"] * 2
    assert [each.data["count"] for each in history(engine, instance, "task_reminded")] == [1, 2]
    assert timers(engine, instance) == []


def test_people_are_reminded_again_and_again(place: Place) -> None:
    """With `remind_every` a reminder comes each time that so much time has gone by, until somebody answers."""
    engine, instance = begun(place, remind_every=timedelta(days=1))
    engine.advance(days=3, hours=1)
    assert [each.data["count"] for each in history(engine, instance, "task_reminded")] == [1, 2, 3]
    engine.acting(CLERK).tasks.approve(f"{instance}:1")
    engine.advance(days=3)
    assert len(history(engine, instance, "task_reminded")) == 3


@pytest.mark.parametrize("options", [{"remind_every": HOUR}, {"remind": [n * HOUR for n in range(1, 9)]}])
def test_what_was_missed_is_made_up_for_once(place: Place, options: dict[str, object]) -> None:
    """After a standstill people are reminded once, and the times behind it count from the question as before."""
    engine, instance = begun(place, **options)
    place.clock.move(5 * HOUR + HOUR / 2)
    engine.drain()
    assert [each.data["count"] for each in history(engine, instance, "task_reminded")] == [5]
    engine.advance(HOUR / 2)
    assert [each.data["count"] for each in history(engine, instance, "task_reminded")] == [5, 6]


@pytest.mark.row("E-685", "E-890")
def test_escalation_asks_somebody_besides(place: Place) -> None:
    """Whoever the question has escalated to may answer, was told, and could not before; those who were asked still can."""
    engine, instance = begun(place, escalate=Escalation(24 * HOUR, to="role:head"))
    with pytest.raises(ForbiddenError):
        engine.acting(HEAD).tasks.approve(f"{instance}:1")
    engine.advance(hours=25)
    assert (told(engine, HEAD), told(engine, CLERK)) == (["Escalated: Pay 5?"], [])
    (event,) = history(engine, instance, "task_escalated")
    assert event.data["people"] == [{"kind": "role", "name": "head", "via": "escalation 1"}]
    with pytest.raises(ForbiddenError):
        engine.acting(BOB).tasks.approve(f"{instance}:1")
    engine.acting(HEAD).tasks.approve(f"{instance}:1")
    assert status(engine, instance) == "completed"


@pytest.mark.row("EO-05")
def test_a_ladder_is_gone_up_rung_by_rung(place: Place) -> None:
    """A user, then a role, then an outcome: each at its time, and the last one ends the question as if the engine had answered."""
    ladder = [
        Escalation(HOUR, to="user:bob"),
        Escalation(2 * HOUR, to="role:head"),
        Escalation(3 * HOUR, outcome="rejected"),
    ]
    engine, instance = begun(place, escalate=ladder, remind=1.5 * HOUR)
    engine.advance(minutes=70)
    assert (told(engine, BOB), told(engine, HEAD)) == (["Escalated: Pay 5?"], [])
    engine.advance(hours=1)
    assert told(engine, BOB) == [
        "Escalated: Pay 5?",
        "Reminder: Pay 5?",
    ]  # Whoever was added is reminded with the others.
    assert told(engine, HEAD) == ["Escalated: Pay 5?"]
    engine.advance(hours=1)
    assert status(engine, instance) == "aborted"
    assert [each.data["level"] for each in history(engine, instance, "task_escalated")] == [1, 2, 3]
    assert history(engine, instance, "task_escalated")[-1].data["outcome"] == "rejected"
    (task,) = engine.run(instance).tasks()
    assert task.decision == "rejected"
    with pytest.raises(RejectedError):
        engine.acting(CLERK).tasks.approve(f"{instance}:1")


def test_escalation_to_an_outcome_takes_its_way(place: Place) -> None:
    """The steps behind find an answer that says that nobody has answered."""
    stage = Stage()
    saga = Saga("s").human("ask", escalate=Escalation(HOUR, outcome="confirmed")).step("pay", stage.does("pay")).build()
    engine = place.engine().register(saga)
    run(engine, "s")
    engine.advance(hours=2)
    answer = msgspec.convert(stage.contexts("pay")[0].input["ask"], dict[str, object])
    assert (answer["status"], answer["decided_by"]) == ("confirmed", "system")


@pytest.mark.row("G-39")
@pytest.mark.row("R-009")
def test_escalation_can_give_a_fresh_deadline_once_and_then_it_fails(place: Place) -> None:
    """Instead of failing at its deadline a question escalates, and fails when those who are asked then let their time go by too."""
    engine, instance = begun(place, timeout=2 * HOUR, escalate=Escalation(HOUR, to="role:head", timeout=10 * HOUR))
    engine.advance(hours=3)
    assert statuses(engine, instance) == {"ask": "waiting_decision"}
    engine.advance(hours=9)
    assert status(engine, instance) == "failed"
    (task,) = engine.run(instance).tasks()
    assert (task.status, task.decision) == ("expired", "timeout")
    with pytest.raises(RejectedError):
        engine.acting(HEAD).tasks.approve(f"{instance}:1")


@pytest.mark.row("G-39")
def test_a_question_escalates_when_somebody_wants_it_to(place: Place) -> None:
    """By one who is asked or who may, rung by rung: the next one keeps its time, and the last one ends the question."""
    ladder = [Escalation(HOUR, to="bob"), Escalation(3 * HOUR, outcome="rejected")]
    engine, instance = begun(place, escalate=ladder)
    with pytest.raises(ForbiddenError, match="task:escalate"):
        engine.acting(BOB).tasks.escalate(f"{instance}:1")
    engine.acting(CLERK).tasks.escalate(f"{instance}:1", "urgent")
    engine.drain()
    assert (told(engine, BOB), timers(engine, instance)) == (["Escalated: Pay 5?"], ["task:1:escalate"])
    engine.advance(hours=2)
    assert statuses(engine, instance) == {"ask": "waiting_decision"}
    boss = Actor(id="boss", capabilities=frozenset({"task:escalate"}))
    engine.acting(boss).tasks.escalate(f"{instance}:1")
    engine.drain()
    assert (status(engine, instance), timers(engine, instance)) == ("aborted", [])
    assert [each.actor for each in history(engine, instance, "task_escalated")] == ["ann", "boss"]
    with pytest.raises(RejectedError):
        engine.acting(boss).tasks.escalate(f"{instance}:1")


@pytest.mark.parametrize("ending", ["answer", "timeout", "cancel"])
def test_timers_of_a_question_go_with_it(place: Place, ending: str) -> None:
    """However a question ends, nobody is reminded of it any more, and no timer is left."""
    ladder = [Escalation(HOUR, to="bob", timeout=4 * HOUR), Escalation(3 * HOUR, to="eve", timeout=1 * HOUR)]
    engine, instance = begun(place, timeout=2 * HOUR, remind_every=HOUR, escalate=ladder)
    assert timers(engine, instance) == ["step:1", "task:1:escalate", "task:1:remind"]
    if ending == "answer":
        engine.acting(CLERK).tasks.approve(f"{instance}:1")
    elif ending == "timeout":
        engine.advance(hours=4)
    else:
        engine.futures.run(instance).cancel()
    engine.drain()
    assert timers(engine, instance) == []
    before = history(engine, instance, "task_reminded", "task_escalated")
    engine.advance(hours=9)
    assert history(engine, instance, "task_reminded", "task_escalated") == before


@pytest.mark.row("G-39")
def test_a_rung_that_is_gone_up_by_hand_does_not_come_again_by_itself(place: Place) -> None:
    """Escalating by hand takes the timer of that rung away: after the last rung none is left, and nothing fires."""
    engine, instance = begun(place, escalate=Escalation(HOUR, to="user:bob"))
    assert timers(engine, instance) == ["task:1:escalate"]
    engine.tasks.escalate(f"{instance}:1")
    assert timers(engine, instance) == []
    engine.advance(2 * HOUR)
    assert (status(engine, instance), engine.dead_letters.list()) == ("running", [])
    assert len(history(engine, instance, "task_escalated")) == 1


def test_people_are_told_when_they_are_asked_if_they_want_to_be(place: Place) -> None:
    """With `notify` those who are asked are told so by each of the channels; without it they look for themselves."""
    sent: list[str] = []
    engine = place.engine()
    engine.channel("sms", lambda notice: sent.append(f"{notice.kind} {notice.to}: {notice.subject}"))
    engine.register(timed(notify=["in_app", "sms"]))
    run(engine, "s", {"n": 7})
    assert sent == ["role clerk: Pay 7?"]
    assert told(engine, CLERK) == ["Pay 7?"]


def test_a_question_with_times_survives_a_crash_anywhere(new_store: NewStore) -> None:
    """Wherever the process dies, each reminder and each rung is told once in the history and once to people."""

    def prepare(engine: ManualEngine) -> None:
        ladder = [Escalation(3 * HOUR, to="role:head"), Escalation(5 * HOUR, outcome="rejected")]
        engine.register(timed(remind=[HOUR, 2 * HOUR], escalate=ladder, notify="in_app"))

    def play(engine: ManualEngine) -> None:
        engine.start("s", {"n": 1}, key="the one", idempotency_key="start")
        engine.drain()
        for _ in range(6):
            engine.advance(HOUR)

    def outcome(engine: ManualEngine) -> object:
        (found,) = engine.runs.list().items
        types = [each.event_type for each in history(engine, found.id, "task_reminded", "task_escalated")]
        return found.status, types, told(engine, CLERK), told(engine, HEAD)

    report = tried(CrashScenario(prepare=prepare, play=play, outcome=outcome), new_store, on_server=3)
    whole = (
        "aborted",
        ["task_reminded", "task_reminded", "task_escalated", "task_escalated"],
        ["Pay 1?", "Reminder: Pay 1?", "Reminder: Pay 1?"],
        ["Escalated: Pay 1?"],
    )
    assert report.outcome == (whole, [], 0)


# -- several people


ADA, BEN, CEO = person("ada"), person("ben"), person("ceo")


def several(place: Place, **options: object) -> tuple[ManualEngine, InstanceId, str]:
    """A run that waits for Ada and Ben, and its question."""
    asked = {"ask": ["user:ada", "user:ben"], **options}
    engine = place.engine().register(Saga("s").human("ask", subject="Pay {n}?", **asked).build())  # type: ignore[arg-type]
    instance = run(engine, "s", {"n": 5})
    return engine, instance, f"{instance}:1"


@pytest.mark.row("E-685")
def test_whoever_a_question_escalates_to_has_it_and_decides_for_those_who_are_silent(place: Place) -> None:
    """All have to agree, and one did: the one it escalated to finds it in the inbox, and settles it alone."""
    engine, instance, task = several(place, escalate=Escalation(HOUR, to="ceo"))
    engine.acting(ADA).tasks.approve(task)
    assert engine.acting(CEO).tasks.list(mine=True) == []
    engine.advance(hours=1)
    assert [each.step_id for each in engine.acting(CEO).tasks.list(mine=True)] == [task]
    engine.acting(CEO).tasks.approve(task)
    assert status(engine, instance) == "completed"
    details = engine.tasks.get(task)
    assert [(each.decided_by, each.is_applied) for each in details.decisions] == [("ada", True), ("ceo", True)]
    assert not any(each.is_open for each in details.people)
    assert engine.run(instance).verify().is_sound


def test_nobody_waits_for_whom_a_question_escalated_to(place: Place) -> None:
    """Those who were asked can still agree among themselves, however the other one abstains or is silent."""
    engine, instance, task = several(place, abstain=True, escalate=Escalation(HOUR, to="ceo"))
    engine.advance(hours=1)
    engine.acting(CEO).tasks.abstain(task)
    assert status(engine, instance) == "running"
    engine.acting(ADA).tasks.approve(task)
    engine.acting(BEN).tasks.approve(task)
    assert status(engine, instance) == "completed"


def test_a_rejection_of_the_one_role_that_is_asked_stands_after_it_escalated(place: Place) -> None:
    """The one it escalated to is asked besides, and not in a vote."""
    engine, instance = begun(place, escalate=Escalation(HOUR, to="role:head"))
    engine.advance(hours=1)
    engine.acting(CLERK).tasks.reject(f"{instance}:1")
    assert status(engine, instance) == "aborted"


def test_an_abstention_of_the_one_it_escalated_to_leaves_it_to_the_others(place: Place) -> None:
    """The role that was asked first still decides, and what it says is the answer."""
    engine, instance = begun(place, abstain=True, escalate=Escalation(HOUR, to="ceo"))
    engine.advance(hours=1)
    engine.acting(CEO).tasks.abstain(f"{instance}:1")
    assert status(engine, instance) == "running"
    engine.acting(CLERK).tasks.approve(f"{instance}:1")
    assert status(engine, instance) == "completed"
    assert engine.run(instance).verify().is_sound


def test_a_question_to_anybody_stays_one_when_it_escalates(place: Place) -> None:
    """Whoever could answer before still can, and whoever was added twice over finds it once."""
    ladder = [Escalation(HOUR, to="ceo"), Escalation(2 * HOUR, to="ceo")]
    engine = place.engine().register(Saga("s").human("ask", escalate=ladder).build())
    instance = run(engine, "s")
    engine.advance(hours=3)
    assert [each.step_id for each in engine.acting(CEO).tasks.list(mine=True)] == [f"{instance}:1"]
    assert [each.name for each in engine.tasks.get(f"{instance}:1").people] == ["ceo"]
    engine.acting(BOB).tasks.approve(f"{instance}:1")
    assert status(engine, instance) == "completed"


def test_a_stage_is_settled_by_whom_it_escalated_to_and_the_next_one_is_asked(place: Place) -> None:
    """Going up the ladder goes past the people of a stage, and not past the stages behind."""
    engine = place.engine().register(Saga("s").human("ask", chain="pay", escalate=Escalation(HOUR, to="ceo")).build())
    engine.chains.publish("pay", [{"asks": ["ada", "ben"], "agree": "all"}, {"asks": ["bob"]}])
    instance = run(engine, "s")
    engine.advance(hours=1)
    engine.acting(CEO).tasks.approve(f"{instance}:1")
    engine.drain()
    assert [each.name for each in engine.tasks.get(f"{instance}:1").people if each.is_open] == ["bob"]
    engine.acting(BOB).tasks.approve(f"{instance}:1")
    assert status(engine, instance) == "completed"


def test_only_those_are_reminded_who_have_not_decided(place: Place) -> None:
    """Whoever has decided has done what was asked."""
    engine, _, task = several(place, remind=HOUR)
    engine.acting(ADA).tasks.approve(task)
    engine.advance(hours=1)
    assert (told(engine, ADA), told(engine, BEN)) == ([], ["Reminder: Pay 5?"])


@pytest.mark.parametrize("ending", ["withdraw", "skip", "override", "vote"])
def test_timers_go_with_a_question_to_several(place: Place, ending: str) -> None:
    """However it ends, no timer is left, nobody has it in the inbox, and the rows are those of the history."""
    saga = Saga("s").human(
        "ask",
        ask=["user:ada", "user:ben"],
        due=HOUR,
        remind_every=HOUR,
        timeout=9 * HOUR,
        escalate=[Escalation(HOUR, to="ceo"), Escalation(5 * HOUR, outcome="rejected")],
        on_withdrawn=lambda way: way.wait_for("away", "never"),
    )
    engine = place.engine().register(saga.wait_for("behind", "never").build())
    instance = run(engine, "s")
    task = f"{instance}:1"
    engine.advance(hours=1)
    match ending:
        case "withdraw":
            engine.tasks.withdraw(task, "not needed")
        case "skip":
            engine.run(instance).skip(task, reason="not needed")
        case "override":
            engine.run(instance).resume("urgent", override=True)
        case _:
            engine.acting(CEO).tasks.approve(task)
    engine.drain()
    assert status(engine, instance) == "running"
    assert timers(engine, instance) == []
    assert [engine.acting(each).tasks.list(mine=True) for each in (ADA, BEN, CEO)] == [[], [], []]
    expected = {"withdraw": "withdrawn", "skip": "overridden", "override": "overridden", "vote": "decided"}
    assert engine.tasks.get(task).status == expected[ending]
    assert engine.run(instance).verify().is_sound


def test_what_is_due_is_put_off_with_the_clock(place: Place) -> None:
    """After a pause in which time stood still an answer is due as much later as the pause was long, in lists too."""
    engine, instance, task = several(place, due=4 * HOUR)
    due = engine.tasks.get(task).due_at
    assert due is not None
    engine.run(instance).pause(clock="stand_still")
    engine.advance(hours=3)
    engine.run(instance).resume()
    assert engine.tasks.get(task).due_at == due + 3 * HOUR
    assert engine.run(instance).verify().is_sound
    engine.advance(hours=2)
    assert engine.tasks.list(is_overdue=True) == []
    engine.advance(hours=3)
    assert [each.step_id for each in engine.tasks.list(is_overdue=True)] == [task]


@pytest.mark.parametrize("options", [{"notify": "in_app"}, {"remind": HOUR}, {"remind_every": HOUR}])
def test_whoever_tells_people_asks_somebody_in_particular(options: dict[str, object]) -> None:
    """A question to anybody cannot tell or remind those who are asked: nobody would ever hear of it."""
    with pytest.raises(DefinitionError, match="names no approvers"):
        Saga("s").human("ask", capability="pay", **options).build()  # type: ignore[arg-type]


def test_whoever_it_escalated_to_is_in_the_list_of_the_role(place: Place) -> None:
    """The list of a role's open questions holds those that have escalated to it, and those that ask it still."""
    engine, _ = begun(place, escalate=Escalation(HOUR, to="role:head"))
    assert [len(engine.tasks.list(role=each)) for each in ("clerk", "head")] == [1, 0]
    engine.advance(hours=2)
    assert [len(engine.tasks.list(role=each)) for each in ("clerk", "head")] == [1, 1]
    assert engine.acting(HEAD).tasks.counts().by_role == {"head": 1}


@pytest.mark.row("E-685")
def test_a_due_date_moves_with_a_pause_under_which_clocks_stand_still(place: Place) -> None:
    """The time that was left is left after the pause, in lists and in what is overdue; under `run_on` the date stays."""
    for clock, late in (("stand_still", timedelta(hours=5)), ("run_on", timedelta(0))):
        engine = place.engine().register(timed(due=2 * HOUR))
        instance = run(engine, "s", {"n": 5})
        (before,) = engine.run(instance).tasks()
        engine.advance(hours=1)
        engine.run(instance).pause(clock=clock)  # type: ignore[arg-type]
        engine.advance(hours=5)
        engine.run(instance).resume()
        engine.drain()
        (after,) = engine.run(instance).tasks()
        assert before.due_at is not None
        assert after.due_at == before.due_at + late
        assert bool(engine.tasks.list(is_overdue=True)) is (clock == "run_on")
        engine.acting(CLERK).tasks.approve(after)
        engine.drain()


@pytest.mark.row("E-685")
def test_a_ladder_gets_its_time_back_from_a_pause_of_its_definition(place: Place) -> None:
    """Each rung and each reminder comes as much later as clocks stood still, so that whoever is asked besides has as long as was meant."""
    ladder = [Escalation(2 * HOUR, to="role:head"), Escalation(4 * HOUR, outcome="rejected")]
    engine, instance = begun(place, remind_every=HOUR, due=3 * HOUR, escalate=ladder)
    (asked,) = engine.run(instance).tasks()
    engine.pauses.pause("s", clock="stand_still")
    engine.advance(hours=10)
    engine.pauses.resume("s")
    happened = []
    for hour in range(11, 15):
        engine.advance(HOUR)
        happened.append((hour, len(history(engine, instance, "task_reminded")), status(engine, instance)))
        if hour == 12:
            (task,) = engine.acting(HEAD).tasks.list(role="head")
            assert task.due_at == asked.asked_at + 13 * HOUR
    assert happened[:3] == [(11, 1, "running"), (12, 2, "running"), (13, 3, "running")]
    assert happened[3] in {
        (14, 3, "aborted"),
        (14, 4, "aborted"),
    }  # A reminder and the last rung are due at one instant.
    assert engine.run(instance).verify().is_sound


def test_a_rung_that_is_gone_up_early_leaves_the_next_one_the_time_that_a_pause_gave_back(place: Place) -> None:
    """Who goes up a rung before it is time, after clocks stood still, does not bring the rung behind it nearer."""
    ladder = [Escalation(2 * HOUR, to="role:head"), Escalation(4 * HOUR, outcome="rejected")]
    engine, instance = begun(place, escalate=ladder)
    engine.pauses.pause("s", clock="stand_still")
    engine.advance(hours=10)
    engine.pauses.resume("s")
    engine.advance(HOUR)
    engine.tasks.escalate(f"{instance}:1", reason="it is urgent")
    engine.advance(2 * HOUR)
    assert status(engine, instance) == "running"
    engine.advance(HOUR)
    assert status(engine, instance) == "aborted"
