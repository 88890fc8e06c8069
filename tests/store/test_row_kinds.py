"""What is declared about rows and what the databases hold: the same columns, behind walls, written and deleted by the declaration alone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from standfast.errors import CommandError
from standfast.kernel.rows import Record, RowKind, kinds, merge
from standfast.store.records.instances import InstanceHeader
from support.desks import Desk
from support.notes import (
    NOTES,
    WEIGHTS,
    NoteChanged,
    NoteEnded,
    NoteOpened,
    Weight,
    WeightEnded,
    declared,
)
from support.rows import LATER, NOW, OTHER_TENANT, born, moved

SQLITE = {int: "INTEGER", str: "TEXT", bytes: "BLOB", bool: "INTEGER", datetime: "TEXT", UUID: "TEXT"}
POSTGRES = {int: "int4", str: "text", bytes: "bytea", bool: "bool", datetime: "timestamptz", UUID: "uuid"}
NOON = NOW + timedelta(hours=3)
NUMBER = UUID(int=7)


@pytest.fixture
def own(desk: Desk) -> Iterator[Desk]:
    """A desk on a store with the kinds that only tests declare."""
    with declared(desk.store):
        yield desk


def is_sqlite(desk: Desk) -> bool:
    """Whether the store is a file, or in memory."""
    return desk.store.url.startswith("sqlite")


def columns(desk: Desk, table: str) -> dict[str, tuple[str, bool, bool]]:
    """The columns of a table: type, whether it may be null, and whether a row can be written without it."""
    if is_sqlite(desk):
        found = desk.query(
            f"select name, type, \"notnull\" = 0, dflt_value is not null, pk from pragma_table_info('{table}')"
        )
        return {
            name: (kind, bool(null) and not key, bool(null) or bool(default))
            for name, kind, null, default, key in found
        }
    found = desk.query(
        "select column_name, udt_name, is_nullable = 'YES', column_default is not null or is_identity = 'YES' "
        f"from information_schema.columns where table_schema = 'standfast' and table_name = '{table}'"
    )
    return {name: (kind, null, null or default) for name, kind, null, default in found}


def test_every_table_has_the_declared_columns(own: Desk) -> None:
    """A table has the columns that its kind declares, with fitting types, and no others; a shared one fills in the rest by itself."""
    types = SQLITE if is_sqlite(own) else POSTGRES
    for kind in kinds():
        expected = {each.name: (types[each.type], each.may_be_none) for each in kind.columns}
        expected |= dict.fromkeys(("tenant", *kind.of_instance), (types[str], False))
        found = columns(own, kind.table)
        if kind.shared_by:
            assert all(
                is_optional for name, (_, _, is_optional) in found.items() if name not in expected and name != "id"
            )
            if not kind.goes_with_instance:  # Some of those who share it belong to no instance.
                expected["instance"] = (types[UUID], True)
        assert {name: told[:2] for name, told in found.items() if name in expected} == expected, kind.table
        assert kind.shared_by or found.keys() == expected.keys(), kind.table


def test_every_table_is_found_by_its_key(own: Desk) -> None:
    """Instance and key are the primary key of a table that a kind has for itself."""
    for kind in kinds():
        if kind.shared_by:
            continue
        if is_sqlite(own):
            found = own.query(f"select name from pragma_table_info('{kind.table}') where pk > 0 order by pk")
        else:
            found = own.query(
                "select a.attname from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey) "
                f"where i.indisprimary and i.indrelid = 'standfast.{kind.table}'::regclass "
                "order by array_position(i.indkey::int2[], a.attnum)"
            )
        assert [name for (name,) in found] == ["instance", *kind.key], kind.table


def test_every_table_has_a_wall_and_grants(own: Desk) -> None:
    """On Postgres the engine may do everything, tenants may only look, and see their own rows; a file has one tenant's word for it."""
    for kind in kinds():
        if is_sqlite(own):
            assert columns(own, kind.table)["tenant"][:2] == ("TEXT", False)
            continue
        name = f"standfast.{kind.table}"
        acts = ("select", "insert", "update", "delete")
        asked = [
            f"has_table_privilege('{role}', '{name}', '{act}')"
            for role in ("standfast_engine", "standfast_tenant")
            for act in acts
        ]
        (rights,) = own.query(f"select {', '.join(asked)}")
        assert rights == (True, True, True, True, True, False, False, False), name
        wall = f"select relrowsecurity, relforcerowsecurity from pg_class where oid = '{name}'::regclass"
        assert own.query(wall) == [(True, True)], name
        policies = own.query(f"select polname from pg_policy where polrelid = '{name}'::regclass order by 1")
        assert policies == [("engine",), ("tenant",)], name


def test_rows_without_a_tenant_are_refused(own: Desk) -> None:
    """The tables themselves refuse an empty tenant."""
    for kind in kinds():
        if is_sqlite(own):
            (told,) = own.query(f"select sql from sqlite_master where name = '{kind.table}'")[0]
            assert "check (tenant <> '')" in told, kind.table
        else:
            checks = own.query(
                f"select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'standfast.{kind.table}'::regclass and contype = 'c'"
            )
            assert any("tenant <> ''" in told for (told,) in checks), kind.table


def begun(desk: Desk, *records: Record, **rest: Any) -> InstanceHeader:
    """An instance with these records in its first commit."""
    return desk.born(born(records=list(records), **rest))


def goes_on(desk: Desk, head: InstanceHeader, *records: Record, **rest: Any) -> InstanceHeader:
    """A second commit with these records."""
    change = moved(head, records=list(records), **rest)
    desk.commit(change, now=LATER)
    return change.header


def test_a_row_comes_back_as_it_was_told(own: Desk) -> None:
    """Every type of column, set and unset, for few rows and for many, with the dates of the commit."""
    full = NoteOpened(
        page="a",
        number=1,
        text="ü",
        colour="red",
        count=-5,
        is_loud=True,
        about=NUMBER,
        due_at=NOON,
        drawing=b"\x00",
        verdict="so",
    )
    bare = [NoteOpened(page="b", number=number, text="") for number in range(9)]
    head = begun(own, full, *bare)
    first, second, *rest = own.reader.rows(NOTES, head.id)
    assert {name: getattr(first, name) for name in NoteOpened.__struct_fields__} == {
        name: getattr(full, name) for name in NoteOpened.__struct_fields__
    }
    assert (first.instance, first.opened_at, first.moved_at, first.closed_at) == (head.id, NOW, NOW, NOW)
    assert (second.count, second.is_loud, second.about, second.due_at, second.drawing) == (
        None,
        False,
        None,
        None,
        None,
    )
    assert (second.verdict, second.closed_at) == (None, None)
    assert [row.number for row in rest] == list(range(1, 9))


def test_a_change_leaves_what_it_does_not_name(own: Desk) -> None:
    """None leaves a column as it is; what closes the row dates it, and nothing else does."""
    head = begun(own, NoteOpened(page="a", number=1, text="old", due_at=NOON), NoteOpened(page="b", number=1, text="b"))
    head = goes_on(own, head, NoteChanged(page="a", number=1, text="new", is_loud=True))
    first, other = own.reader.rows(NOTES, head.id)
    assert (first.text, first.is_loud, first.due_at, first.verdict) == ("new", True, NOON, None)
    assert (first.opened_at, first.moved_at, first.closed_at) == (NOW, LATER, None)
    assert (other.text, other.moved_at) == ("b", NOW)
    goes_on(own, head, NoteChanged(page="a", number=1, verdict="done"), NoteEnded(page="b", number=1))
    (first,) = own.reader.rows(NOTES, head.id)
    assert (first.text, first.verdict, first.closed_at) == ("new", "done", LATER)


def test_a_row_opens_once_unless_it_replaces(own: Desk) -> None:
    """Opened again, a row spoils the commit; of a kind that replaces, it takes the place of the old one and keeps its birth."""
    head = begun(
        own, NoteOpened(page="a", number=1, text="x"), Weight(name="flour", grams=1), Weight(name="salt", grams=2)
    )
    with pytest.raises(CommandError, match="another one has"):
        goes_on(own, head, NoteOpened(page="a", number=1, text="y"))
    goes_on(own, head, Weight(name="flour", grams=500))
    flour, salt = own.reader.rows(WEIGHTS, head.id)
    assert (flour.grams, flour.opened_at, flour.moved_at) == (500, NOW, LATER)
    assert (salt.grams, salt.opened_at, salt.moved_at) == (2, NOW, NOW)


def test_a_row_makes_room_for_another(own: Desk) -> None:
    """Ended and opened again in one commit: the old row goes first."""
    head = begun(own, NoteOpened(page="a", number=1, text="old"), Weight(name="flour", grams=1))
    again = [NoteEnded(page="a", number=1), NoteOpened(page="a", number=1, text="new")]
    goes_on(own, head, *merge([*again, WeightEnded(name="flour"), Weight(name="flour", grams=2)]))
    assert [row.text for row in own.reader.rows(NOTES, head.id)] == ["new"]
    assert [(row.grams, row.opened_at) for row in own.reader.rows(WEIGHTS, head.id)] == [(2, LATER)]


def test_rows_belong_to_their_instance_and_tenant(own: Desk) -> None:
    """The same key in two instances is two rows, and another tenant sees none of them."""
    first, second = (begun(own, NoteOpened(page="a", number=1, text=text)) for text in ("one", "two"))
    goes_on(own, first, NoteEnded(page="a", number=1))
    assert [row.text for row in own.reader.rows(NOTES, second.id)] == ["two"]
    assert own.reading(OTHER_TENANT).rows(NOTES, second.id) == []
    foreign = begun(own, NoteOpened(page="a", number=1, text="theirs"), tenant=OTHER_TENANT)
    assert own.reader.rows(NOTES, foreign.id) == []
    assert [row.text for row in own.reading(OTHER_TENANT).rows(NOTES, foreign.id)] == ["theirs"]


def one_of_each(text: str = "x") -> list[Record]:
    """A row of every kind that goes with its instance, made of nothing but its declaration and a text."""
    return [_row(kind, text) for kind in kinds() if kind.goes_with_instance]


def _row(kind: RowKind[Any], text: str) -> Record:
    plain: dict[type, object] = {int: 1, str: text, bytes: b"x", bool: True, datetime: NOON, UUID: NUMBER}
    words = {each.name: each.words[0] for each in kind.columns if each.words}
    return kind.row(
        **{each.name: plain[each.type] for each in kind.columns if each.name in kind.row.__struct_fields__} | words
    )


def test_all_rows_are_deleted_with_their_instance(own: Desk) -> None:
    """Whatever kinds are declared: nothing stays of an instance that is deleted, and nothing of others goes."""
    gone, kept = (begun(own, *one_of_each(text)) for text in ("x", "y"))
    gone = goes_on(own, gone, ends=True)
    assert all(own.reader.rows(kind, gone.id) for kind in kinds() if kind.goes_with_instance)
    assert own.keeper.delete(gone.id, tenant="default")
    for kind in kinds():
        assert own.query(f"select count(*) from {{}}{kind.table} where instance = '{gone.id}'") == [(0,)], kind.table
        assert not kind.goes_with_instance or own.reader.rows(kind, kept.id), kind.table
