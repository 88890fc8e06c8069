"""Work whose handler nobody has: it waits untouched, and the log, listeners and the instances hear of it now and then."""

from __future__ import annotations

import logging
from datetime import timedelta

import msgspec
import pytest

from standfast import ConfigurationError, Decision, Moment, Settings
from standfast.engine.common.telemetry import HandlerMissingObserved, Happening
from standfast.store.records.claim_order import rank_of
from standfast.testing import ManualEngine
from support.engines import QUICK, Live, Place
from support.samples import Act, Answer, Do, Doll, Ledger, Noted, Notes, Puppet, act, done
from support.waiting import eventually

MINUTE, COOLDOWN = timedelta(minutes=1), timedelta(seconds=5)


class Told(Puppet):
    """Notes which of its effects nobody can do."""

    def handler_missing(self, effect: Act, handler: str) -> Do:
        return Do("", f"nobody has {handler} for {effect.what}")


MISSED = "nobody has puppet for x"


def quietly(state: Notes, command: Do, moment: Moment) -> Answer:
    """Ask for an effect, but not when told that nobody can do it."""
    noted = Decision.event(Noted(command.what))
    return noted if command.what.startswith(("nobody", "done")) else noted.with_effect(Act(command.what))


def waiting(place: Place, settings: Settings | None = None) -> ManualEngine:
    """An engine without the handler, with an instance that has waited for it long enough."""
    engine = place.engine(settings).register(Told(quietly))
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(COOLDOWN)
    return engine


def look(engine: ManualEngine) -> list[str]:
    """Have the engine look; the handlers that are missing."""
    return [each.handler for each in engine.runtime.housekeeping.missing.look()]


def notes(engine: ManualEngine) -> Notes:
    """What the instance has noted."""
    return engine.deciders.state(Puppet, "p-1")


@pytest.mark.row("F-106", "F-108", "F-110", "D-059")
def test_an_instance_hears_once_in_a_while_that_nobody_has_its_handler(place: Place) -> None:
    """Its effect waits untouched; it is told once in each window, and when a worker with the handler comes the effect runs."""
    calls = Ledger()
    engine = waiting(place)
    for _ in range(3):
        assert look(engine) == ["puppet"]
    assert notes(engine) == ("x", MISSED)
    engine.advance(MINUTE - timedelta(microseconds=1))
    look(engine)
    assert notes(engine) == ("x", MISSED)
    engine.advance(timedelta(microseconds=1))
    look(engine)
    assert notes(engine) == ("x", MISSED, MISSED)
    (effect,) = engine.deciders.get(Puppet, "p-1").effects
    assert (effect.attempts, effect.worker, effect.error) == (0, None, "")
    helper = place.engine().register(Told(quietly), lambda context, effect: calls.add(effect.what))
    helper.runtime.heartbeat.step()
    assert look(engine) == []
    helper.drain()
    assert calls.entries == ["x"]
    assert notes(engine) == ("x", MISSED, MISSED)


def test_an_effect_is_missed_only_after_a_while(place: Place) -> None:
    """A worker that is just being restarted is nobody's news."""
    engine = place.engine(Settings(missing_handler_cooldown=MINUTE)).register(Told(quietly))
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(MINUTE - timedelta(microseconds=1))
    assert look(engine) == []
    engine.advance(timedelta(microseconds=1))
    assert look(engine) == ["puppet"]


def test_the_news_is_for_the_instance_that_waits(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """A decider that names another instance in it is told so in the log, and nobody is misled."""

    class Misled(Puppet):
        def handler_missing(self, effect: Act, handler: str) -> Do:
            return Do("p-2", "done")

    engine = place.engine().register(Misled(quietly))
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(COOLDOWN)
    look(engine)
    assert notes(engine) == ("x",)
    assert "names 'p-2'" in caplog.text


@pytest.mark.row("F-110")
def test_the_log_has_one_line_for_each_handler_and_window(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """However many effects wait and however often is looked; listeners hear as often."""
    heard: list[Happening] = []
    engine = place.engine(Settings(missing_handler_throttle=MINUTE)).register(Told(quietly)).register(Doll(act))
    engine.listen(heard.append)
    for number in range(5):
        engine.deciders.execute(Puppet, Do(f"p-{number}", "x"))
    engine.deciders.execute(Doll, Do("d-1", "x"))
    engine.advance(COOLDOWN)
    with caplog.at_level(logging.WARNING, logger="standfast.housekeeping"):
        for _ in range(4):
            look(engine)
    said = [record.getMessage() for record in caplog.records if record.name == "standfast.housekeeping"]
    assert sorted(said) == [
        "handler_missing handler='doll' effects=1: no live worker has it",
        "handler_missing handler='puppet' effects=5: no live worker has it",
    ]
    told = [each for each in heard if isinstance(each, HandlerMissingObserved)]
    assert told == [
        HandlerMissingObserved(handler="doll", waiting=1),
        HandlerMissingObserved(handler="puppet", waiting=5),
    ]


def test_one_of_many_processes_tells_the_instance(place: Place) -> None:
    """Each process logs what it sees, but the instance is told once in a window; by another if the first one is gone."""
    engines = [waiting(place), *(place.engine().register(Told(quietly)) for _ in range(2))]
    for engine in engines:
        assert look(engine) == ["puppet"]
    assert notes(engines[0]) == ("x", MISSED)
    place.clock.move(MINUTE)
    look(engines[2])
    look(engines[1])
    assert notes(engines[0]) == ("x", MISSED, MISSED)


def test_a_process_that_does_not_know_the_workflow_leaves_it_to_others(place: Place) -> None:
    """Whoever cannot speak for the instance does not take the turn of one who can."""
    stranger = place.engine().register(Doll(act))
    engine = waiting(place)
    assert look(stranger) == ["puppet"]
    assert look(engine) == ["puppet"]
    assert notes(engine) == ("x", MISSED)


def test_no_more_than_a_hundred_are_told_at_once(place: Place) -> None:
    """A large backlog is not told whole: the most urgent ones hear of it."""

    def many(state: Notes, command: Do, moment: Moment) -> Answer:
        noted = Decision.event(Noted(command.what))
        if command.what.startswith("nobody"):
            return noted
        for number in range(150):
            noted = noted.with_effect(Act(f"{number}"), priority=100 if number == 149 else 0)
        return noted

    engine = place.engine().register(Told(many))
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(COOLDOWN)
    look(engine)
    noted = notes(engine)
    assert len(noted) == 101
    assert noted[1] == "nobody has puppet for 149"


def test_whoever_does_not_want_to_know_is_not_told(place: Place) -> None:
    """A decider that says nothing about missing handlers hears nothing of them."""
    engine = place.engine().register(Puppet(quietly))
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(COOLDOWN)
    assert look(engine) == ["puppet"]
    assert notes(engine) == ("x",)


def test_trouble_with_telling_is_logged_and_never_raised(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """A decider that fails on the news, or on the command, harms neither the look nor the others."""

    class Broken(Puppet):
        def handler_missing(self, effect: Act, handler: str) -> Do:
            if effect.what == "x":
                raise ValueError("in handler_missing")
            return Do("", "nobody")

    def refuse(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what == "nobody":
            raise ValueError("in decide")
        return quietly(state, command, moment)

    engine = place.engine().register(Broken(refuse))
    for key, what in (("p-1", "x"), ("p-2", "y")):
        engine.deciders.execute(Puppet, Do(key, what))
    engine.advance(COOLDOWN)
    assert look(engine) == ["puppet"]
    assert "event=handler_missing handler='puppet'" in caplog.text
    assert "event=handler_missing: " in caplog.text
    assert notes(engine) == ("x",)


def test_an_instance_that_has_ended_is_left_alone(place: Place) -> None:
    """The news comes too late for it, and that is no trouble."""
    engine = place.engine().register(Told(quietly))
    for what in ("x", "end"):
        engine.deciders.execute(Puppet, Do("p-1", what))
    engine.advance(COOLDOWN)
    assert look(engine) == ["puppet"]
    assert notes(engine) == ("x", "end")


def test_a_running_engine_looks_by_itself(live: Live) -> None:
    """The loops of a process without the handler tell the instance; no one has to ask."""
    settings = msgspec.structs.replace(QUICK, missing_handler_cooldown=timedelta(0))
    engine = live.engine(settings).register(Told(quietly)).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    eventually(lambda: engine.deciders.state(Puppet, "p-1") == ("x", MISSED))


@pytest.mark.row("F-109")
def test_the_looks_are_spread(place: Place) -> None:
    """The time between two looks varies by the jitter around the cooldown, and housekeeping is done in between when due."""
    settings = Settings(missing_handler_cooldown=timedelta(seconds=10), missing_handler_jitter=0.2)
    keeping = place.engine(settings).runtime.housekeeping
    waits = []
    for _ in range(50):
        waits.append(keeping.step())
        place.clock.move(timedelta(minutes=1))
    assert all(8 <= wait <= 12 for wait in waits)
    assert len(set(waits)) > 10
    steady = Settings(missing_handler_cooldown=timedelta(seconds=10), missing_handler_jitter=0)
    assert place.engine(steady).runtime.housekeeping.step() == 10
    rare = Settings(missing_handler_cooldown=timedelta(hours=1), missing_handler_jitter=0)
    assert place.engine(rare).runtime.housekeeping.step() == 30


@pytest.mark.parametrize(
    "wrong",
    [
        {"missing_handler_cooldown": timedelta(seconds=-1)},
        {"missing_handler_throttle": timedelta(seconds=-1)},
        {"missing_handler_jitter": -0.1},
        {"missing_handler_jitter": 1.1},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    """The message names the setting."""
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        Settings(**wrong)  # type: ignore[arg-type]


@pytest.mark.row("F-117")
def test_without_ageing_effects_go_by_priority_alone(place: Place) -> None:
    """Switched off, waiting counts for nothing, whatever the rate; the urgent overtakes what waits for a year."""
    calls = Ledger()

    def urgent(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted("x")).with_effect(Act(command.what), priority=int(command.what))

    settings = Settings(ageing=1000.0, ageing_enabled=False)
    assert settings.ageing_rate == 0
    engine = place.engine(settings).register(Puppet(urgent))
    for what in ("10", "11"):
        engine.deciders.execute(Puppet, Do(f"p-{what}", what))
        place.clock.move(timedelta(days=365))
    worker = place.engine().register(Puppet(urgent), lambda context, effect: calls.add(effect.what))
    worker.drain()
    assert calls.entries == ["11", "10"]
    assert Settings(ageing=2.0).ageing_rate == 2.0
    assert rank_of(place.clock.now(), 10, ageing=0) > rank_of(place.clock.now(), 11, ageing=0)


def test_a_handler_that_comes_back_is_not_reported(place: Place) -> None:
    """While a live worker has it nothing is missing; when that worker is gone for good, it is again."""
    engine = waiting(place)
    helper = place.engine().register(Told(quietly), done)
    helper.runtime.heartbeat.step()
    assert look(engine) == []
    helper.runtime.retire()
    assert look(engine) == ["puppet"]
