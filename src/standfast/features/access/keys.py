"""Calls of API keys: what programs come with, by whom they were made, what they may."""

from __future__ import annotations

import builtins
import hmac
import json
import secrets
from collections.abc import Collection
from datetime import UTC, datetime
from hashlib import sha256
from typing import Literal

from standfast.calls.context import (
    CallContext,
    checked_bare,
    checked_instant,
    checked_key,
    checked_limit,
    checked_person,
    checked_text,
    told_at,
)
from standfast.engine.concurrency.replies import Reply
from standfast.errors import ForbiddenError, NotFoundError, PayloadError
from standfast.features.access.views import ApiKey, NewApiKey, api_key
from standfast.kernel.actor import Actor
from standfast.kernel.decision import NOT_ALLOWED
from standfast.people.directory import Look
from standfast.store.ports.access import AccessPort, StoredKey, StoredSession

MANAGE_KEYS = "keys:manage"
"""The capability of whoever makes and revokes keys."""
MAKE_AS_OTHERS = "keys:as-others"
"""The capability of whoever makes keys that act as somebody else of the directory, or under another name by a role of people or what their own roles may."""
_PREFIX = "sf"
_NOBODY = sha256(b"nobody").digest()
"""What the secret of a key that does not exist is compared with, so that it takes as long."""
_MOST = 1000
_PARTS = 3
_SECRET_BYTES = 32


class FutureKeys:
    """API keys of the tenant. All of it takes the capability `keys:manage`, and nobody gives a key rights that they lack themselves.

    A key as somebody else whom the directory knows takes `keys:as-others` besides: their roles, and what they are asked, go with their name. So
    does a key under any other name with a role that the directory grants to people, or with a capability that the maker has by a role and not by
    their credential: with it one person would decide under two names.
    """

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def create(
        self,
        name: str,
        *,
        actor: str,
        kind: Literal["user", "service"] = "service",
        roles: Collection[str] = (),
        capabilities: Collection[str] = (),
        partition: str = "",
        expires_at: datetime | None = None,
        reason: str = "",
    ) -> Reply[NewApiKey]:
        """Make a key for whoever acts as `actor`, with these roles and capabilities and no others.

        Its secret is in the answer and nowhere else: only a hash of it is kept. `partition` binds it to a part of the tenant;
        whoever makes it and is bound to one, binds it to the same.
        """
        service = self._desk.service
        now = service.shared.clock.now()

        def write() -> NewApiKey:
            maker = _manager(self._desk.with_roles())
            bearer = _checked_bearer(actor)
            lent = _granted(maker, roles, "role"), _granted(maker, capabilities, "capability")
            self._check_bearer(maker, bearer, *lent)

            def check(acting: CallContext) -> None:
                _granted(_manager(acting), roles, "role")
                _granted(acting.request.actor, capabilities, "capability")

            where = self._partition(checked_key(partition, "partition", may_be_empty=True))
            # Not from the engine's own source of chance, whose numbers can be foretold.
            identity, secret = service.shared.chance.new_id(now).hex, secrets.token_urlsafe(_SECRET_BYTES)
            stored = StoredKey(
                id=identity,
                tenant=self._desk.tenant,
                partition=where,
                name=checked_text(name, "name of the key"),
                actor=bearer,
                kind=_checked_kind(kind),
                roles=json.dumps(lent[0]),
                capabilities=json.dumps(lent[1]),
                hash=sha256(secret.encode()).digest(),
                created_by=maker.id,
                created_at=now,
                expires_at=_checked_end(expires_at, now),
                last_used_at=None,
                revoked_at=None,
                revoked_by="",
            )
            shown = api_key(stored)
            given: dict[str, object] = {
                "name": stored.name,
                "actor": bearer,
                "kind": stored.kind,
                "roles": list(shown.roles),
                "capabilities": list(shown.capabilities),
                "partition": where,
                "expires_at": told_at(stored.expires_at),
            }
            change = self._desk.changed("key", identity, "create", after=given, reason=reason)
            self._desk.record(change, lambda parts: parts.access().add_key(stored), check=check)
            return NewApiKey(key=api_key(stored), secret=f"{_PREFIX}_{identity}_{secret}")

        return self._desk.consult(write)

    def list(self, *, after: str | ApiKey = "", limit: int = 100) -> Reply[builtins.list[ApiKey]]:
        """All keys of the tenant, revoked ones included, oldest first; give the last one as `after` for the next page."""

        def read() -> list[ApiKey]:
            _manager(self._desk.looked_up())
            last = after.id if isinstance(after, ApiKey) else checked_key(after, "`after`", may_be_empty=True)
            most, tenant = min(checked_limit(limit), _MOST), self._desk.tenant
            return self._desk.service.survey(lambda parts: self._seen(parts.access(), tenant, last, most))

        return self._desk.read(read)

    def get(self, key: str | ApiKey) -> Reply[ApiKey]:
        """One key."""

        def read() -> ApiKey:
            _manager(self._desk.looked_up())
            return api_key(self._known(_id_of(key)))

        return self._desk.read(read)

    def revoke(self, key: str | ApiKey, *, reason: str = "") -> Reply[ApiKey]:
        """End a key, at once and for good; one that was revoked stays as it is."""
        service = self._desk.service
        now = service.shared.clock.now()

        def write() -> ApiKey:
            maker = _manager(self._desk.looked_up())
            known = self._known(_id_of(key))
            identity, tenant = known.id, self._desk.tenant
            if known.revoked_at is not None:
                return api_key(known)
            before, after = {"revoked_at": None}, {"revoked_at": told_at(now)}
            change = self._desk.changed("key", identity, "revoke", before=before, after=after, reason=reason)
            self._desk.record(
                change,
                lambda parts: parts.access().revoke(tenant, identity, by=maker.id, at=now),
                may_repeat=True,
                check=_check_manager,
            )
            return api_key(self._known(identity))

        return self._desk.act(write)

    # -- how

    def _check_bearer(self, maker: Actor, bearer: str, roles: Collection[str], capabilities: Collection[str]) -> None:
        """Refuse a key under another name than the maker's that decides as people do: as one of them, by a role of theirs, or by what such a role may."""
        desk, now = self._desk, self._desk.service.shared.clock.now()
        if bearer == maker.id or maker.may(MAKE_AS_OTHERS) or desk.directory.is_known_empty(desk.tenant, now):
            return
        with desk.directory.looking(desk.tenant) as rows:
            look = Look(rows, now)
            is_known = look.person(bearer) is not None
            of_people = [each for each in roles if look.has_people(each)]
        own = desk.asked.brought or desk.asked.actor
        by_roles = [each for each in capabilities if not own.may(each)]
        if is_known or of_people or by_roles:
            why = f"with {', '.join(map(repr, by_roles))}, which roles give to {maker.id!r}"
            if of_people:
                why = f"with {', '.join(map(repr, of_people))}, which the directory grants to people"
            if is_known:
                why = "whom the directory knows"
            told = f"{maker.id!r} may not make a key as {bearer!r}, {why}"
            raise ForbiddenError(reason=NOT_ALLOWED, message=f"{told}: that takes the capability {MAKE_AS_OTHERS!r}")

    def _partition(self, wanted: str) -> str:
        own = self._desk.request.partition
        if own and wanted not in {"", own}:
            told = f"whoever is bound to the partition {own!r} makes keys for that one alone"
            raise ForbiddenError(reason=NOT_ALLOWED, message=told)
        return own or wanted

    def _seen(self, access: AccessPort, tenant: str, after: str, most: int) -> builtins.list[ApiKey]:
        """A page of the keys that the caller may see, which need not lie beside one another."""
        found: list[ApiKey] = []
        while True:
            page = access.keys(tenant, after=after, limit=most)
            found += [api_key(each) for each in page if self._may_see(each)]
            if len(page) < most or len(found) >= most:
                return found[:most]
            after = page[-1].id

    def _may_see(self, stored: StoredKey) -> bool:
        return stored.tenant == self._desk.tenant and self._desk.request.partition in {"", stored.partition}

    def _known(self, identity: str) -> StoredKey:
        found = self._desk.service.survey(lambda parts: parts.access().key(identity))
        if found is None or not self._may_see(found):
            raise NotFoundError("API key", identity, hint="`engine.keys.list` names those that there are")
        return found


def _checked_bearer(given: object) -> str:
    """As whom a key acts: a name that nobody reads as another one's, or as that of a role."""
    name = checked_person(checked_bare(given, "actor"))
    if name != name.strip():
        raise PayloadError(f"the actor is {name!r}, with a space at its beginning or end; leave it out")
    return name


def _manager(desk: CallContext) -> Actor:
    actor = desk.request.actor
    if not actor.may(MANAGE_KEYS):
        told = f"{actor.id!r} may not look after keys: that takes the capability {MANAGE_KEYS!r}"
        raise ForbiddenError(reason=NOT_ALLOWED, message=told)
    return actor


def _check_manager(desk: CallContext) -> None:
    _manager(desk)


def secret_parts(given: str, prefix: str = _PREFIX) -> tuple[str, bytes] | None:
    """The id in a key that somebody came with, and the hash of its secret; None if it is no key at all."""
    parts = given.split("_", _PARTS - 1)
    if len(parts) != _PARTS or parts[0] != prefix or not given.isascii():
        return None
    return parts[1], sha256(parts[2].encode()).digest()


def opens(stored: StoredKey | StoredSession | None, offered: bytes) -> bool:
    """Whether a secret is that of a key or a session; it takes as long for one that does not exist."""
    return hmac.compare_digest(_NOBODY if stored is None else stored.hash, offered) and stored is not None


def _id_of(key: object) -> str:
    return key.id if isinstance(key, ApiKey) else checked_key(key, "id of a key")


def _granted(maker: Actor, given: Collection[str], what: str) -> list[str]:
    if isinstance(given, str):
        raise PayloadError(f"give the {what} {given!r} in a list")
    names = sorted({checked_key(each, what) for each in given})
    for name in names:
        has = maker.may(name) if what == "capability" else maker.is_one_of(frozenset({name})) or maker.may("*")
        if not has:
            told = f"{maker.id!r} lacks the {what} {name!r} and cannot give it to a key"
            raise ForbiddenError(reason=NOT_ALLOWED, message=told)
    return names


def _checked_kind(given: object) -> Literal["user", "service"]:
    if given == "user" or given == "service":  # noqa: PLR1714 - so that the type is known
        return given
    raise PayloadError(f"the kind is `user` or `service`, not {given!r}")


def _checked_end(given: object, now: datetime) -> datetime | None:
    at = checked_instant(given, "expires_at")
    if at is not None and at <= now:
        raise PayloadError(f"a key expires in the future, and {at.isoformat()} is past")
    return None if at is None else at.astimezone(UTC)
