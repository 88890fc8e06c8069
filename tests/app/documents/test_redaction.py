"""Redaction: values go from every place where they are kept, and everything else goes on being proven."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest

from app.documents.acting import ANN, BOB, CARL, FINANCE, GIVEN, active, approve, asking, opened, submitted
from standfast import Actor, ConflictError, ForbiddenError, NotFoundError, PayloadError, StandfastError
from standfast.features.documents.redaction import Redactor
from standfast.testing import ManualEngine
from support.engines import Place
from support.ruining import Ruin

WRONG = (sqlite3.Error, psycopg.Error, StandfastError)
OFFICER = Actor(id="olga", capabilities=frozenset({"documents:redact", "execution:*"}))
IBAN, OTHER = "DE89370400440532013000", "GB29NWBK60161331926819"


def paid(engine: ManualEngine) -> None:
    """An active invoice whose account changed once, was spoken of by an approver, and is in what a step brought."""
    mine = asking(engine, BOB).documents
    mine.create("invoice", {**GIVEN, "iban": IBAN}, id="INV-1")
    mine.mutate("invoice", "INV-1", {"iban": OTHER}, reason=f"{IBAN} was closed")
    mine.transition("invoice", "INV-1", "submit")
    (task,) = engine.tasks.list()
    asking(engine, ANN).tasks.comment(task, f"is {OTHER} theirs?")
    approve(engine, ANN)
    approve(engine, CARL)


def dump(place: Place) -> str:
    """Everything that the database holds, but for who is at work."""
    asked, before = "select name from sqlite_master where type = 'table'", ""
    if not place.url.startswith("sqlite"):
        asked, before = "select tablename from pg_tables where schemaname = 'standfast'", "standfast."
    with lent(place) as connection:
        names = [name for (name,) in connection.execute(asked).fetchall() if name != "workers"]
        look = connection.execute
        return repr(
            [(name, [[*map(plain, row)] for row in look(f"select * from {before}{name}").fetchall()]) for name in names]
        )


def plain(value: object) -> object:
    """Bytes, whatever holds them."""
    return bytes(value) if isinstance(value, memoryview) else value


@pytest.mark.row("EO-27")
@pytest.mark.row("G-16")
def test_values_are_gone_from_every_place_and_all_is_proven(place: Place) -> None:
    """Neither value is anywhere in the database; versions keep the hash of what was approved, and every rule holds, before and after more happens."""
    engine = opened(place)
    paid(engine)
    engine.seals.seal()
    before = engine.documents.versions("invoice", "INV-1")
    assert IBAN in dump(place)
    done = asking(engine, OFFICER).documents.redact("invoice", "INV-1", reason="erasure request 7")
    assert (done.fields, done.events > 3, done.related) == (["iban"], True, [])
    assert IBAN not in dump(place)
    assert OTHER not in dump(place)
    after = asking(engine, FINANCE).documents.versions("invoice", "INV-1")
    assert [each.data_hash for each in after] == [each.data_hash for each in before]
    first, *_, last = (str(each.data["iban"]) for each in after)
    assert first.startswith("redacted:")
    assert first != last
    assert [each.data["total"] for each in after] == [each.data["total"] for each in before]
    (line,) = [each for each in engine.documents.audit("invoice", "INV-1") if each.what == "redact"]
    assert (line.who, line.why) == ("olga", "erasure request 7")
    proven(engine)
    assert asking(engine, OFFICER).documents.redact("invoice", "INV-1", reason="again").events == 0
    asking(engine, OFFICER).documents.redact("invoice", "INV-1", ["vendor"], reason="and the vendor")
    asking(engine, BOB).documents.transition("invoice", "INV-1", "cancel")
    engine.seals.seal()
    proven(engine)


def proven(engine: ManualEngine) -> None:
    """Nothing is wrong with the invoice, nor with its seals."""
    assert engine.invariants.check().items == []
    assert engine.seals.verify().broken == []
    assert engine.instances.verify(engine.documents.get("invoice", "INV-1").instance).differences == []


def test_who_may_redact_what(place: Place) -> None:
    """A right of its own, a reason, fields that exist, a document of one's own tenant that rests; everything else changes nothing."""
    engine = opened(place)
    paid(engine)
    before = dump(place)
    olga = asking(engine, OFFICER).documents
    with pytest.raises(ForbiddenError, match="documents:redact"):
        asking(engine, FINANCE).documents.redact("invoice", "INV-1", reason="x")
    wrong: list[Callable[[], object]] = [
        lambda: olga.redact("invoice", "INV-1", reason=" "),
        lambda: olga.redact("invoice", "INV-1", ["colour"], reason="x"),
        lambda: olga.redact("invoice", "INV-1", "iban", reason="x"),
        lambda: olga.redact("invoice", "INV-1", [3], reason="x"),  # type: ignore[list-item]
        lambda: olga.redact("invoice", "INV-1", ["x" * 10_000], reason="x"),
    ]
    for call in wrong:
        with pytest.raises(PayloadError):
            call()
    for calls, name in ((olga, "INV-2"), (asking(engine, OFFICER, "rival").documents, "INV-1")):
        with pytest.raises(NotFoundError):
            calls.redact("invoice", name, reason="x")
    assert dump(place) == before
    asking(engine, BOB).documents.create("invoice", GIVEN, id="INV-2")
    asking(engine, BOB).documents.transition("invoice", "INV-2", "submit")
    with pytest.raises(ConflictError, match="under way"):
        olga.redact("invoice", "INV-2", reason="x")


@pytest.mark.row("EO-27")
def test_a_redaction_that_dies_has_done_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events, rows and what people were told are rewritten in one transaction: one that fails at its end leaves all as it was."""
    engine = opened(place)
    paid(engine)
    before = dump(place)

    def fail(*_: object) -> None:
        raise RuntimeError("the power is gone")

    with monkeypatch.context() as patched:
        patched.setattr(
            f"{type(place.store).__module__.rpartition('.')[0]}.commit.commits.{UNITS[place.store.url[:6]]}.rewrite",
            fail,
        )
        with pytest.raises(RuntimeError, match="power"):
            asking(engine, OFFICER).documents.redact("invoice", "INV-1", reason="x")
    assert dump(place) == before
    assert asking(engine, OFFICER).documents.redact("invoice", "INV-1", reason="x").events > 0


UNITS = {"sqlite": "SQLiteUnit", "postgr": "PostgresUnit"}


@pytest.mark.row("EO-27")
def test_nobody_else_gets_past_the_guards(place: Place) -> None:
    """An event is written again within a redaction alone, of its own document, and never as to when it was, by whom, or what."""
    engine = opened(place)
    paid(engine)
    run = str(engine.documents.get("invoice", "INV-1").instance)
    is_file = place.url.startswith("sqlite")
    allow = (
        "insert into redaction (instance) values (?)"
        if is_file
        else "select set_config('standfast.redaction', %s, true)"
    )
    events, mark = ("events", "?") if is_file else ("standfast.events", "%s")
    for name, change in (
        (None, "comment = 'x'"),
        ("another", "comment = 'x'"),
        (run, "actor = 'eve'"),
        (run, "sequence = 99"),
    ):
        with pytest.raises(WRONG, match=r"append-only|permission denied"):
            attempt(place, (allow, name), f"update {events} set {change} where instance = {mark} and sequence = 1", run)
    assert engine.instances.verify(run).is_sound


def attempt(place: Place, allow: tuple[str, str | None], statement: str, run: str) -> None:
    """A statement, in a transaction that may say that it redacts something."""
    with lent(place) as connection:
        if allow[1] is not None:
            connection.execute(allow[0], (allow[1],))
        connection.execute(statement, (run,))


@contextmanager
def lent(place: Place) -> Iterator[Any]:
    """The engine's own connection, in a transaction."""
    with place.store.line().writer().unit() as unit, unit.lend() as connection:
        yield connection


@pytest.mark.row("EO-28")
def test_what_was_sealed_cannot_be_rewritten_unseen(place: Place) -> None:
    """An event that was changed, a seal that was taken away or made anew: each is found, by the seals and by the rules; what goes on stays proven."""
    engine = opened(place)
    submitted(engine)
    run = str(engine.documents.get("invoice", "INV-1").instance)
    assert (engine.seals.head(), engine.seals.seal().sealed, engine.seals.seal().sealed) == (None, 1, 0)
    approve(engine, ANN)
    assert (engine.seals.seal().sealed, engine.seals.verify().is_sound) == (1, True)
    head = engine.seals.head()
    assert head is not None
    assert (head.number, head.instance, head.sealed_by) == (2, UUID(run), "system")
    with (
        pytest.raises(WRONG, match="never broken"),
        lent(place) as connection,
    ):
        connection.execute(f"delete from {'' if place.url.startswith('sqlite') else 'standfast.'}seals")
    ruin = Ruin(place.store)
    damages = (
        (
            "update {}events set comment = 'yes, surely' where type = 'step_answered'",
            "T1",
            "are not those that 'system' sealed",
        ),
        ("update {}seals set digest = 'x' where number = 1", "T1", "does not follow"),
        ("delete from {}seals where number = 1", "", "seal 1 is missing"),
    )
    place.must_fold = False
    for statement, rule, told in damages:
        ruin.run(statement)
        assert told in str(engine.seals.verify().broken)
        assert {each.rule for each in engine.invariants.check(rules=["T1"]).items} == ({rule} if rule else {"T1"})
        assert any("sealed" in each for each in engine.instances.verify(run).differences)
    with pytest.raises(ForbiddenError):
        asking(engine, BOB).seals.seal()
    with pytest.raises(PayloadError):
        engine.seals.verify(after=-1)
    assert asking(engine, OFFICER, "rival").seals.verify().checked == 0


def test_what_is_hidden_where() -> None:
    """Fields of the content by name; elsewhere values by the name of their field, whole texts, and long ones inside of others, those of lists and objects too; and no name of the machine."""
    veil = Redactor(["iban", "total"], b"secret")
    veil.learn({"iban": "DE1234", "total": 7, "status": "open"})
    veil.learn({"iban": None, "total": veil.token(7)})
    iban, seven = veil.token("DE1234"), veil.token(7)
    told: dict[str, object] = {
        "node": "DE1234",
        "outcome": "approved",
        "output": {"total": 7, "n": 7, "entity.iban": "DE1234", "x": ["DE1234", "to DE1234!"]},
    }
    assert veil.event("step_completed", told) == {
        "node": "DE1234",
        "outcome": "approved",
        "output": {"total": seven, "n": 7, "entity.iban": iban, "x": [iban, f"to {iban}!"]},
    }
    changed: dict[str, object] = {"changes": {"iban": "DE1234", "note": "DE1234", "total": None}, "version": 7}
    assert veil.event("document_changed", changed) == {
        "changes": {"iban": iban, "note": "DE1234", "total": None},
        "version": 7,
    }
    assert Redactor(["iban"], b"another").token("DE1234") != iban
    veil.learn({"iban": ["DE5678", {"of": "DE9012"}]})
    said = veil.text("from DE5678 to DE9012")
    assert said == f"from {veil.token('DE5678')} to {veil.token('DE9012')}"
    assert not veil.is_empty
    assert Redactor(["iban"], b"").is_empty


@pytest.mark.row("EO-27", "E-240")
@pytest.mark.parametrize("named", ["INV-1", "INV-2"])
def test_a_redaction_reaches_amendments(place: Place, named: str) -> None:
    """Whichever document of a chain is named, the values go from all of them, also from what the amendment says it changed."""
    engine = opened(place)
    active(engine)
    calls = asking(engine, BOB).documents
    calls.amend("invoice", "INV-1", {"total": 777_001, "note": "SECRET-NOTE"}, new_id="INV-2", reason="SECRET-NOTE now")
    told = [each.changes for each in engine.documents.mutations("invoice", "INV-1") if each.action == "supersede"]
    assert told == [
        {
            "superseded_by": "INV-2",
            "fields": ["note", "total"],
            "note": [None, "SECRET-NOTE"],
            "total": [GIVEN["total"], 777_001],
        }
    ]
    done = asking(engine, OFFICER).documents.redact("invoice", named, ["total", "note", "iban"], reason="erasure")
    assert done.related == [{"INV-1": "INV-2", "INV-2": "INV-1"}[named]]
    left = dump(place)
    assert [each for each in ("777001", "SECRET-NOTE", IBAN) if each in left] == []
    assert engine.invariants.check().items == []


@pytest.mark.row("EO-27")
def test_nothing_of_a_chain_is_redacted_while_one_of_it_is_under_way(place: Place) -> None:
    """All documents of a chain are one transaction: an amendment that waits for its approval keeps the others as they are."""
    engine = opened(place)
    active(engine)
    calls = asking(engine, BOB).documents
    calls.amend("invoice", "INV-1", {"total": 777_001}, new_id="INV-2")
    calls.transition("invoice", "INV-2", "submit")
    before = dump(place)
    with pytest.raises(ConflictError, match="under way"):
        asking(engine, OFFICER).documents.redact("invoice", "INV-1", ["total"], reason="erasure")
    assert dump(place) == before


@pytest.mark.row("E-240")
def test_what_an_amendment_changed_is_masked_for_each_reader(place: Place) -> None:
    """Old and new values are kept; of a sensitive field only that it changed, in rows, history and for everybody."""
    engine = opened(place)
    active(engine)
    asking(engine, BOB).documents.amend("invoice", "INV-1", {"iban": "DE-NEW-IBAN", "total": 9}, new_id="INV-2")
    run = engine.documents.get("invoice", "INV-1").instance
    (said,) = [each.data for each in engine.run(run).history() if each.event_type == "document_superseded"]
    assert "DE-NEW-IBAN" not in str(said)
    (told,) = [each for each in engine.documents.mutations("invoice", "INV-1") if each.action == "supersede"]
    assert (told.changes["iban"], told.changes["total"]) == ({"changed": True}, [GIVEN["total"], 9])
