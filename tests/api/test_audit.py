"""The audit over HTTP: a reason in a header, and lists for auditors; on both stores."""

from __future__ import annotations

import pytest

from api.test_routes import RUNS, all_of, is_done, started
from api.world import RIVAL, World, problem

AUDIT = "/api/v1/audit"


@pytest.mark.row("E-578", "E-580")
def test_a_reason_in_a_header_is_in_the_audit(world: World) -> None:
    """What the header Standfast-Reason says is the reason of whatever the request does; a reason in the body comes first."""
    client = world.client(actor="olga")
    run = started(client, "paid")
    for reason, body in (("closed f%C3%BCr heute", {}), ("not this", {"reason": "this one"})):
        assert is_done(client.post(f"{RUNS}/{run}/pause", body, headers={"standfast-reason": reason}))
        assert is_done(client.post(f"{RUNS}/{run}/resume", {}))
    made = client.post(
        "/api/v1/keys", {"name": "k", "actor": "bot"}, headers={"standfast-reason": "for the bot"}
    ).json()
    acts = all_of(client, f"{AUDIT}/instances/{run}")
    assert acts == all_of(client, f"{RUNS}/{run}/audit")
    assert [(each["actor"], each["action"], each["reason"]) for each in acts] == [
        ("olga", "start", ""),
        ("olga", "pause", "closed für heute"),
        ("olga", "resume", ""),
        ("olga", "pause", "this one"),
        ("olga", "resume", ""),
    ]
    assert acts[1]["before"]["status"] != acts[1]["after"]["status"]
    (change,) = all_of(client, f"{AUDIT}/changes", subject="key", name=made["key"]["id"])
    assert (change["actor"], change["action"], change["reason"]) == ("olga", "create", "for the bot")
    assert made["secret"] not in str(change)


@pytest.mark.parametrize("reason", ["x" * 1001, "two%0Alines", "%ff", "caf\xe9"])
def test_a_reason_that_nobody_could_read_is_refused(world: World, reason: str) -> None:
    """It is one line of text of at most a thousand characters, escaped; otherwise nothing is done."""
    client = world.client(actor="olga")
    run = started(client, "paid")
    refused = client.post(f"{RUNS}/{run}/pause", {}, headers=[(b"standfast-reason", reason.encode("latin-1"))])
    assert (refused.status_code, problem(refused)["code"]) == (400, "bad_header")
    assert len(all_of(client, f"{RUNS}/{run}/audit")) == 1


def test_the_audit_is_for_auditors_of_the_tenant(world: World) -> None:
    """It takes `audit:read`, and shows nothing of another tenant."""
    run = started(world.client(actor="olga"), "paid")
    auditor = world.client(actor="audra", capabilities=["audit:read"])
    assert [each["action"] for each in all_of(auditor, f"{AUDIT}/instances/{run}")] == ["start"]
    assert all_of(auditor, f"{AUDIT}/changes", actor="nobody") == []
    assert auditor.get(f"{RUNS}/{run}/audit").status_code == 403
    reader = world.client(actor="rea", capabilities=["execution:read"])
    assert [reader.get(f"{AUDIT}/{each}").status_code for each in ("changes", f"instances/{run}")] == [403, 403]
    rival = world.client(tenant=RIVAL)
    assert rival.get(f"{AUDIT}/instances/{run}").status_code == 404
    assert "olga" not in rival.get(f"{AUDIT}/changes").text
    assert problem(auditor.get(f"{AUDIT}/changes?name=ann"))["detail"].startswith("`name` needs a `subject`")


def test_only_refusals_because_of_who_asks_are_kept(world: World) -> None:
    """What is wrong with a request itself is answered, and is no refusal for auditors."""
    client = world.client(actor="audra", capabilities=["audit:read"])
    before = all_of(client, f"{AUDIT}/refusals")
    for wrong in (
        client.get(f"{AUDIT}/refusals?limit=nothing"),
        client.get(f"{AUDIT}/refusals?unknown=1"),
        client.get(f"{AUDIT}/refusals", headers={"standfast-reason": "two%0Alines"}),
        client.get(f"{AUDIT}/instances/nothing"),
    ):
        assert 400 <= wrong.status_code < 500
    assert all_of(client, f"{AUDIT}/refusals") == before
    assert client.get("/api/v1/keys").status_code == 403
    (kept, *earlier) = all_of(client, f"{AUDIT}/refusals")
    assert earlier == before
    assert (kept["actor"], kept["path"], kept["code"]) == ("audra", "/api/v1/keys", "not_permitted")
