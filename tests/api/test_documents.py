"""A document over HTTP, from its draft to what takes its place: what the engine promises of it holds at the edge too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from api.world import BODY, INVOICE, NORTH, RIVAL, SOUTH, TRACE, World, contract, problem
from holdfast.testing import ManualEngine

INVOICES = "/api/v1/documents/invoice"
ONE = f"{INVOICES}/INV-1"


@pytest.fixture
def own() -> Iterator[World]:
    """A world without a database, in which all tenants have invoices and acme has somebody approve them."""
    engine = ManualEngine()
    engine.contracts.publish(contract("invoice"))
    world = World(engine)
    bodies = world.calls().bodies
    bodies.publish(bodies.save(BODY).id)
    yield world
    world.close()
    engine.stop()


def version(tag: str) -> dict[str, str]:
    """The condition that nothing has changed since."""
    return {"if-match": tag}


def test_a_document_goes_its_way(own: World) -> None:
    """Created once however often that is asked, edited by whoever has seen the last version, approved, then locked and amended once."""
    ann, bob = own.client(), own.client(actor="bob", roles=["approver"])
    key = {"idempotency-key": "first"}
    made = [ann.post(INVOICES, {"data": INVOICE, "id": "INV-1"}, headers=key) for _ in range(2)]
    assert [(each.status_code, each.json()["id"], each.headers["location"]) for each in made] == [
        (201, "INV-1", ONE)
    ] * 2
    seen = ann.get(ONE)
    assert ann.get(ONE, headers={"if-none-match": seen.headers["etag"]}).status_code == 304

    edit: dict[str, Any] = {"json": {"changes": {"grand_total": 41_000}}}
    assert ann.ask("PATCH", ONE, headers=version(seen.headers["etag"]), **edit).json()["version"] == 2
    stale = ann.ask("PATCH", ONE, headers=version('"v1"'), **edit)
    assert (stale.status_code, problem(stale)["code"]) == (412, "changed_meanwhile")
    assert ann.get(ONE).json()["version"] == 2

    asked = ann.post(f"{ONE}/transitions", {"transition": "submit"}, headers=version('"v2"')).json()
    assert (asked["status"], asked["window"]) == ("submitted", "amend_only")
    own.engine.drain()
    (task,) = bob.get("/api/v1/tasks?role=approver").json()["items"]
    answer = f"/api/v1/tasks/{task['step_id']}/approve"
    assert bob.post(answer, {"document_version": "1"}).status_code == 409
    assert bob.post(answer, {"document_version": task["document_version"]}).status_code == 204
    own.engine.drain()
    assert ann.get(f"{INVOICES}?status=active").json()["items"][0]["id"] == "INV-1"
    locked = ann.ask("PATCH", ONE, **edit)
    assert locked.status_code == 409, locked.text

    change = {"changes": {"grand_total": 42_000}, "reason": "the price was wrong"}
    amended = [ann.post(f"{ONE}/amend", change, headers={"idempotency-key": "again"}) for _ in range(2)]
    assert len({each.json()["id"] for each in amended}) == 1
    assert {each.json()["amended_from"] for each in amended} == {"INV-1"}
    assert len(ann.get(INVOICES).json()["items"]) == 2
    assert ann.get(ONE).json()["superseded_by"] == amended[0].json()["id"]


def test_what_a_document_was(own: World) -> None:
    """Its versions, what differs in them, and who did what to it, are read page by page; what it never was is not found."""
    ann = own.client()
    ann.post(INVOICES, {"data": INVOICE, "id": "INV-1"})
    ann.ask("PATCH", ONE, json={"changes": {"grand_total": 41_000}, "reason": "postage"})
    page = ann.get(f"{ONE}/versions?limit=1").json()
    rest = ann.get(f"{ONE}/versions?limit=1&cursor={page['next']}").json()
    assert [each["version"] for each in (*page["items"], *rest["items"])] == [1, 2]
    assert ann.get(f"{ONE}/versions/1").json()["data"]["grand_total"] == 40_000
    for never in ("3", "0", "x", "99999999999999999999"):
        assert ann.get(f"{ONE}/versions/{never}").status_code == 404
    (field,) = ann.get(f"{ONE}/diff?old=1&new=2").json()["fields"]
    assert (field["field"], field["before"], field["after"]) == ("grand_total", 40_000, 41_000)
    assert ann.get(f"{ONE}/mutations").json()["items"][-1]["reason"] == "postage"
    for more in ("audit", "rounds", "choices"):
        assert ann.get(f"{ONE}/{more}").status_code == 200
    assert ann.get(f"{ONE}/audit").json()["items"]


def test_documents_are_told_apart(own: World) -> None:
    """Another tenant, and another partition, have a document of the same id for themselves, and see of this one what nobody has."""
    north, south = (own.client(actor=each, partition=each) for each in (NORTH, SOUTH))
    north.post(INVOICES, {"data": {**INVOICE, "number": "of the north"}, "id": "INV-1"})
    for other in (south, own.client(tenant=RIVAL, actor="eve")):
        there, nowhere = (other.get(f"{INVOICES}/{each}", headers=TRACE) for each in ("INV-1", "INV-9"))
        assert there.status_code == nowhere.status_code == 404
        assert there.text.replace("INV-1", "INV-9") == nowhere.text
        assert other.get(INVOICES).json()["items"] == []
        assert other.ask("PATCH", ONE, json={"changes": {"number": "stolen"}}).status_code == 404
        assert other.post(INVOICES, {"data": INVOICE, "id": "INV-1"}).json()["data"]["number"] == "R-1"
    assert north.get(ONE).json()["data"]["number"] == "of the north"


def test_who_is_nobody_here_sees_their_own(own: World) -> None:
    """Who may use documents and no more sees their own, and is refused those of others, which are on record as they were."""
    eve = own.client(actor="eve", capabilities=["documents:read", "documents:write"])
    own.client().post(INVOICES, {"data": INVOICE, "id": "INV-1"})
    assert eve.get(ONE).status_code == 403
    assert eve.get(INVOICES).status_code == 403
    assert eve.post(INVOICES, {"data": INVOICE, "id": "INV-2"}).status_code == 201
    assert [each["id"] for each in eve.get(f"{INVOICES}?requester=eve").json()["items"]] == ["INV-2"]
