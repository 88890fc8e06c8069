"""The calls of the client: every route has one, made from the table, and its answers are those of the server."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import json
import re
from types import ModuleType

import msgspec
import pytest

from standfast.client import AsyncClient, Client
from standfast.client import models as shapes
from standfast.client.requests import ClientRequest
from standfast.http.openapi import document_of
from standfast.http.routes import ROUTES
from support.repository import ROOT

DOCUMENT = json.loads(document_of(ROUTES))
OPERATIONS = {
    operation["operationId"]: operation
    for path, methods in DOCUMENT["paths"].items()
    for operation in methods.values()
    if not re.match(r"/hooks/|/api/v1/session(?:/|$)", path)  # For other systems and for browsers.
}


def generator() -> ModuleType:
    """The script devtools/client.py as a module."""
    spec = importlib.util.spec_from_file_location("client_generator", ROOT / "devtools" / "client.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_calls_are_what_the_routes_make() -> None:
    """Whoever changes a route has the client made anew and commits it."""
    made = generator()
    stale = [
        name for name, text in made.made().items() if (made.CLIENT / f"{name}.py").read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run `python3 dev.py docs`"


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_every_operation_of_the_document_is_a_call(kind: type) -> None:
    """With all that it takes: what stands in the address, behind the `?`, in the body, and in its headers."""
    own = {"result", "close"}
    assert {name for name in dir(kind) if not name.startswith("_")} - own == set(OPERATIONS)
    for name, operation in OPERATIONS.items():
        taken = set(inspect.signature(getattr(kind, name)).parameters) - {"self"}
        headers = {
            "Idempotency-Key": "idempotency_key",
            "If-Match": "if_version",
            "Last-Event-ID": "last",
            "last_event_id": "last",  # The same, for those who cannot send headers.
        }
        of_all = {"Standfast-Partition"}  # Said once, when the client is made.
        wanted = {headers.get(each["name"], each["name"]) for each in operation["parameters"]} - of_all
        wanted |= fields(operation)
        assert taken == wanted, name


def fields(operation: dict[str, object]) -> set[str]:
    """The fields of a body; `body` if it is one whole."""
    body = operation.get("requestBody")
    if body is None:
        return set()
    schema = body["content"]["application/json"]["schema"]  # type: ignore[index]
    name = schema.get("$ref", "").rpartition("/")[2]
    return set(DOCUMENT["components"]["schemas"][name]["properties"]) if name else {"body"}


def test_copied_answers_are_those_of_the_server() -> None:
    """A struct that only the HTTP layer has is the same in the client, field by field."""
    copies = {
        name: kind
        for name, kind in vars(shapes).items()
        if isinstance(kind, type) and kind.__module__ == shapes.__name__
    }
    made = generator()
    own = made.copies(made.face(made.routes(), is_awaitable=False)[1])[0]
    assert copies
    assert set(copies) == set(own)
    for name, kind in copies.items():
        assert schema_of(kind) == schema_of(own[name]), name


def schema_of(kind: type) -> dict[str, object]:
    """What a struct is as JSON; of a generic one, as one of numbers."""
    whole: object = kind.__class_getitem__(int) if getattr(kind, "__parameters__", ()) else kind  # type: ignore[attr-defined]
    return msgspec.json.schema(whole, schema_hook=_any)


def _any(kind: type) -> dict[str, object]:
    if kind is object:
        return {"description": "Any JSON."}
    raise NotImplementedError


class Noting:
    """A line to a server that keeps what it is to ask."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def ask(self, request: ClientRequest[object]) -> None:
        """Keep a request."""
        self.asked.append((request.path, request.parameters, request.content, request.headers))

    def listen(self, request: ClientRequest[object], last: int) -> None:
        """Keep a request for a stream."""
        self.asked.append((request.path, last))


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_every_argument_is_in_the_request(kind: type[Client | AsyncClient], name: str) -> None:
    """Two values of any argument of a call make two requests."""
    client = kind.__new__(kind)
    call = getattr(client, name)
    signature = inspect.signature(call).parameters
    needed = {each.name: "1" for each in signature.values() if each.default is each.empty}
    for each in signature:
        line = Noting()
        client._line = line  # type: ignore[assignment]
        for value in ("2", "3"):
            made = call(**{**needed, each: value})
            if inspect.iscoroutine(made):
                with contextlib.suppress(TypeError):  # The line answers at once.
                    made.send(None)
        first, second = line.asked
        assert first != second, each
