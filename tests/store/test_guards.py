"""What the database itself refuses, whoever asks: the past does not change, and what has ended stays as it ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import msgspec
import pytest

from standfast.errors import CommandError, StoreError
from standfast.kernel.row_kinds.documents import (
    DOCUMENT_VERSIONS,
    AuditMade,
    DocumentOpened,
    MutationMade,
    VersionKept,
)
from standfast.kernel.row_kinds.steps import (
    STEPS,
    TASKS,
    StepMoved,
    StepOpened,
    StepStatus,
    TaskChanged,
    TaskOpened,
)
from standfast.kernel.row_kinds.tasks import TASK_DECISIONS, DecisionGiven
from standfast.kernel.rows import Record
from standfast.store.opening import open_store
from support.desks import Desk
from support.rows import (
    NOW,
    born,
    moved,
    new_id,
)

ENDS: list[StepStatus] = ["completed", "failed", "skipped", "cancelled"]


@pytest.mark.row("D-039")
@pytest.mark.parametrize(
    "statement",
    [
        "update {}events set comment = 'never said'",
        "update {}events set sequence = 7",
        "update {}events set data = data",
        "delete from {}events",
        "delete from {}events where sequence = 1",
    ],
)
def test_events_never_change(desk: Desk, statement: str) -> None:
    """An event can be neither changed nor removed, also with SQL."""
    head = desk.born(born(events=2))
    before = desk.loaded(head.id).events
    with pytest.raises(StoreError, match="HF101"):
        desk.run(statement)
    assert desk.loaded(head.id).events == before


@pytest.fixture
def postgres(postgres_dsn: str) -> Iterator[Desk]:
    """A desk on Postgres."""
    store = open_store(postgres_dsn)
    yield Desk(store)
    store.close()


@pytest.mark.row("D-039")
@pytest.mark.parametrize("partition", ["events_2026_03", "events_default"])
@pytest.mark.parametrize("change", ["update {}{} set comment = 'never said'", "delete from {}{}"])
def test_events_never_givenin_a_partition(postgres: Desk, partition: str, change: str) -> None:
    """The guard holds also for whoever names the partition that the rows lie in."""
    postgres.keeper.tidy(NOW)
    postgres.born(born())
    postgres.born(born(new_id(NOW.replace(year=1999))))
    assert postgres.query(f"select count(*) from {{}}{partition}") == [(1,)]
    with pytest.raises(StoreError, match="HF101"):
        postgres.run(change.format("{}", partition))


GUARDED = {
    "events": "HF101",
    "events_2026_03": "HF101",
    "events_default": "HF101",
    "blueprints": "HF102",
    "chains": "HF102",
    "charters": "HF102",
    "publishing_rules": "HF102",
    "suspensions": "HF102",
    "seals": "HF108",
    "changes": "HF120",
    "documents": "HF133",
    "document_versions": "HF134",
    "mutations": "HF135",
    "audit": "HF136",
    "task_decisions": "HF138",
}
"""What is never deleted row by row, and by which guard."""


@pytest.mark.row("D-039", "P-131")
@pytest.mark.parametrize("table", GUARDED)
def test_what_is_never_deleted_is_not_emptied_at_once(postgres: Desk, table: str) -> None:
    """TRUNCATE is refused as a deletion is, also by whoever owns the tables, and for a partition by its own name."""
    postgres.keeper.tidy(NOW)
    postgres.born(born())
    for statement in (f"truncate {{}}{table}", f"truncate {{}}{table} cascade"):
        with pytest.raises(StoreError, match=GUARDED[table]):
            postgres.run(statement)
    assert postgres.query("select count(*) from {}events") == [(1,)]


def test_every_table_that_is_never_deleted_from_is_guarded(postgres: Desk) -> None:
    """Whoever adds a table with a guard against deletion adds the one against TRUNCATE."""
    having = "select tgrelid::regclass::text from pg_trigger where not tgisinternal and (tgtype & 2) <> 0 and (tgtype & {}) <> 0 and tgparentid = 0"
    deleting, emptying = ({name for (name,) in postgres.query(having.format(bit))} for bit in (8, 32))
    assert deleting == {each for each in emptying if not each.startswith("standfast.events_")}


@pytest.mark.row("E-342", "E-395", "E-396", "E-927", "E-944")
def test_partitions_are_made_ahead(postgres: Desk) -> None:
    """Housekeeping makes the partitions of this month and the next two; what is born in one lies there, and nothing is ever refused."""
    for later in (0, 6):
        moment = NOW.replace(year=2046) + timedelta(days=31 * later)
        postgres.keeper.tidy(moment)
        for ahead in (0, 2, 4):
            postgres.born(born(new_id(moment + timedelta(days=30 * ahead))))
    counted = "select tableoid::regclass::text, count(*) from {}events group by 1 order by 1"
    found = [(name.removeprefix("standfast."), count) for name, count in postgres.query(counted)]
    months = ("2046_03", "2046_05", "2046_10", "2046_12")
    assert found == [*((f"events_{month}", 1) for month in months), ("events_default", 2)]


def test_retention_opens_one_instance_only(postgres: Desk) -> None:
    """The permission to delete an instance's events is for that instance and that transaction alone."""
    first, second = postgres.born(born()), postgres.born(born())
    allow = f"perform set_config('standfast.retention', '{first.id}', true)"
    with pytest.raises(StoreError, match="HF101"):
        postgres.run(f"do $$ begin {allow}; delete from {{}}events where instance = '{second.id}'; end $$")
    with pytest.raises(StoreError, match="HF101"):
        postgres.run(f"delete from {{}}events where instance = '{first.id}'")


DEFINITION = (
    "insert into {{}}definitions values ('default', 'order', '1', 'saga', {blob}, {blob}, 'h', '1', '{status}', "
    "'', '', 'ada', '{at}', '', null, '')"
)


def defined(desk: Desk, status: str) -> None:
    """A stored definition."""
    blob = "''" if desk.store.url.startswith("postgresql") else "x''"
    desk.run(DEFINITION.format(blob=blob, status=status, at=NOW.isoformat(timespec="microseconds")))


def redefine(desk: Desk, change: str) -> None:
    """Change a stored definition with SQL."""
    blob = "'other'::bytea" if desk.store.url.startswith("postgresql") else "x'6f74686572'"
    desk.run(f"update {{}}definitions set {change.format(blob=blob)}")


CHANGES = [
    "source = {blob}",
    "media_type = 'text/plain'",
    "compiled = {blob}",
    "hash = 'other'",
    "kind = 'process'",
    "compiler = '2'",
    "name = 'refund'",
    "version = '2'",
    "tenant = 'rival'",
]


@pytest.mark.row("E-054", "E-904")
@pytest.mark.parametrize("change", [*CHANGES, "status = 'draft'"])
@pytest.mark.parametrize("status", ["published", "retired"])
def test_a_published_definition_never_changes(desk: Desk, status: str, change: str) -> None:
    """What instances are pinned to stays what it was, and never becomes a draft again."""
    defined(desk, status)
    with pytest.raises(StoreError, match="HF102"):
        redefine(desk, change)


@pytest.mark.parametrize("change", [*CHANGES, "status = 'published'"])
def test_a_draft_may_change(desk: Desk, change: str) -> None:
    """Before it is published a definition is the author's."""
    defined(desk, "draft")
    redefine(desk, change)


def test_a_published_definition_may_retire(desk: Desk) -> None:
    """Retiring changes nothing about what it says."""
    defined(desk, "published")
    desk.run("update {}definitions set status = 'retired'")


@pytest.mark.parametrize(
    "change",
    [
        "tenant = 'rival'",
        "definition = 'refund'",
        "key = 'other'",
        "key = null",
        "created_at = '1999-01-01'",
        "version = 0",
    ],
)
def test_the_identity_of_an_instance_never_changes(desk: Desk, change: str) -> None:
    """Whose it is, what it runs, its key and its birth stay; its version never goes back."""
    desk.born(born(key="o-1"))
    with pytest.raises(StoreError, match="HF103"):
        desk.run(f"update {{}}instances set {change}")


@pytest.mark.row("E-345", "E-926")
@pytest.mark.parametrize(
    "change",
    [
        "number = 7",
        "node = 'ship'",
        "token = 't'",
        "visit = 2",
        "kind = 'control'",
        "compensates = 1",
        "retry_of = 1",
        "tenant = 'rival'",
    ],
)
def test_the_identity_of_a_step_never_changes(desk: Desk, change: str) -> None:
    """A step row is about one visit of one node for ever."""
    desk.born(born(records=[StepOpened(number=2, node="charge")]))
    with pytest.raises(StoreError, match="HF104"):
        desk.run(f"update {{}}steps set {change}")


def refused(desk: Desk, records: list[Record], *, begun: list[Record], code: str) -> None:
    """A second commit with these records is refused with the guard's code, and nothing of it is written."""
    head = desk.born(born(records=begun))
    with pytest.raises(StoreError, match=code):
        desk.commit(born(), moved(head, records=records))
    assert desk.loaded(head.id).header.version == 1
    assert len(desk.feed.read(after=0, limit=9)) == 1


@pytest.mark.row("E-070", "E-391", "E-393", "E-949")
@pytest.mark.parametrize(
    ("end", "after"), [(end, after) for end in ENDS for after in ("pending", "running", *ENDS) if after != end]
)
def test_a_step_that_has_ended_never_moves(desk: Desk, end: StepStatus, after: StepStatus) -> None:
    """A final status is final: a commit that gives the step any other status is refused whole, and so is SQL."""
    refused(
        desk,
        [StepMoved(number=1, status=after)],
        begun=[StepOpened(number=1, node="charge", status=end)],
        code="HF105",
    )
    with pytest.raises(StoreError, match="HF105"):
        desk.run(f"update {{}}steps set status = '{after}'")


@pytest.mark.row("E-347")
def test_a_step_has_one_of_six_statuses(desk: Desk) -> None:
    """A step is pending unless its row says otherwise, and a status that is none of the six is refused."""
    head = desk.born(born(records=[StepOpened(number=1, node="charge")]))
    with pytest.raises(StoreError):
        desk.run("update {}steps set status = 'odd'")
    assert [each.status for each in desk.reader.rows(STEPS, head.id)] == ["pending"]


@pytest.mark.row("E-344", "E-393")
@pytest.mark.parametrize("end", ENDS)
def test_an_open_step_may_end_in_each_way(desk: Desk, end: StepStatus) -> None:
    """From pending and running every status can be reached, and a final row may still learn its output."""
    head = desk.born(born(records=[StepOpened(number=1, node="a"), StepOpened(number=2, node="b", status="running")]))
    change = moved(head, records=[StepMoved(number=number, status=end) for number in (1, 2)])
    desk.commit(change)
    desk.commit(moved(change.header, records=[StepMoved(number=1, status=end, output=b"late")]))
    header, steps = desk.reader.with_rows(STEPS, head.id)
    assert (header, [step.status for step in steps]) == (desk.loaded(head.id).header, [end, end])
    with desk.reader.look() as look:
        assert look.with_rows(STEPS, head.id) == (header, desk.reader.rows(STEPS, head.id))
    assert desk.reader.with_rows(STEPS, new_id()) == (None, [])


RUN_ENDS = ["completed", "cancelled", "failed"]


@pytest.mark.row("E-070", "E-391", "E-392", "E-949")
@pytest.mark.parametrize("before", ["running", "paused"])
@pytest.mark.parametrize("end", RUN_ENDS)
def test_a_document_that_has_ended_stays_as_it_ended(desk: Desk, before: str, end: str) -> None:
    """The run of a document that is over never runs again and never ends in another way, also with SQL; one that runs or is paused may end in each way."""
    given = born()
    given.header = msgspec.structs.replace(given.header, kind="envelope")
    head = desk.born(given)
    desk.run("update {}instances set status = 'paused'")
    desk.run(f"update {{}}instances set status = '{before}'")
    desk.run(f"update {{}}instances set status = '{end}', ended_at = '{NOW.isoformat(timespec='microseconds')}'")
    others = [each for each in ("pending", "running", "paused", *RUN_ENDS) if each != end]
    for change in (
        *(f"status = '{each}'" for each in others),
        "status = 'running', ended_at = null",
        "ended_at = null",
    ):
        with pytest.raises(StoreError, match="HF107"):
            desk.run(f"update {{}}instances set {change}")
    assert desk.loaded(head.id).header.status == end


@pytest.mark.parametrize("outcome", ["rejected", "approved"])
def test_a_question_is_decided_once(desk: Desk, outcome: str) -> None:
    """A second decision is refused, whatever it says, and the first one stays."""
    done = TaskOpened(number=1, outcome="approved", actor="ada")
    refused(desk, [TaskChanged(number=1, outcome=outcome, actor="bob")], begun=[done], code="HF106")


@pytest.mark.parametrize("table", ["instances", "events", "effects", "timers", "inbox", "steps", "receipts"])
def test_every_row_has_a_tenant(desk: Desk, table: str) -> None:
    """An empty tenant is refused by the tables themselves."""
    found = desk.query(
        "select sql from sqlite_master where name = '" + table + "'"
        if not desk.store.url.startswith("postgresql")
        else "select string_agg(pg_get_constraintdef(oid), ' ') from pg_constraint "
        f"where conrelid = 'standfast.{table}'::regclass and contype = 'c'"
    )
    assert "tenant <> ''" in found[0][0]


DOCUMENT: list[Record] = [
    DocumentOpened(type="invoice", id="I-1", status="draft", version=2, data=b"{}", amended_from="I-0"),
    VersionKept(version=2, status="draft", data=b"{}", data_hash="h", mutation=1),
    MutationMade(sequence=1, kind="business", action="create", version_before=0, version_after=1),
    AuditMade(sequence=1, who="bob", what="create", which="invoice/I-1@1"),
    DecisionGiven(number=1, sequence=1, actor="ann", outcome="approved"),
]


@pytest.mark.row("E-053", "E-070", "EH-03", "EH-09", "EH-10")
@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("update {}documents set id = 'I-9'", "HF130"),
        ("update {}documents set amended_from = ''", "HF130"),
        ("update {}documents set version = 1", "HF131"),
        ("delete from {}documents", "HF133"),
        ("update {}document_versions set status = 'active'", "HF134"),
        ("delete from {}document_versions", "HF134"),
        ("update {}mutations set actor = 'eve'", "HF135"),
        ("delete from {}mutations", "HF135"),
        ("update {}audit set who = 'eve'", "HF136"),
        ("delete from {}audit", "HF136"),
        ("update {}task_decisions set actor = 'eve'", "HF138"),
        ("update {}task_decisions set document_version = '9'", "HF138"),
        ("delete from {}task_decisions", "HF138"),
    ],
)
def test_what_documents_were_never_changes(desk: Desk, statement: str, code: str) -> None:
    """Versions, mutations, decisions and the audit are never rewritten, and a document keeps its name and never gets an older version, also with SQL."""
    desk.born(born(records=DOCUMENT))
    with pytest.raises(StoreError, match=code):
        desk.run(statement)


def test_a_superseded_document_never_changes(desk: Desk) -> None:
    """Once another one has taken its place, nothing of its row moves."""
    desk.born(born(records=DOCUMENT))
    desk.run("update {}documents set superseded_by = 'I-2', status = 'cancelled'")
    with pytest.raises(StoreError, match="HF132"):
        desk.run("update {}documents set status = 'active'")


@pytest.mark.row("E-053", "E-672")
@pytest.mark.parametrize(("first", "second"), [("true", "false"), ("false", "true"), ("true", "null")])
def test_an_approval_is_used_up_once(desk: Desk, first: str, second: str) -> None:
    """Used up or void, a decision stays so."""
    desk.born(born(records=DOCUMENT))
    desk.run(f"update {{}}task_decisions set applied = {first}")
    with pytest.raises(StoreError, match="HF137"):
        desk.run(f"update {{}}task_decisions set applied = {second}")


@pytest.mark.row("E-351")
def test_the_rows_of_a_commit_come_in_any_order(desk: Desk) -> None:
    """A question may come before the version that it is about, and a decision before both: no reference between tables asks for an order."""
    rows = [*DOCUMENT, TaskOpened(number=1, role="clerk", document_version="2"), StepOpened(number=1, node="ask")]
    head = desk.born(born(records=rows[::-1]))
    assert [len(desk.reader.rows(kind, head.id)) for kind in (DOCUMENT_VERSIONS, TASKS, STEPS, TASK_DECISIONS)] == [
        1
    ] * 4
    found = desk.query(
        "select count(*) from sqlite_master m, pragma_foreign_key_list(m.name)"
        if not desk.store.url.startswith("postgresql")
        else "select count(*) from pg_constraint where contype = 'f' and not condeferrable and connamespace = 'standfast'::regnamespace"
    )
    assert found == [(0,)]


def test_an_id_belongs_to_one_document_of_its_type(desk: Desk) -> None:
    """A second document of the same type and id is refused, whatever its workflow is called."""
    desk.born(born(records=DOCUMENT[:1]))
    with pytest.raises(CommandError):
        desk.born(born(records=DOCUMENT[:1]))
