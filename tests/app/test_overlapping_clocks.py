"""Pauses of one run and of wider scopes that overlap: clocks stand still for as long as one of them says so, and instants stay."""

from __future__ import annotations

from datetime import timedelta

import pytest

from standfast import Actor, RejectedError, Run, Saga, load_rules
from standfast.kernel.row_kinds.steps import PauseClock
from standfast.testing import ManualEngine
from standfast.testing.manual import START
from support.engines import Place
from support.inside import desk_of

HOUR = timedelta(hours=1)
ASKING = (
    Saga("asking")
    .human("sign", role="boss", timeout=8 * HOUR, on_timeout=lambda way: way.step("chase", lambda: None))
    .step("pay", lambda: None)
    .build()
)


def asked(place: Place) -> tuple[ManualEngine, Run[object]]:
    """A question that is open for eight hours."""
    engine = place.engine().register(ASKING)
    run = engine.start("asking")
    engine.drain()
    return engine, run


def go_to(engine: ManualEngine, hours: float) -> None:
    """Let time go by until so long after the start."""
    engine.advance(START + hours * HOUR - engine.clock.now())


def pause(engine: ManualEngine, run: Run[object], told: str) -> None:
    """Begin or end a pause, such as `run stand_still` or `end wide`."""
    first, second = told.split()
    clock: PauseClock = "stand_still" if second == "stand_still" else "run_on"
    if first == "run":
        run.pause(clock=clock)
    elif first == "wide":
        engine.pauses.pause("asking", clock=clock)
    elif second == "run":
        run.resume()
    else:
        engine.pauses.resume("asking")


OVERLAPS = [
    ({1: "wide stand_still", 3: "run stand_still", 5: "end wide", 7: "end run"}, 14),
    ({1: "wide stand_still", 3: "run stand_still", 5: "end run", 7: "end wide"}, 14),
    ({1: "run stand_still", 3: "wide stand_still", 5: "end run", 7: "end wide"}, 14),
    ({1: "run stand_still", 3: "wide stand_still", 5: "end wide", 7: "end run"}, 14),
    ({1: "wide stand_still", 5: "run run_on", 10: "end wide", 12: "end run"}, 17),
    ({1: "run run_on", 3: "wide stand_still", 5: "end wide", 7: "end run"}, 10),
    ({1: "run run_on", 3: "wide stand_still", 5: "end run", 7: "end wide"}, 12),
    ({1: "run stand_still", 5: "wide run_on", 10: "end run", 11: "end wide"}, 17),
]


@pytest.mark.parametrize(("pauses", "ends"), OVERLAPS)
def test_clocks_stand_still_for_as_long_as_one_pause_says_so(place: Place, pauses: dict[int, str], ends: int) -> None:
    """However pauses of the run and of its definition overlap, a question gets the time back for which one of them had its clock stand still, once."""
    engine, run = asked(place)
    for hour, told in pauses.items():
        go_to(engine, hour)
        pause(engine, run, told)
    go_to(engine, ends - 0.1)
    assert [each.name for each in run.steps()] == ["sign"]
    go_to(engine, ends)
    assert [each.name for each in run.steps()] == ["sign", "chase"]


@pytest.mark.parametrize("hour", [11, 13])
def test_a_decision_counts_by_the_time_that_is_left(place: Place, hour: int) -> None:
    """While the run is paused with running clocks, the time that a wider pause gave back counts as it will once the run goes on, and no more."""
    engine, run = asked(place)
    for at, told in {1: "run run_on", 5: "wide stand_still", 9: "end wide"}.items():
        go_to(engine, at)
        pause(engine, run, told)
    go_to(engine, hour)
    is_left = hour < 12
    boss = engine.acting(Actor(id="bea", roles=frozenset({"boss"})))
    assert len(boss.tasks.list(mine=True)) == is_left
    if is_left:
        engine.tasks.approve(run.tasks()[0])
        run.resume()
        engine.drain()
        assert run.describe().status == "completed"
    else:
        with pytest.raises(RejectedError) as refused:
            engine.tasks.approve(run.tasks()[0])
        assert refused.value.reason == "expired"


def test_what_was_over_before_clocks_stood_still_stays_over(place: Place) -> None:
    """A wider pause gives nothing back of a time that had passed while the run was paused with running clocks."""
    engine, run = asked(place)
    for at, told in {1: "run run_on", 10: "wide stand_still"}.items():
        go_to(engine, at)
        pause(engine, run, told)
    go_to(engine, 11)
    with pytest.raises(RejectedError) as refused:
        engine.tasks.approve(run.tasks()[0])
    assert refused.value.reason == "expired"


@pytest.mark.parametrize("how", ["resume", "cancel", "abort"])
def test_no_clock_is_left_when_the_pause_is_over(place: Place, how: str) -> None:
    """What measures the clocks of wider pauses goes with the pause, however that ends."""
    engine, run = asked(place)
    run.pause()
    if how == "resume":
        run.resume()
    else:
        getattr(engine.futures.run(run), how)("no more")
    engine.drain()
    _, timers = desk_of(engine).reader.work(run.id)
    assert [each.key for each in timers] == (["step:1"] if how == "resume" else [])


def test_the_end_of_a_pause_of_one_run_is_an_instant(place: Place) -> None:
    """A wider pause under which clocks stand still holds the end of a pause back, and does not put it off."""
    engine = place.engine().register(Saga("waiting").wait_for("wait", "go").build())
    run = engine.start("waiting")
    engine.drain()
    run.pause(until=2 * HOUR)
    go_to(engine, 1)
    engine.pauses.pause("waiting", clock="stand_still")
    run.signal("go")
    go_to(engine, 5)
    assert run.describe().status == "paused"
    engine.pauses.resume("waiting")
    engine.advance(seconds=5)
    assert run.describe().status == "completed"


@pytest.mark.parametrize("clock", ["run_on", "stand_still"])
def test_times_of_schedules_are_instants(place: Place, clock: str) -> None:
    """What a pause of the tenant made late is made up for when it ends, and the times to come are those of the plan, whatever clocks did."""
    begun: list[float] = []
    engine = place.engine()
    engine.register(Saga("note").step("write", lambda ctx: begun.append((engine.clock.now() - START) / HOUR)).build())
    engine.schedules.put("hourly", "note", every=HOUR)
    go_to(engine, 2.5)
    engine.pauses.pause(clock="stand_still" if clock == "stand_still" else "run_on")
    go_to(engine, 5.5)
    engine.pauses.resume()
    go_to(engine, 8.1)
    assert begun == [1, 2, 5.5, 6, 7, 8]


@pytest.mark.row("R-089", "R-118")
@pytest.mark.parametrize(("clock", "fails_at"), [("run_on", 48), ("stand_still", 70)])
def test_no_pause_of_rules_is_too_long_while_a_wider_one_lasts(place: Place, clock: str, fails_at: int) -> None:
    """Rules whose pause lasts longer than it may fail once a pause of their definition has ended, and have the time back if clocks stood still."""
    engine = place.engine()
    engine.handle("look", lambda: engine.run(engine.runs.list().items[0].id).pause())
    steps = [
        {"id": "x", "type": "action", "action": "execute", "execute": [{"type": "call", "handler": "look"}]},
        {"id": "go", "type": "action", "action": "allow"},
    ]
    engine.register(load_rules({"workflow_id": "asking", "steps": steps}))
    run = engine.start("asking")
    engine.drain()
    go_to(engine, 2)
    engine.pauses.pause("asking", clock="stand_still" if clock == "stand_still" else "run_on")
    go_to(engine, 48)
    assert (run.describe().status, run.describe().reason) == ("paused", "requested")
    engine.pauses.resume("asking")
    go_to(engine, max(48, fails_at - 0.1))
    assert run.describe().status == "paused"
    go_to(engine, fails_at + 0.2)
    assert (run.describe().status, run.describe().error) == ("failed", "pause timeout")
