"""After the answer to a claim or to a commit got lost: what nobody knows of is freed, and nothing else."""

from __future__ import annotations

import threading
import time

import pytest

from standfast import Decision, Moment
from standfast.errors import StoreUnavailableError
from standfast.store.records.instances import StoredEffect, Wanted
from standfast.testing import ManualEngine
from support.engines import Live, Place
from support.inside import identity_of, lanes_of, registry_of, store_of
from support.samples import Act, Answer, Do, Ledger, Noted, Notes, Puppet, act, done
from support.waiting import arrives


def owning(place: Place, count: int) -> tuple[ManualEngine, list[StoredEffect]]:
    """An engine whose worker owns effects of as many instances."""
    engine = place.engine().register(Puppet(act), done)
    for number in range(count):
        engine.deciders.execute(Puppet, Do(f"p-{number}", "x"))
    engine.runtime.heartbeat.step()
    worker = engine.runtime.worker
    engine.service.lease_to(worker)
    owned = engine.runtime.intake.claim([Wanted("puppet", count)], count)
    return engine, sorted(owned, key=lambda effect: effect.created_at)


def test_recovery_frees_only_what_nobody_answers_for(place: Place) -> None:
    """What the worker has in hand, what has failed and what waits for its commit stays owned; the rest is free and uncounted."""
    engine, (in_hand, failed, ended, lost) = owning(place, 4)
    worker, committer = engine.runtime.worker, engine.service.committer.lanes[0].committer
    worker._hold([worker._prepare(in_hand, 0.0)])
    engine.runtime.intake._failing.add(failed.claim)
    committer._claims[id(ended.claim)] = ended.claim
    engine.service._recovered(engine.service.store.writer())
    found = {
        each.instance: (each.owner, each.attempts)
        for effect in (in_hand, failed, ended, lost)
        for each in place.store.reader("default").work(effect.instance)[0]
    }
    mine = (engine.runtime.identity, 1)
    assert found == {
        in_hand.instance: mine,
        failed.instance: mine,
        ended.instance: mine,
        lost.instance: (None, 0),
    }


def test_nothing_is_claimed_until_a_lost_claim_is_found(place: Place) -> None:
    """A worker that does not know what it owns takes nothing more before that is free again."""
    engine = place.engine().register(Puppet(act), done)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.runtime.heartbeat.step()
    intake, asked, owed = engine.runtime.intake, Ledger(), Ledger()

    def cut(wanted: list[Wanted], limit: int) -> list[StoredEffect]:
        asked.add("claim")
        raise StoreUnavailableError("the answer got lost")

    intake.claim, intake._claim_lost = cut, lambda: owed.add("recovery")  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailableError):
        intake.step()
    intake.step()
    assert (asked.entries, owed.entries) == (["claim"], ["recovery"])
    intake.see()
    with pytest.raises(StoreUnavailableError):
        intake.step()
    assert asked.entries == ["claim", "claim"]


def test_a_claim_that_comes_true_after_the_recovery_is_freed_by_a_second_one(live: Live) -> None:
    """A server that has not noticed that its client is gone carries a claim out late; when that must be over, it is freed all the same."""
    recovered, called = threading.Event(), threading.Event()

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted(command.what)).with_effect(Act("x"), handler="mailer")

    engine = live.engine().register(Puppet(choose)).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    committer = lanes_of(engine)[0].committer
    committer.owe_recovery(recovered.set)
    arrives(recovered)
    assert committer._again_at is not None
    words = registry_of(engine).effects()
    (late,) = store_of(engine).effects().claim(identity_of(engine), [Wanted("mailer", 1)], 1, words=words)
    engine.handle("mailer", lambda context, effect: called.set())
    committer._again_at = time.monotonic()
    committer._put(None)
    arrives(called)
    assert late.owner == identity_of(engine)
    assert committer._again_at is None
