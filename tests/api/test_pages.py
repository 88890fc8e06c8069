"""Pages of lists that come whole out of the engine: what joins or leaves them between two pages is no reason to tell anything twice, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from api.world import ACME, BODY, Client, World, contract
from standfast import Calls

OWN = "pages"
"""A tenant for these tests alone."""


def sagas(calls: Calls, *names: str) -> None:
    """Have workflows that the tenant itself has published."""
    data = calls.definitions.data("paid")
    for name in names:
        calls.definitions.publish({**data, "name": name})


def archive(calls: Calls, *names: str) -> None:
    """Have versions that are out of use."""
    sagas(calls, *names)
    for name in names:
        calls.definitions.archive(name, "1")


def clerks(calls: Calls, *names: str) -> None:
    """Have people with a role."""
    for name in names:
        calls.directory.put(name)
        calls.directory.grant(name, "clerk")


def chains(calls: Calls, *names: str) -> None:
    """Have approval chains."""
    for name in names:
        calls.chains.publish(name, [{"asks": ["manager"]}])


def contracts(calls: Calls, *names: str) -> None:
    """Have types of documents."""
    for name in names:
        calls.contracts.publish(contract(name))


def bodies(calls: Calls, *names: str) -> None:
    """Have bodies in force."""
    contracts(calls, *names)
    for name in names:
        calls.bodies.publish(calls.bodies.save({**BODY, "base": {"entity_type": name, "envelope_version": 1}}).id)


def charters(calls: Calls, *names: str) -> None:
    """Have rules of types of documents."""
    contracts(calls, *names)
    for name in names:
        calls.charters.publish_rules(name, [])


LISTS: dict[str, tuple[str, Callable[..., None], Callable[[Any], str]]] = {
    "definitions": ("/api/v1/definitions", sagas, lambda each: each["name"]),
    "archived": ("/api/v1/definitions/archived", archive, lambda each: each["name"]),
    "holders": ("/api/v1/directory/roles/clerk/holders", clerks, lambda each: each["id"]),
    "chains": ("/api/v1/chains", chains, lambda each: each["name"]),
    "contracts": ("/api/v1/contracts", contracts, lambda each: each["type"]),
    "bodies": ("/api/v1/bodies", bodies, lambda each: each["type"]),
    "charters": ("/api/v1/charters", charters, lambda each: each["name"]),
}


@pytest.mark.row("G-10", "EO-33")
@pytest.mark.parametrize("which", LISTS)
def test_what_joins_a_list_between_two_pages_moves_nothing(world: World, which: str) -> None:
    """What was there when the first page was read is told once, although something has taken a place before it since."""
    path, have, name = LISTS[which]
    tenant = f"{OWN}-{which}"
    calls, client = world.calls(tenant), world.client(tenant=tenant)
    have(calls, "m_one", "m_two", "m_three")
    before = [name(each) for each in client.get(path).json()["items"]]
    first = client.get(path, params={"limit": len(before) - 1}).json()
    have(calls, "a_new")
    rest = client.get(path, params={"cursor": first["next"]}).json()
    assert len(client.get(path).json()["items"]) > len(before)
    assert [name(each) for each in (*first["items"], *rest["items"])] == before


@pytest.mark.row("G-10")
@pytest.mark.parametrize("leaving", ["ann", "bob"])
def test_what_leaves_a_list_between_two_pages_takes_nothing_along(world: World, leaving: str) -> None:
    """Those behind somebody who has left are told all the same, be it the very one that the first page ended with."""
    tenant = f"{OWN}-without-{leaving}"
    calls, client = world.calls(tenant), world.client(tenant=tenant)
    clerks(calls, "ann", "bob", "cleo", "dan")
    path = LISTS["holders"][0]
    first = page(client, path, limit=2)
    calls.directory.revoke(leaving, "clerk")
    rest = page(client, path, cursor=first["next"])
    assert [each["id"] for each in (*first["items"], *rest["items"])] == ["ann", "bob", "cleo", "dan"]


def test_drafts_that_are_published_meanwhile_hide_no_other(world: World) -> None:
    """A draft that is open is listed, although one before it has become a version since the first page."""
    tenant = f"{OWN}-drafts"
    calls, client = world.calls(tenant), world.client(tenant=tenant)
    contracts(calls, "claim")
    body = {**BODY, "base": {"entity_type": "claim", "envelope_version": 1}}
    drafts = {calls.bodies.save({**body, "name": f"Draft {number}"}).id for number in range(3)}
    first = page(client, "/api/v1/body-drafts", limit=2)
    calls.bodies.publish(first["items"][0]["id"])
    rest = page(client, "/api/v1/body-drafts", cursor=first["next"])
    shown = [each["id"] for each in (*first["items"], *rest["items"])]
    assert (len(shown), set(shown)) == (3, drafts)


def page(client: Client, path: str, **query: Any) -> Any:
    """A page of a list."""
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_cursor_of_another_list_is_refused(world: World) -> None:
    """A cursor that names nothing of this kind is none of this list."""
    client = world.client(tenant=ACME)
    for wrong in ("WyJhIl0", "Ii1hIg", "e30", "LTE"):
        assert client.get("/api/v1/definitions", params={"cursor": wrong}).status_code == 400
