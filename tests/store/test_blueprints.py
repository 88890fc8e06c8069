"""Contracts, bodies and compiled workflows in the database: what their rows must say, and what never changes, whoever asks."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from standfast.errors import StandfastError, StoreError
from standfast.store.ports.documents import InForce, PublishingRule, StoredBlueprint, Suspension
from standfast.store.ports.store import LostRaceError
from standfast.store.records.instances import SHARED_TENANT
from support.desks import Desk
from support.rows import NOW, blueprint, definition, effective

ENVELOPE = {
    "kind": "envelope", "is_default": True, "version": 1, "status": "published", "skeleton": b"{}", "replaces": None,
    "published_by": "ada", "published_at": NOW,
}  # fmt: skip
REFUSED = (StandfastError, LostRaceError)
"""What a constraint comes to."""
PUBLISHED = {"version": 1, "status": "published", "published_by": "ada", "published_at": NOW}
COLUMNS = (
    "id = 'x'", "tenant = 'rival'", "type = 'order'", "version = 7", "name = 'x'", "envelope_version = 9", "content = {blob}",
    "hash = 'x'", "skeleton = {blob}", "header = {blob}", "compiler = '9'", "graph_hash = 'x'", "workflow = 'x'", "envelope = 'x'",
    "body = 'x'", "replaces = 9", "revision = 9", "drafted_by = '[]x'", "comment = 'x'", "created_by = 'x'", "updated_by = 'x'",
    "published_by = 'x'", "status = 'draft'", "kind = 'effective'", "created_at = updated_at", "archived_by = 'x'",
)  # fmt: skip


def add(desk: Desk, row: StoredBlueprint) -> StoredBlueprint:
    """Store a row."""
    with desk.store.blueprints().changing(row.tenant, row.type) as unit:
        unit.add(row)
    return row


def rows(desk: Desk) -> list[tuple[object, ...]]:
    """All that is stored, in a few words."""
    return desk.query("select id, kind, version, status, content, archived_by from {}blueprints order by id")


def change(desk: Desk, what: str, row: StoredBlueprint) -> None:
    """Change a row with SQL."""
    blob = "'other'::bytea" if desk.store.url.startswith("postgresql") else "x'6f74686572'"
    desk.run(f"update {{}}blueprints set {what.format(blob=blob)} where id = '{row.id}'")


@pytest.mark.row("E-054", "E-307", "E-904", "E-028", "E-311", "E-305", "E-306")
@pytest.mark.parametrize("kind", ["body", "effective"])
def test_what_is_published_only_ever_gets_archived(desk: Desk, kind: str) -> None:
    """No column of a published or archived row changes, by SQL either; the way from draft over published to archived goes one way; nothing is deleted."""
    before_that = NOW - timedelta(days=1)
    row = add(
        desk, blueprint(**PUBLISHED, created_at=before_that) if kind == "body" else effective(created_at=before_that)
    )
    for status in ("published", "archived"):
        before = rows(desk)
        for column in COLUMNS:
            if column == "kind = 'effective'" and kind == "effective":
                continue
            with pytest.raises(StoreError, match="HF102"):
                change(desk, column, row)
            if status == "published" and not column.startswith(("status", "archived")):  # Not on the way out either.
                with pytest.raises(StoreError, match="HF102"):
                    change(desk, f"{column}, status = 'archived', archived_by = 'x', archived_at = updated_at", row)
        with pytest.raises(StoreError, match="HF102"):
            desk.run("delete from {}blueprints")
        assert rows(desk) == before
        if status == "published":
            with desk.store.blueprints().changing(row.tenant, row.type) as unit:
                assert unit.archive(row.id, by="bob", at=NOW, why="old")
                assert not unit.archive(row.id, by="bob", at=NOW, why="old")
    with pytest.raises(StoreError, match="HF102"):
        change(desk, "status = 'published', archived_by = null, archived_at = null, archived_why = ''", row)


@pytest.mark.row("E-108", "E-308", "E-107", "E-304")
def test_nothing_of_an_envelope_ever_changes(desk: Desk) -> None:
    """The default rows are not even archived."""
    row = add(desk, blueprint(**ENVELOPE, tenant=SHARED_TENANT))
    before = rows(desk)
    for column in (
        *COLUMNS,
        "is_default = is_default",
        "status = 'archived', archived_by = 'x', archived_at = updated_at",
    ):
        with pytest.raises(REFUSED):
            change(desk, column, row)
    with pytest.raises(StoreError, match="HF102"):
        desk.run("delete from {}blueprints")
    with (
        pytest.raises(StoreError, match="HF102"),
        desk.store.blueprints().changing(SHARED_TENANT, "invoice") as unit,
    ):
        unit.archive(row.id, by="bob", at=NOW, why="old")
    assert rows(desk) == before


@pytest.mark.row("E-265", "E-301", "E-309", "ED-17", "E-262")
def test_a_draft_is_saved_published_and_discarded_once(desk: Desk) -> None:
    """A draft changes with each revision, and with no other; versions are counted once for each kind; a draft goes, and what it is a draft of stays."""
    store, draft = desk.store.blueprints(), add(desk, blueprint())
    with store.changing("default", "invoice") as unit:
        second = msgspec.structs.replace(
            draft, revision=2, content=b"[2]", hash="h2", drafted_by='["ada","bob"]', updated_by="bob"
        )
        assert unit.save(second)
        assert not unit.save(second)
        assert not unit.publish(msgspec.structs.replace(draft, **PUBLISHED))  # Not as it was last saved.
        assert unit.publish(msgspec.structs.replace(second, **PUBLISHED))
        assert not unit.save(msgspec.structs.replace(second, revision=3))
        assert not unit.discard(draft.id)
    with pytest.raises(StoreError, match="HF102"):
        change(desk, "tenant = 'rival'", add(desk, blueprint()))
    found = store.get("default", draft.id)
    assert found is not None
    assert (found.version, found.content, found.published_by, found.updated_by) == (1, b"[2]", "ada", "bob")
    add(desk, effective(body=draft.id))  # The same number, of another kind.
    with pytest.raises(REFUSED):
        add(desk, blueprint(**PUBLISHED, archived_why=""))
    other = add(desk, blueprint())
    with store.changing("default", "invoice") as unit:
        assert [(each.version, each.content) for each in unit.listed("body")][:1] == [(1, b"")]
        assert unit.discard(other.id)
        assert not unit.discard(other.id)
    assert store.get("default", other.id) is None
    assert store.get("rival", draft.id) is None


@pytest.mark.row("E-071", "E-302", "E-303", "E-304", "E-305", "E-306", "E-948", "E-270")
def test_a_row_says_what_its_kind_says(desk: Desk) -> None:
    """Each kind has columns that it must have and others that it must not; two of one type are never in force at once."""
    ok = [blueprint(**ENVELOPE), effective(), blueprint()]
    for each in ok:
        add(desk, each)
    wrong: list[dict[str, object]] = [
        {"kind": "saga"}, {"status": "retired"}, {"version": 1}, {"hash": ""}, {"tenant": ""}, {"revision": 0},
        {"tenant": SHARED_TENANT}, {"is_default": True}, {"replaces": None}, {"skeleton": b""}, {"compiler": "1"}, {"envelope": "e"},
        {"published_by": "ada"}, {"archived_at": NOW},
    ]  # fmt: skip
    rows_ = [blueprint(**each) for each in wrong]
    rows_ += [
        blueprint(**{**ENVELOPE, "version": 2, **each})
        for each in (
            {"is_default": False},
            {"skeleton": None},
            {"status": "draft", "version": 0},
            {"body": "b"},
            {"replaces": 0},
        )
    ]
    rows_ += [
        effective(**{"version": 2, "type": "order", **each})
        for each in (
            {"compiler": None}, {"graph_hash": None}, {"header": None}, {"workflow": None}, {"envelope": None}, {"skeleton": b""},
            {"is_default": True}, {"published_at": None}, {"replaces": 1}, {"status": "draft", "version": 0},
        )
    ]  # fmt: skip
    rows_ += [effective(version=2), blueprint(**ENVELOPE)]  # Two in force; two of one version.
    before = rows(desk)
    for each in rows_:
        with pytest.raises(REFUSED):
            add(desk, each)
    assert rows(desk) == before


@pytest.mark.row("E-310", "E-265")
def test_what_is_in_force(desk: Desk) -> None:
    """A tenant's own stands before the shared one, also once it is archived; a retired graph stays readable."""
    store = desk.store.blueprints()
    assert desk.reader.in_force("invoice") is None
    add(desk, effective(tenant=SHARED_TENANT, workflow="1-std"))
    assert desk.reader.in_force("invoice") == InForce("1-std", "published", True, 1, False)
    mine = add(desk, effective(workflow="1-org"))
    with store.changing("default", "invoice") as unit:
        assert unit.publish_workflow(definition("1-org", name="invoice"), NOW)
        assert not unit.publish_workflow(definition("1-org", name="invoice"), NOW)
    assert desk.reader.in_force("invoice") == InForce("1-org", "published", False, 1, False)
    with store.changing("default", "invoice") as unit:
        unit.archive(mine.id, by="bob", at=NOW, why="old")
        unit.retire_workflow("1-org")
    assert desk.reader.in_force("invoice") == InForce("1-org", "archived", False, 1, False)
    assert desk.reading("rival").in_force("invoice") == InForce("1-std", "published", True, 1, False)
    kept = desk.definitions.get("default", "invoice", "1-org")
    assert kept is not None
    assert kept.status == "retired"
    line = Suspension(
        tenant="rival",
        type="invoice",
        workflow="1-std",
        is_suspended=True,
        set_by="bob",
        set_at=NOW,
        why="bad",
        batch="b",
    )
    assert (store.suspend(line), store.suspend(line)) == (True, False)
    found = desk.reading("rival").in_force("invoice")
    assert found is not None
    assert (found.is_suspended, desk.reading("rival").stand_in("invoice", found)) == (True, "")
    assert (store.suspensions("rival", ""), store.suspensions("default", "")) == ([line], [])
    assert store.suspend(msgspec.structs.replace(line, is_suspended=False))
    assert desk.reading("rival").in_force("invoice") == ("1-std", "published", True, 1, False)
    assert [each.tenant for each in store.listed("default", kind="effective")] == ["default", SHARED_TENANT]
    assert store.version("rival", "invoice", "effective", 1) is not None
    assert store.version("rival", "invoice", "body", 1) is None


def test_a_change_that_fails_leaves_nothing(desk: Desk) -> None:
    """All that one change writes becomes true at once, or never was."""
    store = desk.store.blueprints()

    def fail() -> None:
        with store.changing("default", "invoice") as unit:
            unit.add(effective())
            unit.publish_workflow(definition("1-org", name="invoice"), NOW)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (rows(desk), desk.definitions.get("default", "invoice", "1-org")) == ([], None)


def test_rules_of_publishing_are_added_to(desk: Desk) -> None:
    """The last one holds, those before stay, and none is rewritten."""
    store = desk.store.blueprints()
    assert store.rule("default") is None
    for two in (True, False, True):
        store.set_rule(PublishingRule(tenant="default", two_person=two, set_by="ada", set_at=NOW))
    found = store.rule("default")
    assert (found, store.rule("rival")) == (
        PublishingRule(tenant="default", two_person=True, set_by="ada", set_at=NOW),
        None,
    )
    for statement in ("update {}publishing_rules set set_by = 'x'", "delete from {}publishing_rules"):
        with pytest.raises(StoreError, match="HF102"):
            desk.run(statement)
    assert desk.query("select count(*) from {}publishing_rules") == [(3,)]
