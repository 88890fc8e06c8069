"""What listeners hear: whose work it was, how long it waited, and which instances began and ended."""

from __future__ import annotations

from datetime import timedelta

import pytest

from standfast import Actor, Decision, EffectContext, Moment, RequestContext
from standfast.engine.common.telemetry import (
    EffectEnded,
    Happening,
    InstanceEnded,
    InstanceStarted,
    TimerFired,
)
from support.engines import Place
from support.samples import END, Act, Answer, Do, Noted, Notes, Puppet

MINUTE = timedelta(minutes=1)
REQUEST = RequestContext(tenant="rival", actor=Actor(id="eve"), trace="t-1")


def choose(state: Notes, command: Do, moment: Moment) -> Answer:
    """An effect that waits, then a timer, then the end."""
    decision = Decision.event(Noted(command.what))
    match command.what:
        case "begin":
            return decision.with_effect(Act("work"), delay=MINUTE)
        case "worked":
            return decision.with_timer_after(MINUTE, Do(moment.key, END))
        case _:
            return decision


@pytest.mark.row("E-815")
def test_whatever_is_heard_of_work_says_whose_it_was(place: Place) -> None:
    """Definition, tenant and trace; of an effect how long it waited, and of an instance how long it took."""
    heard: list[Happening] = []

    def handle(context: EffectContext, effect: Act) -> Do:
        return Do("p-1", "worked")

    engine = place.engine().register(Puppet(choose), handle).listen(heard.append)
    engine.acting(REQUEST).deciders.execute(Puppet, Do("p-1", "begin"))
    engine.advance(minutes=5)
    (ended,) = [each for each in heard if isinstance(each, EffectEnded)]
    assert (ended.definition, ended.tenant, ended.trace, ended.waited) == ("puppet", "rival", "t-1", MINUTE)
    (fired,) = [each for each in heard if isinstance(each, TimerFired)]
    assert (fired.definition, fired.tenant) == ("puppet", "rival")
    (header,) = engine.as_tenant("rival").instances.list()
    lives = [each for each in heard if isinstance(each, InstanceStarted | InstanceEnded)]
    named = {"definition": "puppet", "tenant": "rival", "instance": header.id, "kind": "decider"}
    assert lives == [
        InstanceStarted(**named),  # type: ignore[arg-type]
        InstanceEnded(**named, status="completed", took=2 * MINUTE),  # type: ignore[arg-type]
    ]
