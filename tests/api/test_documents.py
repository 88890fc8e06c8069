"""A document over HTTP, from its draft to what takes its place: what the engine promises of it holds at the edge too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from api.world import BODY, INVOICE, NORTH, RIVAL, SOUTH, TRACE, World, contract, problem
from standfast.http.routes.documents import bodies, contracts
from standfast.testing import ManualEngine

INVOICES = "/api/v1/documents/invoice"
ONE = f"{INVOICES}/INV-1"
DRAFTS = "/api/v1/body-drafts"
STRICT = {
    **BODY,
    "slots": {
        "slot:submitted_to_approved": {
            "nodes": [
                {"id": each, "type": "approval", "approvers": [{"role": "approver"}]} for each in ("sign", "second")
            ],
            "edges": [{"from": "sign", "to": "second"}],
        }
    },
}


@pytest.fixture
def own() -> Iterator[World]:
    """A world without a database, in which all tenants have invoices and acme has somebody approve them."""
    engine = ManualEngine()
    engine.contracts.publish(contract("invoice"))
    world = World(engine)
    kept = world.calls().bodies
    kept.publish(kept.save(BODY).id)
    yield world
    world.close()
    engine.stop()


def version(tag: str) -> dict[str, str]:
    """The condition that nothing has changed since."""
    return {"if-match": tag}


@pytest.mark.row("EO-24")
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

    edit: dict[str, Any] = {"json": {"changes": {"grand_total": 41_000, "bank_account": "DE2"}}}
    assert ann.ask("PATCH", ONE, headers=version(seen.headers["etag"]), **edit).json()["version"] == 2
    stale = ann.ask("PATCH", ONE, headers=version('"v1"'), **edit)
    assert (stale.status_code, problem(stale)["code"]) == (412, "changed_meanwhile")
    assert "since then: bank_account (masked), grand_total (40000 → 41000)" in problem(stale)["detail"]
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


@pytest.mark.row("EH-17")
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
        assert ann.get(f"{ONE}/versions/{never}/page").status_code == 404
    shown = ann.get(f"{ONE}/versions/1/page")
    assert shown.headers["content-type"] == "text/html; charset=utf-8"
    assert shown.headers["content-security-policy"].startswith("default-src 'none'")
    assert "<td>40000</td>" in shown.text
    (field,) = ann.get(f"{ONE}/diff?old=1&new=2").json()["fields"]
    assert (field["field"], field["before"], field["after"]) == ("grand_total", 40_000, 41_000)
    assert ann.get(f"{ONE}/mutations").json()["items"][-1]["reason"] == "postage"
    for more in ("audit", "rounds", "choices"):
        assert ann.get(f"{ONE}/{more}").status_code == 200
    assert ann.get(f"{ONE}/audit").json()["items"]


FAULTS = {
    **BODY,
    "slots": {
        "slot:submitted_to_approved": {
            "nodes": [
                {"id": "a", "type": "approval", "approvers": [{"role": "x"}], "window": "editable"},
                {"id": "b", "type": "approval", "approvers": []},
                {"id": "c", "type": "action", "action": "invoice.fly"},
                {"id": "d", "type": "script", "formula": "entity.nope"},
                {"id": "e", "type": "wait_timer"},
            ],
            "edges": [
                {"from": "a", "to": "b"},
                {"from": "b", "to": "c"},
                {"from": "c", "to": "d"},
                {"from": "d", "to": "e"},
                {"from": "e", "to": "sys:end", "id": "x"},
            ],
        }
    },
}


@pytest.mark.row("E-147")
def test_all_that_is_wrong_with_a_body_is_told_without_publishing_it(own: World) -> None:
    """As JSON and as YAML: every problem with its code, slot, node or edge; nothing is kept, and it takes the right to read bodies."""
    client = own.client()
    told = client.post("/api/v1/body-checks", FAULTS)
    yaml = {"content-type": "application/yaml"}
    text = client.ask("POST", "/api/v1/body-checks", content=json.dumps(FAULTS).encode(), headers=yaml)
    assert (told.status_code, text.status_code) == (200, 200)
    for found in (told.json()["problems"], text.json()["problems"]):
        assert {(each["code"], (each.get("node") or each["edge"]).rpartition(":")[2]) for each in found} == {
            ("window_loosened", "a"), ("empty", "b"), ("unknown_action", "c"), ("expression", "d"), ("wait", "e"), ("edge_scope", "x"),
        }  # fmt: skip
        assert {each["slot"] for each in found} == {"slot:submitted_to_approved"}
    assert all(each["position"].count(":") == 1 for each in text.json()["problems"])  # Line and column.
    assert client.get(DRAFTS).json()["items"] == []
    assert own.client(capabilities=["document:read"]).post("/api/v1/body-checks", FAULTS).status_code == 403


def test_what_is_wrong_with_a_request_is_told(own: World) -> None:
    """What does not fit the contract is 422 and no conflict; whoever names a field that there is not is told which there are."""
    ann = own.client()
    wrong = problem(ann.post(INVOICES, {"data": {**INVOICE, "grand_total": 1.5}, "id": "INV-1"}))
    assert (wrong["status"], wrong["code"]) == (422, "invalid_document")
    assert wrong["remedy"].startswith("correct what the message names; /api/v1/contracts/")
    ann.post(INVOICES, {"data": INVOICE, "id": "INV-1"})
    unknown = problem(ann.post(f"{ONE}/transitions", {"transition": "submitt"}))
    assert (unknown["status"], unknown["code"]) == (422, "unknown_transition")
    misnamed = problem(ann.post(f"{ONE}/transitions", {"name": "submit"}))
    assert "unknown field `name`; it takes `transition` (required), " in misnamed["detail"]
    missing = problem(ann.post(f"{ONE}/transitions", {}))
    assert "missing required field `transition`; it takes `transition` (required), " in missing["detail"]
    below = problem(ann.post("/api/v1/executions", {"definition": 7}))
    assert "it takes" not in below["detail"]


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


@pytest.mark.row("E-851")
def test_a_body_goes_its_way(own: World) -> None:
    """A draft is begun as YAML, saved by whoever has seen the last revision, tried out, published once, compared, and rolled back."""
    ann = own.client()
    text = ann.get("/api/v1/bodies/invoice/export").json()["source"]
    begun = ann.ask("POST", DRAFTS, content=text.encode(), headers={"content-type": "application/yaml"})
    assert begun.status_code == 201, begun.text
    draft, tag = begun.headers["location"], begun.headers["etag"]
    assert ann.ask("PUT", draft, json=STRICT, headers={"if-match": tag}).json()["revision"] == 2
    stale = ann.ask("PUT", draft, json=BODY, headers={"if-match": tag})
    assert (stale.status_code, problem(stale)["code"]) == (412, "changed_meanwhile")

    ways = [
        ann.post("/api/v1/bodies/invoice/dry-run", {"data": INVOICE, **more}).json()
        for more in ({}, {"draft": draft.rpartition("/")[2]})
    ]
    assert [sum(each["node"] in {"sign", "second"} for each in way["trail"]) for way in ways] == [1, 2]
    assert "second" in ann.get(f"{draft}/diff?against=1").text
    assert ann.get(f"{draft}/scenarios").json() == {"results": []}
    published = ann.post(f"{draft}/publish", {"replaces": 1})
    assert (published.status_code, published.json()["version"]) == (200, 2), published.text
    again = ann.post(f"{draft}/publish")
    assert (again.status_code, problem(again)["code"]) == (409, "DRAFT_CHANGED")
    assert ann.post("/api/v1/bodies/invoice/rollback", {"version": 1}).json()["version"] == 3
    found = ann.get("/api/v1/bodies/invoice/versions").json()["items"]
    assert [(each["version"], each["status"]) for each in found] == [(1, "archived"), (2, "archived"), (3, "published")]
    assert ann.get("/api/v1/bodies").json()["items"][0]["version"] == 3
    assert own.client(tenant=RIVAL).get("/api/v1/bodies").json()["items"] == []

    bad = {"workflow": "3-org", "reason": "bad"}
    assert ann.post("/api/v1/bodies/invoice/suspend", bad).json()["is_suspended"] is True
    assert ann.post(INVOICES, {"data": INVOICE, "id": "INV-7"}).json()["workflow_version"] == "2-org"
    assert ann.post("/api/v1/bodies/invoice/lift", bad).json()["is_suspended"] is False
    assert problem(ann.post("/api/v1/bodies/invoice/lift", bad))["code"] == "NOT_SUSPENDED"
    assert len(ann.get("/api/v1/suspensions").json()["items"]) == 2
    moved = ann.post("/api/v1/bodies/invoice/move", {"workflow": "2-org", "to": "3-org", "reason": "as before"}).json()
    assert [(each["id"], each["is_moved"]) for each in moved["items"]] == [("INV-7", True)]


def test_who_may_not_publish_is_told_by_the_engine_too(own: World) -> None:
    """Who drafts does not publish, and where two people are wanted, nobody publishes their own draft."""
    dora = own.client(actor="dora", capabilities=["bodies:read", "bodies:design"])
    draft = dora.post(DRAFTS, STRICT).headers["location"]
    assert dora.post(f"{draft}/publish").status_code == 403
    ann = own.client()
    assert ann.ask("PUT", "/api/v1/publishing-rules", json={"two_person": True}).json()["set_by"] == "ann"
    mine = ann.post(DRAFTS, STRICT).headers["location"]
    refused = ann.post(f"{mine}/publish")
    assert (refused.status_code, problem(refused)["code"]) == (403, "SECOND_PERSON_REQUIRED")
    unread = ann.post(f"{draft}/publish")
    assert (unread.status_code, problem(unread)["code"]) == (409, "REVISION_REQUIRED")
    assert problem(ann.post(f"{draft}/publish", {"revision": 2}))["code"] == "DRAFT_CHANGED"
    assert ann.post(f"{draft}/publish", {"revision": 1}).status_code == 200


def test_contracts_and_charters(own: World) -> None:
    """A contract is checked, published for its tenant alone and compared; rules and settings are kept version by version."""
    ann, rival = own.client(), own.client(tenant=RIVAL, actor="eve")
    first, second = (contract("receipt").replace("version: 1", f"version: {each}", 1) for each in (1, 2))
    second = second.replace("lifecycle:", "  note: {type: string}\nlifecycle:", 1)
    yaml = {"content-type": "application/yaml"}
    assert ann.ask("POST", "/api/v1/contract-checks", content=first, headers=yaml).json()["problems"] == []
    for each in (first, second, second):
        assert ann.ask("POST", "/api/v1/contracts", content=each, headers=yaml).status_code == 201
    reused = ann.ask("POST", "/api/v1/contracts", content=first.replace("money", "int"), headers=yaml)
    assert (reused.status_code, problem(reused)["code"]) == (409, "CONTRACT_VERSION_REUSED")
    assert ann.ask("POST", "/api/v1/contracts", content="entity_type: [", headers=yaml).status_code == 422
    assert [each["version"] for each in ann.get("/api/v1/contracts/receipt/versions").json()["items"]] == [1, 2]
    assert [each["name"] for each in ann.get("/api/v1/contracts/receipt/diff?old=1").json()["changes"]] == ["note"]
    assert "note" in ann.get("/api/v1/contracts/receipt/export").json()["source"]
    assert rival.get("/api/v1/contracts/receipt").status_code == 404

    charters = "/api/v1/charters"
    assert ann.ask("PUT", f"{charters}/settings", json={"settings": {"limit": 5}}).json()["version"] == 1
    assert ann.ask("PUT", f"{charters}/rules:invoice", json={"rules": []}).json()["name"] == "rules:invoice"
    seen = ann.get(f"{charters}/settings")
    assert seen.json()["settings"] == {"limit": 5}
    assert ann.get(f"{charters}/settings", headers={"if-none-match": seen.headers["etag"]}).status_code == 304
    more = {"settings": {"limit": 6}}
    for tag in ('"v0"', '"v7"'):
        late = ann.ask("PUT", f"{charters}/settings", json=more, headers={"if-match": tag})
        assert (late.status_code, problem(late)["code"]) == (412, "changed_meanwhile")
    put = ann.ask("PUT", f"{charters}/settings", json=more, headers={"if-match": seen.headers["etag"]})
    assert (put.json()["version"], put.headers["etag"][:4]) == (2, '"v2.')
    for tag in ('"v1"', "*"):
        fresh = ann.ask("PUT", f"{charters}/rules:receipt", json={"rules": []}, headers={"if-match": tag})
        assert (fresh.status_code, problem(fresh)["code"]) == (412, "changed_meanwhile")
    assert ann.ask("PUT", f"{charters}/settings", json={"rules": []}).status_code == 422
    assert ann.ask("PUT", f"{charters}/nonsense", json={"rules": []}).status_code == 404
    assert rival.get(f"{charters}/settings").status_code == 404
    assert len(ann.get(charters).json()["items"]) == 3


@pytest.mark.row("EO-42")
def test_what_is_for_others_eyes_stays_so(own: World) -> None:
    """A field that only finance sees is masked in the document and in what comes of trying it out; and the rules of all documents hold."""
    ann, fin = own.client(), own.client(actor="fin", roles=["finance"])
    ann.post(INVOICES, {"data": {**INVOICE, "bank_account": "DE1"}, "id": "INV-1"})
    tried = "/api/v1/bodies/invoice/dry-run", {"document": "INV-1"}
    for client, seen in ((ann, "***"), (fin, "DE1")):
        assert client.get(ONE).json()["data"]["bank_account"] == seen
        assert client.post(*tried).json()["data"]["bank_account"] == seen
    page = ann.get("/api/v1/invariants/documents?rules=WF-03&limit=1").json()
    assert (page["items"], page["checked"]) == ([], 1)
    assert ann.get("/api/v1/invariants/workflows").json()["items"] == []
    assert ann.get("/api/v1/invariants/documents?rules=WF-99").status_code == 422
    walked = ann.post("/api/v1/invariants/patrol", {"limit": 1}).json()
    assert (walked["items"], walked["checked"]) == ([], 1)
    one = f"/api/v1/invariants/documents/{ann.get(ONE).json()['instance']}"
    assert ann.get(one).json() == []
    mended = ann.post(f"{one}/repair", {"reason": "to be sure"})
    assert (mended.status_code, mended.json()["left"]) == (200, [])
    assert ann.post(f"{one}/repair", {"reason": " "}).status_code == 422
    assert own.client(tenant=RIVAL).post(f"{one}/repair", {"reason": "x"}).status_code == 404
    assert ann.post("/api/v1/charters/refresh").status_code == 400
    assert ann.ask("POST", "/api/v1/charters/refresh").status_code == 204


def test_the_examples_can_be_sent(own: World) -> None:
    """What the OpenAPI document shows as a body and as a contract is one."""
    ann = own.client()
    for route in (*bodies.ROUTES, *contracts.ROUTES):
        if route.body is object and "{" not in route.path:
            answer = ann.post(route.path, route.example)
            assert answer.status_code in {200, 201}, answer.text
            assert not answer.json().get("problems")
