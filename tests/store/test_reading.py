"""What callers of one tenant may see: their own rows, page by page, and nothing of anybody else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import msgspec
import pytest

from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.documents import (
    DOCUMENT_VERSIONS,
    AuditMade,
    DocumentOpened,
    MutationMade,
    VersionKept,
)
from standfast.kernel.row_kinds.events import PublicationKept
from standfast.kernel.row_kinds.steps import (
    STEPS,
    DeadLetterRaised,
    ResumeExecuted,
    RowSource,
    StepMoved,
    StepOpened,
    SubscriptionOpened,
    TaskChanged,
    TaskOpened,
)
from standfast.kernel.row_kinds.tasks import CommentMade, DecisionGiven, PersonAsked, PersonMoved
from standfast.kernel.rows import kinds
from standfast.store.ports.documents import DocumentQuery, Documents, InForce
from standfast.store.ports.events import EventReads
from standfast.store.ports.maintenance import PausedInstances, PausedQuery
from standfast.store.ports.reading import DeadLetters, Instances, PendingWork, TenantReader
from standfast.store.ports.tasks import AssigneeRecord, ListedTask, TaskQuery, Tasks
from standfast.store.records.instances import (
    Address,
    DeadLetterRecord,
    InboxClaim,
    InstanceChange,
    InstanceHeader,
    InstanceQuery,
    Snapshot,
    Wanted,
)
from standfast.store.records.queries import TransitionRecord
from support.desks import Desk
from support.rows import (
    LATER,
    NOW,
    OTHER_TENANT,
    SHIP_WORDS,
    born,
    by_id,
    by_key,
    effect,
    effective,
    letter,
    message,
    moved,
    new_id,
    new_worker,
    observation,
    timer,
)


def looked(reader: TenantReader, one: InstanceId) -> object:
    """What is seen in one look."""
    with reader.look() as seen:
        return [*seen.headers([one]), *seen.events(one)]


BOSS = (AssigneeRecord("role", "boss"),)
QUESTIONS: dict[str, Callable[[TenantReader, InstanceId], object]] = {
    "load": lambda reader, one: [
        reader.load(by_id(one)),
        reader.load(by_key("o-1")),
        reader.load(by_id(one), whole=True),
    ],
    "instances": lambda reader, one: reader.instances(InstanceQuery()),
    "headers": lambda reader, one: reader.headers([one]),
    "events": lambda reader, one: reader.events(one),
    "work": lambda reader, one: [*reader.work(one)[0], *reader.work(one)[1]],
    "rows": lambda reader, one: [
        *(row for kind in kinds() for row in reader.rows(kind, one)),
        *reader.rows(DOCUMENT_VERSIONS, one, limit=9),
    ],
    "with_rows": lambda reader, one: [
        row for kind in kinds() for found in [reader.with_rows(kind, one)] for row in (found[0], *found[1]) if row
    ],
    "open_tasks": lambda reader, one: [
        task
        for query in (TaskQuery(), TaskQuery(people=BOSS), TaskQuery(key="o-1"), TaskQuery(definition="order"))
        for task in reader.open_tasks(query)
    ],
    "touched_by": lambda reader, one: reader.touched_by(["ada", "bob", "system", ""], [one]),
    "decisions_by": lambda reader, one: reader.decisions_by("ada"),
    "count_tasks": lambda reader, one: reader.count_tasks(BOSS),
    "count_overdue": lambda reader, one: [reader.count_overdue(BOSS, LATER) or None],
    "subscribers": lambda reader, one: reader.subscribers("paid", "o-1", limit=9),
    "kept_for": lambda reader, one: reader.kept_for("paid", "o-1", now=NOW, limit=9),
    "publications": lambda reader, one: [
        *reader.publications(now=NOW, limit=9),
        *reader.publications(event="paid", now=NOW, limit=9),
    ],
    "messages": lambda reader, one: reader.messages(one),
    "in_hand": lambda reader, one: reader.in_hand([one]),
    "look": looked,
    "step_names": lambda reader, one: reader.step_names(one, [1]),
    "count_letters": lambda reader, one: [reader.count_letters() or None],
    "dead_letters": lambda reader, one: [*reader.dead_letters(), *reader.dead_letters(instance=one)],
    "dead_letter": lambda reader, one: [reader.dead_letter(number) for number in range(1, 10)],
    "observations": lambda reader, one: [*reader.observations(), *reader.observations(instance=one)],
    "paused": lambda reader, one: [*reader.paused(PausedQuery()), *reader.paused(PausedQuery(reason="requested"))],
    "resume_requests": lambda reader, one: reader.resume_requests(one),
    "transitions": lambda reader, one: reader.transitions("order"),
    "document": lambda reader, one: [reader.document("invoice", "I-1")],
    "in_force": lambda reader, one: [reader.in_force("invoice")],
    "stand_in": lambda reader, one: [reader.stand_in("invoice", InForce("2", "published", False, 2, True)) or None],
    "documents": lambda reader, one: [
        row
        for query in (
            DocumentQuery(type="invoice"),
            DocumentQuery(type="invoice", status="draft"),
            DocumentQuery(type="invoice", requester="bob"),
        )
        for row in reader.documents(query)
    ],
}
"""Every question that a caller can ask about an instance."""


def full(desk: Desk, tenant: str = "default", partition: str = "") -> InstanceId:
    """An instance with something in every table that readers see."""
    identity = new_id()
    records = [
        StepOpened(number=1, node="charge", status="running"),
        TaskOpened(number=1, role="boss", due_at=NOW),
        PersonAsked(number=1, place=1, kind="role", name="boss"),
        DecisionGiven(number=1, sequence=1, actor="ada", outcome="confirmed"),
        CommentMade(number=1, sequence=1, actor="ada", text="fine"),
        SubscriptionOpened(number=1, signal="paid"),
        SubscriptionOpened(number=2, kind="event", signal="paid", correlation="o-1"),
        PublicationKept(id="e-1", event="paid", correlation="o-1", expires_at=NOW + timedelta(days=1), data=b"{}"),
        DeadLetterRaised(source="step", number=1, name="charge", reason="r", error="e"),
        ResumeExecuted(id=new_id(), triggered_by="manual"),
        DocumentOpened(type="invoice", id="I-1", status="draft", version=1, data=b"{}", requester="bob"),
        VersionKept(version=1, status="draft", data=b"{}", data_hash="h", mutation=1),
        MutationMade(sequence=1, kind="business", action="create", version_before=0, version_after=1, actor="bob"),
        AuditMade(sequence=1, who="bob", what="create", which="invoice/I-1@1"),
    ]
    change = born(
        identity,
        key="o-1",
        tenant=tenant,
        issued=2,
        effects=[effect(identity, tenant=tenant, owner=new_worker(), attempts=1)],
        timers=[timer(identity, number=1, tenant=tenant)],
        records=records,
        snapshot=Snapshot(version=1, state_version=1, data=b"state"),
    )
    change.header = msgspec.structs.replace(
        change.header, status="paused", reason="requested", paused_at=NOW, partition=partition
    )
    bare = born(new_id(), key="o-2", tenant=tenant)
    bare.header = msgspec.structs.replace(bare.header, partition=partition)
    desk.writer.write([change, bare], observations=[observation(identity, tenant=tenant)], now=NOW)
    desk.writer.accept([message(instance=identity, tenant=tenant)], NOW)
    if desk.reading(tenant).in_force("invoice") is None:
        with desk.store.blueprints().changing(tenant, "invoice") as unit:
            unit.add(effective(tenant=tenant))
    return identity


def test_every_question_is_known_here() -> None:
    """A new question to the reader must be asked by the tests of isolation as well."""
    asked = {
        name
        for part in (Instances, PendingWork, DeadLetters, PausedInstances, EventReads, Tasks, Documents, TenantReader)
        for name in vars(part)
        if not name.startswith("_")
    }
    assert asked == {*QUESTIONS, "stuck"}


def test_another_tenants_stuck_instances_are_not_seen(desk: Desk) -> None:
    """An instance that nothing can wake is shown to its own tenant alone."""
    head = desk.born(born())
    assert [each.id for each in desk.reader.stuck([head.kind])] == [head.id]
    assert desk.reading(OTHER_TENANT).stuck([head.kind]) == []


@pytest.mark.parametrize("question", QUESTIONS)
def test_another_tenant_sees_nothing(desk: Desk, question: str) -> None:
    """Whatever is asked, with the right id and the right key, another tenant's rows do not exist."""
    identity = full(desk)
    ask = QUESTIONS[question]
    assert ask(desk.reading("default"), identity)
    answers: Any = ask(desk.reading(OTHER_TENANT), identity)
    assert [answer for answer in answers if answer is not None] == []


@pytest.mark.row("P-071")
def test_another_partition_sees_nothing(desk: Desk) -> None:
    """Whatever is asked, with the right id and the right key, it is shown in its partition alone; the same names elsewhere are others."""
    north, south = (desk.store.reader("default", each) for each in ("north", "south"))
    identity = full(desk, partition="north")
    for name, ask in QUESTIONS.items():
        if name in {"in_force", "stand_in"}:
            continue  # Workflows are the tenant's, whatever its parts are.
        assert [each for each in as_list(ask(north, identity)) if each is not None], name
        assert [each for each in as_list(ask(south, identity)) if each is not None] == [], name
    assert south.stuck(["decider"]) == []
    theirs = full(desk, partition="south")
    for reader, own in ((north, identity), (south, theirs)):
        found = reader.load(by_key("o-1"))
        assert found is not None
        assert found.header.id == own
        assert [each.instance for each in reader.dead_letters()] == [own]
    assert desk.writer.load([Address(tenant="default", instance=identity, partition="south")]) == [None]
    both = [Address(tenant="default", instance=identity, partition=each) for each in ("north", "south", "")]
    assert [each is not None for each in desk.writer.load(both)] == [True, False, True]


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
        assert [head.id for head in reader.instances(InstanceQuery(statuses=("paused",)))] == [identity]
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
def test_a_look_that_ends_badly_spoils_no_other(desk: Desk) -> None:
    """Whoever raises in the midst of a look, as one who finds nothing does, has its transaction rolled back: those who ask next are answered."""
    change = born()
    desk.commit(change)
    for _ in range(8):  # As many connections as there may be.
        assert desk.reader.with_rows(STEPS, change.header.id)[0] is not None
        with pytest.raises(KeyError), desk.reader.look() as reader:
            raise KeyError(reader.headers([change.header.id])[0].id)
    assert desk.reader.with_rows(STEPS, change.header.id)[0] is not None


def test_a_history_is_paged(desk: Desk) -> None:
    """Events come in order, after a number and up to a limit."""
    head = desk.born(born(events=5))
    numbers = [
        [event.sequence for event in desk.reader.events(head.id, after=after, limit=limit)]
        for after, limit in ((0, None), (0, 2), (2, 2), (4, 2), (5, 2), (0, 0))
    ]
    assert numbers == [[1, 2, 3, 4, 5], [1, 2], [3, 4], [5], [], []]
    assert desk.reader.events(new_id()) == []


def listed(desk: Desk, **query: Any) -> list[InstanceHeader]:
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


def test_instances_are_found_by_version_and_time(desk: Desk) -> None:
    """A list can be narrowed to one version of the definition and to a span of time, from its first instant to before its last."""
    hour = timedelta(hours=1)
    for number, version in enumerate(("1", "2", "2")):
        change = born(new_id(NOW + number * hour), key=f"k{number}", definition="order" if number else "refund")
        header = msgspec.structs.replace(change.header, definition_version=version, created_at=NOW + number * hour)
        change.header = msgspec.structs.replace(header, updated_at=NOW + number * hour)
        desk.commit(change, now=NOW + number * hour)

    def found(**query: Any) -> list[str]:
        return [head.key for head in listed(desk, **query)]

    assert (found(definition_version="2"), found(definition_version="3")) == (["k2", "k1"], [])
    assert found(definition="order", definition_version="2", limit=1) == ["k2"]
    assert found(created_after=NOW + hour) == ["k2", "k1"]
    assert found(created_before=NOW + hour) == ["k0"]
    assert found(created_after=NOW + hour, created_before=NOW + 2 * hour) == ["k1"]
    assert found(key="k1", created_after=NOW + 2 * hour) == []
    assert found(key="k1", definition_version="2", statuses=("running",)) == ["k1"]
    everything = {"created_after": datetime(1, 1, 1, tzinfo=UTC), "created_before": datetime(9999, 12, 31, tzinfo=UTC)}
    assert found(**everything) == ["k2", "k1", "k0"]
    assert found(created_before=datetime(1, 1, 1, tzinfo=UTC)) == []


def test_a_span_of_time_forgives_clocks_that_are_wrong(desk: Desk) -> None:
    """An id may tell another time of birth than the row, because it was made long before, or by somebody whose clock is ahead: what counts is the row."""
    early = desk.born(born(new_id(NOW - timedelta(hours=12))))
    late = desk.born(born(new_id(NOW + timedelta(minutes=10))))
    found = listed(desk, created_after=NOW, created_before=LATER)
    assert [head.id for head in found] == [late.id, early.id]


GROUPS = [
    (definition, version, status, partition)
    for definition in ("order", "refund")
    for version in ("1", "10", "2")
    for status in ("completed", "running")
    for partition in ("", "south")
]


GATHERED: list[dict[str, str]] = [
    {},
    {"definition": "order"},
    {"definition": "order", "definition_version": "10"},
    {"status": "running"},
    {"partition": "south"},
    {"partition": "south", "definition": "refund", "definition_version": "2", "status": "completed"},
]


def test_pages_go_through_all_groups(desk: Desk) -> None:
    """However many definitions, versions and statuses a list is gathered from, pages that are smaller than their number show each instance once, from either end."""
    changes = [born() for _ in GROUPS * 2]
    for change, (definition, version, status, partition) in zip(changes, GROUPS * 2, strict=True):
        change.header = msgspec.structs.replace(
            change.header, definition=definition, definition_version=version, status=status, partition=partition
        )
    desk.commit(*changes)
    for wanted, is_turned in product(GATHERED, (False, True)):
        query: dict[str, Any] = {name: value for name, value in wanted.items() if name != "status"}
        query["statuses"] = (wanted["status"],) if "status" in wanted else ()
        query |= {"oldest_first": is_turned, "limit": 3}
        found: list[InstanceHeader] = []
        while page := listed(desk, **query, before=found[-1].id if found else None):
            found += page
        every = [change.header for change in (changes if is_turned else reversed(changes))]
        assert found == [each for each in every if wanted.items() <= msgspec.structs.asdict(each).items()], wanted


def test_rows_are_read_by_their_ids(desk: Desk) -> None:
    """The rows of the instances that exist, whatever their order and whoever asks for more."""
    heads = [desk.born(born()) for _ in range(3)]
    found = desk.reader.headers([new_id(), heads[2].id, heads[0].id])
    assert sorted(found, key=lambda head: head.id) == [heads[0], heads[2]]
    assert desk.reader.headers([]) == []


def test_every_status_is_listed(desk: Desk) -> None:
    """Lists without a wish show whatever status an instance has, newest first over all of them."""
    words = ["running", "paused", "completed", "zzz", "running", "a"]
    changes = [born() for _ in words]
    for change, word in zip(changes, words, strict=True):
        change.header = msgspec.structs.replace(change.header, status=word)
    desk.commit(*changes)
    assert [head.status for head in listed(desk)] == words[::-1]
    assert [head.status for head in listed(desk, definition="order", limit=4)] == words[:1:-1]
    assert listed(desk, statuses=("running", "running")) == [changes[4].header, changes[0].header]


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


def test_dead_letters_are_found_by_what_they_are(desk: Desk) -> None:
    """Definition and source narrow the list, alone and with an instance; a letter is found by its number too."""
    sources: list[RowSource] = ["step", "compensation"]
    heads = [
        desk.born(
            born(
                definition=definition,
                records=[
                    DeadLetterRaised(source=source, number=place, name=f"{definition} {source}", reason="r", error="e")
                    for place, source in enumerate(sources)
                ],
            )
        )
        for definition in ("order", "refund")
    ]

    def found(**narrow: Any) -> list[str]:
        return [each.name for each in desk.reader.dead_letters(**narrow)]

    assert found(definition="order") == ["order step", "order compensation"]
    assert found(source="step") == ["order step", "refund step"]
    assert found(definition="refund", source="step") == ["refund step"]
    assert found(instance=heads[0].id, source="compensation") == ["order compensation"]
    assert found(instance=heads[0].id, definition="refund") == []
    letters = desk.reader.dead_letters()
    assert [desk.reader.dead_letter(each.id) for each in letters] == letters
    assert desk.reader.dead_letter(letters[-1].id + 1) is None


def asked(desk: Desk, *roles: str, at: datetime = NOW) -> InstanceHeader:
    """An instance that asks a question of each role."""
    questions = [TaskOpened(number=place, subject=f"{role}?", role=role) for place, role in enumerate(roles)]
    people = [PersonAsked(number=place, place=1, kind="role", name=role) for place, role in enumerate(roles) if role]
    change = born(records=[*questions, *people])
    desk.commit(change, now=at)
    return change.header


def test_open_questions_of_all_instances_are_listed(desk: Desk) -> None:
    """In the order of asking, page by page, without those that are answered; of one role, or of all."""
    second = asked(desk, "boss", "clerk", "", at=LATER)
    first = asked(desk, "boss", "boss")
    answered = asked(desk, "boss", at=NOW - timedelta(hours=1))
    closed = PersonMoved(number=0, place=1, is_open=False)
    desk.commit(moved(answered, records=[TaskChanged(number=0, outcome="approved"), closed]))
    every = [(first.id, 0), (first.id, 1), (second.id, 0), (second.id, 1), (second.id, 2)]

    def places(tasks: list[ListedTask]) -> list[tuple[InstanceId, int]]:
        return [(each.task.instance, each.task.number) for each in tasks]

    def of(role: str, **rest: Any) -> list[ListedTask]:
        return desk.reader.open_tasks(TaskQuery(people=(AssigneeRecord("role", role),), **rest))

    assert places(desk.reader.open_tasks(TaskQuery())) == every
    assert places(of("boss")) == [every[0], every[1], every[2]]
    assert of("nobody") == []
    pages = [desk.reader.open_tasks(TaskQuery(limit=2))]
    while pages[-1]:
        pages.append(desk.reader.open_tasks(TaskQuery(limit=2, after=pages[-1][-1].place)))
    assert [place for page in pages for place in places(page)] == every
    (listed,) = of("boss", after=pages[0][1].place)
    task = listed.task
    assert (task.subject, task.role, task.opened_at, task.closed_at) == ("boss?", "boss", LATER, None)
    assert (listed.definition, listed.key) == (second.definition, second.key)


def unbegun(**rest: Any) -> InstanceChange:
    """An instance that nobody has worked on."""
    change = born(**rest)
    change.header = msgspec.structs.replace(change.header, begun=False, kind="saga")
    return change


def test_a_list_tells_apart_what_has_begun(desk: Desk) -> None:
    """An instance has begun when a commit says so, or while somebody holds an effect of it; pages are cut after that is asked."""
    old = [desk.born(unbegun()).id for _ in range(3)]
    identities = [new_id(), new_id()]
    held = [desk.born(unbegun(identity=each, issued=1, effects=[effect(each)])).id for each in identities]
    (done,) = [head.id for head in map(desk.born, [born(key="done")])]
    new = [desk.born(unbegun(key=f"k-{number}")).id for number in range(3)]
    desk.effects.claim(new_worker(), [Wanted("ship", 9)], 9, words=SHIP_WORDS)
    assert desk.reader.in_hand([*old, *held, *new, new_id()]) == set(held)
    narrows: list[dict[str, Any]] = [{}, {"definition": "order"}, {"statuses": ("running",)}]
    for narrow in narrows:
        waiting, begun = InstanceQuery(begun=False, **narrow), InstanceQuery(begun=True, **narrow)
        assert [head.id for head in desk.reader.instances(waiting)] == [*new[::-1], *old[::-1]]
        assert [head.id for head in desk.reader.instances(begun)] == [done, *held[::-1]]
        page = desk.reader.instances(msgspec.structs.replace(begun, limit=2))
        assert [head.id for head in page] == [done, held[1]]
    assert [head.id for head in desk.reader.instances(InstanceQuery(begun=False, key="k-1"))] == [new[1]]
    assert desk.reader.instances(InstanceQuery(begun=False, key="done")) == []


def test_a_list_tells_kinds_apart(desk: Desk) -> None:
    """Instances of deciders and of workflows can be listed alone, whatever else narrows the list."""
    decider, saga = desk.born(born(key="a")).id, desk.born(unbegun(key="a", definition="pay")).id
    narrows: list[dict[str, Any]] = [{}, {"key": "a"}, {"statuses": ("running", "failed")}]
    for narrow in narrows:
        assert [head.id for head in desk.reader.instances(InstanceQuery(kinds=("saga", "process"), **narrow))] == [saga]
        assert [head.id for head in desk.reader.instances(InstanceQuery(kinds=("decider",), **narrow))] == [decider]
        assert len(desk.reader.instances(InstanceQuery(**narrow))) == 2
    assert desk.reader.instances(InstanceQuery(definition="pay", kinds=("decider",))) == []


def test_the_steps_of_a_page_are_named(desk: Desk) -> None:
    """The nodes of the steps that are asked for, and what they undo; others are not read."""
    opened = [StepOpened(number=number, node=f"n{number}") for number in (1, 2)]
    undoing = StepOpened(number=3, node="n1", kind="compensation", compensates=1)
    head = desk.born(born(records=[*opened, undoing]))
    assert desk.reader.step_names(head.id, [1, 3, 9]) == {1: ("n1", None), 3: ("n1", 1)}


def test_a_look_is_one_moment(desk: Desk) -> None:
    """Whatever is asked inside a look is answered as of its beginning, also when others commit meanwhile."""
    head = desk.born(born(records=[StepOpened(number=1, node="a")]))
    change = moved(head, ends=True, records=[StepMoved(number=1, status="completed")])
    other = threading.Thread(target=desk.another().commit, args=[change])
    with desk.reader.look() as seen:
        assert [each.version for each in seen.headers([head.id])] == [1]
        other.start()
        if desk.store.url != "sqlite://":  # In memory there is one connection: others wait until the look is over.
            other.join()
        assert [each.version for each in seen.headers([head.id])] == [1]
        assert [each.sequence for each in seen.events(head.id)] == [1]
        assert [each.status for each in seen.rows(STEPS, head.id)] == ["pending"]
        assert [each.status for each in seen.instances(InstanceQuery())] == ["running"]
    other.join()
    assert [each.version for each in desk.reader.headers([head.id])] == [2]


def bury(desk: Desk, dead: DeadLetterRecord) -> None:
    """Write a dead letter."""
    (number,) = desk.writer.accept([message()], NOW)
    assert desk.inbox.bury(InboxClaim(number), dead)


def test_dead_letters_are_found_by_key_and_counted(desk: Desk) -> None:
    """The key is that of the letter, or of the instance that it belongs to."""
    mine, other = desk.born(born(key="o-1")), desk.born(born(key="o-2"))
    for instance in (mine.id, mine.id, other.id):
        bury(desk, letter("effect", instance=instance))
    bury(desk, letter("inbox", key="o-1"))
    assert [each.source for each in desk.reader.dead_letters(key="o-1")] == ["effect", "effect", "inbox"]
    assert [each.source for each in desk.reader.dead_letters(key="o-1", source="inbox")] == ["inbox"]
    assert desk.reader.dead_letters(instance=mine.id, key="o-2") == []
    count = desk.reader.count_letters
    assert [count(), count(key="o-1"), count(source="timer")] == [4, 3, 0]
    assert desk.reader.count_letters(instance=other.id, definition="order") == 1


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
        TransitionRecord("", "Place", "running", 1),
        TransitionRecord("running", "Pay", "running", 2),
    ]
