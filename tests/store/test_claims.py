"""Claims, receipts and causes: what makes sure that nothing is recorded twice, and that a late one does no harm."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from standfast.kernel.row_kinds.steps import DeadLetterRaised
from standfast.store.ports.store import LostRaceError
from standfast.store.records.instances import (
    Claim,
    EffectClaim,
    InboxClaim,
    LetterClaim,
    Receipt,
    ReceiptKey,
    TimerClaim,
    Wanted,
)
from standfast.store.sql.conflicts import VoidClaimError
from support.desks import Desk
from support.rows import (
    NOW,
    OTHER_TENANT,
    SHIP_WORDS,
    born,
    effect,
    message,
    moved,
    new_id,
    new_worker,
    observation,
    receipt,
    timer,
)


def work_of(desk: Desk) -> tuple[Any, list[Claim]]:
    """An instance with an effect in hand, a timer that is set, a message that waits, and a dead letter."""
    identity, worker = new_id(), new_worker()
    letter = DeadLetterRaised(source="step", number=1, name="a", reason="no", error="no")
    work: dict[str, Any] = {"effects": [effect(identity)], "timers": [timer(identity, number=1)], "records": [letter]}
    head = desk.born(born(identity, issued=2, **work))
    (owned,) = desk.effects.claim(worker, [Wanted("ship", 1)], 1, words=SHIP_WORDS)
    (number,) = desk.writer.accept([message()], NOW)
    (dead,) = desk.reader.dead_letters(instance=identity)
    return head, [owned.claim, TimerClaim(identity, "reminder", 1), InboxClaim(number), dead.claim]


@pytest.mark.row("E-378", "E-493")
@pytest.mark.row("D-051", "D-083")
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_claims_are_used_up_by_the_change_they_led_to(desk: Desk, place: int) -> None:
    """A consumed claim is gone with the commit; using it a second time loses, so that nothing is recorded twice."""
    head, claims = work_of(desk)
    desk.commit(moved(head, consumed=[claims[place]]))
    now = desk.loaded(head.id).header
    with pytest.raises(LostRaceError):
        desk.commit(moved(now, consumed=[claims[place]]))
    assert desk.loaded(head.id).header.version == 2
    with desk.writer.unit() as unit:
        assert unit.void(claims) == {claims[place]}


def wrong(claim: Claim) -> list[Claim]:
    """Claims that look like this one and are not good."""
    match claim:
        case EffectClaim(instance, number, worker, fence):
            return [
                EffectClaim(instance, number + 1, worker, fence),
                EffectClaim(instance, number, new_worker(), fence),
                EffectClaim(instance, number, worker, fence + 1),
                EffectClaim(instance, number, worker, fence - 1),
                EffectClaim(new_id(), number, worker, fence),
            ]
        case TimerClaim(instance, key, number):
            return [
                TimerClaim(instance, key, number + 1),
                TimerClaim(instance, f"{key}!", number),
                TimerClaim(new_id(), key, number),
            ]
        case InboxClaim(number):
            return [InboxClaim(number + 1)]
        case LetterClaim(number):
            return [LetterClaim(number + 1)]


@pytest.mark.row("D-083")
@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_a_claim_must_be_exact(desk: Desk, place: int) -> None:
    """Another number, key, owner or fence is a void claim: it is told apart, and a change on it does not stand."""
    head, claims = work_of(desk)
    for each in wrong(claims[place]):
        with desk.writer.unit() as unit:
            assert unit.void([each, *claims]) == {each}
        with pytest.raises(LostRaceError):
            desk.commit(moved(head, consumed=[each]))
    assert desk.loaded(head.id).header.version == 1


def test_a_connection_is_not_lent_on_a_void_claim(desk: Desk) -> None:
    """Whoever has lost what he works for gets no connection to work with, and his transaction leaves nothing."""
    _, claims = work_of(desk)
    for claim in claims:
        with desk.writer.unit() as unit, unit.lend(claim=claim):
            pass
        for each in wrong(claim):
            with pytest.raises(VoidClaimError), desk.writer.unit() as unit, unit.lend(claim=each):
                raise AssertionError("it was lent")


def test_claims_can_be_used_up_inside_a_unit(desk: Desk) -> None:
    """`consume` takes claims without a change: all of them, or none and a lost race."""
    _, claims = work_of(desk)
    with pytest.raises(LostRaceError), desk.writer.unit() as unit:
        unit.consume([*claims, InboxClaim(10**9)])
    with desk.writer.unit() as unit:
        assert unit.void(claims) == set()
        unit.consume(claims)
    with desk.writer.unit() as unit:
        assert unit.void(claims) == set(claims)


@pytest.mark.row("D-050", "D-058", "D-071")
def test_finished_work_goes_without_a_change(desk: Desk) -> None:
    """Work that ended without a change is removed; a claim of it that is void does no harm, and stops nobody."""
    head, claims = work_of(desk)
    void: list[Claim] = [each for claim in claims for each in wrong(claim)]
    desk.commit(moved(head), finished=tuple(void))
    with desk.writer.unit() as unit:
        assert unit.void(claims) == set()
    desk.writer.write([], finished=claims, now=NOW)
    assert desk.keeper.backlog() == []
    assert desk.loaded(head.id).header.version == 2


def test_a_lost_race_leaves_finished_work_alone(desk: Desk) -> None:
    """What ended without a change stays claimed, and what was observed is not noted, if a change of the same commit lost."""
    head, claims = work_of(desk)
    late = moved(msgspec.structs.replace(head, version=7))
    with pytest.raises(LostRaceError):
        desk.writer.write([late], finished=claims, observations=[observation(head.id)], now=NOW)
    with desk.writer.unit() as unit:
        assert unit.void(claims) == set()
    assert desk.reader.observations() == []


@pytest.mark.row("E-376", "E-945")
@pytest.mark.row("D-111")
def test_receipts_are_found_by_their_whole_key(desk: Desk) -> None:
    """A receipt is for one tenant, scope and key; the same key elsewhere is another command."""
    identity = new_id()
    kept = [receipt(identity, "c-1"), receipt(identity, "c-1", tenant=OTHER_TENANT, version=7)]
    desk.commit(born(identity, receipts=kept))
    asked = [each.key for each in kept]
    missing = asked[0]._replace(scope="refund")
    with desk.writer.unit() as unit:
        assert unit.receipts([*asked, missing]) == dict(zip(asked, kept, strict=True))


@pytest.mark.row("E-375", "E-943")
@pytest.mark.row("D-111")
def test_a_receipt_is_given_once(desk: Desk) -> None:
    """A second commit with the same receipt loses, so that a command is carried out once."""
    head = desk.born(born(receipts=[receipt(new_id(), "c-1")]))
    with pytest.raises(LostRaceError):
        desk.commit(moved(head, receipts=[receipt(head.id, "c-1")]))
    assert desk.loaded(head.id).header.version == 1


def test_causes_settle_an_unknown_outcome(desk: Desk) -> None:
    """A cause counts as known only in the history of the instance that it is asked for."""
    first, second = desk.born(born(events=2)), desk.born(born())
    known, foreign = f"cause:{first.id}:2", f"cause:{second.id}:1"
    with desk.writer.unit() as unit:
        assert unit.causes([first.id, first.id, second.id], [known, foreign, "nonsense"]) == {known}
        assert unit.causes([], []) == set()


def test_a_worker_can_disown_what_it_does_not_know_of(desk: Desk) -> None:
    """Effects that a lost answer left with a worker go back to the others, untried; those it knows of stay."""
    identity, worker = new_id(), new_worker()
    leased: dict[str, Any] = {"owner": worker, "fence": 1, "attempts": 1}
    desk.commit(born(identity, issued=3, effects=[effect(identity, number, **leased) for number in range(3)]))
    known = EffectClaim(identity, 0, worker, 1)
    stale = EffectClaim(identity, 1, worker, 9)
    assert desk.writer.disown(worker, [known, stale]) == 2
    freed = desk.effects.claim(new_worker(), [Wanted("ship", 9)], 9, words=SHIP_WORDS)
    assert sorted((each.number, each.attempts) for each in freed) == [(1, 1), (2, 1)]
    with desk.writer.unit() as unit:
        assert unit.void([known]) == set()
    assert desk.writer.disown(worker, [known]) == 0


def test_effects_can_be_withdrawn(desk: Desk) -> None:
    """A change takes back effects by number, claimed or not; a claim on one of them is void from then on."""
    identity = new_id()
    head = desk.born(born(identity, issued=3, effects=[effect(identity, number) for number in range(3)]))
    (owned,) = desk.effects.claim(new_worker(), [Wanted("ship", 1)], 1, words=SHIP_WORDS)
    desk.commit(moved(head, withdrawn=[0, 2, 77]))
    assert [each.number for each in desk.reader.work(identity)[0]] == [1]
    with desk.writer.unit() as unit:
        assert unit.void([owned.claim]) == {owned.claim}


def test_a_receipt_can_be_kept_without_a_change(desk: Desk) -> None:
    """A command that changed nothing leaves its receipt, with what was asked for, and there is one for each key."""
    kept = Receipt(ReceiptKey("default", "order:o-1", "c-1"), None, 0, b"digest")
    with desk.writer.unit() as unit:
        unit.remember([kept], NOW)
    with desk.writer.unit() as unit:
        assert unit.receipts([kept.key]) == {kept.key: kept}
    with pytest.raises(LostRaceError), desk.writer.unit() as unit:
        unit.remember([kept], NOW)
