"""What callers of one tenant may see: their own rows, page by page, and nothing of anybody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from holdfast.kernel.ids import InstanceId
from holdfast.kernel.records import DeadLetterRaised, StepOpened, SubscriptionOpened, TaskOpened
from holdfast.store.reading import Reader
from holdfast.store.shapes import Header, InstanceQuery, Snapshot, Transition
from support.desks import Desk
from support.rows import (
    LATER,
    NOW,
    OTHER_TENANT,
    born,
    by_id,
    by_key,
    effect,
    moved,
    new_id,
    observation,
    timer,
)

QUESTIONS: dict[str, Callable[[Reader, InstanceId], object]] = {
    "load": lambda reader, one: [
        reader.load(by_id(one)),
        reader.load(by_key("o-1")),
        reader.load(by_id(one), whole=True),
    ],
    "instances": lambda reader, one: reader.instances(InstanceQuery()),
    "events": lambda reader, one: reader.events(one),
    "work": lambda reader, one: [*reader.work(one)[0], *reader.work(one)[1]],
    "steps": lambda reader, one: reader.steps(one),
    "tasks": lambda reader, one: reader.tasks(one),
    "subscriptions": lambda reader, one: reader.subscriptions(one),
    "dead_letters": lambda reader, one: [*reader.dead_letters(), *reader.dead_letters(instance=one)],
    "observations": lambda reader, one: [*reader.observations(), *reader.observations(instance=one)],
    "transitions": lambda reader, one: reader.transitions("order"),
}
"""Every question that a caller can ask about an instance."""


def full(desk: Desk, tenant: str = "default") -> InstanceId:
    """An instance with something in every table that readers see."""
    identity = new_id()
    records = [
        StepOpened(number=1, node="charge"),
        TaskOpened(number=1),
        SubscriptionOpened(number=1, signal="paid"),
        DeadLetterRaised(source="step", number=1, name="charge", reason="r", error="e"),
    ]
    change = born(
        identity,
        key="o-1",
        tenant=tenant,
        issued=2,
        effects=[effect(identity, tenant=tenant)],
        timers=[timer(identity, number=1, tenant=tenant)],
        records=records,
        snapshot=Snapshot(version=1, state_version=1, data=b"state"),
    )
    desk.writer.write([change], observations=[observation(identity, tenant=tenant)], now=NOW)
    return identity


def test_every_question_is_known_here() -> None:
    """A new question to the reader must be asked by the tests of isolation as well."""
    assert {name for name in vars(Reader) if not name.startswith("_")} == set(QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS)
def test_another_tenant_sees_nothing(desk: Desk, question: str) -> None:
    """Whatever is asked, with the right id and the right key, another tenant's rows do not exist."""
    identity = full(desk)
    ask = QUESTIONS[question]
    assert ask(desk.reading("default"), identity)
    answers: Any = ask(desk.reading(OTHER_TENANT), identity)
    assert [answer for answer in answers if answer is not None] == []


@pytest.mark.parametrize("tenant", ["", "Default", "default ", "default' or '1'='1", "%"])
def test_a_tenants_name_is_taken_literally(desk: Desk, tenant: str) -> None:
    """Only the exact name opens the door."""
    identity = full(desk)
    answers = [answer for ask in QUESTIONS.values() for answer in as_list(ask(desk.reading(tenant), identity))]
    assert [answer for answer in answers if answer is not None] == []


def as_list(answer: Any) -> list[object]:
    """The rows of an answer."""
    return list(answer)


def test_tenants_with_equal_rows_see_their_own(desk: Desk) -> None:
    """Two tenants with the same keys, definitions and names each see one of everything."""
    ours, theirs = full(desk), full(desk, OTHER_TENANT)
    for tenant, identity in (("default", ours), (OTHER_TENANT, theirs)):
        reader = desk.reading(tenant)
        assert [head.id for head in reader.instances(InstanceQuery())] == [identity]
        assert [each.instance for each in reader.dead_letters()] == [identity]
        assert [each.instance for each in reader.observations()] == [identity]
        found = reader.load(by_key("o-1"))
        assert found is not None
        assert found.header.id == identity


def test_the_tenant_of_an_address_does_not_count(desk: Desk) -> None:
    """A reader belongs to its tenant, whatever tenant an address names."""
    identity = full(desk)
    assert desk.reading(OTHER_TENANT).load(by_id(identity, tenant="default")) is None
    assert desk.reader.load(by_id(identity, tenant=OTHER_TENANT)) is not None


def test_an_instance_is_read_as_it_is_loaded(desk: Desk) -> None:
    """A reader sees what the committer sees: the row, the snapshot, the events after it, the timers."""
    head = desk.born(born(key="o-1", events=2, snapshot=Snapshot(version=2, state_version=1, data=b"x")))
    desk.commit(moved(head, timers=[timer(head.id)]))
    for whole in (False, True):
        assert desk.reader.load(by_key("o-1"), whole=whole) == desk.writer.load([by_id(head.id)], whole=whole)[0]
    assert desk.reader.load(by_key("nobody")) is None


@pytest.mark.row("D-121")
def test_a_history_is_paged(desk: Desk) -> None:
    """Events come in order, after a number and up to a limit."""
    head = desk.born(born(events=5))
    numbers = [
        [event.sequence for event in desk.reader.events(head.id, after=after, limit=limit)]
        for after, limit in ((0, None), (0, 2), (2, 2), (4, 2), (5, 2), (0, 0))
    ]
    assert numbers == [[1, 2, 3, 4, 5], [1, 2], [3, 4], [5], [], []]
    assert desk.reader.events(new_id()) == []


def listed(desk: Desk, **query: Any) -> list[Header]:
    """The instances that a query finds."""
    return desk.reader.instances(InstanceQuery(**query))


def test_instances_are_listed_newest_first(desk: Desk) -> None:
    """Pages go back in time, without seams, whatever was committed in which order."""
    changes = [born() for _ in range(5)]
    for change in reversed(changes):
        desk.commit(change)
    ids = [change.header.id for change in reversed(changes)]
    assert [head.id for head in listed(desk)] == ids
    first = listed(desk, limit=2)
    second = listed(desk, limit=2, before=first[-1].id)
    rest = listed(desk, before=second[-1].id)
    assert [head.id for head in (*first, *second, *rest)] == ids


def test_instances_are_found_by_what_they_are(desk: Desk) -> None:
    """Definition, key, statuses and parent narrow a list, alone and together."""
    parent = desk.born(born(key="p"))
    child = born(key="c", definition="refund")
    child.header = msgspec.structs.replace(child.header, parent=parent.id)
    desk.commit(child)
    done = desk.born(born(key="d"))
    desk.commit(moved(done, ends=True), now=LATER)

    def found(**query: Any) -> list[str]:
        return [head.key for head in listed(desk, **query)]

    assert (found(definition="refund"), found(definition="order")) == (["c"], ["d", "p"])
    assert (found(key="p"), found(key="nobody")) == (["p"], [])
    assert found(parent=parent.id) == ["c"]
    assert found(statuses=("completed",)) == ["d"]
    assert found(statuses=("completed", "running")) == ["d", "c", "p"]
    assert found(definition="order", statuses=("running",)) == ["p"]
    assert found(statuses=("failed",)) == []


def test_a_row_comes_back_whole(desk: Desk) -> None:
    """Version of the definition, reason, parent and end are part of the row."""
    change = born(key="k", events=2, issued=3)
    change.header = msgspec.structs.replace(
        change.header, definition_version="7", reason="dlq", status="paused", parent=new_id()
    )
    desk.commit(change)
    assert listed(desk) == [change.header]
    end = moved(change.header, ends=True)
    desk.commit(end, now=LATER)
    assert listed(desk) == [end.header]


@pytest.mark.row("D-101")
def test_pending_work_is_shown(desk: Desk) -> None:
    """Live effects in the order of their numbers, timers in the order of their time."""
    identity = new_id()
    timers = [timer(identity, "b", 3, due=LATER), timer(identity, "a", 2, due=NOW)]
    desk.commit(born(identity, issued=4, effects=[effect(identity, 1), effect(identity, 0)], timers=timers))
    effects, pending = desk.reader.work(identity)
    assert [each.number for each in effects] == [0, 1]
    assert pending == [timers[1], timers[0]]
    assert desk.reader.work(new_id()) == ([], [])


def test_dead_letters_are_paged(desk: Desk) -> None:
    """Oldest first, after an id and up to a limit, of one instance or of all."""
    head = desk.born(
        born(records=[DeadLetterRaised(source="step", number=n, name=f"{n}", reason="r", error="e") for n in range(4)])
    )
    desk.born(born(records=[DeadLetterRaised(source="compensation", number=9, name="9", reason="r", error="e")]))
    first = desk.reader.dead_letters(limit=3)
    rest = desk.reader.dead_letters(after=first[-1].id)
    assert [each.name for each in (*first, *rest)] == ["0", "1", "2", "3", "9"]
    assert [each.name for each in desk.reader.dead_letters(instance=head.id)] == ["0", "1", "2", "3"]


@pytest.mark.row("D-043", "D-092")
def test_observations_are_kept_in_order(desk: Desk) -> None:
    """Each observed input is a row, skipped ones too; they are found by definition and by instance."""
    first, second = new_id(), new_id()
    rows = [
        observation(first, input="Place", from_status="", at=NOW),
        observation(second, input="Refund", definition="refund"),
        observation(first, input="Pay", skipped=True, at=LATER),
    ]
    desk.writer.write([], observations=rows, now=NOW)
    assert desk.reader.observations() == rows
    assert desk.reader.observations(instance=first) == [rows[0], rows[2]]
    assert desk.reader.observations(definition="refund") == [rows[1]]


@pytest.mark.row("D-099", "D-100")
def test_transitions_are_counted(desk: Desk) -> None:
    """Observed moves are counted per from, input and to; what was skipped moved nothing."""
    moves = [("", "Place", "running"), ("running", "Pay", "running"), ("running", "Pay", "running")]
    rows = [observation(new_id(), from_status=before, input=given, to_status=after) for before, given, after in moves]
    rows += [observation(new_id(), skipped=True), observation(new_id(), definition="refund")]
    desk.writer.write([], observations=rows, now=NOW)
    assert desk.reader.transitions("order") == [
        Transition("", "Place", "running", 1),
        Transition("running", "Pay", "running", 2),
    ]
