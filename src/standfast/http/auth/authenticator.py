"""Authentication: the credential of a request determines tenant, partition, actor and rights.

No other part of a request can.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final
from urllib.parse import unquote

import msgspec
from starlette.datastructures import Headers
from starlette.requests import Request

from standfast.app.engine import Engine
from standfast.calls.catalog.rate_limits import Rate
from standfast.errors import NotFoundError, PayloadError
from standfast.features.access.views import ApiKey, Session
from standfast.http.auth import cookies
from standfast.http.auth.rate_limits import check_rate, network_of
from standfast.http.auth.tokens import Claims, InvalidTokenError, Tokens
from standfast.http.wire.options import HttpOptions
from standfast.http.wire.problems import EdgeCode, EdgeError
from standfast.kernel.actor import Actor, RequestContext
from standfast.kernel.durations import later

_log = logging.getLogger("standfast.http.access")
_MOST_REMEMBERED: Final = 10_000
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost", "[::1]"})
_KEY: Final = "sf_"
_SESSION: Final = "sfs_"
_LONGEST: Final = 9000
_ESCAPED: Final = re.compile(r"(?:[!-$&-~ ]|%[0-9A-Fa-f]{2})+")
_LONGEST_PARTITION: Final = 512


PARTITION: Final = "standfast-partition"
"""The header by which a client of a whole tenant selects one partition."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The authenticated caller."""

    tenant: str
    partition: str
    actor: Actor
    credential: str
    """The credential, for audits and limits: `key:<id>`, `jwt:<issuer>:<subject>`, `session:<id>`, `dev`."""

    csrf: str = ""
    """The CSRF token that a page of a session must send with a change."""

    opened_with: str = ""
    """The credential that opened the session; empty for other callers."""

    brought: Actor | None = None
    """The actor without the rights from the directory; None if the directory was not used."""

    expires_at: datetime | None = None
    """When the token or the session ends; None for keys, which the engine looks up."""

    def context(self, trace: str, needs: str = "", *, reason: str = "") -> RequestContext:
        """Return the request context of the engine. `needs` is the required permission, which the commit checks too."""
        kind, _, session = self.credential.partition(":")
        return RequestContext(
            tenant=self.tenant,
            partition=self.partition,
            actor=self.actor,
            brought=self.brought,
            trace=trace,
            reason=reason,
            session=session if kind == "session" else "",
            expires_at=self.expires_at,
            needs=frozenset({needs} - {""}),
            role_capabilities=self.role_capabilities,
        )

    role_capabilities: dict[str, frozenset[str]] = {}
    """The capabilities of directory roles; empty where the directory is not used."""

    @property
    def account(self) -> str:
        """Return the account that limits count: all sessions opened with one key share the limits of the key."""
        return self.opened_with or self.credential

    def narrowed(self, headers: Headers) -> Identity:
        """Return the same identity in the partition that a request names.

        An identity bound to a partition cannot leave it.
        """
        said = headers.getlist(PARTITION)
        if not said:
            return self
        partition = _unescaped(said[0]) if len(said) == 1 else ""
        if not partition or not partition.isprintable() or len(partition.encode()) > _LONGEST_PARTITION:
            raise EdgeError(
                EdgeCode.BAD_HEADER, "Standfast-Partition is the name of a partition, escaped as in an address"
            )
        if self.partition not in {"", partition}:
            told = f"the credential is bound to {self.partition!r}, and to no other part of the tenant"
            raise EdgeError(EdgeCode.OTHER_PARTITION, told)
        return msgspec.structs.replace(self, partition=partition)

    def may(self, permission: str) -> bool:
        """Return whether the caller has a permission; every caller has the empty one."""
        return self.actor.may(permission)

    def check(self, permission: str) -> None:
        """EdgeError unless they have a permission."""
        if not self.may(permission):
            raise EdgeError(EdgeCode.FORBIDDEN, f"{self.actor.id!r} lacks the permission {permission!r}")


class CrossSiteError(EdgeError):
    """A request with the cookie of a session that none of its pages has made."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(EdgeCode.CROSS_SITE, "the cookie of a session came from somewhere else than its pages")
        self.identity = identity
        """The identity of the session."""


class Authenticator:
    """Authenticates callers. All failures get the same response."""

    def __init__(self, engine: Engine, options: HttpOptions, *, insecure_dev: bool) -> None:
        self._engine = engine
        self._options = options
        self._tokens = Tokens(options.issuers)
        self._failures = Rate(options.failures_per_second, options.failures_burst)
        self._memory: OrderedDict[bytes, tuple[Identity, float]] = OrderedDict()
        self._held: OrderedDict[bytes, None] = OrderedDict()
        """Credentials that were valid before: failed attempts from the same address do not lock them out."""
        self._queue = asyncio.Lock()
        """Serialises lookups from addresses with too many failures.

        A valid key is never refused because of its neighbours, and their attempts are looked up one at a time.
        """
        self._anybody = self._developer() if insecure_dev else None

    async def identify(self, request: Request) -> Identity:
        """Authenticate a request; EdgeError if it has no valid credential."""
        shown = request.headers.getlist("authorization")
        if not shown:
            guest = await self._guest(request)
            if guest is not None:
                return guest
        scheme, _, secret = (shown[0] if len(shown) == 1 else "").partition(" ")
        if scheme.lower() != "bearer" or not secret or len(secret) > _LONGEST or secret.startswith(_SESSION):
            raise self._refused(request, "no credential" if not shown else "not one bearer credential")
        try:
            return await self.admit(secret, _address(request))
        except InvalidTokenError as error:
            raise self._refused(request, str(error)) from None

    async def admit(self, secret: str, address: str) -> Identity:
        """Authenticate an address and a key, token or session; InvalidTokenError if none is valid."""
        mark = sha256(secret.encode("utf-8", "surrogateescape")).digest()
        remembered = self._memory.get(mark)
        if remembered is not None and time.monotonic() < remembered[1]:
            return remembered[0]
        network = "" if mark in self._held else network_of(address)
        try:
            async with self._queue if network and self._failures.wait(network) else nullcontext():
                identity = await self._looked_up(secret)
        except InvalidTokenError:
            self._held.pop(mark, None)  # From now on it counts like any other.
            self.blame(network)
            raise
        self._remember(mark, identity)
        return identity

    @contextmanager
    def patience(self, address: str) -> Iterator[None]:
        """Refuse an address with too many failed attempts; a failure in the block counts too."""
        # An address is empty for a Unix socket, which all clients would share.
        network = network_of(address)
        check_rate(self._failures.wait(network) if network else 0.0, "this address")
        try:
            yield
        except InvalidTokenError:
            if network:
                self._failures.take(network)
            raise

    def blame(self, address: str, what: str = "") -> None:
        """Count a failed attempt against its address; EdgeError if there were too many. Each kind has its own limit."""
        network = network_of(address)
        if network:
            check_rate(self._failures.take(f"{what}{network}"), "this address")

    async def admit_key(self, secret: str, address: str) -> Identity:
        """Authenticate a caller who may use a key only."""
        return await self.admit(secret if secret.startswith(_KEY) and len(secret) <= _LONGEST else "", address)

    async def vouched(self, claims: Claims) -> Identity:
        """Return the identity of a valid token's claims, with the roles that the directory has for them now."""
        identity = self.claimed(claims)
        return self._with(identity, await self._directory_roles(identity))

    def claimed(self, claims: Claims) -> Identity:
        """Return the identity of the claims alone; the directory is consulted at each request."""
        try:
            actor = Actor(
                id=claims.subject,
                roles=claims.roles,
                capabilities=claims.capabilities | self._standing(claims.roles) | self._options.everyone,
            )
            context = RequestContext(tenant=claims.tenant, partition=claims.partition, actor=actor)
            self._engine.acting(context)  # Whether the engine takes these names.
        except PayloadError as error:
            raise InvalidTokenError(str(error)) from error
        return Identity(
            tenant=claims.tenant,
            partition=claims.partition,
            actor=actor,
            credential=f"jwt:{claims.issuer}:{claims.subject}",
            expires_at=self._end_of(claims),
            role_capabilities=self._counting,
        )

    def _end_of(self, claims: Claims) -> datetime:
        """When a token ends by the clock of the engine, which judges it again in every commit."""
        left = timedelta(seconds=max(0.0, claims.ends_at - time.time()))
        return later(self._engine.service.shared.clock.now(), left)

    @property
    def is_open(self) -> bool:
        """Return whether every client on this machine is accepted."""
        return self._anybody is not None

    def forget(self) -> None:
        """Drop all cached identities, because a key was revoked."""
        self._memory.clear()

    def _remember(self, mark: bytes, identity: Identity) -> None:
        self._held[mark] = None
        self._held.move_to_end(mark)
        if len(self._held) > _MOST_REMEMBERED:
            self._held.popitem(last=False)
        seconds = self._options.credential_memory.total_seconds()
        if seconds > 0 and not identity.credential.startswith("jwt:"):  # A token carries its own expiry.
            self._memory[mark] = (identity, time.monotonic() + seconds)
            if len(self._memory) > _MOST_REMEMBERED:
                self._memory.popitem(last=False)

    # -- keys, tokens and sessions

    async def _looked_up(self, secret: str) -> Identity:
        if secret.startswith(_SESSION):
            return await self._by_session(secret)
        return await (self._by_key(secret) if secret.startswith(_KEY) else self._by_token(secret))

    async def _guest(self, request: Request) -> Identity | None:
        """Return the identity of a request without an Authorization header: of its session cookie, or in development mode; None otherwise."""
        is_secure = self._options.is_secure(f"{request.scope.get('scheme')}://")
        secret = cookies.shown(request.headers, cookies.SESSION, is_secure=is_secure)
        if secret.startswith(_SESSION) and len(secret) <= _LONGEST:
            try:
                identity = await self.admit(secret, _address(request))
            except InvalidTokenError as error:
                if self._anybody is None:
                    raise self._refused(request, str(error)) from None
            else:
                if not cookies.is_own_page(request.headers, request.method, secret):
                    raise CrossSiteError(identity)
                return identity
        return None if self._anybody is None else self._anybody_here(request)

    async def _by_session(self, secret: str) -> Identity:
        try:
            session = await self._engine.aio.admin.identify_session(secret, idle=self._options.session_idle)
        except PayloadError:
            session = None
        if session is None:
            raise InvalidTokenError("the session does not hold")
        identity = self._session_bearer(session, cookies.csrf_token(secret))
        if session.credential.startswith("jwt:"):
            return self._with(identity, await self._directory_roles(identity))
        return identity

    def _session_bearer(self, session: Session, csrf: str) -> Identity:
        return Identity(
            tenant=session.tenant,
            partition=session.partition,
            actor=session.bearer,
            credential=f"session:{session.id}",
            csrf=csrf,
            opened_with=session.credential,
            expires_at=session.expires_at,
            role_capabilities=self._counting if session.credential.startswith("jwt:") else {},
        )

    async def _by_key(self, secret: str) -> Identity:
        try:
            key = await self._engine.aio.admin.identify(secret)
        except PayloadError:
            key = None
        if key is None:
            raise InvalidTokenError("the key does not hold")
        return self._key_bearer(key)

    def _key_bearer(self, key: ApiKey) -> Identity:
        bearer = key.bearer
        return Identity(
            tenant=key.tenant,
            partition=key.partition,
            actor=msgspec.structs.replace(bearer, capabilities=bearer.capabilities | self._standing(bearer.roles)),
            credential=f"key:{key.id}",
        )

    async def _by_token(self, token: str) -> Identity:
        return await self.vouched(await self._tokens.check(token))

    @property
    def _counting(self) -> dict[str, frozenset[str]]:
        """Return the capabilities of directory roles; empty if the directory is not used."""
        return dict(self._options.roles) if self._options.uses_directory else {}

    def _standing(self, roles: frozenset[str]) -> frozenset[str]:
        """The capabilities that roles stand for."""
        return frozenset().union(*(self._options.roles.get(role, frozenset()) for role in roles))

    def _with(self, identity: Identity, roles: frozenset[str]) -> Identity:
        """Return an identity with more roles and their capabilities."""
        if not roles:
            return identity
        actor = identity.actor
        more = msgspec.structs.replace(
            actor, roles=actor.roles | roles, capabilities=actor.capabilities | self._standing(roles)
        )
        return msgspec.structs.replace(identity, actor=more, brought=actor)

    async def _directory_roles(self, identity: Identity) -> frozenset[str]:
        """Return a caller's roles in the directory, if it is used; InvalidTokenError for a deactivated user."""
        if not self._options.uses_directory:
            return frozenset()
        directory, subject = self._engine.aio.as_tenant(identity.tenant).directory, identity.actor.id
        try:
            person = await directory.get(subject)
        except NotFoundError:
            return frozenset()
        if not person.is_active:
            raise InvalidTokenError("the directory has deactivated its bearer")
        return frozenset(await directory.roles_of(subject))

    # -- without any

    def _developer(self) -> Identity:
        tenant = self._engine.futures.request.tenant
        _log.warning("authentication_off mode=development access=local")
        actor = Actor(id="developer", capabilities=frozenset({"*"}))
        return Identity(tenant=tenant, partition="", actor=actor, credential="dev")

    def _anybody_here(self, request: Request) -> Identity:
        """Return the development identity for a client on this machine, except for pages of other sites in a local browser."""
        assert self._anybody is not None
        host = request.headers.get("host", "").rsplit(":", 1)[0] if "host" in request.headers else ""
        is_here = _address(request) in _LOOPBACK and (host in _LOOPBACK or request.headers.get("host") in _LOOPBACK)
        if not is_here or not cookies.is_near(request.headers):
            raise self._refused(request, "insecure_dev is for this machine alone")
        return self._anybody

    def _refused(self, request: Request, why: str) -> EdgeError:
        told = (ascii(request.method), ascii(request.scope["path"]), _address(request), ascii(why))
        _log.warning("authentication_failed method=%s path=%s client=%s reason=%s", *told)
        return EdgeError(EdgeCode.UNAUTHENTICATED, "the request has no credential that holds")


def _unescaped(text: str) -> str:
    """Percent-decode a text; empty if it is malformed."""
    try:
        return unquote(text, errors="strict") if _ESCAPED.fullmatch(text) else ""
    except UnicodeDecodeError:
        return ""


def _address(request: Request) -> str:
    return request.client.host if request.client is not None else ""
