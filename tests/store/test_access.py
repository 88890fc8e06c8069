"""API keys and refusals in the database: found by id, listed by tenant, revoked once, forgotten when they are old."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from standfast.store.ports.access import StoredKey, StoredRefusal
from support.desks import Desk
from support.rows import NOW

HOUR = timedelta(hours=1)


def key(identity: str, *, tenant: str = "acme") -> StoredKey:
    """A key as it is stored."""
    return StoredKey(
        id=identity, tenant=tenant, partition="north", name="n", actor="ann", kind="service", roles='["a"]', capabilities="[]",
        hash=b"h" * 32, created_by="root", created_at=NOW, expires_at=NOW + HOUR, last_used_at=None, revoked_at=None, revoked_by="",
    )  # fmt: skip


def refusal(path: str, *, tenant: str = "acme", hours: int = 0) -> StoredRefusal:
    """A refusal as it is stored."""
    return StoredRefusal(
        id=0, tenant=tenant, actor="ann", credential="key:1", method="GET", path=path, code="not_permitted", detail="d", trace="t",
        at=NOW + hours * HOUR,
    )  # fmt: skip


def test_a_key_comes_back_as_it_was(desk: Desk) -> None:
    """What was stored is found by its id, whosever it is, and in the pages of its tenant alone."""
    for each in (key("k1"), key("k2"), key("k3", tenant="rival")):
        desk.access.add_key(each)
    assert desk.access.key("k1") == key("k1")
    assert desk.access.key("k9") is None
    assert [each.id for each in desk.access.keys("acme", after="", limit=9)] == ["k1", "k2"]
    assert [each.id for each in desk.access.keys("acme", after="k1", limit=1)] == ["k2"]


def test_a_key_is_revoked_once_and_by_its_own_tenant(desk: Desk) -> None:
    """Another tenant ends nothing; who came first is who revoked it."""
    desk.access.add_key(key("k1"))
    assert not desk.access.revoke("rival", "k1", by="eve", at=NOW)
    assert desk.access.revoke("acme", "k1", by="root", at=NOW)
    assert not desk.access.revoke("acme", "k1", by="late", at=NOW + HOUR)
    found = desk.access.key("k1")
    assert found is not None
    assert (found.revoked_by, found.revoked_at) == ("root", NOW)


def test_somebody_could_come_in_while_a_key_holds(desk: Desk) -> None:
    """Of whichever tenant; one that was revoked, or has expired, opens nothing."""
    assert not desk.access.has_key(at=NOW)
    desk.access.add_key(key("k1"))
    assert desk.access.has_key(at=NOW)
    assert not desk.access.has_key(at=NOW + HOUR)
    desk.access.revoke("acme", "k1", by="root", at=NOW)
    assert not desk.access.has_key(at=NOW)


def test_use_is_noted_now_and_then(desk: Desk) -> None:
    """A use is written down unless one was a moment ago."""
    desk.access.add_key(key("k1"))
    for hours, since, expected in ((0, -1, 0), (1, -1, 0), (2, 1, 2)):
        desk.access.note_use("k1", at=NOW + hours * HOUR, unless_since=NOW + since * HOUR)
        found = desk.access.key("k1")
        assert found is not None
        assert found.last_used_at == NOW + expected * HOUR


def test_refusals_are_kept_for_a_while(desk: Desk) -> None:
    """A tenant reads its own, newest first, page by page; the next one lets the old ones of its tenant go, and no others."""
    for path, tenant, hours in (("/a", "acme", 0), ("/r", "rival", 0), ("/b", "acme", 1), ("/c", "acme", 2)):
        desk.access.note_refusal(refusal(path, tenant=tenant, hours=hours), keep_since=NOW - HOUR)
    page = desk.access.refusals("acme", before=2**63 - 1, limit=2)
    assert [each.path for each in page] == ["/c", "/b"]
    assert page[0] == msgspec.structs.replace(refusal("/c", hours=2), id=page[0].id)
    assert [each.path for each in desk.access.refusals("acme", before=page[-1].id, limit=9)] == ["/a"]
    desk.access.note_refusal(refusal("/d", hours=3), keep_since=NOW + 2 * HOUR)
    assert [each.path for each in desk.access.refusals("acme", before=2**63 - 1, limit=9)] == ["/d", "/c"]
    assert [each.path for each in desk.access.refusals("rival", before=2**63 - 1, limit=9)] == ["/r"]
