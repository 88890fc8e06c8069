"""Names that become parts of addresses: who chooses them, and that none leads elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from api.world import ACME, INVOICE, World, documented
from standfast import Calls, DefinitionError, PayloadError, Saga, StandfastError
from standfast.client.requests import placed
from standfast.http.routes import ROUTES

MADE_BY_THE_ENGINE = {"id", "number", "draft", "key", "session", "version", "template"}
"""Ids and numbers that nobody chooses, and the templates that come along."""
WORDS_OF_FILES = {"type", "charter"}
"""Words by the form of contracts: letters, digits and underscores."""
TOLD_BY_THE_OPERATOR = {"hook", "provider", "projection"}
"""Names of the configuration, which `checked_options` looks at, and of classes of the program."""


def workflow(calls: Calls, name: str) -> object:
    """A workflow of this name, published."""
    return calls.definitions.publish(Saga(name).step("a", lambda: None).build())


CHOSEN: dict[str, Callable[[Calls, str], object]] = {
    "name": workflow,
    "workflow_id": workflow,
    "schedule": lambda calls, name: calls.schedules.put(name, "order", every=60),
    "batch": lambda calls, name: calls.batches.begin("cancel", batch_id=name, definition="order", reason="r"),
    "event_id": lambda calls, name: calls.events.publish("x", event_id=name),
    "person": lambda calls, name: calls.directory.put(name),
    "role": lambda calls, name: calls.directory.grant("ann", name),
    "document": lambda calls, name: calls.documents.create("acme_invoice", INVOICE, id=name),
}
"""What people and programs call what they make, by the parameter that stands for it in addresses."""


def test_every_part_of_an_address_is_somebodys_choice() -> None:
    """A parameter of a new route has to be judged here before it is served."""
    found = {name for route in ROUTES for name in re.findall(r"\{(\w+)\}", route.path)}
    assert found == {*CHOSEN, *MADE_BY_THE_ENGINE, *WORDS_OF_FILES, *TOLD_BY_THE_OPERATOR}


@pytest.fixture(scope="module")
def acme(world: World) -> Calls:
    """A tenant with documents and with people."""
    documented(world)
    calls = world.engine.as_tenant(ACME)
    calls.directory.put("ann")
    return calls


@pytest.mark.parametrize("kind", CHOSEN)
def test_nothing_is_called_as_what_leads_elsewhere(acme: Calls, kind: str) -> None:
    """Nothing can be made under `.` or `..`, which an address cannot hold however it is escaped."""
    for name in (".", ".."):
        with pytest.raises((PayloadError, DefinitionError), match="leads elsewhere"):
            CHOSEN[kind](acme, name)


@pytest.mark.parametrize("name", [".", "..", "a/../b", "/etc/passwd", "a//b", "..\\x"])
def test_steps_lead_nowhere(name: str) -> None:
    """Clients make addresses and files of the names of steps, so none of them, nor of compensations, is a way through folders."""
    for saga in (Saga("order").step(name, print), Saga("order").step("a", print).on_failure(name, print)):
        with pytest.raises(DefinitionError) as refused:
            saga.build()
        assert "misleading_name" in {each.code for each in refused.value.diagnostics}


ODD = ["a/b", "a?b#c", "a%2Fb", "a b", "..a", 'a"b', "a;b", "ä", "a\\b", "<b>", "a%0d%0ab", "%2e%2e"]


@pytest.mark.parametrize("name", ODD)
def test_odd_names_are_found_where_answers_say_they_are(world: World, name: str) -> None:
    """Whatever else a name has in it is escaped: by the client that is ours, and in what the server says of where it is."""
    client = world.client()
    body: dict[str, Any] = {"workflow": "order", "every_seconds": 3600}
    assert client.ask("PUT", f"/api/v1/schedules/{placed(name)}", json=body).json()["id"] == name
    assert client.get(f"/api/v1/schedules/{quote(name, safe='')}").json()["id"] == name
    begun = client.post("/api/v1/batches", {"verb": "cancel", "batch_id": name, "definition": "order", "reason": "r"})
    assert client.get(begun.headers["location"]).json()["id"] == name
    assert httpx.URL(f"http://x{begun.headers['location']}").raw_path.decode() == begun.headers["location"]


def test_the_client_sends_nothing_elsewhere() -> None:
    """What would make another address of a name is refused before anything is sent."""
    for name in ("", ".", ".."):
        with pytest.raises(StandfastError, match="cannot stand in an address"):
            placed(name)
    assert placed("../../x") == "..%2F..%2Fx"
