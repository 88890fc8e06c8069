"""Processes that are killed while people write documents and decide about them, two at a time on one database."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from crash.clerks import BODY, CLERKS, CONTRACT, COVERED, DECIDERS, calls_of, employ, office
from standfast import Engine
from standfast.features.documents.content.views import DocumentMutation
from support.campaigns import SEED
from support.engines import Live
from support.laborer import Book
from support.waiting import eventually

_ALL = 1000


def rows(url: str, statement: str) -> list[tuple[object, ...]]:
    """What the database says to the office's own statement."""
    is_file = url.startswith("sqlite")
    with closing(sqlite3.connect(url.removeprefix("sqlite:///")) if is_file else psycopg.connect(url)) as connection:
        found = connection.execute(statement)
        answer = [] if found.description is None else list(found.fetchall())
        connection.commit()
        return answer


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.row("E-007", "E-051", "E-074")
def test_offices_that_are_killed_lose_nothing(live: Live, tmp_path: Path) -> None:
    """Of two processes that write and decide one is killed again and again: what was acknowledged is there once, and what is active was approved."""
    rows(live.url, "create table filed (memo text)")
    book, chance = Book(tmp_path / "book"), random.Random(SEED)
    engine = employ(live.engine())
    engine.contracts.publish(CONTRACT)
    engine.bodies.publish(engine.bodies.save(BODY).id)
    for kill in range(6):
        with office(live.url, book, f"a{kill}", SEED) as one, office(live.url, book, f"b{kill}", SEED) as other:
            begun = len(book.lines())
            eventually(lambda begun=begun: len(book.lines()) > begun + 40, within=60)  # type: ignore[misc]
            time.sleep(chance.random())  # The moment of death is random; nothing waits for it.
            assert (one.poll(), other.poll()) == (None, None), "nobody has died by themselves"
    told = {each["mark"]: each for each in map(json.loads, book.lines())}
    words = Counter((each["kind"], each["word"]) for each in told.values())
    assert [each for each in told.values() if each["word"] == "failed"] == []
    assert all(words[kind, "acked"] for kind in ("create", "edit", "submit", "amend", "decide")), words
    engine.start_worker()
    judge(engine, told)
    go_on(engine)
    judge(engine, told)
    filed = Counter(str(memo) for (memo,) in rows(live.url, "select memo from filed"))
    for memo in engine.documents.list("memo", status="active", limit=_ALL).items:
        assert (memo.data["number"], filed[memo.id]) == (f"N-{memo.id}", 1)


def judge(engine: Engine, told: dict[str, dict[str, str]]) -> None:
    """What was acknowledged is there once, what was refused is nowhere, and all that is active was approved as it is."""
    memos = engine.documents.list("memo", limit=_ALL).items
    assert len(memos) < _ALL
    seen: Counter[str] = Counter()
    for memo in memos:
        seen[memo.id] += 1
        said = Counter((each.action, _mark(each)) for each in engine.documents.mutations("memo", memo.id))
        assert not [each for each, times in said.items() if each[1] and times > 1], (memo, said)
        seen.update(mark for _, mark in said)
        for task in engine.run(memo.instance).tasks():
            seen.update({f"{task.step_id} {each.decision}" for each in engine.tasks.get(task).decisions})
    for mark, each in told.items():
        times = seen[each["memo"] if each["kind"] == "decide" else mark]
        assert times >= 1 or each["word"] != "acked", each
        assert times == 0 or each["word"] != "refused" or each["kind"] == "decide", each
    for memo in memos:
        if memo.status == "active":
            _judge_active(engine, memo.id)
    assert engine.invariants.check(limit=_ALL).items == []


def _mark(mutation: DocumentMutation) -> str:
    """What was said with a mutation by those who asked for it; what an amendment takes over was said of another memo."""
    note = mutation.changes.get("note")
    return str(note[1]) if isinstance(note, list) else mutation.reason


def _judge_active(engine: Engine, memo: str) -> None:
    now = engine.documents.get("memo", memo)
    approved: dict[str, dict[str, object]] = {}
    for task in sorted(engine.run(now.instance).tasks(), key=lambda each: each.step_number):
        if task.decision == "approved":
            version = engine.documents.version("memo", memo, int(task.document_version))
            approved[task.name.rpartition(":")[2]] = version.data
    for role, fields in COVERED.items():
        assert [approved[role].get(each) for each in fields] == [now.data.get(each) for each in fields], (memo, role)


def go_on(engine: Engine) -> None:
    """Have everything decided that is open; then all that was submitted is active."""

    def is_done() -> bool:
        for role in COVERED:
            calls = calls_of(engine, DECIDERS[role])
            for task in calls.tasks.list(mine=True, limit=_ALL):
                calls.tasks.decide(task, "approved", document_version=task.document_version)
        return not engine.documents.list("memo", status="submitted", limit=_ALL).items

    eventually(is_done, within=60)
    eventually(lambda: engine.admin.backlog() == [], within=60)
    assert engine.dead_letters.list() == []
    mine = calls_of(engine, CLERKS[0]).documents
    for memo in engine.documents.list("memo", status="draft", limit=_ALL).items[:5]:
        assert mine.transition("memo", memo.id, "submit").status == "submitted"
    eventually(is_done, within=60)
