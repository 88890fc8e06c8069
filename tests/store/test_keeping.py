"""What operators and housekeeping do: dead letters back to work, retention of whole instances, maintenance."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from standfast.kernel.ids import InstanceId, WorkerId
from standfast.kernel.row_kinds.steps import DeadLetterRaised, StepOpened, SubscriptionOpened, TaskOpened
from standfast.store.ports.notifications import NewNotification, Reader, Recipient
from standfast.store.ports.store import LostRaceError, MaintenancePort, Store
from standfast.store.records.claim_order import rank_of
from standfast.store.records.instances import (
    DeadLetterRecord,
    InstanceHeader,
    Maintenance,
    Snapshot,
    Wanted,
)
from standfast.store.records.queries import BacklogRecord, GivenUpRecord, NeededError, Remains, Unhandled
from support.desks import Desk
from support.rows import (
    HOUR,
    LATER,
    NOW,
    OTHER_TENANT,
    SHIP_WORDS,
    WORDS,
    born,
    by_id,
    by_key,
    effect,
    letter,
    message,
    moved,
    new_id,
    new_worker,
    observation,
    receipt,
    timer,
)

HOLD = timedelta(seconds=10)
SHIP = [Wanted("ship", 9)]


def dead_effect(desk: Desk, **rest: Any) -> DeadLetterRecord:
    """An effect that gave up, as its letter."""
    identity = new_id()
    desk.commit(born(identity, issued=1, effects=[effect(identity, priority=50)]))
    (owned,) = desk.effects.claim(new_worker(), SHIP, 1, words=SHIP_WORDS)
    told = {"instance": identity, "number": 0, "priority": 50, "options": b"o", "version": 2} | rest
    assert desk.effects.bury(owned.claim, letter("effect", **told))
    return desk.reader.dead_letters(instance=identity)[0]


def dead_message(desk: Desk, tenant: str = "default") -> DeadLetterRecord:
    """A message that gave up before it had an instance, as its letter."""
    desk.writer.accept([message("o-1", "hello", tenant=tenant)], NOW)
    (taken,) = desk.inbox.claim(NOW, words=WORDS, hold=HOLD, limit=1)
    told = letter(
        "inbox",
        tenant=tenant,
        key="o-1",
        name=taken.target,
        type="Tell",
        data=b"hello",
        command_id="c-1",
        comment="why",
    )
    assert desk.inbox.bury(taken.claim, told)
    return desk.reading(tenant).dead_letters()[0]


@pytest.mark.row("D-060")
def test_a_letter_carries_all_that_is_needed(desk: Desk) -> None:
    """A letter is found by its id and tells what gave up, why, and after how many attempts."""
    found = dead_effect(desk)
    assert desk.keeper.dead_letter(found.id, tenant="default") == found
    assert (found.type, found.version, found.data, found.options) == ("Ship", 2, b"payload", b"o")
    assert (found.attempts, found.reason, found.error, found.priority) == (5, "handler_failed", "no stamps", 50)
    assert (found.definition, found.name, found.created_at, found.actor) == ("order", "ship", NOW, "ada")


@pytest.mark.row("D-060")
def test_a_dead_effect_goes_back_to_work(desk: Desk) -> None:
    """Requeued, an effect starts anew: no attempts, no error, ready now, with its payload, options and priority."""
    dead = dead_effect(desk)
    assert desk.keeper.requeue(dead, now=LATER)
    (again,) = desk.effects.claim(new_worker(), SHIP, 9, words=SHIP_WORDS)
    assert (again.instance, again.number, again.handler) == (dead.instance, 0, "ship")
    assert (again.type, again.version, again.data, again.options) == ("Ship", 2, b"payload", b"o")
    assert (again.attempts, again.error, again.priority) == (1, "", 50)
    assert again.rank == effect(new_id(), ready=LATER, priority=50).rank
    assert desk.reader.dead_letters() == []


@pytest.mark.row("D-060")
def test_a_dead_message_goes_back_to_work(desk: Desk) -> None:
    """Requeued, a message is what it was, and waits for its turn behind those that its target already has."""
    dead = dead_message(desk)
    desk.writer.accept([message("o-1", "younger")], NOW)
    assert desk.keeper.requeue(dead, now=LATER)
    found = desk.inbox.claim(LATER, words=WORDS, hold=HOLD, limit=9)
    assert [(each.address.key, each.data, each.attempts) for each in found] == [
        ("o-1", b"younger", 0),
        ("o-1", b"hello", 0),
    ]
    assert found[0].target == found[1].target
    assert (found[1].command_id, found[1].comment, found[1].actor) == ("c-1", "why", "ada")


def test_a_dead_start_goes_back_to_work(desk: Desk) -> None:
    """Requeued, a message that starts an instance still names the parent and the version."""
    parent, child = new_id(), new_id()
    desk.writer.accept([message(instance=child, parent=parent, definition_version="7")], NOW)
    (taken,) = desk.inbox.claim(NOW, words=WORDS, hold=HOLD, limit=1)
    told = letter("inbox", instance=child, name=taken.target, type="Tell", parent=parent, definition_version="7")
    assert desk.inbox.bury(taken.claim, told)
    (dead,) = desk.reader.dead_letters()
    assert (dead.parent, dead.definition_version) == (parent, "7")
    assert desk.keeper.requeue(dead, now=LATER)
    (again,) = desk.inbox.claim(LATER, words=WORDS, hold=HOLD, limit=9)
    assert (again.address.instance, again.parent, again.definition_version) == (child, parent, "7")


def test_a_requeued_effect_ages_as_the_others_do(desk: Desk) -> None:
    """Its place in the order is counted with the rate that the engine uses, also where waiting counts for nothing."""
    dead = dead_effect(desk)
    assert desk.keeper.requeue(dead, now=LATER, ageing=0)
    (again,) = desk.effects.claim(new_worker(), SHIP, 9, words=SHIP_WORDS)
    assert again.rank == rank_of(LATER, 50, ageing=0)


@pytest.mark.parametrize("make", [dead_effect, dead_message])
def test_a_letter_is_requeued_once(desk: Desk, make: Any) -> None:
    """Of two operators one puts the work back; the other hears that the letter is gone."""
    dead = make(desk)
    assert desk.keeper.requeue(dead, now=LATER)
    assert not desk.another().keeper.requeue(dead, now=LATER)
    assert sum(each.count for each in desk.keeper.backlog()) == 1


def test_a_letter_can_be_discarded(desk: Desk) -> None:
    """A discarded letter is gone for good, and its work does not come back."""
    dead = dead_effect(desk)
    assert desk.keeper.discard(dead.id, tenant="default")
    assert not desk.keeper.discard(dead.id, tenant="default")
    assert not desk.keeper.requeue(dead, now=LATER)
    assert desk.keeper.dead_letter(dead.id, tenant="default") is None
    assert desk.keeper.backlog() == []


def test_letters_belong_to_their_tenant(desk: Desk) -> None:
    """With another tenant's name a letter is neither found, discarded nor requeued."""
    dead = dead_message(desk, OTHER_TENANT)
    assert desk.keeper.dead_letter(dead.id, tenant="default") is None
    assert not desk.keeper.discard(dead.id, tenant="default")
    assert desk.reader.dead_letters() == []
    assert desk.keeper.dead_letter(dead.id, tenant=OTHER_TENANT) == dead


TABLES = {
    "instances": "id", "events": "instance", "snapshots": "instance", "receipts": "instance", "effects": "instance",
    "timers": "instance", "inbox": "instance", "dead_letters": "instance", "steps": "instance", "human_tasks": "instance",
    "subscriptions": "instance", "observations": "instance",
}  # fmt: skip
"""The tables with rows of an instance, and the column that names it."""


def full(desk: Desk, *, ends: bool = True) -> InstanceHeader:
    """An instance with a row in every table."""
    identity = new_id()
    change = born(
        identity,
        issued=2,
        effects=[effect(identity)],
        timers=[timer(identity, number=1)],
        messages=[message(instance=identity)],
        receipts=[receipt(identity, f"{identity}")],
        snapshot=Snapshot(version=1, state_version=1, data=b"state"),
        records=[
            StepOpened(number=1, node="charge"),
            TaskOpened(number=1),
            SubscriptionOpened(number=1, signal="paid"),
            DeadLetterRaised(source="step", number=1, name="charge", reason="r", error="e"),
        ],
    )
    desk.writer.write([change], observations=[observation(identity)], now=NOW)
    if ends:
        end = moved(change.header, ends=True)
        desk.commit(end, now=LATER)
        return end.header
    return change.header


def rows_of(desk: Desk, instance: InstanceId) -> dict[str, int]:
    """How many rows an instance has, by table, where it has any."""
    found = {
        table: desk.query(f"select count(*) from {{}}{table} where {column} = '{instance}'")[0][0]
        for table, column in TABLES.items()
    }
    return {table: count for table, count in found.items() if count}


def test_every_table_with_an_instance_is_known_here(desk: Desk) -> None:
    """A new table with rows of instances must be emptied by a deletion, and be looked at here."""
    full(desk)
    assert set(rows_of(desk, full(desk).id)) == set(TABLES)


@pytest.mark.row("R-024")
def test_a_finished_instance_is_deleted_whole(desk: Desk) -> None:
    """Nothing of the instance is left in any table but what its commands are known by, and nothing of its neighbour is touched."""
    gone, kept = full(desk), full(desk)
    before = rows_of(desk, kept.id)
    assert desk.keeper.delete(gone.id, tenant="default", force=True)
    assert (rows_of(desk, gone.id), rows_of(desk, kept.id)) == ({"receipts": 1}, before)
    assert not desk.keeper.delete(gone.id, tenant="default", force=True)
    assert desk.writer.load([by_id(gone.id)]) == [None]


def test_who_has_read_its_notices_goes_with_an_instance(desk: Desk) -> None:
    """What people were told of it goes, and so does who of a role has read that; nothing of its neighbour's does."""
    side, clerks = desk.store.notifications(), Recipient("role", "clerk")
    gone, kept = ended(desk), ended(desk)
    for head in (gone, kept):
        fields: dict[str, Any] = {
            "tenant": "default",
            "kind": "role",
            "recipient": "clerk",
            "step": 1,
            "subject": "s",
            "body": "",
        }
        side.add(NewNotification(key=str(head.id), instance=head.id, **fields), NOW)
    assert side.mark_all_read("default", clerks, NOW, who=Reader("ann")) == 2
    assert desk.keeper.delete(gone.id, tenant="default")
    left = side.page("default", clerks, who=Reader("ann", ("clerk",)), unread=False, before=2**63 - 1, limit=9)
    assert [(each.instance, each.read_at) for each in left] == [(kept.id, NOW)]
    assert desk.query("select notification from {}notification_reads") == [(left[0].id,)]


def ended(desk: Desk, *, at: datetime = LATER, key: str = "", **rest: Any) -> InstanceHeader:
    """An instance that has ended, with these rows."""
    head = desk.born(born(key=key, **rest))
    end = moved(head, ends=True, at=at)
    desk.commit(end, now=at)
    return end.header


NEEDED: dict[str, tuple[Callable[[Desk, InstanceHeader], object], Remains]] = {
    "effect": (
        lambda desk, head: desk.commit(moved(head, ends=True, issued=1, effects=[effect(head.id)]), now=LATER),
        Remains(1, 0, 0, []),
    ),
    "letter": (
        lambda desk, head: desk.commit(
            moved(
                head,
                ends=True,
                records=[DeadLetterRaised(source="compensation", number=1, name="charge", reason="r", error="e")],
            ),
            now=LATER,
        ),
        Remains(0, 1, 0, []),
    ),
    "message by id": (
        lambda desk, head: desk.writer.accept([message(instance=head.id)], NOW),
        Remains(0, 0, 1, []),
    ),
    "message by key": (
        lambda desk, head: desk.writer.accept(
            [
                msgspec.structs.replace(message(), address=by_key(key, definition=head.definition))
                for key in (head.key, "o")
            ],
            NOW,
        ),
        Remains(0, 0, 1, []),
    ),
    "reader": (lambda desk, head: desk.feed.enter("totals"), Remains(0, 0, 0, ["totals"])),
}


@pytest.mark.parametrize("what", NEEDED)
def test_an_instance_that_is_needed_is_neither_deleted_nor_expired(desk: Desk, what: str) -> None:
    """Whatever would be lost with it is told; whoever insists deletes it all the same."""
    need, remains = NEEDED[what]
    head = ended(desk, key="o-50%:1", definition="a:50%")
    (found,) = desk.keeper.expired(ended_before=LATER + HOUR, limit=9)
    assert found.instance == head.id
    need(desk, head)
    before = rows_of(desk, head.id)
    assert desk.keeper.expired(ended_before=LATER + HOUR, limit=9) == []
    with pytest.raises(NeededError) as caught:
        desk.keeper.delete(head.id, tenant="default")
    assert (caught.value.remains, rows_of(desk, head.id)) == (remains, before)
    assert desk.keeper.delete(head.id, tenant="default", force=True)
    assert rows_of(desk, head.id) == {}


def test_what_a_projection_has_read_can_go(desk: Desk) -> None:
    """Of those that ended, the instances go whose last event every projection has read."""
    first, second = ended(desk, at=NOW), ended(desk)
    desk.feed.enter("slow")
    desk.feed.enter("quick")
    desk.feed.advance("quick", limit=9, apply=lambda events, connection: None, now=LATER)
    assert desk.keeper.expired(ended_before=LATER + HOUR, limit=9) == []
    assert desk.keeper.late_readers(before=LATER) == ["slow"]
    assert desk.keeper.late_readers(before=NOW) == []
    desk.feed.advance("slow", limit=3, apply=lambda events, connection: None, now=LATER)
    found = desk.keeper.expired(ended_before=LATER + HOUR, limit=9)
    assert [each.instance for each in found] == [first.id]
    assert desk.keeper.delete(first.id, tenant="default")
    with pytest.raises(NeededError):
        desk.keeper.delete(second.id, tenant="default")
    assert desk.feed.drop("slow")
    assert not desk.feed.drop("slow")
    assert desk.keeper.delete(second.id, tenant="default")


def test_a_running_instance_is_not_deleted(desk: Desk) -> None:
    """What has not ended stays, whoever asks."""
    head = full(desk, ends=False)
    before = rows_of(desk, head.id)
    assert not desk.keeper.delete(head.id, tenant="default")
    assert rows_of(desk, head.id) == before


def test_another_tenants_instance_is_not_deleted(desk: Desk) -> None:
    """The right id with the wrong tenant deletes nothing."""
    head = full(desk)
    assert not desk.keeper.delete(head.id, tenant=OTHER_TENANT)
    assert desk.loaded(head.id).header == head


def test_a_parent_outlives_its_running_children(desk: Desk) -> None:
    """A finished parent stays as long as a child of it runs, and can go afterwards."""
    parent = ended(desk)
    child = born()
    child.header = msgspec.structs.replace(child.header, parent=parent.id)
    desk.commit(child)
    assert not desk.keeper.delete(parent.id, tenant="default", force=True)
    assert desk.keeper.expired(ended_before=LATER + HOUR, limit=9) == []
    desk.commit(moved(child.header, ends=True), now=LATER)
    assert desk.keeper.delete(parent.id, tenant="default")


def test_a_late_completion_meets_a_deleted_instance(desk: Desk) -> None:
    """A change that was decided before the deletion does not stand: nothing of the instance comes back."""
    head = full(desk)
    desk.keeper.delete(head.id, tenant="default", force=True)
    with pytest.raises(LostRaceError):
        desk.commit(moved(head))
    assert rows_of(desk, head.id) == {"receipts": 1}


def test_finished_instances_expire(desk: Desk) -> None:
    """Those that ended before an instant are named, the oldest first and up to a limit; running ones never."""
    heads = [desk.born(born()) for _ in range(4)]
    desk.born(born())
    for hours, head in zip((3, 1, 2, 4), heads, strict=True):
        at = NOW + hours * HOUR
        desk.commit(moved(head, ends=True, at=at), now=at)
    found = desk.keeper.expired(ended_before=NOW + 4 * HOUR, limit=9)
    assert [each.instance for each in found] == [heads[1].id, heads[2].id, heads[0].id]
    assert [each.instance for each in desk.keeper.expired(ended_before=NOW + 4 * HOUR, limit=1)] == [heads[1].id]
    assert {each.tenant for each in found} == {"default"}


def test_old_receipts_are_pruned(desk: Desk) -> None:
    """Receipts older than an instant go, at most as many as were asked for; younger ones stay."""
    first, second = new_id(), new_id()
    desk.commit(born(first, receipts=[receipt(first, f"old-{n}") for n in range(3)]))
    desk.commit(born(second, receipts=[receipt(second, "young")]), now=LATER)
    assert desk.keeper.prune(receipts_before=LATER, limit=2) == 2
    assert desk.keeper.prune(receipts_before=LATER, limit=2) == 1
    assert desk.keeper.prune(receipts_before=LATER, limit=2) == 0
    with desk.writer.unit() as unit:
        assert set(unit.receipts([receipt(second, "young").key])) == {receipt(second, "young").key}


@pytest.mark.row("D-090", "D-107", "E-781")
def test_the_backlog_counts_what_waits(desk: Desk) -> None:
    """Effects by handler, timers and messages by definition, held or not; with what somebody has in hand, what a dead one had, and since when the oldest waits."""
    assert desk.keeper.backlog(NOW) == []
    identity = new_id()
    work = [effect(identity, 0), effect(identity, 1), effect(identity, 2, handler="mail", parked_until=LATER)]
    late = timer(identity, number=3, due=LATER)
    desk.commit(born(identity, issued=4, effects=work, timers=[late], messages=[message()]))

    def told(now: datetime) -> list[BacklogRecord]:
        return desk.keeper.backlog(now)

    mail, timers = BacklogRecord("effect", "mail", 1), BacklogRecord("timer", "order", 1)
    ship, inbox = (
        BacklogRecord("effect", "ship", 2, waits_since=NOW),
        BacklogRecord("inbox", "order", 1, waits_since=NOW),
    )
    assert told(NOW) == [mail, ship, inbox, timers]
    worker = alive(desk, "ship")
    desk.effects.claim(worker, SHIP, 1, words=SHIP_WORDS)
    taken = msgspec.structs.replace(ship, taken=1)
    assert told(NOW) == [mail, taken, inbox, timers]
    due = msgspec.structs.replace(timers, waits_since=late.due_at)
    left = msgspec.structs.replace(taken, abandoned=1)
    assert told(late.due_at + 2 * HOUR) == [mail, left, inbox, due]
    desk.effects.claim(worker, SHIP, 1, words=SHIP_WORDS)
    assert told(NOW)[1] == msgspec.structs.replace(ship, taken=2, waits_since=None)


@pytest.mark.row("D-090")
def test_what_gave_up_is_counted_by_tenant(desk: Desk) -> None:
    """Of all tenants that have dead letters."""
    assert desk.keeper.given_up() == []
    for tenant, count in (("acme", 1), ("globex", 2)):
        for _ in range(count):
            identity = new_id()
            desk.commit(born(identity, tenant=tenant, issued=1, effects=[effect(identity, 0, tenant=tenant)]))
            (claimed,) = desk.effects.claim(new_worker(), SHIP, 1, words=SHIP_WORDS)
            told = letter("effect", tenant=tenant, instance=claimed.instance, number=claimed.number)
            assert desk.effects.bury(claimed.claim, told)
    assert desk.keeper.given_up() == [GivenUpRecord("acme", 1), GivenUpRecord("globex", 2)]


def alive(desk: Desk, *handlers: str) -> WorkerId:
    """A live worker with these handlers."""
    worker = new_worker()
    desk.workers.beat(worker, [], name="w", handlers=handlers, lease=HOUR, now=NOW)
    return worker


@pytest.mark.row("D-059", "F-106")
def test_work_that_nobody_can_do_is_found(desk: Desk) -> None:
    """Handlers with claimable effects that no live worker has, by name, with how many wait and since when."""
    identity = new_id()
    names = ["ship", "mail", "fax", "fax", "parked", "held", "ended"]
    work = [
        effect(identity, number, handler=name, parked_until=LATER if name == "parked" else None)
        for number, name in enumerate(names)
    ]
    desk.commit(born(identity, issued=len(work), effects=work))
    desk.effects.claim(alive(desk, "ship", "tea"), [Wanted("held", 1)], 1, words=SHIP_WORDS)
    desk.workers.beat(new_worker(), [], name="w", handlers=["fax"], lease=timedelta(0), now=NOW)
    found = desk.keeper.unhandled(waited=timedelta(0), now=LATER)
    assert found == [Unhandled("ended", 1, NOW), Unhandled("fax", 2, NOW), Unhandled("mail", 1, NOW)]
    alive(desk, "mail", "ended")
    assert [each.handler for each in desk.keeper.unhandled(waited=timedelta(0), now=LATER)] == ["fax"]


def test_work_counts_as_missed_after_a_while(desk: Desk) -> None:
    """Only effects that were written long enough ago count, and not more of them than asked for."""
    first, second = new_id(), new_id()
    desk.commit(born(first, issued=4, effects=[effect(first, number) for number in range(4)]))
    desk.commit(born(second, issued=1, effects=[effect(second)]), now=LATER)
    minute = LATER - NOW
    assert desk.keeper.unhandled(waited=minute, now=LATER - timedelta(microseconds=1)) == []
    assert desk.keeper.unhandled(waited=minute, now=LATER) == [Unhandled("ship", 4, NOW)]
    assert desk.keeper.unhandled(waited=timedelta(0), now=LATER) == [Unhandled("ship", 5, NOW)]
    assert desk.keeper.unhandled(waited=timedelta(0), now=LATER, most=2) == [Unhandled("ship", 2, NOW)]
    assert desk.keeper.unhandled(waited=HOUR, now=LATER) == []
    assert desk.keeper.unhandled(waited=timedelta(0), now=None)[0].handler == "ship"


def test_waiting_effects_are_shown_untouched(desk: Desk) -> None:
    """The effects of a handler that have waited long enough, most urgent first; looking at them changes nothing."""
    identity = new_id()
    work = [effect(identity, number, priority=number, handler="fax") for number in range(3)]
    head = desk.born(born(identity, issued=4, effects=[*work, effect(identity, 3)]))
    desk.commit(moved(head, issued=1, effects=[effect(identity, 4, handler="fax", priority=100)]), now=LATER)
    minute = LATER - NOW
    assert [each.number for each in desk.effects.waiting("fax", waited=minute, now=LATER, limit=9)] == [2, 1, 0]
    assert [each.number for each in desk.effects.waiting("fax", waited=timedelta(0), now=LATER, limit=2)] == [4, 2]
    (first, *_) = desk.effects.waiting("fax", waited=minute, now=LATER, limit=9)
    assert (first.attempts, first.owner, first.fence, first.data) == (0, None, 0, b"effect 2")
    assert desk.effects.waiting("tea", waited=timedelta(0), now=LATER, limit=9) == []


@pytest.mark.row("D-091")
@pytest.mark.parametrize("mode", ["pause", "refuse"])
def test_maintenance_stops_claims(desk: Desk, mode: Maintenance) -> None:
    """While it lasts nobody gets effects, timers or messages; commits still stand; afterwards everything goes on."""
    identity = new_id()
    desk.keeper.maintain(mode)
    desk.commit(
        born(identity, issued=2, effects=[effect(identity)], timers=[timer(identity, number=1)], messages=[message()])
    )

    def claimed() -> list[int]:
        return [
            len(desk.effects.claim(new_worker(), SHIP, 9, words=SHIP_WORDS)),
            len(desk.timers.claim(NOW, words=WORDS, hold=HOLD, limit=9).timers),
            len(desk.inbox.claim(NOW, words=WORDS, hold=HOLD, limit=9)),
        ]

    assert claimed() == [0, 0, 0]
    desk.keeper.maintain("")
    assert claimed() == [1, 1, 1]


def test_housekeeping_can_be_done_at_any_time(desk: Desk) -> None:
    """Tidying twice, with rows of any month there, or years ahead, changes nothing that can be seen."""
    old = desk.born(born(new_id(NOW - timedelta(days=4000))))
    young = desk.born(born(new_id(NOW + timedelta(days=40)), records=[StepOpened(number=1, node="a")]))
    for at in (NOW, NOW, NOW + timedelta(days=40), NOW + timedelta(days=400)):
        desk.keeper.tidy(at)
    assert [desk.loaded(head.id).header for head in (old, young)] == [old, young]
    later = desk.born(born(new_id(NOW + timedelta(days=400))))
    assert desk.loaded(later.id).header == later
    assert [event.instance for event in desk.feed.read(after=0, limit=9)] == [old.id, young.id, later.id]


def test_a_counter_gives_each_number_once(store: Store) -> None:
    """Whoever asks, and however many ask at once, gets numbers of his own; counters do not know one another."""

    def count(keeper: MaintenancePort) -> list[int]:
        return [keeper.next_number("cows") for _ in range(10)]

    with ThreadPoolExecutor(4) as threads:
        numbers = [each for found in threads.map(count, [store.keeper() for _ in range(4)]) for each in found]
    assert sorted(numbers) == list(range(40))
    assert [store.keeper().next_number("sheep") for _ in range(3)] == [0, 1, 2]
