"""A refusal that may pass costs no work anything: what was to be told is told again, and nothing is called, counted or buried for it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from standfast import ConflictError, Decision, EffectContext, Moment, RetryPolicy, Settings, StandfastError
from standfast.engine.commit.batch import CommandBatch
from standfast.engine.commit.committer import Committer
from standfast.engine.commit.facts import FactBook, NoSource
from standfast.errors import StoreUnavailableError
from standfast.kernel.decider import Failure
from standfast.store.records.instances import Claim, EffectClaim, InboxClaim, TimerClaim
from standfast.testing import ManualEngine
from support.engines import Live, Place
from support.samples import Act, Answer, Do, Ledger, Noted, Notes, Puppet
from support.waiting import eventually

ONCE = RetryPolicy(max_attempts=1)
PASSING = [ConflictError("somebody else was first 8 times in a row"), StoreUnavailableError("gone for a moment")]


class Unlucky:
    """Refuses the commands of one kind of work as often as it is told to, as if others had always been first."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kind: type[Claim], error: StandfastError, times: int) -> None:
        self.left = times
        original = Committer.commit

        def commit(committing: Committer, submissions: list, finished: list) -> CommandBatch:  # type: ignore[type-arg]
            if not self.left or not any(isinstance(each.claim, kind) for each in submissions):
                return original(committing, submissions, finished)
            self.left -= 1
            refused = committing._begin(FactBook(NoSource()), is_careful=True)
            for each in submissions:
                refused.refuse(each, error)
            return refused

        monkeypatch.setattr(Committer, "commit", commit)


class Told(Puppet):
    """A puppet that wants to know when an effect of it gave up."""

    type = "told"

    def effect_failed(self, effect: Act, failure: Failure) -> Do:
        return Do("p-1", f"done without {effect.what}")


def choose(state: Notes, command: Do, moment: Moment) -> Answer:
    """Have something done, once; or set a timer."""
    decision = Decision.event(Noted(command.what))
    match command.what:
        case "work":
            return decision.with_effect(Act("x"), once=True)
        case "wait":
            return decision.with_timer_after(timedelta(minutes=1), Do("p-1", "rang"))
        case _:
            return decision


@pytest.mark.parametrize("error", PASSING, ids=lambda error: error.code)
def test_an_instance_is_told_of_the_end_of_its_effect_however_long_it_takes(
    live: Live, monkeypatch: pytest.MonkeyPatch, error: StandfastError
) -> None:
    """The news that an effect gave up is not given up: it is no dead letter because of others who were faster."""
    unlucky = Unlucky(monkeypatch, EffectClaim, error, 3)

    def fail(context: EffectContext, effect: Act) -> Do:
        raise ValueError("no")

    engine = live.engine().register(Told(choose), fail, retry=ONCE).start_worker()
    engine.deciders.execute(Told, Do("p-1", "work"))
    eventually(lambda: engine.deciders.state(Told, "p-1") == ("work", "done without x"))
    assert (unlucky.left, engine.dead_letters.list()) == (0, [])


@pytest.mark.parametrize("error", PASSING, ids=lambda error: error.code)
def test_what_a_handler_came_to_is_handed_in_again(
    live: Live, monkeypatch: pytest.MonkeyPatch, error: StandfastError
) -> None:
    """The call went well: it is not made again, and not counted as failed, because its result had to wait."""
    unlucky, calls = Unlucky(monkeypatch, EffectClaim, error, 3), Ledger()

    def work(context: EffectContext, effect: Act) -> Do:
        calls.add(context.attempt)
        return Do("p-1", "done")

    engine = live.engine().register(Told(choose), work, retry=ONCE).start_worker()
    engine.deciders.execute(Told, Do("p-1", "work"))
    eventually(lambda: engine.deciders.state(Told, "p-1") == ("work", "done"))
    assert (unlucky.left, calls.entries, engine.dead_letters.list()) == (0, [1], [])


def waiting(place: Place) -> ManualEngine:
    """An engine whose timers and messages may fail once."""
    return place.engine(Settings(command_retry=ONCE)).register(Told(choose))


@pytest.mark.parametrize("error", PASSING, ids=lambda error: error.code)
@pytest.mark.parametrize("kind", [TimerClaim, InboxClaim])
def test_timers_and_messages_outlast_others(
    place: Place, monkeypatch: pytest.MonkeyPatch, kind: type[Claim], error: StandfastError
) -> None:
    """A timer or a message that lost its races comes again, with all its attempts."""
    engine = waiting(place)
    engine.deciders.execute(Told, Do("p-1", "wait"))
    unlucky = Unlucky(monkeypatch, kind, error, 3)
    engine.deciders.submit(Told, Do("p-1", "post"))
    engine.advance(hours=1)
    notes = engine.deciders.state(Told, "p-1")
    assert sorted(notes) == ["post", "rang", "wait"]
    assert (unlucky.left, engine.dead_letters.list()) == (0, [])


def test_whoever_drives_an_engine_does_not_wait_for_trouble_to_pass(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drain hands in once what a call came to; the next drain hands it in again, and the call is not made twice."""
    unlucky, calls = Unlucky(monkeypatch, EffectClaim, PASSING[0], 1000), Ledger()

    def work(context: EffectContext, effect: Act) -> Do:
        calls.add(context.attempt)
        return Do("p-1", "done")

    engine = place.engine().register(Told(choose), work)
    engine.deciders.execute(Told, Do("p-1", "work"))
    engine.drain()
    assert engine.deciders.state(Told, "p-1") == ("work",)
    unlucky.left = 0
    engine.drain()
    assert (engine.deciders.state(Told, "p-1"), calls.entries) == (("work", "done"), [1])
