"""Going on in another database: all that there was is there, nobody in the old place can do it a second time, and nothing is half there."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from api.world import ACME, NORTH
from cli.calling import Standfast
from standfast import Actor, Calls, RequestContext, StoppedError, copy_database
from standfast.engine.common.clock import ManualClock
from standfast.store.copy.copy import OF_THE_PLACE
from standfast.store.copy.verification import FACTS
from standfast.testing import ManualEngine
from standfast.testing.manual import START
from support.databases import Databases
from support.estate import ODD, Estate, Printer, Seen, furnish, opened
from support.folding import assert_folded
from support.samples import Add, Counter

CLAIMED = "2030-01-01T12:00:00.000001+00:00"


def ask(url: str, statement: str) -> list[Any]:
    """Plain SQL, by a connection of one's own."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file, file:
            return file.execute(statement.replace("standfast.", "")).fetchall()
    with psycopg.connect(url) as server:
        found = server.execute(statement.encode())
        return found.fetchall() if found.description else []


@pytest.fixture(params=["sqlite", "postgres"])
def ways(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Where it is, and where it shall go: from a file to a server, and back."""
    databases: Databases = request.getfixturevalue("postgres_server")
    with databases.prepared() as dsn:
        file = f"sqlite:///{tmp_path / 'shop.db'}"
        yield (file, dsn) if request.param == "sqlite" else (dsn, file)


def tables_of(url: str) -> set[str]:
    """All tables that the engine has made in a database, as that tells itself."""
    if url.startswith("sqlite"):
        found = ask(url, "select name from sqlite_master where type = 'table' and name not like 'sqlite%'")
    else:
        found = ask(
            url,
            "select relname from pg_class where relnamespace = 'standfast'::regnamespace and relkind in ('r', 'p') and not relispartition",
        )
    return {name for (name,) in found} - {"migrations"}


def rows_of(url: str, table: str) -> int:
    """How many rows a table has."""
    return int(ask(url, f"select count(*) from standfast.{table}")[0][0])


def claim_everything(url: str) -> None:
    """Have all work in the hands of somebody who is not there any more."""
    owner = "0190b6d0-0000-7000-8000-000000000001"
    ask(url, f"update standfast.effects set owner = '{owner}', claimed_at = '{CLAIMED}', fence = fence + 1")
    ask(url, f"update standfast.timers set claimed_until = '{CLAIMED}'")
    ask(url, f"update standfast.inbox set claimed_until = '{CLAIMED}'")
    ask(
        url,
        """update standfast.instances set attributes = '{"b":1e16,"a":"ü\\u0001","c":-2.5e-7,"d":true}' where kind = 'decider'""",
    )
    ask(url, "delete from standfast.workers")  # The engine of a test does not say that it goes.


def acting(engine: ManualEngine, actor: str = "ann", partition: str = "") -> Calls:
    """The calls of somebody of acme who may do everything."""
    mighty = Actor(id=actor, roles=frozenset({"approver"}), capabilities=frozenset({"*"}))
    return engine.acting(RequestContext(tenant=ACME, partition=partition, actor=mighty))


def test_everything_goes_on_in_another_database(ways: tuple[str, str]) -> None:
    """Runs, documents, questions, timers, letters, schedules, keys, receipts and seals: whatever was begun in one is finished in the other."""
    source, target = ways
    clock, printer, seen = ManualClock(START), Printer(), Seen()
    engine = opened(source, clock, printer, seen)
    estate = furnish(engine)
    before = len(engine.instances.list(limit=1000))
    engine.stop()
    claim_everything(source)

    copied = copy_database(source, target, deciders=[Counter()])
    there = {name: rows_of(source, name) for name in tables_of(source) - OF_THE_PLACE - {FACTS}}
    assert [name for name, count in there.items() if not count] == [], "the estate has nothing of these"
    assert {name: count for name, count in copied.rows.items() if name != FACTS} == there
    assert (copied.differences, copied.unread, copied.is_rehearsal) == ([], {}, False)
    assert copied.verified == copied.rows["instances"] > before
    assert ask(target, "select count(*) from standfast.effects where owner is not null or claimed_at is not null") == [
        (0,)
    ]
    assert ask(target, "select max(fence) from standfast.effects") == [(2,)]
    assert ask(target, "select count(*) from standfast.workers") == [(0,)]

    old = opened(source, clock, printer, Seen())
    with pytest.raises(StoppedError, match="maintenance"):
        acting(old).start("wait")
    old.stop()
    assert f"copied into {copied.target}" in Standfast(source)("doctor", code=1).stdout
    engine = opened(target, clock, printer, new := Seen())
    goes_on(engine, estate, printer)
    assert new.positions
    assert min(new.positions) > max(seen.positions), "no event is read again, and new ones come behind the old ones"
    engine.stop()


def goes_on(engine: ManualEngine, estate: Estate, printer: Printer) -> None:
    """An engine finishes all that was begun elsewhere."""
    acme, north = acting(engine), acting(engine, partition=NORTH)
    known, session = engine.admin.identify(estate.secret), engine.admin.identify_session(estate.session)
    assert [each and each.bearer.id for each in (known, session)] == ["robot", "ann"]
    assert acme.repeats.begin("repeat", b"\x00\xff").body == b"\x00answered\xff"  # type: ignore[union-attr]
    engine.drain()
    assert acme.deciders.state(Counter, "c") == 103, "the message that waited was taken, once"
    assert acme.run(estate.shipping.id).result(timeout=0) == {"parcel": 77}
    assert acme.start("wait", {"note": ODD}, key="w-1", idempotency_key="once").id == estate.waiting.id
    acme.deciders.execute(Counter, Add("c", 1), command_id="add 1")
    assert acme.deciders.state(Counter, "c") == 103, "what was done is not done again"
    acme.run(estate.waiting.id).signal("packed")
    (task,) = [each for each in acme.tasks.list() if each.instance == estate.asking.id]
    acting(engine, "bob").tasks.approve(task)
    printer.is_broken = False
    (letter,) = acme.dead_letters.list()
    acme.dead_letters.requeue(letter.id)
    (pause,) = acme.pauses.list()
    acme.pauses.resume(pause.id, reason="we go on")
    (sign,) = [each for each in north.tasks.list() if each.instance == estate.invoice]
    acting(engine, "bob", NORTH).tasks.decide(sign, "approved", document_version=sign.document_version)
    engine.advance(minutes=30)
    acme.events.publish("shop.paid", "7", {}, event_id="paid")
    assert acme.run(estate.sleeping.id).describe().status == "running"
    engine.advance(minutes=31)
    acme.run(estate.resting.id).signal("packed")
    engine.drain()
    for run in (estate.waiting, estate.sleeping, estate.asking, estate.printing, estate.listening, estate.resting):
        assert acme.run(run.id).describe().status == "completed", run
    assert north.documents.get("acme_invoice", "acme-1").status == "active"
    assert [each.status for each in acme.schedules.fires("nightly")] == ["completed"] * 2
    assert acme.seals.verify().is_sound
    assert acme.seals.verify().checked > 10
    assert_folded(engine)
