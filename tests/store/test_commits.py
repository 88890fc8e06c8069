"""Loading and writing: a commit is whole or nothing, and only the first of two that were decided on one state stands."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from standfast.errors import PayloadError, StandfastError
from standfast.store.ports.store import LostRaceError
from standfast.store.records.instances import (
    InboxClaim,
    InstanceChange,
    InstanceQuery,
    PendingTimerRecord,
    Snapshot,
)
from support.desks import Desk
from support.rows import (
    LATER,
    NOW,
    OTHER_TENANT,
    WORDS,
    born,
    by_id,
    by_key,
    effect,
    events_of,
    message,
    moved,
    new_id,
    observation,
    receipt,
    timer,
)


@pytest.mark.row("D-037", "D-047", "D-121")
def test_what_was_written_is_loaded(desk: Desk) -> None:
    """An instance comes back with its row, its events in order and its timers with their instants."""
    identity = new_id()
    change = born(identity, key="o-1", events=3, issued=2, timers=[timer(identity, "a", 0), timer(identity, "b", 1)])
    desk.commit(change)
    found = desk.loaded(identity)
    assert found.header == change.header
    assert [msgspec.structs.replace(event, position=0) for event in found.events] == change.events
    timers = {each.key: PendingTimerRecord(each.number, each.due_at) for each in change.timers}
    assert (found.timers, found.snapshot) == (timers, None)


@pytest.mark.row("D-045")
def test_commits_follow_one_another(desk: Desk) -> None:
    """Events are numbered from one without gaps over all commits, and each keeps its time, actor, comment and cause."""
    head = desk.born(born(events=2))
    later = moved(head, events=2, ends=True)
    desk.commit(later, now=LATER)
    found = desk.loaded(head.id)
    assert [event.sequence for event in found.events] == [1, 2, 3, 4]
    assert [event.at for event in found.events] == [NOW, NOW, LATER, LATER]
    assert {(event.actor, event.comment) for event in found.events} == {("ada", "because")}
    assert found.header == later.header


def test_a_row_whose_status_stays_is_gated_like_any_other(desk: Desk) -> None:
    """A change that says so moves the version and nothing else of the row, and loses if somebody was first."""
    head = desk.born(born(key="o-1", issued=1))
    change = moved(head, issued=2, keeps_status=True)
    desk.commit(change, now=LATER)
    assert desk.loaded(head.id).header == change.header
    for outdated in (head, msgspec.structs.replace(head, version=7)):
        with pytest.raises(LostRaceError):
            desk.commit(born(), moved(outdated, keeps_status=True))
    assert desk.loaded(head.id).header == change.header
    assert len(desk.reader.instances(InstanceQuery())) == 1


def test_many_are_loaded_in_the_order_of_asking(desk: Desk) -> None:
    """Addresses by id and by key mix; the answers come in their order, with None for what is not there."""
    first, second = desk.born(born(key="o-1", events=2)), desk.born(born(key="o-2", events=3))
    addresses = [by_key("o-2"), by_id(first.id), by_id(new_id()), by_key("nobody"), by_id(second.id), by_key("o-2")]
    found = desk.writer.load(addresses)
    assert [each and each.header.id for each in found] == [second.id, first.id, None, None, second.id, second.id]
    assert [each and [event.sequence for event in each.events] for each in found[:2]] == [[1, 2, 3], [1, 2]]
    assert found[0] == found[4] == found[5]
    assert desk.writer.load([]) == []


@pytest.mark.row("D-003", "D-004", "D-084")
def test_a_key_belongs_to_its_definition_and_tenant(desk: Desk) -> None:
    """The same key under another definition or tenant is another instance with a history of its own."""
    changes = [born(key="same"), born(key="same", definition="refund"), born(key="same", tenant=OTHER_TENANT, events=2)]
    desk.commit(*changes)
    found = desk.writer.load([by_key("same"), by_key("same", definition="refund"), by_key("same", tenant=OTHER_TENANT)])
    assert [each and each.header for each in found] == [change.header for change in changes]
    assert [each and len(each.events) for each in found] == [1, 1, 2]


def test_instances_need_no_key(desk: Desk) -> None:
    """Any number of instances may be without a key."""
    heads = [desk.born(born()), desk.born(born())]
    assert [desk.loaded(head.id).header.key for head in heads] == ["", ""]


def test_another_tenants_instance_is_not_there(desk: Desk) -> None:
    """An id with the wrong tenant finds nothing and changes nothing."""
    head = desk.born(born(tenant=OTHER_TENANT))
    assert desk.writer.load([by_id(head.id)]) == [None]
    with pytest.raises(LostRaceError):
        desk.commit(moved(msgspec.structs.replace(head, tenant="default")))
    assert desk.writer.load([by_id(head.id, tenant=OTHER_TENANT)])[0] is not None


@pytest.mark.row("D-073")
@pytest.mark.row("C-32")
def test_only_the_first_of_two_decisions_stands(desk: Desk) -> None:
    """A change that was decided on a state that is no longer the newest is refused whole."""
    head = desk.born(born())
    desk.commit(moved(head))
    with pytest.raises(LostRaceError):
        desk.commit(moved(head, events=3, ends=True, effects=[effect(head.id)]))
    found = desk.loaded(head.id)
    assert (found.header.version, found.header.status, len(found.events)) == (2, "running", 2)
    assert desk.reader.work(head.id) == ([], [])


@pytest.mark.row("D-028")
def test_a_key_begins_once(desk: Desk) -> None:
    """Of two first commits for one key the second loses, and can then find what the first has written."""
    head = desk.born(born(key="o-1"))
    with pytest.raises(LostRaceError):
        desk.commit(born(key="o-1"))
    (found,) = desk.writer.load([by_key("o-1")])
    assert found is not None
    assert found.header.id == head.id


def test_an_id_begins_once(desk: Desk) -> None:
    """An instance is born once, whatever key it is given the second time."""
    head = desk.born(born(key="o-1"))
    with pytest.raises(LostRaceError):
        desk.commit(born(head.id, key="o-2"))


def everything(instance: Any) -> dict[str, Any]:
    """Something for each table that a commit writes."""
    return {
        "effects": [effect(instance)],
        "timers": [timer(instance, number=1)],
        "messages": [message("o-9")],
        "receipts": [receipt(instance, f"{instance}")],
        "snapshot": Snapshot(version=1, state_version=1, data=b"state"),
    }


def is_empty(desk: Desk) -> bool:
    """Whether nothing at all is stored."""
    with desk.writer.unit() as unit:
        found = unit.receipts([receipt(new_id(), "taken").key])
    listed = desk.reader.instances(InstanceQuery())
    return not (found or listed or desk.keeper.backlog() or desk.feed.read(after=0, limit=9))


def spoilt(change: InstanceChange, kind: str) -> InstanceChange:
    """A change that the database refuses."""
    head = change.header
    match kind:
        case "doubled event":
            change.events = [*change.events, *events_of(head, [1])]
        case "doubled effect":
            change.effects = [effect(head.id), effect(head.id)]
        case "doubled receipt":
            change.receipts = [receipt(head.id, "taken"), receipt(head.id, "taken")]
        case "void claim":
            change.consumed = [InboxClaim(10**9)]
        case _:
            change.expected = 5
    return change


@pytest.mark.row("D-019")
@pytest.mark.parametrize("kind", ["doubled event", "doubled effect", "doubled receipt", "void claim", "stale version"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_failing_change_leaves_nothing_of_its_neighbours(desk: Desk, kind: str, place: int) -> None:
    """Wherever in a batch the change is that cannot stand, nothing of the whole batch is written."""
    ids = [new_id() for _ in range(3)]
    changes = [born(each, **everything(each)) for each in ids]
    spoilt(changes[place], kind)
    with pytest.raises(LostRaceError):
        desk.commit(*changes)
    assert is_empty(desk)


@pytest.mark.row("D-019")
def test_a_refused_value_leaves_nothing_of_its_neighbours(desk: Desk) -> None:
    """A row that breaks a rule of the schema fails the whole batch, with an error of ours that says so."""
    good, bad = born(), born(effects=[effect(new_id(), priority=101)])
    with pytest.raises(StandfastError):
        desk.commit(good, bad)
    assert is_empty(desk)


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
@pytest.mark.parametrize("place", ["key", "comment"])
def test_text_that_has_no_bytes_is_refused(desk: Desk, text: str, place: str) -> None:
    """A lone surrogate cannot be stored as text anywhere: a bad payload, and nothing is written."""
    change = born(key=text if place == "key" else "o-1")
    change.events = [msgspec.structs.replace(event, comment=text) for event in change.events]
    with pytest.raises(PayloadError):
        desk.commit(change)
    assert is_empty(desk)


@pytest.mark.parametrize("data", [b"", b"\x00\xff", b'"\\u0000"', b"not json at all", bytes(range(256)) * 400])
def test_payloads_are_bytes(desk: Desk, data: bytes) -> None:
    """Whatever bytes the codec made come back untouched, in events, effects, timers, messages and snapshots."""
    identity = new_id()
    change = born(
        identity,
        effects=[msgspec.structs.replace(effect(identity), data=data, options=data)],
        timers=[msgspec.structs.replace(timer(identity, number=1), data=data)],
        messages=[msgspec.structs.replace(message(), data=data)],
    )
    change.events = [msgspec.structs.replace(event, data=data) for event in change.events]
    desk.commit(change)
    effects, timers = desk.reader.work(identity)
    (told,) = desk.inbox.claim(NOW, words=WORDS, hold=timedelta(0), limit=9)
    assert [desk.loaded(identity).events[0].data, effects[0].data, effects[0].options] == [data] * 3
    assert [timers[0].data, told.data] == [data] * 2


def test_snapshots_shorten_the_way(desk: Desk) -> None:
    """With a snapshot only the events after it are loaded; a newer one takes its place; `whole` leaves it aside."""
    head = desk.born(born(events=3, snapshot=Snapshot(version=3, state_version=1, data=b"one")))
    desk.commit(moved(head, events=2))
    found = desk.loaded(head.id)
    assert (found.snapshot, [event.sequence for event in found.events]) == (
        Snapshot(version=3, state_version=1, data=b"one"),
        [4, 5],
    )
    newer = Snapshot(version=6, state_version=2, data=b"two", fingerprint="of other code")
    desk.commit(moved(found.header, snapshot=newer))
    assert (desk.loaded(head.id).snapshot, desk.loaded(head.id).events) == (newer, [])
    (whole,) = desk.writer.load([by_id(head.id)], whole=True)
    assert whole is not None
    assert (whole.snapshot, [event.sequence for event in whole.events]) == (None, [1, 2, 3, 4, 5, 6])


def write_and_fail(desk: Desk, change: InstanceChange) -> None:
    """A unit that sees what it has written, and then fails."""
    with desk.writer.unit() as unit:
        unit.write([change], NOW)
        assert unit.load([by_id(change.header.id)])[0] is not None
        raise RuntimeError("undone")


def write_both(desk: Desk, first: InstanceChange, second: InstanceChange) -> None:
    """A unit that writes twice."""
    with desk.writer.unit() as unit:
        unit.write([first], NOW)
        unit.write([second], NOW)


def test_a_unit_is_one_transaction(desk: Desk) -> None:
    """What a unit wrote is there when its block ends, and nothing of it when the block raises."""
    kept, dropped = born(), born()
    with desk.writer.unit() as unit:
        unit.write([kept], NOW)
    with pytest.raises(RuntimeError, match="undone"):
        write_and_fail(desk, dropped)
    found = desk.writer.load([by_id(kept.header.id), by_id(dropped.header.id)])
    assert [each and each.header.id for each in found] == [kept.header.id, None]


def test_a_lost_race_ends_the_unit(desk: Desk) -> None:
    """A unit that loses a race leaves nothing of what it wrote before."""
    head = desk.born(born())
    early = born()
    with pytest.raises(LostRaceError):
        write_both(desk, early, moved(msgspec.structs.replace(head, version=7)))
    assert desk.writer.load([by_id(early.header.id)]) == [None]


def test_a_unit_loads_like_the_writer(desk: Desk) -> None:
    """Inside a unit instances are loaded by id and by key, with snapshots or without."""
    head = desk.born(born(key="o-1", events=2, snapshot=Snapshot(version=2, state_version=1, data=b"x")))
    addresses = [by_key("o-1"), by_id(new_id()), by_id(head.id)]
    with desk.writer.unit() as unit:
        for whole in (False, True):
            assert unit.load(addresses, whole=whole) == desk.writer.load(addresses, whole=whole)


def test_what_is_known_is_not_read_again(desk: Desk) -> None:
    """An instance that has as many events as whoever locks it knows comes without them; what is written next lies behind them."""
    head = desk.born(born(key="o-1", events=2, snapshot=Snapshot(version=2, state_version=1, data=b"x")))
    desk.commit(moved(head, timers=[timer(head.id, "a", 0)]))
    found = desk.loaded(head.id)
    with desk.writer.unit() as unit:
        (known,) = unit.load([by_id(head.id)], known=3)
        assert known is not None
        assert (known.header, known.events, known.snapshot, list(known.timers)) == (found.header, [], None, ["a"])
        unit.write([moved(found.header)], NOW)
    addresses = [by_id(head.id), by_key("o-1"), by_id(new_id())]
    with desk.writer.unit() as unit:
        for address in addresses:
            assert unit.load([address], known=3) == desk.writer.load([address])
    (whole,) = desk.writer.load([by_id(head.id)], whole=True)
    assert whole is not None
    positions = [event.position for event in whole.events]
    assert positions == sorted(positions)


@pytest.mark.parametrize("known", [0, 2])
@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_an_old_transaction_writes_behind_what_it_has_waited_for(desk: Desk, known: int) -> None:
    """Its number is as old as its first writing, and the events of an instance lie in their order all the same, known or read."""
    head = desk.born(born())
    with desk.writer.unit() as unit:
        with unit.lend() as lent:
            connection: Any = lent
            connection.execute("select pg_current_xact_id()")
        later = moved(head)
        desk.store.line().writer().write([later], now=NOW)
        unit.load([by_id(head.id)], known=known)
        unit.write([moved(later.header)], NOW)
    positions = [event.position for event in desk.loaded(head.id).events]
    assert positions == sorted(positions)


def test_a_commit_can_be_only_observations(desk: Desk) -> None:
    """Observations of inputs that changed nothing are written without a change."""
    head = desk.born(born())
    desk.writer.write([], observations=[observation(head.id, skipped=True)], now=NOW)
    desk.writer.write([], now=NOW)
    assert [each.skipped for each in desk.reader.observations(instance=head.id)] == [True]


def test_a_nul_in_a_text_comes_back_or_is_refused(desk: Desk) -> None:
    """Where the database cannot hold a NUL in text it is a bad payload and nothing is written; else it comes back."""
    change = born(key="a\x00b")
    try:
        desk.commit(change)
    except PayloadError:
        assert is_empty(desk)
    else:
        assert desk.loaded(change.header.id).header.key == "a\x00b"


def test_nothing_to_write_is_no_mistake(desk: Desk) -> None:
    """Empty lists are taken everywhere, and do nothing."""
    with desk.writer.unit() as unit:
        unit.write([], NOW)
        unit.consume([])
        assert (unit.load([]), unit.void([]), unit.receipts([])) == ([], set(), {})
    assert desk.writer.accept([], NOW) == []
    assert is_empty(desk)
