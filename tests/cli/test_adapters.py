"""What commands ask of a server: every call of an adapter asks, and every parameter of it makes a difference to what is asked."""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from api.addresses import GHOST
from standfast.cli.remote import calls as remote
from standfast.client import Client
from standfast.client.models import Listing
from standfast.errors import StandfastError
from standfast.features.documents.contract.library import contract_names, ready_contract
from standfast.features.documents.invariants.views import Violation

AT = datetime(2030, 1, 1, tzinfo=UTC)
LOCAL = {
    "timeout": "how long the caller waits",
    "invariants.workflows.rules": "chosen from what the server finds",
    "pauses.resume.version": "looked for among the pauses",
    "pauses.resume.step": "looked for among the pauses",
    "pauses.resume.tenant": "refused",
}
"""Parameters that the server is not asked by, and why."""
GIVEN: dict[str, dict[str, Any]] = {
    "audit.of": {"instance": GHOST},
    "bodies.export": {"type": "invoice"},
    "bodies.save": {"draft": "d-1"},
    "bodies.scenarios": {"type": "invoice"},
    "instances.delete": {"instance": GHOST},
    "pauses.resume": {"definition": 7},
    "tasks.decide_many": {"tasks": [("t", "1", "s")]},
}
"""What calls are given that ask nothing, or something else, without it."""
RUNS = ("instance", "run", "parent", "cursor")
KEYS = ("command_id", "triggered_by_id", "idempotency_key")
"""What goes into a header that is by chance for who does not say it."""


class Recorder:
    """A server that has nothing, and keeps what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, bytes, str]] = []
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                told = "".join(f"{name}: {each}\n" for name, each in self.headers.items() if name.lower() == "if-match")
                recorder.asked.append((self.command, self.path, body, told))
                recorder.key = self.headers.get("Idempotency-Key", "")
                answer = (
                    b'{"type": "about:blank", "title": "none", "status": 404, "code": "not_found", "detail": "none"}'
                )
                self.send_response(404)
                self.send_header("Content-Type", "application/problem+json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - the words of the library

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.key = ""
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self) -> None:
        """End it."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    """One for all calls."""
    made = Recorder()
    yield made
    made.close()


def subjects(client: Client) -> dict[str, object]:
    """The adapters, by the names that commands have for them."""
    calls = remote.RemoteCalls(client)
    found = {name: each for name, each in vars(calls).items() if type(each).__name__.startswith("Remote")}
    return {**found, "run": calls.run(GHOST), "calls": calls}


def names() -> list[str]:
    """All calls of all adapters."""
    return sorted(
        f"{subject}.{name}"
        for subject, adapter in subjects(Client("http://127.0.0.1:1")).items()
        for name, _ in inspect.getmembers(type(adapter), inspect.isfunction)
        if not name.startswith("_") and name != "run"
    )


VALUES: list[tuple[str, Callable[[int], object]]] = [
    (r"datetime", lambda number: AT + timedelta(days=number)),
    (r"timedelta", lambda number: timedelta(hours=number)),
    (r"Sequence\[int\]", lambda number: [number]),
    (r"^(?!.*str).*\b(int|float)\b", lambda number: number),
    (r"Contract", lambda number: ready_contract(contract_names()[number])),
    (r"[sS]equence\[Mapping", lambda number: [{f"key{number}": f"value{number}"}]),
    (r"tuple\[str, str, str\]", lambda number: [("t", str(number), "s")]),
    (r"tuple\[str, str\]", lambda number: [("t", str(number))]),
    (r"dict|Mapping", lambda number: {f"key{number}": f"value{number}"}),
    (r"bytes", lambda number: f'{{"a": {number}}}'.encode()),
    (r"[sS]equence|list|tuple|Iterable", lambda number: [f"word{number}"]),
    (r"", lambda number: f"word{number}"),
]
"""What is given for a parameter, by its type."""


def value_of(parameter: inspect.Parameter, number: int) -> Any:
    """A value for a parameter: another one for each number."""
    hint, run = str(parameter.annotation), f"{GHOST[:-1]}{number}"
    if "bool" in hint:
        return not parameter.default if isinstance(parameter.default, bool) else bool(number % 2)
    if parameter.name in RUNS and "str" in hint and parameter.default in {None, parameter.empty}:
        return run
    if "runs" in parameter.name:
        return [run]
    return next(make(number) for pattern, make in VALUES if re.search(pattern, hint))


@pytest.mark.parametrize("name", names())
def test_all_that_a_command_says_reaches_the_server(recorder: Recorder, name: str) -> None:
    """With another value of any parameter the server is asked something else."""
    subject, _, call = name.partition(".")
    with Client(f"http://127.0.0.1:{recorder.server.server_port}") as client:
        method = getattr(subjects(client)[subject], call)
        parameters = [
            each for each in inspect.signature(method).parameters.values() if each.kind is not each.VAR_KEYWORD
        ]
        base = {each.name: value_of(each, 1) for each in parameters if each.default is each.empty} | GIVEN.get(name, {})
        first = asked(recorder, method, base)
        assert first, "it asks nothing"
        assert not [path for _, path, _, _ in first if re.search(r"=(&|$)", path)], "what is not said is not asked"
        for each in parameters:
            if {each.name, f"{name}.{each.name}"} & LOCAL.keys() or is_item(each):
                continue
            other = asked(recorder, method, {**base, each.name: value_of(each, 2)})
            assert other != first or (each.name in KEYS and recorder.key == value_of(each, 2)), each.name


def is_item(parameter: inspect.Parameter) -> bool:
    """Whether a page begins behind an item of the page before, which tests of lists give."""
    return parameter.name == "after" and re.search(r"[A-Z]\w+ \| None", str(parameter.annotation)) is not None


def asked(recorder: Recorder, method: Any, given: dict[str, Any]) -> list[tuple[str, str, bytes, str]]:
    """What a call asks."""
    recorder.asked.clear()
    with pytest.raises(StandfastError):
        method(**given)
    return list(recorder.asked)


@pytest.mark.parametrize(
    ("rules", "told"), [((), ["WF-01", "WF-02", "WF-07"]), (("WF-07", "WF-01"), ["WF-01", "WF-07"])]
)
def test_rules_are_chosen_from_what_a_server_finds(
    monkeypatch: pytest.MonkeyPatch, rules: tuple[str, ...], told: list[str]
) -> None:
    """All that breaks a rule, or what breaks one of those that are named."""
    found = [Violation(rule=each, told="x", remedy="y", is_repairable=False) for each in ("WF-01", "WF-02", "WF-07")]
    monkeypatch.setattr(Client, "check_workflows", lambda *_, **__: Listing(items=found, next=None))
    invariants = remote.RemoteCalls(Client("http://127.0.0.1:1")).invariants
    assert [each.rule for each in invariants.workflows(rules=rules)] == told
