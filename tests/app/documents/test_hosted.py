"""One contract for two kernels: documents that Standfast keeps, and documents whose data another system keeps and Standfast only watches."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

import pytest

from app.documents.acting import asking
from app.documents.orders import GIVEN, SELLER, body, register
from app.documents.test_outward import ALLOWED, SLOT
from standfast import Actor, ForbiddenError, NotFoundError, PayloadError, RejectedError
from standfast.app.api.sync import Calls
from standfast.testing import ManualEngine
from support.engines import Place

KIND, NAME = "sales_order", "O-1"


class Kernel(Protocol):
    """Whoever writes documents."""

    def edit(self, changes: Mapping[str, object]) -> bool:
        """Change the document; False if it may not be."""
        ...

    def read(self) -> Mapping[str, object]:
        """Its data."""
        ...


class Own:
    """Documents that the engine keeps."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls.documents

    def edit(self, changes: Mapping[str, object]) -> bool:
        try:
            return not self._calls.mutate(KIND, NAME, dict(changes)).is_amendment
        except RejectedError:
            return False

    def read(self) -> Mapping[str, object]:
        return self._calls.get(KIND, NAME).data


class Remote:
    """A system with a database of its own: it asks before it writes, writes, and tells."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls.documents
        self.data = dict(GIVEN)
        self.posted: dict[str, dict[str, object]] = {}
        """What it was asked to do, by the key that it was asked with."""
        self.asked: list[str] = []
        self.fails = 1
        """How many requests it answers with an error, after it has done what they ask for."""
        remote = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                told = json.loads(self.rfile.read(int(self.headers["content-length"])))
                key = str(self.headers["idempotency-key"])
                remote.asked.append(key)
                remote.posted.setdefault(key, told)
                self.send_response(503 if len(remote.asked) <= remote.fails else 202)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - so the server calls it
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def edit(self, changes: Mapping[str, object]) -> bool:
        if not self._calls.check_edit(KIND, NAME, dict(changes)).is_allowed:
            return False
        self.data |= changes
        for _ in range(2):  # It cannot know whether the first one arrived.
            self._calls.notify_mutation(KIND, NAME, dict(changes), idempotency_key=f"edit {len(self.data)} {changes}")
        return True

    def read(self) -> Mapping[str, object]:
        return self.data


@pytest.fixture
def engine(place: Place) -> ManualEngine:
    """An engine on each store."""
    return place.engine(ALLOWED)


@pytest.fixture
def remote(engine: ManualEngine) -> Iterator[Remote]:
    """Such a system, which listens."""
    made = Remote(asking(engine, SELLER))
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def begun(engine: ManualEngine, remote: Remote) -> Any:
    """An order whose posting is done by the other system, which says when it is done."""
    url = f"http://127.0.0.1:{remote.server.server_port}/actions/post"
    nodes = (
        f"{{id: post, type: webhook_out, url: '{url}', payload: {{id: entity.id, version: entity.version}}}}, "
        "{id: done, type: wait_event, event: posted, key: '{entity.id}'}"
    )
    edges = "{from: post, to: done}, {from: done, to: out, on: event}"
    register(engine, KIND, body(SLOT, nodes, edges))
    mine = asking(engine, SELLER).documents
    mine.create(KIND, GIVEN, id=NAME)
    return mine


@pytest.mark.row("EH-02", "EH-01")
@pytest.mark.parametrize("kind", ["own", "remote"])
def test_a_kernel_writes_where_it_may_and_nowhere_else(engine: ManualEngine, remote: Remote, kind: str) -> None:
    """A draft is edited, each edit is one version; what is locked is not touched, on either side."""
    mine = begun(engine, remote)
    kernel: Kernel = remote if kind == "remote" else Own(asking(engine, SELLER))
    assert kernel.edit({"quantity": 3})
    assert (kernel.read()["quantity"], mine.get(KIND, NAME).version, mine.get(KIND, NAME).data["quantity"]) == (3, 2, 3)
    assert not kernel.edit({"colour": "red"})
    mine.transition(KIND, NAME, "submit")
    engine.advance(minutes=5)
    assert list(remote.posted.values()) == [{"id": NAME, "version": 2}]
    assert (len(remote.asked), len(set(remote.asked))) == (2, 1)
    assert mine.get(KIND, NAME).status == "submitted"
    engine.publish("posted", NAME)
    engine.drain()
    assert mine.get(KIND, NAME).status == "active"
    assert not kernel.edit({"quantity": 4})
    assert (kernel.read()["quantity"], mine.get(KIND, NAME).version) == (3, 2)
    assert len(mine.versions(KIND, NAME)) == 2


@pytest.mark.row("EH-02", "E-229", "E-462")
def test_what_was_changed_behind_its_back_holds_the_run(engine: ManualEngine, remote: Remote) -> None:
    """The content that others decide on stays, the run waits for an operator with the reason, and being told again changes nothing."""
    mine = begun(engine, remote)
    mine.transition(KIND, NAME, "submit")
    checked = mine.check_edit(KIND, NAME, {"quantity": 9})
    assert (checked.is_allowed, checked.version, checked.window) == (False, 1, "amend_only")
    assert (checked.code, bool(checked.why)) == ("WORKFLOW_AMENDMENT_REQUIRED", True)
    for _ in range(2):
        told = mine.notify_mutation(KIND, NAME, {"quantity": 9}, idempotency_key="k")
        assert (told.version, told.data["quantity"], told.run_status) == (1, 2, "paused")
    run = engine.run(told.instance)
    assert "drift: 'sam' tells that quantity changed elsewhere" in run.why().words
    assert [each.id for each in engine.documents.list(KIND).items] == [NAME]
    run.resume("looked at it: the ERP was set right")
    engine.advance(minutes=5)
    engine.publish("posted", NAME)
    engine.drain()
    assert mine.get(KIND, NAME).status == "active"


@pytest.mark.row("EH-02")
def test_wrong_questions_of_a_host_are_told(engine: ManualEngine, remote: Remote) -> None:
    """Another tenant, nobody with the right, an unknown type or document, no changes at all: in words, and nothing is written."""
    mine = begun(engine, remote)
    nobody, other = asking(engine, Actor(id="eve")), asking(engine, SELLER, tenant="other")
    for call in (mine.check_edit, mine.notify_mutation):
        with pytest.raises(NotFoundError):
            call("nothing", NAME, {})
        with pytest.raises(NotFoundError):
            call(KIND, "O-9", {"quantity": 1})
        with pytest.raises(PayloadError):
            call(KIND, NAME, 7)
        with pytest.raises(PayloadError):
            call(KIND, NAME, {"note": "x" * 9_000_000})
    for calls in (nobody.documents.check_edit, nobody.documents.notify_mutation):
        with pytest.raises(ForbiddenError):
            calls(KIND, NAME, {"quantity": 1})
    for calls in (other.documents.check_edit, other.documents.notify_mutation):
        with pytest.raises(NotFoundError):
            calls(KIND, NAME, {"quantity": 1})
    found = mine.get(KIND, NAME)
    assert (found.version, found.run_status) == (1, "running")
