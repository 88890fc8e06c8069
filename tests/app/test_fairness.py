"""Tenants among one another: who asks for much stands behind who asks for little, and nobody waits while there is room."""

from __future__ import annotations

import threading
from datetime import timedelta

import msgspec
import pytest

from standfast import ConfigurationError, EffectContext, Settings
from standfast.engine.commit.fairness import TenantFairness
from standfast.engine.common.clock import ManualClock
from standfast.testing.manual import START
from support.engines import QUICK, Live, Place
from support.samples import Act, Do, Puppet, act
from support.waiting import eventually

LOUD = 60


@pytest.mark.row("E-475")
@pytest.mark.parametrize(("rate", "most"), [(10.0, 1), (None, LOUD)])
@pytest.mark.row("G-21")
def test_a_tenant_that_floods_keeps_nobody_else_waiting(place: Place, rate: float | None, most: int) -> None:
    """What others ask for goes before what is beyond its share; in one line, theirs comes last. All of it is done in the end."""
    called: list[str] = []
    engine = place.engine(Settings(tenant_rate=rate))
    engine.register(Puppet(act), lambda context, effect: called.append(context.tenant))
    for number in range(LOUD):
        engine.as_tenant("loud").deciders.execute(Puppet, Do(f"p-{number}", "x"))
    place.clock.move(timedelta(milliseconds=1))
    engine.as_tenant("quiet").deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    assert called.index("quiet") == most
    assert called.count("loud") == LOUD


def test_a_worker_with_threads_lets_the_quiet_tenant_in_between(live: Live) -> None:
    """Also where commits hand effects over themselves: by its next steps a tenant beyond its share does not keep the slot to itself."""
    gate, called = threading.Event(), list[str]()

    def handle(context: EffectContext, effect: Act) -> Do | None:
        gate.wait(30)
        called.append(context.tenant)
        step = int(effect.what)
        return Do("p-1", str(step - 1)) if step else None

    settings = msgspec.structs.replace(QUICK, concurrency=1, threads=1, tenant_rate=5.0)
    engine = live.engine(settings, clock=ManualClock(START)).register(Puppet(act), handle)
    engine.start_worker()
    engine.as_tenant("loud").deciders.execute(Puppet, Do("p-1", "30"))
    engine.as_tenant("quiet").deciders.execute(Puppet, Do("p-1", "0"))
    gate.set()
    eventually(lambda: len(called) == 32)
    assert called.index("quiet") <= 2


def test_a_share_comes_back_with_time_and_is_not_remembered_for_ever() -> None:
    """A tenant that was quiet for a while is on time again, and those on time are forgotten when there are many."""
    shares = TenantFairness(10.0)
    assert [shares.take("a", START).total_seconds() for _ in range(3)] == [0.0, 0.1, 0.2]
    assert shares.take("b", START) == timedelta(0)
    later = START + timedelta(seconds=1)
    assert shares.take("a", later) == timedelta(0)
    for number in range(30_000):
        shares.take(f"t-{number}", later + timedelta(seconds=number))
    assert len(shares._next) <= 10_001


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_is_more_than_nothing(rate: float) -> None:
    """Settings that nobody could keep are refused."""
    with pytest.raises(ConfigurationError, match="tenant_rate"):
        Settings(tenant_rate=rate)
