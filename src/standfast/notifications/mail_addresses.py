"""Mail addresses of people, from the directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeAlias

from standfast.kernel.people import Principal
from standfast.notifications.notification import Addresses, own_address
from standfast.people.directory import Directory, Look
from standfast.store.ports.notifications import Recipient

People: TypeAlias = Callable[[str, Recipient], list[Principal]]
"""The known users of a tenant that a recipient stands for."""

Roles: TypeAlias = Callable[[str, Recipient], frozenset[str]]
"""The roles of a recipient in a tenant."""


def addresses_in(directory: Directory, clock: Callable[[], datetime]) -> Addresses:
    """Look up addresses in a directory at the time of sending: a role stands for its current holders.

    A deactivated user gets no mail. An unknown user is reached if their name is an address.
    """

    def look_up(tenant: str, of: Recipient) -> Sequence[str]:
        now = clock()
        if directory.is_known_empty(tenant, now):
            return own_address(tenant, of)
        with directory.looking(tenant) as rows:
            named = Look(rows, now).holders(of.name) if of.kind == "role" else [of.name]
            known = rows.principals(named)
            if not known and rows.is_empty():
                directory.note_empty(tenant, now)
        if of.kind == "user" and not known:
            return own_address(tenant, of)
        return [found for each in known if each.is_active and (found := _address(each.email, each.id))]

    return look_up


def principals_in(directory: Directory, clock: Callable[[], datetime]) -> People:
    """Look up users in a directory: a user, or the holders of a role."""

    def look_up(tenant: str, of: Recipient) -> list[Principal]:
        now = clock()
        if directory.is_known_empty(tenant, now):
            return []
        with directory.looking(tenant) as rows:
            return rows.principals(Look(rows, now).holders(of.name) if of.kind == "role" else [of.name])

    return look_up


def roles_in(directory: Directory, clock: Callable[[], datetime]) -> Roles:
    """Look up the roles of a recipient in a directory. A deactivated or unknown user has none."""

    def look_up(tenant: str, of: Recipient) -> frozenset[str]:
        now = clock()
        if of.kind == "role":
            return frozenset({of.name})
        if directory.is_known_empty(tenant, now):
            return frozenset()
        with directory.looking(tenant) as rows:
            look = Look(rows, now)
            person = look.person(of.name)
            return look.roles([of.name])[of.name] if person is not None and person.is_active else frozenset()

    return look_up


def address_of(person: Principal) -> str:
    """Return the address of a user; empty if none is known."""
    return _address(person.email, person.id)


def _address(email: str, name: str) -> str:
    return email or (name if "@" in name else "")
