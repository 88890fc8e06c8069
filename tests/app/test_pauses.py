"""Pauses of definitions, versions, steps, tenants and all: nothing of them begins, and afterwards all of it goes on."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from standfast import (
    Actor,
    ConflictError,
    EffectContext,
    Engine,
    ForbiddenError,
    NotFoundError,
    PayloadError,
    RejectedError,
    RequestContext,
    Saga,
    SagaDefinition,
    Settings,
)
from standfast.app.api.sync import Pauses
from standfast.store.ports.pauses import LAG
from standfast.testing import ManualEngine
from support.engines import QUICK, Live, Place
from support.inside import store_of
from support.samples import Act, Do, Ledger, Puppet, act
from support.waiting import arrives, eventually

HOUR = timedelta(hours=1)
OPERATOR = Actor(id="olga", capabilities=frozenset(("execution:pause", "execution:resume")))


def order(ledger: Ledger, *, name: str = "order", version: str = "1") -> SagaDefinition:
    """Two steps that are written down."""
    return (
        Saga(name, version=version)
        .step("reserve", lambda: ledger.add(f"{name} reserve"))
        .step("charge", lambda: ledger.add(f"{name} charge"))
        .build()
    )


def waiting(ledger: Ledger, hours: int = 1) -> SagaDefinition:
    """A saga that waits for an hour before it works."""
    return Saga("late").wait("cool", timedelta(hours=hours)).step("act", lambda: ledger.add("act")).build()


def held(engine: ManualEngine) -> list[tuple[int, int]]:
    """How many effects and timers each pause holds."""
    return [(each.held_effects, each.held_timers) for each in engine.pauses.list(tenant="*")]


def test_what_the_engine_does_for_paused_runs_is_held_too(place: Place) -> None:
    """Nobody is told and nothing is looked for while a definition is paused; what others bring is taken. Afterwards all of it is done."""
    engine = place.engine()
    engine.register(Saga("telling").notify("tell", to="ann", subject="x", channel="in_app").build())
    engine.register(Saga("paying").wait_for_event("paid", "payment").build())
    engine.publish("payment", event_id="early")
    engine.drain()
    engine.pauses.pause("telling")
    engine.pauses.pause("paying")
    told, paid = engine.start("telling"), engine.start("paying")
    engine.drain()
    notices = engine.acting("ann").notifications
    assert (notices.mine(), paid.describe().status) == ([], "running")
    engine.publish("payment", event_id="late")
    engine.drain()
    assert paid.describe().status == "completed"
    other = engine.start("paying")
    engine.pauses.resume("telling")
    engine.pauses.resume("paying")
    engine.drain()
    assert other.describe().status == "completed"
    assert [each.instance for each in notices.mine()] == [told.id]


@pytest.mark.row("G-26")
def test_nothing_of_a_paused_definition_begins_and_afterwards_all_of_it_does(place: Place) -> None:
    """What waited when it was paused, and what is started meanwhile, waits until it is resumed; others go on."""
    ledger = Ledger()
    engine = place.engine().register(order(ledger)).register(order(ledger, name="other"))
    before = engine.start("order")
    engine.pauses.pause("order", reason="stock-taking")
    after = engine.start("order")
    other = engine.start("other")
    engine.advance(HOUR)
    assert other.describe().status == "completed"
    assert ledger.entries == ["other reserve", "other charge"]
    assert held(engine) == [(2, 0)]
    engine.pauses.resume("order")
    engine.drain()
    assert [run.describe().status for run in (before, after)] == ["completed", "completed"]
    assert sorted(ledger.entries[2:], key=str) == ["order charge", "order charge", "order reserve", "order reserve"]


def test_a_handler_that_runs_comes_to_its_end_and_what_follows_is_held(live: Live) -> None:
    """With real threads: the call that is under way when its definition is paused counts, and the next step is not begun."""
    inside, gate, ledger = threading.Event(), threading.Event(), Ledger()

    def first() -> None:
        inside.set()
        arrives(gate)

    saga = Saga("order").step("a", first).step("b", lambda: ledger.add("b")).build()
    engine = live.engine().register(saga).start_worker()
    run = engine.start("order")
    arrives(inside)
    engine.pauses.pause("order")
    gate.set()
    eventually(lambda: run.steps()[0].status == "completed")
    eventually(lambda: engine.pauses.list()[0].is_settled)
    assert (engine.pauses.list()[0].held_effects, ledger.entries) == (1, [])
    engine.pauses.resume("order")
    run.result(timeout=30)
    assert ledger.entries == ["b"]


def test_what_waits_for_a_thread_is_not_begun_once_it_is_paused(live: Live) -> None:
    """Effects that are in hand and have no thread yet are given back, untried, and held."""
    begun, gate = Ledger(), threading.Event()

    def wait(context: EffectContext, effect: Act) -> None:
        begun.add((effect.what, context.attempt))
        arrives(gate)

    patient = msgspec.structs.replace(QUICK, threads=1, lease=timedelta(minutes=10))  # By itself it gives nothing back.
    engine = live.engine(patient).register(Puppet(act), wait).start_worker()
    engine.deciders.execute(Puppet, Do("p-0", "0"))
    eventually(lambda: begun.entries)
    for number in range(1, 4):
        engine.deciders.execute(Puppet, Do(f"p-{number}", str(number)))
    engine.pauses.pause(Puppet)
    eventually(lambda: len(engine.runtime.worker.held()) == 1)
    gate.set()
    eventually(lambda: engine.pauses.list()[0].held_effects == 3)
    assert begun.entries == [("0", 1)]
    engine.pauses.resume(Puppet)
    eventually(lambda: len(begun.entries) == 4)
    assert sorted(begun.entries) == [(str(number), 1) for number in range(4)]  # type: ignore[type-var]


@pytest.mark.row("G-26")
def test_a_call_that_fails_while_its_decider_is_paused_is_not_made_again(place: Place) -> None:
    """What is in hand when the pause begins is held as soon as it is given back, and the attempt counts."""
    ledger = Ledger()
    engine = place.engine(msgspec.structs.replace(QUICK, lease=timedelta(minutes=5)))

    def fail(context: object, effect: Act) -> None:
        ledger.add(effect.what)
        if len(ledger.entries) == 1:
            engine.pauses.pause(Puppet)
        raise ValueError("no")

    engine.register(Puppet(act), fail)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(HOUR)
    assert ledger.entries == ["x"]
    assert held(engine) == [(1, 0)]
    engine.pauses.resume(Puppet)
    engine.advance(HOUR)
    assert ledger.entries == ["x", "x", "x"]


@pytest.mark.row("E-770")
def test_timers_that_run_on_fire_after_the_pause_if_they_are_due(place: Place) -> None:
    """Their instants stay; what came due meanwhile fires when it is resumed, and not before."""
    ledger = Ledger()
    engine = place.engine().register(waiting(ledger))
    engine.start("late")
    engine.pauses.pause("late")
    engine.advance(2 * HOUR)
    assert (ledger.entries, held(engine)) == ([], [(0, 1)])
    engine.pauses.resume("late")
    engine.drain()
    assert ledger.entries == ["act"]


def test_timers_that_stand_still_get_their_time_back(place: Place) -> None:
    """Set before the pause or during it, each has as long to go as it had."""
    ledger = Ledger()
    engine = place.engine().register(waiting(ledger))
    engine.start("late")
    engine.advance(minutes=20)
    engine.pauses.pause("late", clock="stand_still")
    engine.advance(minutes=30)
    engine.start("late")
    engine.advance(5 * HOUR)
    engine.pauses.resume("late")
    engine.advance(minutes=39)
    assert ledger.entries == []
    engine.advance(minutes=1)
    assert ledger.entries == ["act"]
    engine.advance(minutes=19)
    assert ledger.entries == ["act"]
    engine.advance(minutes=1)
    assert ledger.entries == ["act", "act"]


def test_a_run_knows_when_its_timers_are_due_after_clocks_stood_still(place: Place) -> None:
    """The pause of a definition moves its timers; a run that is paused itself afterwards gives them back as they were moved.

    So does one that another process remembers, and one that is paused before all of the pause is walked for.
    """
    ledger = Ledger()
    engine, other = (place.engine().register(waiting(ledger)) for _ in range(2))
    runs = [engine.start("late"), other.start("late"), engine.start("late")]
    engine.advance(HOUR / 2)
    for each in (other, engine):
        each.drain()
    engine.pauses.pause("late", clock="stand_still")
    engine.advance(2 * HOUR)
    other.drain()
    engine.pauses.resume("late")
    engine.drain()
    runs[2].pause()
    runs[2].resume()
    engine.advance(3 * LAG)
    other.drain()
    for run in runs[:2]:
        run.pause()
        run.resume()
    engine.advance(HOUR / 2 - 6 * LAG)
    other.drain()
    assert ledger.entries == []
    engine.advance(6 * LAG)
    other.drain()
    assert ledger.entries == ["act"] * 3


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59Z", "9999-12-30T20:00:00Z"])
def test_an_instant_at_the_end_of_the_calendar_keeps_no_pause_from_ending(place: Place, at: str) -> None:
    """What data names for "never" gets as much time back as the calendar has, and nobody else waits for it."""
    ledger = Ledger()
    engine = place.engine().register(Saga("far").wait("never", until="at").build()).register(order(ledger))
    far = engine.start("far", {"at": at})
    engine.drain()
    engine.pauses.pause("far", clock="stand_still")
    engine.drain()
    assert held(engine) == [(0, 1)]
    engine.advance(60 * HOUR)
    engine.pauses.resume("far")
    engine.pauses.pause("order")
    run = engine.start("order")
    engine.drain()
    engine.pauses.resume("order")
    engine.advance(3 * LAG)
    assert (run.describe().status, far.describe().status) == ("completed", "running")
    assert all(each.is_settled for each in engine.pauses.list(with_ended=True))


def test_a_run_that_waits_for_the_end_of_the_calendar_goes_on_after_a_pause_of_its_clocks(place: Place) -> None:
    """A pause of a run ends although its timer cannot be due any later."""
    engine = place.engine().register(Saga("far").wait("never", until="at").build())
    run = engine.start("far", {"at": "9999-12-31T23:59:59Z"})
    engine.drain()
    run.pause(clock="stand_still")
    engine.advance(HOUR)
    run.resume()
    engine.drain()
    assert run.describe().status == "running"


def test_clocks_of_pauses_that_overlap_stand_still_for_as_long_as_one_of_them_says_so(place: Place) -> None:
    """The time under a pause that lets them run on does not count, that under two that do not counts once."""
    ledger = Ledger()
    engine = place.engine().register(waiting(ledger, hours=10))
    engine.start("late")
    engine.pauses.pause("late", clock="stand_still")
    engine.advance(HOUR)
    engine.pauses.pause(clock="stand_still")
    engine.advance(HOUR)
    engine.pauses.resume("late")
    engine.advance(HOUR)
    engine.pauses.pause("late", clock="run_on")
    engine.pauses.resume()
    engine.advance(HOUR)  # Three hours stood still, one ran.
    engine.pauses.resume("late")
    engine.advance(hours=9, microseconds=-1)
    assert ledger.entries == []
    engine.advance(microseconds=1)
    assert ledger.entries == ["act"]


def test_what_two_pauses_cover_is_held_until_both_have_ended(place: Place) -> None:
    """Ending one of them lets go of nothing that the other one covers."""
    ledger = Ledger()
    engine = place.engine().register(order(ledger))
    engine.pauses.pause("order")
    engine.pauses.pause("order", step="reserve")
    engine.start("order")
    engine.pauses.resume("order")
    engine.advance(HOUR)
    assert (ledger.entries, held(engine)) == ([], [(1, 0)])
    engine.pauses.resume("order", step="reserve")
    engine.drain()
    assert ledger.entries == ["order reserve", "order charge"]


def test_a_pause_of_a_step_holds_its_calls_and_no_others(place: Place) -> None:
    """Runs go up to the step and wait there, whether its call waited before or is asked for later."""
    ledger = Ledger()
    engine = place.engine().register(order(ledger))
    early = engine.start("order")
    engine.execute_next()
    engine.pauses.pause("order", step="charge")
    late = engine.start("order")
    engine.advance(HOUR)
    assert ledger.entries == ["order reserve", "order reserve"]
    assert held(engine) == [(2, 0)]
    assert [each.scope for each in late.describe().held_by] == ["step 'charge' of 'order' of tenant 'default'"]
    engine.pauses.resume("order", step="charge")
    engine.drain()
    assert [run.describe().status for run in (early, late)] == ["completed", "completed"]


def test_versions_are_paused_apart(place: Place) -> None:
    """Runs of another version go on."""
    ledger = Ledger()
    second = Saga("order", version="2").step("pack", lambda: ledger.add("pack")).build()
    engine = place.engine().register(order(ledger)).register(second)
    old = engine.start("order", version="1")
    engine.pauses.pause("order", version="1")
    older, new = engine.start("order", version="1"), engine.start("order", version="2")
    engine.advance(HOUR)
    assert ledger.entries == ["pack"]
    assert ([len(run.describe().held_by) for run in (old, older, new)], held(engine)) == ([1, 1, 0], [(2, 0)])
    engine.pauses.resume("order", version=1)
    engine.drain()
    assert sorted(ledger.entries[1:], key=str) == ["order charge"] * 2 + ["order reserve"] * 2


@pytest.mark.row("G-26")
def test_tenants_are_paused_apart(place: Place) -> None:
    """A pause of one tenant holds nothing of another; that of all holds everything."""
    ledger = Ledger()
    engine = place.engine().register(order(ledger))
    engine.as_tenant("acme").pauses.pause()
    theirs, ours = engine.as_tenant("acme").start("order"), engine.start("order")
    engine.advance(HOUR)
    assert ours.describe().status == "completed"
    assert (len(theirs.describe().held_by), len(ledger.entries)) == (1, 2)
    engine.pauses.pause(tenant="*")
    engine.as_tenant("acme").pauses.resume()
    engine.start("order")
    engine.advance(HOUR)
    assert len(ledger.entries) == 2
    assert engine.health().pauses == ["everything of all tenants"]
    engine.pauses.resume(tenant="*")
    engine.drain()
    assert len(ledger.entries) == 6


def test_answers_and_signals_are_taken_while_paused_and_what_they_ask_for_waits(place: Place) -> None:
    """A pause holds work back, not people."""
    ledger = Ledger()
    saga = (
        Saga("ask")
        .human("ok", subject="Ship it?")
        .wait_for("paid", "paid")
        .step("ship", lambda: ledger.add("ship"))
        .build()
    )
    engine = place.engine().register(saga)
    run = engine.start("ask")
    engine.drain()
    engine.pauses.pause("ask")
    (task,) = run.tasks()
    engine.tasks.approve(task)
    run.signal("paid")
    engine.advance(HOUR)
    assert [step.status for step in run.steps()][:2] == ["confirmed", "completed"]
    assert (ledger.entries, held(engine)) == ([], [(1, 0)])
    engine.pauses.resume("ask")
    engine.drain()
    assert ledger.entries == ["ship"]


def test_a_pause_ends_by_itself_when_its_time_is_up(place: Place) -> None:
    """Nobody has to remember it; who ended it is told."""
    ledger = Ledger()
    engine = place.engine().register(order(ledger))
    engine.pauses.pause("order", until=HOUR)
    engine.start("order")
    engine.advance(minutes=59)
    assert ledger.entries == []
    engine.advance(minutes=1)
    assert len(ledger.entries) == 2
    (ended,) = engine.pauses.list(with_ended=True)
    assert (ended.ended_by, ended.ended_why, ended.ended_at) == ("system", "its time was up", ended.until)
    assert engine.pauses.list() == []


def test_a_process_that_learns_late_does_no_lasting_harm(place: Place) -> None:
    """What it writes unheld is held by the second walk; what it writes held after the end is let go by the second walk too."""
    ledger = Ledger()
    knowing, late = place.engine().register(order(ledger)), place.engine().register(order(ledger))
    late.drain()
    knowing.pauses.pause("order")
    knowing.drain()
    late.start("order")  # It has looked just now, and does not know.
    assert held(knowing) == [(0, 0)]
    knowing.advance(LAG)
    assert (held(knowing), ledger.entries) == ([(1, 0)], [])
    late.drain()
    knowing.pauses.resume("order")
    knowing.drain()
    assert len(ledger.entries) == 2
    late.start("order")  # Again it does not know.
    knowing.drain()
    assert len(ledger.entries) == 2
    knowing.advance(LAG)
    assert len(ledger.entries) == 4


def test_work_that_is_covered_and_not_held_is_put_back_by_whoever_claims_it(place: Place) -> None:
    """Such as a dead letter that is requeued: it is not called, and its attempt does not count."""
    ledger = Ledger()

    def fail(context: object, effect: Act) -> None:
        ledger.add(effect.what)
        raise ValueError("no")

    engine = place.engine(QUICK).register(Puppet(act), fail)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(HOUR)
    engine.pauses.pause(Puppet)
    engine.advance(HOUR)
    (letter,) = engine.dead_letters.list()
    engine.dead_letters.requeue(letter)
    engine.drain()
    assert (len(ledger.entries), held(engine)) == (3, [(1, 0)])
    (effect,) = engine.deciders.get(Puppet, "p-1").effects
    assert (effect.worker, effect.attempts) == (None, 0)
    engine.pauses.resume(Puppet)
    engine.advance(HOUR)
    assert len(ledger.entries) == 6


def test_a_walk_that_a_dead_process_began_is_gone_on_with(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it stands is in the database: another process holds the rest, and later lets all of it go."""
    monkeypatch.setattr("standfast.engine.loops.pause_propagation._ROWS", 3)
    ledger = Ledger()
    dying, heir = place.engine().register(order(ledger)), place.engine().register(order(ledger))
    for _ in range(10):
        dying.start("order")
    dying.pauses.pause("order")
    dying.service.walker.step()
    assert held(dying) == [(3, 0)]
    heir.drain()
    assert (held(heir), ledger.entries) == ([(10, 0)], [])
    dying.pauses.resume("order")
    dying.service.walker.step()
    dying.service.walker.step()
    heir.advance(LAG)
    assert len(ledger.entries) == 20
    assert heir.pauses.list(with_ended=True)[0].is_settled


def test_effects_come_back_behind_those_that_have_waited_for_longer(place: Place) -> None:
    """The time for which they were held does not count as waiting, so a paused backlog overtakes nobody."""
    ledger = Ledger()
    engine = place.engine()

    def note(name: str) -> None:
        ledger.add(name)

    for name in ("old", "new"):
        engine.register(Saga(name).step("a", "shared").build())
    engine.start("old", {"name": "old"})
    engine.pauses.pause("old")
    engine.service.walker.drain()
    place.clock.move(HOUR)
    engine.start("new", {"name": "new"})
    place.clock.move(HOUR)
    engine.pauses.resume("old")
    engine.handle("shared", note)
    engine.drain()
    assert ledger.entries == ["new", "old"]


def test_who_paused_and_who_resumed_is_kept(place: Place) -> None:
    """With when and why, also of pauses that have ended, until they are pruned with what else has ended."""
    engine = place.engine(Settings(keep_finished=10 * HOUR)).register(order(Ledger()))
    mine = engine.acting(OPERATOR).pauses
    paused = mine.pause("order", reason="audit")
    assert (paused.paused_by, paused.reason, paused.paused_at) == ("olga", "audit", place.clock.now())
    engine.advance(HOUR)
    ended = engine.acting(Actor(id="bob", capabilities=frozenset(("execution:*",)))).pauses.resume(
        "order", reason="done"
    )
    assert (ended.ended_by, ended.ended_why, ended.ended_at) == ("bob", "done", place.clock.now())
    assert [each.id for each in mine.list(with_ended=True)] == [paused.id]
    engine.advance(11 * HOUR)
    assert mine.list(with_ended=True) == []


def test_the_same_pause_again_is_the_one_that_stands(place: Place) -> None:
    """And one that says something else of the same scope, or that somebody else wants, is refused with who paused it and why."""
    engine = place.engine().register(order(Ledger()))
    pauses = engine.acting(OPERATOR).pauses
    first = pauses.pause("order", reason="bank down")
    assert pauses.pause("order", reason="bank down").id == first.id
    others: list[tuple[Pauses, dict[str, Any]]] = [
        (pauses, {"reason": "bank down", "clock": "stand_still"}),
        (pauses, {"reason": "fraud"}),
        (engine.pauses, {"reason": "bank down"}),
    ]
    for calls, said in others:
        with pytest.raises(ConflictError, match=r"paused already: by 'olga' since .* \(bank down\)"):
            calls.pause("order", **said)
    assert len(engine.pauses.list()) == 1


def test_a_pause_for_so_long_repeated_is_the_one_that_stands(place: Place) -> None:
    """It ends when the first call said: a call that is repeated because its answer got lost does not prolong it, nor is it refused."""
    engine = place.engine().register(order(Ledger()))
    first = engine.pauses.pause("order", until=HOUR)
    engine.advance(minutes=1)
    again = engine.pauses.pause("order", until=HOUR)
    assert (again.id, again.until) == (first.id, first.until)
    with pytest.raises(ConflictError, match="resume it first"):
        engine.pauses.pause("order", until=2 * HOUR)


def test_a_pause_is_ended_by_what_it_gave(place: Place) -> None:
    """By itself or its number; one that has ended ends no other of the same scope, and nothing else is said besides."""
    engine = place.engine().register(order(Ledger()))
    for by_number in (False, True):
        first = engine.pauses.pause("order", step="charge")
        given = first.id if by_number else first
        with pytest.raises(PayloadError, match="leave out version, step and tenant"):
            engine.pauses.resume(given, step="charge")
        with pytest.raises(ForbiddenError, match="'execution:resume'"):
            engine.acting("pat").pauses.resume(given)
        assert engine.pauses.resume(given).ended_at is not None
        second = engine.pauses.pause("order", step="charge")
        with pytest.raises(RejectedError, match="there is no pause"):
            engine.pauses.resume(given)
        assert [each.id for each in engine.pauses.list()] == [second.id]
        engine.pauses.resume(second)
    with pytest.raises(NotFoundError):
        engine.as_tenant("other", actor=OPERATOR).pauses.resume(first.id)


@pytest.mark.parametrize("number", ["one", -1, 0, True, 2**70, 1.0, None])
def test_a_pause_is_named_by_its_number(place: Place, number: object) -> None:
    """What is no number of a pause finds none, and is no place in a list, on every database."""
    engine = place.engine().register(order(Ledger()))
    engine.pauses.pause("order")
    with pytest.raises(NotFoundError, match="pause"):
        engine.pauses.get(number)  # type: ignore[arg-type]
    if number is not None:
        with pytest.raises(PayloadError, match="`before` must be"):
            engine.pauses.list(before=number)  # type: ignore[arg-type]
        with pytest.raises(PayloadError, match="`before` must be"):
            engine.pauses.list(before=number, with_ended=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"definition": "ordr"}, NotFoundError, "published are: order"),
        ({"definition": "order", "version": "7"}, NotFoundError, "has: 1"),
        ({"definition": "order", "step": "chrge"}, NotFoundError, "has: charge, "),
        ({"version": "1"}, PayloadError, "name the definition too"),
        ({"definition": "order", "clock": "stop"}, PayloadError, "run_on, stand_still"),
        ({"step": "charge", "clock": "stand_still"}, PayloadError, "timers are of no step"),
        ({"until": timedelta(seconds=-1)}, PayloadError, "is past"),
        ({"until": timedelta.max}, PayloadError, "calendar"),
        (
            {"until": datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=12)))},
            PayloadError,
            "years 1 to 9999",
        ),
        ({"until": "tomorrow"}, PayloadError, "with a time zone"),
        ({"definition": 7}, PayloadError, "the definition must be"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    place: Place, asked: dict[str, object], error: type[Exception], says: str
) -> None:
    """A misspelt name would hold nothing, and nobody would notice."""
    engine = place.engine().register(order(Ledger()))
    with pytest.raises(error, match=says):
        engine.pauses.pause(**asked)  # type: ignore[arg-type]
    assert engine.pauses.list(with_ended=True) == []


def test_what_is_not_paused_is_not_resumed(place: Place) -> None:
    """The refusal names what is paused."""
    engine = place.engine().register(order(Ledger()))
    engine.pauses.pause("order", step="charge")
    with pytest.raises(RejectedError, match=r"paused is: step 'charge' of 'order' of tenant 'default' \[not_paused\]"):
        engine.pauses.resume("order")
    engine.pauses.resume("order", step="charge")
    with pytest.raises(RejectedError, match="paused is: nothing"):
        engine.pauses.resume("order", step="charge")


def test_only_those_who_may_pause_and_resume_do(place: Place) -> None:
    """Each has its capability; other tenants are for the engine itself to pause."""
    engine = place.engine().register(order(Ledger()))
    with pytest.raises(ForbiddenError, match="execution:pause"):
        engine.acting("eve").pauses.pause("order")
    pauses = engine.acting(Actor(id="pat", capabilities=frozenset(("execution:pause",)))).pauses
    pauses.pause("order")
    with pytest.raises(ForbiddenError, match="execution:resume"):
        pauses.resume("order")
    for tenant in ("acme", "*"):
        with pytest.raises(ForbiddenError, match="and no other"):
            pauses.pause("order", tenant=tenant)
        with pytest.raises(ForbiddenError, match="and no other"):
            pauses.list(tenant=tenant)


def test_pauses_of_other_tenants_are_not_found(place: Place) -> None:
    """A tenant sees its own pauses, and those of all tenants, with what they hold of its own work."""
    engine = place.engine().register(order(Ledger()))
    hidden = engine.pauses.pause("order")
    engine.pauses.pause(tenant="*")
    engine.start("order")
    engine.as_tenant("acme").start("order")
    engine.drain()
    theirs = engine.acting(RequestContext(tenant="acme", actor=OPERATOR)).pauses
    with pytest.raises(NotFoundError):
        theirs.get(hidden)
    with pytest.raises(RejectedError, match="paused is: everything of all tenants"):
        theirs.resume("order")
    assert [(each.tenant, each.held_effects) for each in theirs.list(with_ended=True)] == [("*", 1)]
    assert held(engine) == [(2, 0), (1, 0)]


def test_a_run_tells_that_a_pause_holds_it(place: Place) -> None:
    """In its description, and to whoever waits for its end in vain; its status stays, and a run that has ended is held by nothing."""
    engine = place.engine().register(order(Ledger()))
    ended = engine.start("order")
    engine.drain()
    run = engine.start("order")
    before = run.describe().status
    engine.acting(OPERATOR).pauses.pause("order", reason="audit")
    (hold,) = run.describe().held_by
    assert (hold.paused_by, hold.reason, hold.scope) == ("olga", "audit", "'order' of tenant 'default'")
    assert (run.describe().status, ended.describe().held_by) == (before, [])
    assert engine.health().pauses == ["'order' of tenant 'default'"]
    assert engine.health().is_healthy


def test_another_process_hears_of_a_pause_soon(live: Live) -> None:
    """With real threads and connections of its own; what it is asked to do then waits, untried."""
    ledger = Ledger()
    worker, operator = live.engine().register(order(ledger)).start_worker(), live.engine()
    operator.pauses.pause("order")
    eventually(lambda: worker.health().pauses)
    run = worker.start("order")
    (waiting,), _ = store_of(worker).reader("default").work(run.id)
    assert (waiting.owner, waiting.attempts) == (None, 0)
    operator.pauses.resume("order")
    run.result(timeout=30)
    assert len(ledger.entries) == 2


def test_many_runs_are_held_and_all_of_them_come_back(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Across several workers, with more rows than a stride looks at: none is lost and none is done twice."""
    monkeypatch.setattr("standfast.engine.loops.pause_propagation._ROWS", 40)
    ledger = Ledger()
    engines: list[Engine] = [live.engine().register(order(ledger)) for _ in range(2)]
    runs = [each.result(30) for each in [engines[0].futures.start("order") for _ in range(150)]]
    engines[0].pauses.pause("order")
    eventually(lambda: engines[1].health().pauses)
    for engine in engines:
        engine.start_worker()
    eventually(lambda: engines[0].pauses.list()[0].held_effects == len(runs))
    assert ledger.entries == []
    engines[1].pauses.resume("order")
    eventually(lambda: not engines[0].admin.backlog())
    assert sorted(ledger.entries, key=str) == ["order charge"] * len(runs) + ["order reserve"] * len(runs)
    eventually(lambda: engines[0].pauses.list(with_ended=True)[0].is_settled)
