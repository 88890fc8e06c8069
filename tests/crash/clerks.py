"""An office in a process of its own, to be killed by tests: clerks who write memos and ask for decisions, people who decide, and a worker.

python tests/crash/clerks.py URL BOOK NAME SEED

Whatever is about to be asked is written into the book, a file, and so is what became of it.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path

from standfast import Actor, Engine, RequestContext, StandfastError, StepContext
from standfast.app.api.sync import Calls
from support.engines import QUICK
from support.laborer import Book
from support.repository import PYTHONPATH

CONTRACT = """
entity_type: memo
version: 1
fields:
  title: {type: string, required: true}
  total: {type: money, required: true}
  note: {type: string}
  number: {type: string}
system_fields: [number]
lifecycle:
  version: 1
  initial: draft
  terminal: [cancelled]
  amended: amended
  states:
    draft: {window: editable}
    submitted: {window: editable}
    active: {window: amend_only}
    cancelled: {window: locked}
    amended: {window: editable}
  transitions:
    - {name: submit, from: [draft, amended], to: submitted}
    - {name: approve, from: [submitted], to: active, begins: by_itself, on_reject: draft}
    - {name: recall, from: [submitted], to: draft, kind: recall}
    - {name: cancel, from: [draft, submitted, active, amended], to: cancelled, kind: cancel}
slots:
  - {id: "slot:submitted_to_approved", entry: "sys:state:submitted", exit: "sys:gate:approve", window: editable, stable: false}
  - {id: "slot:approved_to_active", entry: "sys:gate:approve", exit: "sys:state:active", window: locked, stable: false}
actions:
  - {name: memo.file, workflow_allowed: true, handler: memo.file}
"""
BODY = """
base: {entity_type: memo, envelope_version: 1}
slots:
  "slot:submitted_to_approved":
    nodes:
      - {id: boss, type: approval, approvers: [{role: boss}], covers: [title, total]}
      - {id: lawyer, type: approval, approvers: [{role: lawyer}], covers: [title, note]}
    edges: [{from: boss, to: lawyer}]
  "slot:approved_to_active":
    nodes: [{id: file, type: action, action: memo.file, run_as: system}]
"""
COVERED = {"boss": ("title", "total"), "lawyer": ("title", "note")}
CLERKS = [Actor(id=f"clerk-{number}") for number in range(3)]
DECIDERS = {role: Actor(id=f"the {role}", roles=frozenset({role})) for role in COVERED}
_MEMOS = 100
"""Memos that are looked at when one is chosen."""


def calls_of(engine: Engine, actor: Actor) -> Calls:
    """The calls of somebody."""
    return engine.acting(RequestContext(actor=actor))


def employ(engine: Engine) -> Engine:
    """Have an engine know how memos are filed: with a row of the office's own, in the transaction of the step."""

    @engine.handler("memo.file")
    def file(context: StepContext, document: dict[str, object]) -> dict[str, object]:
        mark = "?" if "sqlite" in type(context.connection).__module__ else "%s"
        context.connection.execute(f"insert into filed (memo) values ({mark})", (document["id"],))
        return {"number": f"N-{document['id']}"}

    return engine


class Clerk:
    """Somebody who does one thing after the other, by chance."""

    def __init__(self, engine: Engine, book: Book, name: str, seed: str) -> None:
        self._engine, self._book, self._name = engine, book, name
        self._chance = random.Random(f"{seed} {name}")
        self._numbers = count(1)
        self._me = self._chance.choice(CLERKS)
        self._mine = calls_of(engine, self._me).documents

    def work(self) -> None:
        """Until the process ends."""
        while True:
            chosen = self._memo()
            acts: list[Callable[[], None]] = (
                [self._create] if chosen is None else [partial(self._act, chosen), self._decide, self._create]
            )
            self._chance.choices(acts, weights=[6, 6, 1][: len(acts)])[0]()

    def _memo(self) -> str | None:
        memos = [each for each in self._engine.documents.list("memo", limit=_MEMOS).items if each.status != "cancelled"]
        return self._chance.choice(memos).id if memos else None

    def _create(self) -> None:
        mark = self._mark()
        given: dict[str, object] = {"title": mark, "total": self._chance.randrange(1000)}
        self._ask(mark, "create", mark, lambda: self._mine.create("memo", given, id=mark, idempotency_key=mark))

    def _act(self, memo: str) -> None:
        mark = self._mark()
        changes: dict[str, object] = {"note": mark} | ({"total": self._chance.randrange(1000)} if self._chance.random() < 0.3 else {})  # fmt: skip
        kind = self._chance.choices(("edit", "submit", "recall", "amend", "cancel"), weights=(3, 8, 1, 2, 0.3))[0]
        match kind:
            case "edit":
                self._ask(mark, kind, memo, lambda: self._mine.mutate("memo", memo, changes, idempotency_key=mark))
            case "amend":
                self._ask(
                    mark,
                    kind,
                    memo,
                    lambda: self._mine.amend("memo", memo, changes, new_id=mark, idempotency_key=mark),
                )
            case _:
                self._ask(
                    mark,
                    kind,
                    memo,
                    lambda: self._mine.transition("memo", memo, kind, reason=mark, idempotency_key=mark),
                )

    def _decide(self) -> None:
        role = self._chance.choice(sorted(DECIDERS))
        calls = calls_of(self._engine, DECIDERS[role])
        tasks = calls.tasks.list(mine=True)
        if not tasks:
            return
        task, mark = self._chance.choice(tasks), self._mark()
        verdict = "approved" if self._chance.random() < 0.9 else "rejected"
        self._ask(
            mark,
            "decide",
            f"{task.step_id} {verdict}",
            lambda: calls.tasks.decide(task, verdict, document_version=task.document_version, comment=mark),
        )

    def _mark(self) -> str:
        return f"{self._name}.{next(self._numbers)}"

    def _ask(self, mark: str, kind: str, memo: str, call: Callable[[], object]) -> None:
        self._book.write(json.dumps({"mark": mark, "kind": kind, "memo": memo, "word": "asked"}))
        try:
            call()
            word, told = "acked", ""
        except StandfastError as error:
            word, told = ("unsure" if error.retryable else "refused"), f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001 - the judgement says what it was
            word, told = "failed", f"{type(error).__name__}: {error}"
        self._book.write(json.dumps({"mark": mark, "kind": kind, "memo": memo, "word": word, "told": told}))


def main(url: str, book: str, name: str, seed: str) -> None:
    """Work until the process is killed."""
    engine = employ(Engine(url, settings=QUICK))
    engine.start_worker()
    for number in range(len(CLERKS)):
        clerk = Clerk(engine, Book(Path(book)), f"{name}.{number}", seed)
        threading.Thread(target=clerk.work, daemon=True).start()
    threading.Event().wait()


@contextmanager
def office(url: str, book: Book, name: str, seed: str) -> Iterator[subprocess.Popen[bytes]]:
    """An office in another process; it is killed when the block is left."""
    environment = os.environ | {"PYTHONPATH": PYTHONPATH}
    process = subprocess.Popen([sys.executable, __file__, url, str(book.path), name, seed], env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
