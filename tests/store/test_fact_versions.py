"""What decisions are based on has a version: every change counts it up, and a commit that names an older one is not written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from standfast.kernel.people import Absence, Delegation, Grant, Principal
from standfast.store.ports.access import StoredKey, StoredSession
from standfast.store.ports.facts import Gate
from standfast.store.ports.store import StaleFactError
from standfast.store.ports.versioned_settings import Edition
from standfast.store.records.instances import Address
from support.desks import Desk
from support.rows import NOW, born

pytestmark = pytest.mark.row("E-572")
HOUR = timedelta(hours=1)

KEY = StoredKey(
    id="k1", tenant="acme", partition="", name="n", actor="ann", kind="user", roles="[]", capabilities="[]", hash=b"h" * 32,
    created_by="root", created_at=NOW, expires_at=None, last_used_at=None, revoked_at=None, revoked_by="",
)  # fmt: skip
SESSION = StoredSession(
    id="s1", tenant="acme", partition="", actor="ann", kind="user", roles="[]", capabilities="[]", hash=b"h" * 32, credential="key:k1",
    created_at=NOW, expires_at=NOW + HOUR, last_used_at=NOW, ended_at=None,
)  # fmt: skip


def versions(desk: Desk, tenant: str = "acme") -> tuple[int, int]:
    """The versions of a tenant."""
    with desk.writer.looking() as look:
        return look.versions(tenant)


def _person(desk: Desk) -> None:
    with desk.people.changing("acme") as unit:
        unit.put(Principal(id="ann"))


def _grant(desk: Desk) -> None:
    with desk.people.changing("acme") as unit:
        unit.grant(Grant(principal="ann", role="boss", begins_at=NOW))


def _end_grant(desk: Desk) -> None:
    with desk.people.changing("acme") as unit:
        unit.end("grant", 1, NOW)


def _delegate(desk: Desk) -> None:
    with desk.people.changing("acme") as unit:
        unit.delegate(Delegation(giver="ann", receiver="bob", begins_at=NOW))


def _end_delegation(desk: Desk) -> None:
    with desk.people.changing("acme") as unit:
        unit.end("delegation", 1, NOW)


def _absent(desk: Desk) -> None:
    with desk.people.changing("acme") as unit:
        unit.absent(Absence(principal="ann", begins_at=NOW))


def _end_absence(desk: Desk) -> None:
    with desk.people.changing("acme") as unit:
        unit.end("absence", 1, NOW)


def _revoke(desk: Desk) -> None:
    desk.access.revoke("acme", "k1", by="root", at=NOW)


def _end_session(desk: Desk) -> None:
    desk.access.end_session("acme", "s1", at=NOW)


def _past_the_store(statement: str) -> Callable[[Desk], None]:
    return lambda desk: desk.run(statement)


CHANGES = {
    "a person is put": _person,
    "a person is deactivated past the store": _past_the_store(
        "update {}principals set is_active = is_active where id = 'ann'"
    ),
    "a person is deleted past the store": _past_the_store("delete from {}principals where id = 'bob'"),
    "a role is granted": _grant,
    "a grant ends": _end_grant,
    "a delegation begins": _delegate,
    "a delegation ends": _end_delegation,
    "an absence begins": _absent,
    "an absence ends": _end_absence,
    "a key is revoked": _revoke,
    "a key gets other rights past the store": _past_the_store(
        """update {}api_keys set capabilities = '["a"]' where id = 'k1'"""
    ),
    "a session ends": _end_session,
}


@pytest.mark.parametrize("what", CHANGES)
def test_every_change_of_access_counts(desk: Desk, what: str) -> None:
    """Whoever changes a person, a grant, a delegation, an absence, a key or a session makes a new version for that tenant alone."""
    _person(desk)
    with desk.people.changing("acme") as unit:
        unit.put(Principal(id="bob"))
    for made in (_grant, _delegate, _absent):
        if CHANGES[what] is not made:
            made(desk)
    desk.access.add_key(KEY)
    desk.access.add_session(SESSION, keep_since=NOW - HOUR, most=9, kept=9)
    access, charters = versions(desk)
    CHANGES[what](desk)
    assert versions(desk) == (access + 1, charters)
    assert versions(desk, "rival") == (0, 0)


def test_use_of_a_credential_is_no_change(desk: Desk) -> None:
    """New keys and sessions, and that they are used, leave the version as it is."""
    desk.access.add_key(KEY)
    desk.access.add_session(SESSION, keep_since=NOW - HOUR, most=9, kept=9)
    desk.access.note_use("k1", at=NOW, unless_since=NOW)
    desk.access.note_session("s1", at=NOW + HOUR, unless_since=NOW + HOUR)
    assert versions(desk) == (0, 0)


def test_a_new_charter_counts(desk: Desk) -> None:
    """What an organisation publishes has a version of its own."""
    desk.charters.publish(
        Edition(
            tenant="acme", name="settings", version=0, content=b"{}", note="", published_by="root", published_at=NOW
        )
    )
    assert versions(desk) == (0, 1)


@pytest.mark.parametrize("way", ["quick", "careful"])
def test_a_commit_stands_if_its_facts_do(desk: Desk, way: str) -> None:
    """With a gate that holds everything is written; with one that does not hold, nothing is."""
    _person(desk)
    other = desk.born(born(key="C1"))
    place = Gate("instance", other.tenant, other.version, "", other.definition, "C1")
    good = [Gate("access", "acme", 1), Gate("charters", "acme", 0), Gate("access", "rival", 0), place]
    stale = [
        Gate("access", "acme", 0),
        Gate("charters", "acme", 1),
        place._replace(version=other.version + 1),
        place._replace(key="C2"),
    ]

    def write(gates: list[Gate], key: str) -> bool:
        change = born(key=key)
        if way == "quick":
            desk.writer.write([change], gates=gates, now=NOW)
        else:
            with desk.writer.unit() as unit:
                unit.write([change], NOW, gates=gates)
        (found,) = desk.writer.load([Address(tenant=other.tenant, definition=other.definition, key=key)])
        return found is not None

    assert write(good, "I0")
    for number, each in enumerate(stale, 1):
        with pytest.raises(StaleFactError):
            write([*good, each], f"I{number}")
        address = Address(tenant=other.tenant, definition=other.definition, key=f"I{number}")
        assert desk.writer.load([address]) == [None]


class _BackError(Exception):
    pass


def _write_and_go_back(desk: Desk, gate: Gate) -> None:
    """Write an instance, and another one that is based on it; then undo both."""
    with desk.writer.unit() as unit:
        unit.write([born(key="C1")], NOW)
        unit.write([born(key="C2")], NOW, gates=[gate])
        raise _BackError


def test_a_unit_checks_facts_in_its_own_transaction(desk: Desk) -> None:
    """What a transaction has written itself counts for its gates, and for nobody else's once it is undone."""
    gate = Gate("instance", "default", 1, "", "order", "C1")
    with pytest.raises(_BackError):
        _write_and_go_back(desk, gate)
    with pytest.raises(StaleFactError):
        desk.writer.write([born(key="C3")], gates=[gate], now=NOW)
