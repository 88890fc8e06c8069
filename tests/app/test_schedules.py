"""Schedules: workflows that are started at given times, once for each, whatever dies and whoever helps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from app.processes.acting import ends, person, process
from standfast import (
    Actor,
    ForbiddenError,
    NotFoundError,
    PayloadError,
    RejectedError,
    RequestContext,
    ReusedIdError,
    Saga,
    load_processes,
)
from standfast.calls.context import CallContext
from standfast.features.schedules.model import messages as w
from standfast.features.schedules.model.rows import standing_of
from standfast.kernel.row_kinds.schedules import ScheduleChanged
from standfast.testing import ManualEngine
from standfast.testing.manual import START
from support.engines import Place

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOTE = Saga("note").step("write", lambda: {"written": True}).build()
SLOW = Saga("slow").wait_for("wait", signal="done").build()


def opened(place: Place) -> ManualEngine:
    """An engine with a workflow that ends at once and one that waits."""
    return place.engine().register(NOTE).register(SLOW)


def fired(engine: ManualEngine, schedule: str = "s") -> list[tuple[str, str, str]]:
    """What became of the times of a schedule, the first one first."""
    found = reversed(engine.schedules.fires(schedule))
    return [(each.at.strftime("%d %H:%M"), each.why, each.status) for each in found]


def proved(engine: ManualEngine, schedule: str = "s") -> None:
    """What is stored of a schedule is what its events tell."""
    assert engine.instances.verify(engine.schedules.get(schedule).instance).differences == []


@pytest.mark.row("G-18", "EH-14")
def test_a_cron_starts_a_run_at_each_of_its_times(place: Place) -> None:
    """Each time of the cron, on the clock of its zone, starts one run with the input and what is computed from the time; clocks that are set included."""
    engine = opened(place)
    engine.advance(datetime(2030, 3, 30, 12, tzinfo=UTC) - START)
    put = engine.schedules.put(
        "s",
        "note",
        {"kind": "full"},
        cron="30 2 * * *",
        time_zone="Europe/Berlin",
        computed={"day": "scheduled_on", "name": "'{schedule}-{number}'"},
    )
    assert put.next_at == datetime(2030, 3, 31, 1, 0, tzinfo=UTC)
    engine.advance(2 * DAY)
    assert fired(engine) == [("31 01:00", "time", "completed"), ("01 00:30", "time", "completed")]
    runs = engine.runs.list(parent=put.instance).items
    assert [engine.runs.get(each.id).input for each in runs] == [
        {"kind": "full", "day": "2030-04-01", "name": "s-2"},
        {"kind": "full", "day": "2030-03-31", "name": "s-1"},
    ]
    assert [each.run for each in engine.schedules.fires("s")] == [each.id for each in runs]
    proved(engine)


@pytest.mark.row("G-18", "E-765")
def test_many_processes_start_each_time_once(place: Place) -> None:
    """However many processes there are, a time is one run; who takes it does not matter."""
    engines = [opened(place) for _ in range(3)]
    engines[0].schedules.put("s", "note", every=HOUR)
    for hour in range(4):
        place.clock.move(HOUR)
        for engine in engines[hour % 3 :] + engines[: hour % 3]:
            engine.drain()
    assert len(engines[1].runs.list(definition="note").items) == 4
    assert {each.status for each in engines[2].schedules.fires("s")} == {"completed"}


@pytest.mark.row("G-18")
def test_a_start_can_be_put_off_to_an_instant(place: Place) -> None:
    """What is wanted once is started once at its instant, and then the schedule is over."""
    engine = opened(place)
    engine.schedules.put("s", "note", at=START + HOUR)
    engine.advance(HOUR - timedelta(seconds=1))
    assert fired(engine) == []
    engine.advance(DAY)
    assert fired(engine) == [("01 13:00", "time", "completed")]
    found = engine.schedules.get("s")
    assert (found.status, found.next_at) == ("over", None)


def test_what_overlaps_is_skipped_put_off_started_beside_or_started_instead(place: Place) -> None:
    """Of times that meet a run which has not ended, the policy decides: nothing, one afterwards, one beside it, or one in its place."""
    engine = opened(place)
    for overlap in ("skip", "buffer_one", "allow_all", "cancel_running"):
        engine.schedules.put(overlap, "slow", every=HOUR, overlap=overlap, end_at=START + 3 * HOUR)
    engine.advance(3 * HOUR + timedelta(minutes=1))
    statuses = {each.id: [fire[2] for fire in fired(engine, each.id)] for each in engine.schedules.list()}
    assert statuses == {
        "skip": ["started", "skipped", "skipped"],
        "buffer_one": ["started", "buffered", "skipped"],
        "allow_all": ["started", "started", "started"],
        "cancel_running": ["cancelled", "cancelled", "started"],
    }
    for run in engine.runs.list(is_active=True).items:
        engine.run(run.id).signal("done")
    engine.drain()
    assert [fire[2] for fire in fired(engine, "buffer_one")] == ["completed", "started", "skipped"]
    assert [fire[2] for fire in fired(engine, "allow_all")] == ["completed"] * 3
    for each in statuses:
        proved(engine, each)


def test_a_run_that_is_stopped_for_another_makes_room_when_it_has_ended(place: Place) -> None:
    """The run that is to begin in the place of another waits until what that did is undone, and only the last one that waits begins."""
    engine = opened(place)
    engine.schedules.put("s", "slow", every=HOUR, overlap="cancel_running")
    engine.advance(HOUR)
    first = engine.schedules.fires("s")[0].run
    assert first is not None
    engine.schedules.trigger("s")
    engine.schedules.trigger("s")
    assert [each.status for each in engine.schedules.fires("s")] == ["buffered", "skipped", "started"]
    engine.drain()
    assert [each.status for each in engine.schedules.fires("s")] == ["started", "skipped", "cancelled"]
    assert engine.runs.get(first).status == "cancelled"


def test_a_run_that_has_not_started_yet_is_stopped_for_another_when_it_has(place: Place) -> None:
    """A fire that replaces one whose start is on its way waits for that start, cancels its run and then begins."""
    engine = opened(place)
    engine.schedules.put("s", "slow", every=DAY, overlap="cancel_running")
    engine.schedules.trigger("s", command_id="1")
    engine.schedules.trigger("s", command_id="2")
    assert [each.status for each in engine.schedules.fires("s")] == ["buffered", "starting"]
    engine.drain()
    assert [each.status for each in engine.schedules.fires("s")] == ["started", "cancelled"]
    assert sorted(each.status for each in engine.runs.list().items) == ["cancelled", "running"]
    proved(engine)


def test_a_run_that_has_not_started_yet_is_left_alone_by_one_that_waits(place: Place) -> None:
    """A fire that is put off until another has ended stops nothing, also if the start of that one is on its way."""
    engine = opened(place)
    engine.schedules.put("s", "slow", every=DAY, overlap="buffer_one")
    engine.schedules.trigger("s", command_id="1")
    engine.schedules.trigger("s", command_id="2")
    assert [each.status for each in engine.schedules.fires("s")] == ["buffered", "starting"]
    engine.drain()
    assert [each.status for each in engine.schedules.fires("s")] == ["buffered", "started"]
    assert [each.status for each in engine.runs.list().items] == ["running"]
    proved(engine)


def test_a_schedule_that_is_put_while_it_is_paused_stays_paused(place: Place) -> None:
    """Another plan for a paused schedule starts nothing until the schedule is resumed, and then counts."""
    engine = opened(place)
    engine.schedules.put("s", "note", every=HOUR)
    engine.schedules.pause("s")
    put = engine.schedules.put("s", "note", every=2 * HOUR)
    assert (put.status, put.next_at, put.every_seconds) == ("paused", None, 7200)
    engine.advance(5 * HOUR)
    assert fired(engine) == []
    assert engine.schedules.resume("s").next_at == START + 6 * HOUR
    engine.advance(HOUR)
    assert fired(engine) == [("01 18:00", "time", "completed")]
    proved(engine)


@pytest.mark.row("G-18")
def test_a_pause_is_not_made_up_for_and_an_absence_is(place: Place) -> None:
    """Times that pass while it is paused are gone; of those that nobody was there for, the last one is made up for, and the others are told."""
    engine = opened(place)
    engine.schedules.put("s", "note", every=HOUR)
    paused = engine.schedules.pause("s", "the printer is broken")
    assert (paused.status, paused.pause_reason, paused.next_at) == ("paused", "the printer is broken", None)
    engine.advance(3 * HOUR + timedelta(minutes=30))
    assert engine.schedules.resume("s").next_at == START + 4 * HOUR
    assert fired(engine) == []
    place.clock.move(5 * HOUR)  # Nobody works.
    engine.drain()
    assert fired(engine) == [("01 16:00", "time", "missed"), ("01 20:00", "catch_up", "completed")]
    assert engine.schedules.fires("s")[1].until == START + 7 * HOUR


@pytest.mark.parametrize("ends", ["while it is paused", "after it"])
def test_a_paused_schedule_does_not_start_what_waited_before(place: Place, ends: str) -> None:
    """A time that waits for the end of a run starts nothing by itself while the schedule is paused; it begins once that is over."""
    engine = opened(place)
    engine.schedules.put("s", "slow", every=HOUR, overlap="buffer_one")
    engine.advance(2 * HOUR)
    engine.schedules.pause("s", "the source is being moved")
    [run] = engine.runs.list().items
    for when in ("while it is paused", "after it"):
        if when == ends:
            engine.run(run.id).signal("done")
            engine.drain()
        if when == "while it is paused":
            assert fired(engine)[-1] == ("01 14:00", "time", "buffered")
            assert len(engine.runs.list().items) == 1
            engine.schedules.resume("s")
            engine.drain()
    assert fired(engine)[-2:] == [("01 13:00", "time", "completed"), ("01 14:00", "time", "started")]
    proved(engine)


def test_a_paused_schedule_starts_what_was_triggered(place: Place) -> None:
    """What somebody wants now waits for the end of a run, and not for that of the pause."""
    engine = opened(place)
    engine.schedules.put("s", "slow", every=HOUR, overlap="buffer_one")
    engine.advance(HOUR)
    engine.schedules.pause("s")
    engine.schedules.trigger("s")
    [run] = engine.runs.list().items
    engine.run(run.id).signal("done")
    engine.drain()
    assert [each[1:] for each in fired(engine)] == [("time", "completed"), ("manual", "started")]


def test_what_waits_when_a_schedule_is_deleted_is_told_as_skipped(place: Place) -> None:
    """The times of a schedule that is put again under the same id do not list one that waits and never begins."""
    engine = opened(place)
    engine.schedules.put("s", "slow", every=HOUR, overlap="buffer_one")
    engine.advance(2 * HOUR)
    engine.schedules.delete("s")
    engine.schedules.put("s", "slow", every=HOUR)
    assert fired(engine)[-1] == ("01 14:00", "time", "skipped")
    proved(engine)


def test_a_trigger_starts_it_now_and_once_for_its_id(place: Place) -> None:
    """What somebody asks for begins at once, paused or not, and a call that is repeated under one id begins nothing more."""
    engine = opened(place)
    engine.schedules.put("s", "note", every=DAY)
    engine.schedules.pause("s")
    first = engine.schedules.trigger("s", command_id="t1")
    again = engine.schedules.trigger("s", command_id="t1")
    assert (first.why, first.status, first.run) == ("manual", "starting", again.run)
    engine.drain()
    assert len(engine.runs.list().items) == 1
    second = engine.schedules.trigger("s", command_id="t2")
    assert (second.number, engine.schedules.trigger("s", command_id="t1").run) == (2, first.run)
    with pytest.raises(ReusedIdError):
        engine.schedules.trigger("s", overlap="allow_all", command_id="t1")


@pytest.mark.row("G-18")
def test_a_period_is_made_up_for_one_after_the_other_or_at_once(place: Place) -> None:
    """A backfill starts a run for every time of its period: each when the one before has ended, or all of them together; it can be stopped."""
    engine = opened(place)
    engine.schedules.put("s", "slow", cron="0 0 * * *")
    month = engine.schedules.backfill("s", START - 30 * DAY, START)
    assert month.backfills[0].next_at == START.replace(hour=0) - 28 * DAY
    for _ in range(2):
        engine.drain()
        (run,) = engine.runs.list(is_active=True).items
        engine.run(run.id).signal("done")
    engine.drain()
    assert [fire[2] for fire in fired(engine)] == ["completed", "completed", "started"]
    assert engine.schedules.stop_backfills("s").backfills == []
    engine.schedules.put("h", "note", cron="0 * * * *")
    for _ in range(2):
        engine.schedules.backfill("h", START - 5 * HOUR, START, at_once=True, command_id="b")
    engine.drain()
    assert len(engine.runs.list(definition="note", status="completed").items) == 6
    assert engine.schedules.get("h").backfills == []
    proved(engine, "h")


def test_a_period_is_made_up_for_as_long_as_whoever_asked_may_have_it(place: Place) -> None:
    """Who is deactivated, or loses the right to change schedules, has nothing more started for a period; the times of the schedule go on."""
    engine = opened(place)
    keeper = frozenset({"schedule:manage", "schedule:read"})
    for name in ("ann", "bea"):
        engine.directory.put(name)
    engine.acting(Actor(id="ann", capabilities=keeper)).schedules.put(
        "s", "slow", cron="0 3 * * *", overlap="allow_all"
    )
    engine.acting(Actor(id="bea", capabilities=keeper)).schedules.backfill("s", START - 3 * DAY, START)
    engine.drain()
    engine.directory.deactivate("bea")
    [run] = engine.runs.list().items
    engine.run(run.id).signal("done")
    engine.advance(DAY)
    statuses = [(each[1], each[2]) for each in fired(engine)]
    assert statuses == [
        ("backfill", "completed"),
        ("backfill", "refused"),
        ("backfill", "refused"),
        ("time", "started"),
    ]
    assert "'bea' is deactivated" in engine.schedules.fires("s")[1].detail
    proved(engine)


def test_the_row_of_a_schedule_has_no_rights_of_callers() -> None:
    """Rights are a set, which each process writes in an order of its own, so that the row would differ from what another process expects."""
    asker = w.Asker(actor=Actor(id="bea", capabilities=frozenset({"schedule:manage", "schedule:read"})))
    fire = w.Fire(number=1, at=START, status="started", told_at=START, asker=asker)
    period = w.Backfill(number=2, start=START, end=START, asker=asker)
    state = w.ScheduleState(id="s", owner=asker.actor, running={1: fire}, buffered=fire, backfills={2: period})
    row = standing_of(state)
    assert isinstance(row, ScheduleChanged)
    assert b"schedule:manage" not in cast("bytes", row.standing)
    assert b"bea" in cast("bytes", row.standing)


def test_a_period_that_is_made_up_for_holds_up_no_time(place: Place) -> None:
    """Runs of a backfill and runs of the ordinary times do not overlap in the sense of the policy: neither waits for the other, is skipped for it or cancels it."""
    for overlap in ("skip", "buffer_one", "cancel_running"):
        engine = opened(place)
        engine.schedules.put(overlap, "slow", every=DAY, overlap=overlap)
        engine.schedules.backfill(overlap, START - DAY, START)
        engine.drain()
        engine.schedules.trigger(overlap)
        engine.drain()
        found = reversed(engine.schedules.fires(overlap))
        assert [(each.why, each.status) for each in found] == [("backfill", "started"), ("manual", "started")]
        proved(engine, overlap)


def test_a_schedule_makes_up_for_ten_periods_at_a_time(place: Place) -> None:
    """An eleventh backfill is refused until one of the ten is over or all are stopped."""
    engine = opened(place)
    engine.schedules.put("s", "slow", every=HOUR)
    for _ in range(10):
        engine.schedules.backfill("s", START, START + 5 * HOUR)
    with pytest.raises(RejectedError) as refused:
        engine.schedules.backfill("s", START, START + 5 * HOUR)
    assert refused.value.reason == "too_many_backfills"
    engine.schedules.stop_backfills("s")
    assert len(engine.schedules.backfill("s", START, START + 5 * HOUR).backfills) == 1


def test_a_long_period_takes_several_commits() -> None:
    """One commit starts a hundred runs of a period at most, and the others come behind it."""
    engine = ManualEngine().register(NOTE)
    engine.schedules.put("s", "note", cron="0 * * * *")
    assert len(engine.schedules.backfill("s", START - 5 * DAY, START, at_once=True).running) == 100
    engine.drain()
    assert len(engine.runs.list(status="completed", limit=500).items) == 121
    fires, page = list[int](), engine.schedules.fires("s", limit=50)
    while page:
        fires += [each.number for each in page]
        page = engine.schedules.fires("s", after=fires[-1], limit=50)
    assert fires == list(range(122, 1, -1))  # The first number is that of the period.
    engine.stop()


def test_who_has_seen_an_older_one_changes_nothing(place: Place) -> None:
    """Each change is a revision; who names another one than there is changes nothing, and the same again is no change."""
    engine = opened(place)
    first = engine.schedules.put("s", "note", every=HOUR, expected_version=0)
    assert engine.schedules.put("s", "note", every=HOUR).revision == first.revision == 1
    assert engine.schedules.put("s", "note", every=2 * HOUR, expected_version=1).revision == 2
    for stale in (0, 1, 3):
        with pytest.raises(RejectedError, match="version_conflict"):
            engine.schedules.put("s", "note", every=HOUR, expected_version=stale)
    with pytest.raises(RejectedError, match="version_conflict"):
        engine.schedules.delete("s", expected_version=1)
    engine.advance(2 * HOUR)
    assert fired(engine) == [("01 14:00", "time", "completed")]
    engine.schedules.delete("s", expected_version=2)
    engine.advance(DAY)
    assert engine.schedules.list() == []
    with pytest.raises(NotFoundError):
        engine.schedules.get("s")
    engine.schedules.put("s", "note", every=HOUR, expected_version=0)
    engine.advance(HOUR)
    assert fired(engine)[-1] == ("02 15:00", "time", "completed")


def test_a_start_that_is_refused_is_told_and_the_next_one_comes(place: Place) -> None:
    """What cannot be started is a fire that was refused, with the reason; the times after it come all the same."""
    engine = opened(place)
    engine.schedules.put("s", "note", {"n": 1}, every=HOUR, computed={"x": "number < 2 && started_at"})
    engine.advance(2 * HOUR)
    assert [fire[2] for fire in fired(engine)] == ["refused", "completed"]
    assert "true or false" in engine.schedules.fires("s")[1].detail
    assert engine.dead_letters.list() == []


def test_what_is_archived_or_whose_owner_is_gone_is_refused_until_it_is_back(place: Place) -> None:
    """A workflow that is out of use, and an owner who is deactivated, start nothing: the fires say why, and go on when they are back."""
    engine = opened(place)
    engine.directory.put("ann")
    able = frozenset({"schedule:manage", "schedule:read"})
    engine.acting(Actor(id="ann", capabilities=able)).schedules.put("a", "note", every=HOUR)
    engine.schedules.put("s", "note", every=HOUR)
    engine.definitions.archive("note", "1")
    engine.advance(HOUR)
    engine.definitions.restore("note", "1")
    engine.directory.deactivate("ann")
    engine.advance(HOUR)
    engine.directory.activate("ann")
    engine.advance(HOUR)
    assert [fire[2] for fire in fired(engine)] == ["refused", "completed", "completed"]
    assert [fire[2] for fire in fired(engine, "a")] == ["refused", "refused", "completed"]
    assert "archived" in engine.schedules.fires("s")[2].detail
    assert "'ann' is deactivated" in engine.schedules.fires("a")[1].detail


def test_nothing_is_put_that_cannot_be_started(place: Place) -> None:
    """An archived version, a workflow whose versions are all archived, and names that only the engine sets are refused when the schedule is put, and triggered."""
    engine = opened(place)
    file = process(person("p"), *ends("e"), ways="p completed e")
    (definition,) = load_processes(file)
    engine.register(definition)
    with pytest.raises(PayloadError, match="'_answers'"):
        engine.schedules.put("p", definition.graph.name, {"_answers": {}}, every=HOUR)
    with pytest.raises(PayloadError, match="'_answers'"):
        engine.schedules.put("p", definition.graph.name, every=HOUR, computed={"_answers": "scheduled_on"})
    engine.schedules.put("s", "note", every=HOUR)
    engine.definitions.archive("note", "1")
    for version in ("", "1"):
        with pytest.raises(RejectedError, match="archived") as caught:
            engine.schedules.put("t", "note", version=version, every=HOUR)
        assert caught.value.reason == "archived"
    with pytest.raises(RejectedError, match="archived"):
        engine.schedules.trigger("s")
    with pytest.raises(RejectedError, match="archived"):
        engine.schedules.backfill("s", START, START + HOUR)
    assert [each.id for each in engine.schedules.list()] == ["s"]


def test_three_weeks_without_a_worker_are_told_and_made_up_for_by_the_policy(place: Place) -> None:
    """Nothing is forgotten: what is not made up for stands there as missed, and what is comes a hundred at a time, over the clocks being set."""
    engine = opened(place)
    engine.advance(datetime(2030, 3, 17, 12, tzinfo=UTC) - START)
    weeks, zone = timedelta(weeks=3), {"time_zone": "Europe/Berlin"}
    for catch_up in ("none", "one", "all"):
        engine.schedules.put(
            catch_up,
            "note",
            cron="30 2 * * *",
            catch_up=catch_up,
            window=weeks,
            overlap="allow_all",
            **zone,  # type: ignore[arg-type]
        )
    engine.schedules.put("hourly", "note", cron="0 * * * *", catch_up="all", window=2 * weeks, overlap="skip")
    place.clock.move(weeks)  # Nobody works.
    engine.drain()
    none, one, all_ = (fired(engine, each) for each in ("none", "one", "all"))
    assert none == [("18 01:30", "time", "missed")]
    assert one == [("18 01:30", "time", "missed"), ("07 00:30", "catch_up", "completed")]
    assert [each[0] for each in all_] == [
        *(f"{day} 01:30" for day in range(18, 31)), "31 01:00", *(f"0{day} 00:30" for day in range(1, 8))
    ]  # fmt: skip
    assert {each[1:] for each in all_} == {("catch_up", "completed")}
    hours = engine.schedules.fires("hourly", limit=1000)
    assert len({each.at for each in hours}) == len(hours) == 21 * 24
    again = engine.schedules.backfill("all", datetime(2030, 3, 30, tzinfo=UTC), datetime(2030, 4, 1, 12, tzinfo=UTC))
    assert [each.at.hour for each in again.running] == [1]
    engine.drain()
    assert [each.at.strftime("%d %H:%M") for each in engine.schedules.fires("all", limit=3)] == [
        "01 00:30", "31 01:00", "30 01:30",
    ]  # fmt: skip


def test_jitter_puts_each_start_off_by_the_same_for_all(place: Place) -> None:
    """A start is put off by up to the jitter, by what follows from schedule and time; the time itself stays what it is."""
    engine = opened(place)
    for number in range(5):
        engine.schedules.put(f"s{number}", "note", every=HOUR, jitter=timedelta(minutes=20), end_at=START + HOUR)
    engine.advance(2 * HOUR)
    told = [engine.schedules.fires(f"s{number}")[0] for number in range(5)]
    assert {each.at for each in told} == {START + HOUR}
    delays = [each.told_at - each.at for each in told]
    assert all(timedelta(0) <= each <= timedelta(minutes=20) for each in delays)
    assert len(set(delays)) > 1


def test_a_schedule_acts_for_whoever_put_it(place: Place) -> None:
    """Whoever puts a schedule may start its workflow, and its runs are theirs; others neither see nor touch it without the capabilities."""
    engine = opened(place)
    engine.register(Saga("guarded", capability="go").step("write", lambda: None).build())
    ann = engine.acting(Actor(id="ann", capabilities=frozenset({"schedule:manage", "schedule:read"})))
    with pytest.raises(ForbiddenError, match="go"):
        ann.schedules.put("s", "guarded", every=HOUR)
    ann.schedules.put("s", "note", every=HOUR)
    engine.advance(HOUR)
    (run,) = engine.runs.list().items
    assert engine.run(run.id).history()[0].actor == "ann"
    reader = engine.acting(Actor(id="bob", capabilities=frozenset({"schedule:read"})))
    assert reader.schedules.get("s").owner == "ann"
    for refused in (
        lambda: reader.schedules.pause("s"),
        lambda: reader.schedules.trigger("s"),
        lambda: reader.schedules.delete("s"),
        lambda: reader.schedules.backfill("s", START, START),
        lambda: reader.schedules.put("s", "note", every=DAY),
        lambda: engine.acting("eve").schedules.get("s"),
        engine.acting("eve").schedules.list,
    ):
        with pytest.raises(ForbiddenError):
            refused()


def test_tenants_and_partitions_have_schedules_of_their_own(place: Place) -> None:
    """A schedule is of its tenant and of the part of it that whoever put it is bound to, and so are its runs; others find nothing there."""
    engine = opened(place)
    root = Actor(id="root", capabilities=frozenset({"*"}))
    north = engine.acting(RequestContext(partition="north", actor=root))
    south = engine.acting(RequestContext(partition="south", actor=root))
    rival = engine.as_tenant("rival")
    north.schedules.put("s", "note", every=HOUR)
    rival.schedules.put("s", "note", every=2 * HOUR)
    for stranger in (
        lambda: south.schedules.get("s"),
        lambda: south.schedules.pause("s"),
        lambda: south.schedules.fires("s"),
    ):
        with pytest.raises(NotFoundError):
            stranger()
    assert south.schedules.list() == []
    with pytest.raises(NotFoundError):  # Whoever names no partition means the names of none.
        engine.schedules.get("s")
    assert [each.partition for each in engine.schedules.list()] == ["north"]
    south.schedules.put("s", "note", every=DAY)
    assert north.schedules.get("s").every_seconds == 3600
    engine.advance(HOUR)
    (run,) = engine.runs.list().items
    assert engine.runs.partition_of(run.id) == "north"
    assert rival.runs.list().items == []
    assert rival.schedules.get("s").every_seconds == 7200


def test_lists_come_in_pages(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list has one schedule after the other, each once, whatever the page, and those of one workflow if that is asked for; it folds none of them."""
    engine = opened(place)
    for number in range(5):
        place.clock.move(timedelta(seconds=1))
        engine.schedules.put(f"s{number}", "note" if number % 2 else "slow", every=HOUR)
    engine.schedules.pause("s1", "a while")
    engine.schedules.backfill("s2", START, START + DAY)
    for _ in range(3):
        engine.schedules.trigger("s0", overlap="buffer_one")
    looked_at = [engine.schedules.get(f"s{number}") for number in (4, 3, 2, 1, 0)]
    with monkeypatch.context() as patch:
        patch.setattr(CallContext, "folded", None)
        first = engine.schedules.list(limit=3)
        rest = engine.schedules.list(after=first[-1], limit=3)
    assert [*first, *rest] == looked_at
    fires = engine.schedules.fires("s0", limit=2)
    assert [each.number for each in [*fires, *engine.schedules.fires("s0", after=2)]] == [3, 2, 1]
    assert [each.id for each in [*first, *rest]] == ["s4", "s3", "s2", "s1", "s0"]
    assert [each.id for each in engine.schedules.list(workflow="note")] == ["s3", "s1"]
    times = engine.schedules.next_times("s1", after=START + DAY, limit=2)
    assert times == [START + DAY + timedelta(seconds=2), START + DAY + HOUR + timedelta(seconds=2)]


WRONG: list[tuple[dict[str, object], str]] = [
    ({}, "give one of the three"),
    ({"every": HOUR, "cron": "0 0 * * *"}, "give one of the three"),
    ({"cron": "61 * * * *"}, "cannot be read"),
    ({"cron": "0 0 30 2 *"}, "never fires"),
    ({"cron": "0 0 * * *", "time_zone": "Mars/Olympus"}, "not known"),
    ({"cron": 5}, "must be text"),
    ({"cron": "*" * 100_000}, "cron"),
    ({"every": 0}, "more than nothing"),
    ({"every": 0.001}, "shortest"),
    ({"every": -1}, "hundred years"),
    ({"every": float("nan")}, "number of seconds"),
    ({"every": "1h"}, "number of seconds"),
    ({"every": HOUR, "time_zone": "Europe/Berlin"}, "no `cron`"),
    ({"at": datetime(2030, 1, 1)}, "time zone"),  # noqa: DTZ001 - that is what is wrong
    ({"at": "tomorrow"}, "datetime"),
    ({"every": HOUR, "start_at": START, "end_at": START - HOUR}, "exchange"),
    ({"every": HOUR, "overlap": "both"}, "one of skip"),
    ({"every": HOUR, "catch_up": "all"}, "window"),
    ({"every": HOUR, "catch_up": ["one"]}, "one of none"),
    ({"every": HOUR, "computed": {"x": "entity.total"}}, "cannot be read"),
    ({"every": HOUR, "computed": {"x": "1 +"}}, "cannot be read"),
    ({"every": HOUR, "computed": ["x"]}, "mapping"),
    ({"every": HOUR, "computed": {"x": 5}}, "as text"),
    ({"every": HOUR, "expected_version": "1"}, "number from 0"),
    ({"every": HOUR, "note": 5}, "must be text"),
    ({"every": HOUR, "input": [1]}, "object with names"),
    ({"every": HOUR, "input": {"x": "x" * 2_000_000}}, "limit"),
]


def test_what_is_wrong_with_a_schedule_is_said_and_nothing_is_kept() -> None:
    """Whatever is wrong with a plan is refused in a sentence before anything is stored."""
    engine = ManualEngine().register(NOTE)
    for given, told in WRONG:
        with pytest.raises(PayloadError, match=told):
            engine.schedules.put("s", "note", **given)  # type: ignore[arg-type]
    for name in ("", 5, "x" * 10_000):
        with pytest.raises(PayloadError, match="schedule"):
            engine.schedules.put(name, "note", every=HOUR)  # type: ignore[arg-type]
    with pytest.raises(NotFoundError, match="nothing"):
        engine.schedules.put("s", "nothing", every=HOUR)
    assert engine.schedules.list() == []
    engine.schedules.put("s", "note", every=1)
    with pytest.raises(PayloadError, match="shorter"):
        engine.schedules.backfill("s", START, START + DAY)
    with pytest.raises(PayloadError, match="no earlier"):
        engine.schedules.backfill("s", START, START - DAY)
    engine.stop()
