"""Several committers of one process: each instance keeps its order, whatever its commands come by."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from standfast import ConfigurationError, Decision, Moment, Saga, Settings
from support.engines import QUICK, Live
from support.inside import lanes_of
from support.samples import Do, Ledger, Noted, Notes, Puppet
from support.waiting import eventually, together

SEVERAL = msgspec.structs.replace(QUICK, committers=3)


def ticking(state: Notes, command: Do, moment: Moment) -> Decision:
    """Every command that begins with a number sets a timer, whose command finds the instance by its id."""
    decision = Decision.event(Noted(command.what))
    if command.what.isdigit():
        return decision.with_timer_after(timedelta(0), Do(command.workflow_id, f"tick {command.what}"))
    return decision


def test_the_order_of_an_instance_is_that_of_its_callers(live: Live) -> None:
    """Commands by key from several threads and timers by id go to one committer or another, and nothing is lost or out of order."""
    engine = live.engine(SEVERAL).register(Puppet(ticking)).start_worker()

    def call(number: int) -> None:
        for step in range(20):
            engine.futures.deciders.execute(Puppet, Do(f"p-{number}", str(step))).result(timeout=30)

    together(*[lambda number=number: call(number) for number in range(6)])
    for number in range(6):
        eventually(lambda number=number: len(engine.deciders.state(Puppet, f"p-{number}")) == 40)  # type: ignore[misc]
        state = engine.deciders.state(Puppet, f"p-{number}")
        assert [each for each in state if each.isdigit()] == [str(step) for step in range(20)]
        assert sorted(each for each in state if each.startswith("tick")) == sorted(f"tick {step}" for step in range(20))


def test_commands_that_are_sent_together_stay_in_order(live: Live) -> None:
    """Whoever does not wait for one command before the next still has them carried out in turn, from the first one on."""
    engine = live.engine(SEVERAL).register(Puppet())
    for attempt in range(5):
        sent = [(key, step) for step in range(20) for key in range(3)]
        replies = [engine.futures.deciders.execute(Puppet, Do(f"p-{attempt}-{key}", str(step))) for key, step in sent]
        for reply in replies:
            reply.result(timeout=30)
        for key in range(3):
            assert engine.deciders.state(Puppet, f"p-{attempt}-{key}") == tuple(map(str, range(20)))


def test_all_committers_do_their_share(live: Live) -> None:
    """Instances without a key are spread over the committers, and all of them end."""
    calls = Ledger()
    engine = live.engine(SEVERAL).handle("h", lambda ctx: calls.add(ctx.instance))
    engine.register(Saga("s").step("a", "h").step("b", "h").build()).start_worker()
    instances = [engine.start("s").id for _ in range(30)]
    for instance in instances:
        engine.run(instance).result(timeout=30)
    assert len(calls.entries) == 60
    remembered = [len(lane.cache._by_id) for lane in lanes_of(engine)]
    assert sum(remembered) == 30
    assert all(remembered)


def test_there_is_at_least_one_committer() -> None:
    """Nonsense is refused."""
    with pytest.raises(ConfigurationError, match="committers must be at least 1"):
        Settings(committers=0)
