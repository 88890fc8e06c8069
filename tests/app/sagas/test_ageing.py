"""Priorities and waiting: in which order the steps of many sagas are called."""

from __future__ import annotations

from datetime import timedelta

import pytest

from standfast import ConfigurationError, Saga, Settings, StepContext
from standfast.store.records.claim_order import effective_priority
from standfast.testing import ManualEngine
from support.engines import Place
from support.inside import registry_of

SECOND = timedelta(seconds=1)


class Line:
    """Sagas of one step each, that wait in line; their calls are written down."""

    def __init__(self, engine: ManualEngine) -> None:
        self.engine = engine
        self.calls: list[str] = []
        engine.handle("serve", self._serve)

    def _serve(self, ctx: StepContext) -> None:
        self.calls.append(str(ctx.input["name"]))

    def joins(self, name: str, priority: int) -> None:
        """Somebody comes."""
        definition = f"p{priority}"
        if definition not in registry_of(self.engine).names():
            self.engine.register(Saga(definition).step("serve", "serve", priority=priority).build())
        self.engine.start(definition, {"name": name})

    def served(self) -> list[str]:
        """Serve all, one after the other; in which order."""
        while self.engine.execute_next():
            pass
        return self.calls


@pytest.mark.row("F-114")
@pytest.mark.parametrize(
    ("waited", "expected"), [(0, 10), (1, 10), (1.999, 10), (2, 11), (100, 60), (180, 100), (1000, 100)]
)
def test_waiting_raises_the_priority(waited: float, expected: int) -> None:
    """By the rate for each second, in whole points, and never above 100."""
    assert effective_priority(10, timedelta(seconds=waited), ageing=0.5) == expected


@pytest.mark.row("F-114", "F-115", "EC-18")
@pytest.mark.parametrize(("waited", "first"), [(99, "urgent"), (100, "patient"), (101, "patient")])
def test_who_has_waited_long_enough_overtakes(place: Place, waited: int, first: str) -> None:
    """After 100 seconds at half a point each, a step of priority 10 is as urgent as a new one of 60, and it was first."""
    line = Line(place.engine(Settings(ageing=0.5)))
    line.joins("patient", 10)
    place.clock.move(waited * SECOND)
    line.joins("urgent", 60)
    assert line.served()[0] == first


@pytest.mark.row("F-114")
@pytest.mark.parametrize(("waited", "first"), [(179, "new"), (181, "old"), (1000, "old")])
def test_nobody_is_more_urgent_than_a_hundred(place: Place, waited: int, first: str) -> None:
    """From 180 seconds on a step of priority 10 counts as much as one of 100, which then comes after it."""
    line = Line(place.engine(Settings(ageing=0.5)))
    line.joins("old", 10)
    place.clock.move(waited * SECOND)
    line.joins("new", 100)
    assert line.served()[0] == first


@pytest.mark.row("F-115")
def test_the_line_is_served_by_priority_and_then_by_time(place: Place) -> None:
    """The higher effective priority goes first; among equals the one that is due longer."""
    line = Line(place.engine(Settings(ageing=1.0)))
    for name, priority in (("a10", 10), ("b50", 50), ("c10", 10), ("d30", 30)):
        line.joins(name, priority)
        place.clock.move(5 * SECOND)
    # By now they have waited 20, 15, 10 and 5 seconds: 30, 65, 20 and 35 points.
    line.joins("e35", 35)
    line.joins("f30", 30)
    line.joins("g100", 100)
    assert line.served() == ["g100", "b50", "d30", "e35", "a10", "f30", "c10"]


@pytest.mark.row("EC-18")
def test_signals_of_one_run_keep_their_order_whatever_the_priorities_of_its_steps(place: Place) -> None:
    """The more urgent branch is called first; what is sent to the run is taken in the order in which it was accepted."""
    engine, calls = place.engine(), []
    engine.handle("serve", lambda ctx: calls.append(ctx.step))
    saga = (
        Saga("s")
        .fork("f", lambda b: b.step("low", "serve", priority=10), lambda b: b.step("high", "serve", priority=90))
        .join("met")
        .wait_for("one", "more")
        .wait_for("two", "more")
        .wait_for("three", "more")
        .build()
    )
    run = engine.register(saga).start("s")
    for number in range(3):
        run.signal("more", {"n": number})
    engine.drain()
    assert calls == ["high", "low"]
    assert [each.output for each in run.steps() if each.name in {"one", "two", "three"}] == [
        {"n": 0},
        {"n": 1},
        {"n": 2},
    ]


@pytest.mark.row("F-115", "EC-18")
def test_among_equals_the_order_is_that_of_their_coming(place: Place) -> None:
    """Steps of one priority are called first come, first served."""
    line = Line(place.engine())
    names = [f"{number}" for number in range(10)]
    for name in names:
        line.joins(name, 50)
        place.clock.move(timedelta(milliseconds=1))
    assert line.served() == names


@pytest.mark.row("F-116")
def test_nobody_waits_for_ever(place: Place) -> None:
    """Against a stream of newcomers of priority 50, one of priority 0 is served after 50 seconds at one point each."""
    line = Line(place.engine(Settings(ageing=1.0)))
    line.joins("patient", 0)
    for second in range(60):
        line.joins(f"{second}", 50)
        line.engine.execute_next()
        place.clock.move(SECOND)
    assert line.calls[:51] == [*(f"{second}" for second in range(50)), "patient"]


@pytest.mark.row("F-116", "F-117")
def test_without_ageing_low_priorities_wait(place: Place) -> None:
    """The same stream keeps the patient one waiting if waiting does not count."""
    line = Line(place.engine(Settings(ageing_enabled=False)))
    line.joins("patient", 0)
    for second in range(120):
        line.joins(f"{second}", 50)
        line.engine.execute_next()
        place.clock.move(SECOND)
    assert "patient" not in line.calls


@pytest.mark.row("F-117")
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings(), ["old", "new"]),
        (Settings(ageing=0.5), ["old", "new"]),
        (Settings(ageing=0.1), ["new", "old"]),
        (Settings(ageing=0), ["new", "old"]),
        (Settings(ageing_enabled=False), ["new", "old"]),
        (Settings(ageing=99, ageing_enabled=False), ["new", "old"]),
    ],
)
def test_ageing_can_be_set_and_switched_off(place: Place, settings: Settings, expected: list[str]) -> None:
    """It is on by default, at half a point for each second; without it the plain priorities count."""
    line = Line(place.engine(settings))
    line.joins("old", 10)
    place.clock.move(100 * SECOND)
    line.joins("new", 50)
    assert line.served() == expected


@pytest.mark.row("F-117")
def test_a_negative_rate_is_refused() -> None:
    """Waiting never makes anything less urgent."""
    with pytest.raises(ConfigurationError, match="ageing must not be negative"):
        Settings(ageing=-0.1)


@pytest.mark.row("F-113", "F-114")
def test_a_call_that_is_put_off_ages_from_its_time_on(place: Place) -> None:
    """Time before a call is due is no waiting."""
    engine = place.engine(Settings(ageing=1.0))
    line = Line(engine)
    engine.register(Saga("later").step("serve", "serve", priority=10).build())
    engine.start("later", {"name": "later"}, delay=100)
    line.joins("first", 10)
    place.clock.move(100 * SECOND)
    line.joins("second", 20)
    assert line.served() == ["first", "second"]
    engine.drain()
    assert line.calls == ["first", "second", "later"]
