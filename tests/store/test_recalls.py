"""Effects that are taken back: gone with a message if nobody holds them, told to stop if somebody does, never both."""

from __future__ import annotations

import threading
from functools import partial

import psycopg
import pytest

from standfast.kernel.ids import InstanceId
from standfast.store.opening import open_store
from standfast.store.ports.store import LostRaceError
from standfast.store.records.instances import DeadLetterRecord, InstanceHeader, StoredEffect, Wanted
from support.desks import Desk
from support.rows import (
    HOUR,
    LATER,
    NOW,
    OTHER_TENANT,
    SHIP_WORDS,
    WORDS,
    born,
    effect,
    letter,
    message,
    moved,
    new_id,
    new_worker,
    recall,
)
from support.waiting import eventually, together

SHIP = [Wanted("ship", 100)]


def waiting(desk: Desk, count: int = 1, tenant: str = "default") -> InstanceHeader:
    """An instance with effects that nobody has begun."""
    identity = new_id()
    work = [effect(identity, number, tenant=tenant) for number in range(count)]
    return desk.born(born(identity, tenant=tenant, issued=count, effects=work))


def effects_of(desk: Desk, instance: InstanceId) -> list[StoredEffect]:
    """The live effects of an instance."""
    return desk.reader.work(instance)[0]


def told(desk: Desk) -> list[str]:
    """What the messages in the inbox say."""
    return [each.data.decode() for each in desk.inbox.claim(LATER, words=WORDS, hold=HOUR, limit=99)]


def test_an_effect_that_nobody_holds_is_taken_back(desk: Desk) -> None:
    """It goes, and its instance is told so, in the same commit; the effects beside it stay."""
    head = waiting(desk, 3)
    desk.commit(moved(head, recalls=[recall(head.id, 1)]))
    assert [each.number for each in effects_of(desk, head.id)] == [0, 2]
    (found,) = desk.inbox.claim(LATER, words=WORDS, hold=HOUR, limit=9)
    assert (found.address.instance, found.data, found.type) == (head.id, b"taken back 1", "Tell")
    assert found.target == f"{head.id}"


def test_a_parked_effect_is_taken_back(desk: Desk) -> None:
    """An effect that waits for its time, or for its next attempt, is in nobody's hands either."""
    identity = new_id()
    head = desk.born(born(identity, issued=2, effects=[effect(identity, 0, parked_until=LATER), effect(identity, 1)]))
    (failed,) = desk.effects.claim(new_worker(), SHIP, 1, words=SHIP_WORDS)
    desk.effects.retry(failed.claim, error="no", until=LATER)
    desk.commit(moved(head, recalls=[recall(head.id, 0), recall(head.id, 1, stop=True)]))
    assert effects_of(desk, head.id) == []
    assert told(desk) == ["taken back 0", "taken back 1"]


@pytest.mark.parametrize("stop", [False, True])
def test_an_effect_in_hand_stays(desk: Desk, *, stop: bool) -> None:
    """Its claim stays good, nothing is told, and whoever holds it hears of the wish to stop if there is one."""
    head = waiting(desk, 2)
    worker = new_worker()
    first, second = desk.effects.claim(worker, SHIP, 2, words=SHIP_WORDS)
    desk.commit(moved(head, recalls=[recall(head.id, 0, stop=stop)]))
    assert [(each.number, each.owner, each.stop_requested) for each in effects_of(desk, head.id)] == [
        (0, worker, stop),
        (1, worker, False),
    ]
    assert told(desk) == []
    claims = [first.claim, second.claim]
    beat = desk.workers.beat(worker, claims, name="w", handlers=["ship"], lease=HOUR, now=NOW)
    assert (beat.lost, beat.stopping) == ([], [first.claim] if stop else [])
    desk.commit(finished=(first.claim,))
    assert [each.number for each in effects_of(desk, head.id)] == [1]


def test_the_wish_to_stop_outlives_the_one_who_holds_it(desk: Desk) -> None:
    """Given back by its worker, the effect still says that it is to be stopped; whoever claims it next sees that."""
    head = waiting(desk)
    (held,) = desk.effects.claim(new_worker(), SHIP, 1, words=SHIP_WORDS)
    desk.commit(moved(head, recalls=[recall(head.id, stop=True)]))
    desk.effects.release([held.claim])
    (again,) = desk.effects.claim(new_worker(), SHIP, 1, words=SHIP_WORDS)
    assert again.stop_requested


def test_an_effect_that_has_ended_needs_nothing(desk: Desk) -> None:
    """An effect that is gone, or never was, cannot be taken back: nothing happens and nothing is told."""
    head = waiting(desk)
    (held,) = desk.effects.claim(new_worker(), SHIP, 1, words=SHIP_WORDS)
    desk.commit(finished=(held.claim,))
    desk.commit(moved(head, recalls=[recall(head.id, 0, stop=True), recall(head.id, 7)]))
    assert (effects_of(desk, head.id), told(desk)) == ([], [])
    assert desk.loaded(head.id).header.version == 2


def test_only_effects_of_the_same_instance_are_taken_back(desk: Desk) -> None:
    """The number counts within the instance of the change."""
    ours, theirs = waiting(desk), waiting(desk)
    desk.commit(moved(ours, recalls=[recall(ours.id)]))
    assert (len(effects_of(desk, ours.id)), len(effects_of(desk, theirs.id))) == (0, 1)


def test_many_recalls_share_a_commit(desk: Desk) -> None:
    """Each of them is judged by itself, whatever its neighbours are; messages come in the order of the decision."""
    heads = [waiting(desk, 3, tenant) for tenant in ("default", OTHER_TENANT)]
    held = desk.effects.claim(new_worker(), SHIP, 2, words=SHIP_WORDS)
    changes = [
        moved(
            head,
            recalls=[recall(head.id, number, stop=number == 1, tenant=head.tenant) for number in (2, 1, 0)],
            messages=[message("o-1", "beside", tenant=head.tenant)],
        )
        for head in heads
    ]
    desk.commit(*changes)
    left = [*desk.reader.work(heads[0].id)[0], *desk.reading(OTHER_TENANT).work(heads[1].id)[0]]
    assert {(each.instance, each.number) for each in left} == {(each.instance, each.number) for each in held}
    assert {each.number: each.stop_requested for each in left if each.number == 1} in ({}, {1: True})
    found = desk.inbox.claim(LATER, words=WORDS, hold=HOUR, limit=99)
    for head in heads:
        mine = [each.data.decode() for each in found if each.address.instance == head.id]
        kept = {each.number for each in held if each.instance == head.id}
        assert mine == [f"taken back {number}" for number in (2, 1, 0) if number not in kept]
    assert sum(each.data == b"beside" for each in found) == 2


def test_a_change_that_loses_takes_nothing_back(desk: Desk) -> None:
    """With the rest of a commit that does not stand, the effect stays and nothing is told."""
    head = waiting(desk)
    desk.commit(moved(head))
    with pytest.raises(LostRaceError):
        desk.commit(moved(head, recalls=[recall(head.id)]))
    assert ([each.number for each in effects_of(desk, head.id)], told(desk)) == ([0], [])


def test_an_effect_may_end_while_it_is_recalled(desk: Desk) -> None:
    """Finished work and the wish to stop it in one commit: it is finished, and does not linger."""
    head = waiting(desk, 2)
    first, second = desk.effects.claim(new_worker(), SHIP, 2, words=SHIP_WORDS)
    recalls = [recall(head.id, number, stop=True) for number in (0, 1)]
    desk.commit(moved(head, recalls=recalls), finished=(first.claim,))
    assert [(each.number, each.stop_requested) for each in effects_of(desk, head.id)] == [(1, True)]
    with desk.writer.unit() as unit:
        assert unit.void([first.claim, second.claim]) == {first.claim}


def test_a_unit_takes_back_as_well(desk: Desk) -> None:
    """The careful way of committing knows recalls too."""
    head = waiting(desk)
    with desk.writer.unit() as unit:
        unit.write([moved(head, recalls=[recall(head.id)])], NOW)
    assert (effects_of(desk, head.id), told(desk)) == ([], ["taken back 0"])


def claim_one(desk: Desk, taken: list[StoredEffect]) -> None:
    """Try to get the effect."""
    taken += desk.effects.claim(new_worker(), SHIP, 1, words=SHIP_WORDS)


def test_a_claim_and_a_recall_have_one_winner(desk: Desk) -> None:
    """Whoever is first: the effect is claimed, or it is taken back and its instance told; never both, never neither."""
    other = desk.another()
    for _ in range(25):
        head = waiting(desk)
        taken: list[StoredEffect] = []
        change = moved(head, recalls=[recall(head.id, stop=True)])
        together(partial(claim_one, other, taken), partial(desk.commit, change))
        left = effects_of(desk, head.id)
        assert [each.claim for each in left] == [each.claim for each in taken]
        assert told(desk) == ([] if taken else ["taken back 0"])
        desk.commit(finished=tuple(each.claim for each in taken))


BLOCKED = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_recall_waits_for_a_claim_that_is_under_way(postgres_dsn: str, *, is_kept: bool) -> None:
    """If the claim stands the effect stays with its worker, who is told to stop; if not, it is taken back."""
    store = open_store(postgres_dsn)
    desk = Desk(store)
    head = waiting(desk)
    change = moved(head, recalls=[recall(head.id, stop=True)])
    with psycopg.connect(postgres_dsn) as claim, psycopg.connect(postgres_dsn, autocommit=True) as witness:
        claim.execute("update standfast.effects set owner = gen_random_uuid(), fence = 1, attempts = 1")
        thread = threading.Thread(target=desk.commit, args=(change,))
        thread.start()
        eventually(lambda: (witness.execute(BLOCKED).fetchone() or (0,))[0])
        if is_kept:
            claim.commit()
        else:
            claim.rollback()
        thread.join()
    assert [(each.number, each.stop_requested) for each in effects_of(desk, head.id)] == [(0, True)] * is_kept
    assert told(desk) == ([] if is_kept else ["taken back 0"])
    store.close()


def dead_effect(desk: Desk) -> tuple[InstanceHeader, DeadLetterRecord]:
    """An instance whose effect gave up, and the letter."""
    head = waiting(desk)
    (taken,) = desk.effects.claim(new_worker(), SHIP, 1, words=SHIP_WORDS)
    assert desk.effects.bury(taken.claim, letter("effect", instance=head.id, number=0))
    (dead,) = desk.reader.dead_letters()
    return head, dead


@pytest.mark.parametrize("stop", [False, True])
def test_a_dead_effect_is_taken_back(desk: Desk, *, stop: bool) -> None:
    """Nobody has it in hand, so that its instance is told; the letter goes with it."""
    head, dead = dead_effect(desk)
    desk.commit(moved(head, recalls=[recall(head.id, stop=stop)]))
    assert (told(desk), desk.reader.dead_letters()) == (["taken back 0"], [])
    assert not desk.keeper.requeue(dead, now=LATER)


def test_a_requeue_and_a_withdrawal_take_turns(desk: Desk) -> None:
    """Whoever is first, an operator or the instance: no effect is left that nobody wants, and no letter."""
    other = desk.another()
    for _ in range(25):
        head, dead = dead_effect(desk)
        change = moved(head, withdrawn=(0,))
        together(partial(other.keeper.requeue, dead, now=LATER), partial(desk.commit, change))
        assert (effects_of(desk, head.id), desk.reader.dead_letters()) == ([], [])


def test_a_requeue_waits_for_a_withdrawal_that_is_under_way(postgres_dsn: str) -> None:
    """It puts nothing back once the instance does not want it."""
    store = open_store(postgres_dsn)
    desk = Desk(store)
    head, dead = dead_effect(desk)
    answers: list[bool] = []
    with psycopg.connect(postgres_dsn) as commit, psycopg.connect(postgres_dsn, autocommit=True) as witness:
        commit.execute("update standfast.instances set version = version + 1")
        commit.execute("delete from standfast.effects")
        thread = threading.Thread(target=lambda: answers.append(desk.keeper.requeue(dead, now=LATER)))
        thread.start()
        eventually(lambda: (witness.execute(BLOCKED).fetchone() or (0,))[0])
        commit.execute("delete from standfast.dead_letters")
        commit.commit()
        thread.join()
    assert (answers, effects_of(desk, head.id)) == ([False], [])
    store.close()
