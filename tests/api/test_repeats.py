"""Whatever changes something is safe to send again with an `Idempotency-Key`: it is done once, and answered alike."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from api.addresses import GHOSTS, name, sent
from api.world import ACME, NORTH, RIVAL, World, problem
from standfast.http.routes import ROUTES

DELEGATIONS = "/api/v1/directory/delegations"
DEPUTY = {"giver": "acme-giver", "to": "acme-deputy", "reason": "holidays"}


def keyed(key: str) -> Mapping[str, dict[str, str]]:
    """A header, as requests take it."""
    return {"headers": {"idempotency-key": key}}


@pytest.fixture(scope="module", autouse=True)
def people(world: World) -> None:
    """Somebody who stands in for somebody, in two tenants."""
    for tenant in (ACME, RIVAL):
        for person in ("acme-giver", "acme-deputy"):
            world.calls(tenant).directory.put(person)


def test_a_repeated_request_is_done_once(world: World) -> None:
    """The second one is answered like the first, and says so; another body under the same key is refused, and other actors have keys of their own."""
    client, calls = world.client(), world.calls()
    first, second = (client.post(DELEGATIONS, DEPUTY, **keyed("d-1")) for _ in range(2))
    assert (first.status_code, first.json()) == (second.status_code, second.json())
    assert first.headers["content-type"] == second.headers["content-type"]
    assert [each.headers.get("idempotency-replayed") for each in (first, second)] == [None, "true"]
    assert len(calls.directory.delegations("acme-giver")) == 1
    other = client.post(DELEGATIONS, {**DEPUTY, "reason": "ill"}, **keyed("d-1"))
    assert (other.status_code, problem(other)["code"]) == (409, "reused_id")
    elsewhere = client.post("/api/v1/directory/absences", {"person": "acme-giver"}, **keyed("d-1"))
    assert elsewhere.status_code == 409
    strangers = [world.client(tenant=RIVAL), world.client(actor="bob"), world.client(partition=NORTH)]
    for stranger in strangers:
        assert "idempotency-replayed" not in stranger.post(DELEGATIONS, DEPUTY, **keyed("d-1")).headers
    assert len(calls.directory.delegations("acme-giver")) == 2  # Who is bound to a partition delegates nothing.
    ended = [client.ask("DELETE", f"{DELEGATIONS}/{first.json()['id']}", **keyed("d-2")).json() for _ in range(2)]
    assert ended == [{"was": True}, {"was": True}]


@pytest.mark.row("R-090", "G-25")
def test_a_request_to_resume_is_written_down_once(world: World) -> None:
    """What the resume worker is asked for twice under one key is one request, and another one under it is refused."""
    client = world.client()
    run = world.calls().start("paid").id
    path = f"/api/v1/executions/{run}/resume-requests"
    assert client.post(f"/api/v1/executions/{run}/pause", {"reason": "closed"}).status_code == 204
    first, second = (client.post(path, {"reason": "tonight"}, **keyed("later-1")) for _ in range(2))
    assert (first.status_code, first.json()) == (second.status_code, second.json())
    other = client.post(path, {"reason": "tomorrow"}, **keyed("later-1"))
    assert (other.status_code, problem(other)["code"]) == (409, "reused_id")
    assert [each["reason"] for each in client.get(path).json()] == ["tonight"]


def test_a_refusal_uses_no_key_up(world: World) -> None:
    """Nothing was done: the same key is good for the request as it should have been."""
    client = world.client()
    refused = client.post(DELEGATIONS, {**DEPUTY, "to": "nobody-at-all"}, **keyed("r-1"))
    assert refused.status_code == 404
    assert client.post(DELEGATIONS, DEPUTY, **keyed("r-1")).status_code == 201


def test_a_secret_is_told_once(world: World) -> None:
    """The second request makes no key, and is not told the first one's secret, which is kept nowhere."""
    client, calls = world.client(), world.calls()
    asked = {"name": "once", "actor": "shop", "capabilities": ["execution:read"]}
    first, second = (client.post("/api/v1/keys", asked, **keyed("k-1")) for _ in range(2))
    assert first.status_code == 201
    assert (second.status_code, problem(second)["code"]) == (409, "key_untold")
    assert len([each for each in calls.keys.list() if each.name == "once"]) == 1
    kept = world.calls(actor="ann").repeats.begin("k-1", b"")
    assert kept is not None
    assert (kept.status, kept.body) == (201, None)


def test_a_request_that_nobody_told_the_end_of_is_not_done_again(world: World) -> None:
    """While it may be under way the second is told to come back, afterwards that nobody knows; after a day the key is free."""
    client = world.client()
    world.calls(actor="ann").repeats.begin("u-1", b"")
    assert problem(client.post(DELEGATIONS, DEPUTY, **keyed("u-1")))["code"] == "reused_id"
    path = "/api/v1/notifications/read-all"
    answered = client.ask("POST", path, **keyed("u-2"))
    mark = world.calls(actor="ann").repeats.begin("u-2", b"")
    assert mark is not None
    world.calls(actor="ann").repeats.begin("u-3", mark.mark)
    under_way = client.ask("POST", path, **keyed("u-3"))
    assert (under_way.status_code, problem(under_way)["code"]) == (409, "key_under_way")
    assert under_way.headers["retry-after"] == "1"
    world.engine.advance(timedelta(minutes=3))
    assert problem(client.ask("POST", path, **keyed("u-3")))["code"] == "key_untold"
    world.engine.advance(timedelta(days=1))
    again = client.ask("POST", path, **keyed("u-3"))
    assert (again.status_code, again.headers.get("idempotency-replayed")) == (answered.status_code, None)


def test_every_route_that_changes_something_takes_a_key(world: World) -> None:
    """A key that is none is refused by all of them, so that none ignores it; and what is refused is refused alike the second time."""
    client = world.client(tenant="default", actor="root")
    for route in ROUTES:
        if not route.is_repeatable:
            continue
        bad = sent(client, route, GHOSTS, headers={"idempotency-key": "a" * 300})
        assert (name(route), bad.status_code) in {(name(route), 400), (name(route), 404)}, bad.text
        if bad.status_code == 400:
            assert "Idempotency-Key" in bad.text, name(route)


def test_whoever_only_looks_leaves_nothing_in_the_database(world: World) -> None:
    """What looks at a body and changes nothing keeps no answer, so that nobody fills the database who may only look; it is answered anew each time."""
    looks = {name(route) for route in ROUTES if route.is_look}
    reading = {name(route) for route in ROUTES if route.method != "GET" and route.permission.endswith(":read")}
    assert reading - looks == {"POST /api/v1/invariants/patrol"}  # Which remembers how far it has come.
    assert looks <= reading
    client, path = world.client(capabilities=("definition:read",)), "/api/v1/definitions/validate"
    for asked in ({"name": "a"}, {"name": "a"}, {"name": "b"}):
        answer = client.post(path, asked, headers={"idempotency-key": "looks"})
        assert (answer.status_code, answer.headers.get("idempotency-replayed")) == (200, None), answer.text
    assert client.post(path, {}, headers={"idempotency-key": "a" * 300}).status_code == 400
