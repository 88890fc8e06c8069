"""Routes of browser sessions: login with a key or an identity provider, refresh, logout."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

import msgspec

from standfast.features.access.views import Session
from standfast.http.auth import cookies
from standfast.http.auth import login as logins
from standfast.http.auth.authenticator import Identity
from standfast.http.auth.rate_limits import check_rate
from standfast.http.auth.tokens import InvalidTokenError
from standfast.http.requests.routing import (
    AnyCall,
    NoQuery,
    Paged,
    RequestModel,
    Route,
    RouteCall,
    RouteResponse,
    Subject,
)
from standfast.http.routes.admin.keys import Me, me
from standfast.http.wire import paging as cursors
from standfast.http.wire.options import LoginProvider
from standfast.http.wire.paging import Listing
from standfast.http.wire.problems import EdgeCode, EdgeError

_log = logging.getLogger("standfast.http.access")
_LOGIN_LASTS: Final = timedelta(minutes=10)
_LONGEST_CODE: Final = 2000


class KeyLogin(RequestModel, frozen=True, kw_only=True):
    """A login with a key."""

    key: str
    """An API key."""


class LoginWay(msgspec.Struct, frozen=True, kw_only=True):
    """An identity provider."""

    name: str
    label: str
    path: str
    """The path at which the browser begins the login."""


class LoginWays(msgspec.Struct, frozen=True, kw_only=True):
    """How one can come in."""

    providers: list[LoginWay]
    is_open: bool
    """Whether the server accepts every client on this machine without a credential."""


class OwnSession(msgspec.Struct, frozen=True, kw_only=True):
    """The caller's identity, and the data that pages need."""

    me: Me
    csrf: str
    """Send it in the header `X-CSRF-Token` with every change; empty for callers with a key or a token."""
    expires_at: datetime | None
    """When the session ends, however much it is used; null where it was not opened by this answer."""


class LoginQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The target of a login."""

    return_to: str = "/"
    """The path, on this server, that the browser is sent to afterwards."""


class ReturnQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of a provider's callback; some providers send more than this."""

    state: str = ""
    code: str = ""
    error: str = ""


class SessionsQuery(Paged, frozen=True, kw_only=True):
    """The user whose sessions are listed."""

    actor: str = ""


async def tell_ways(call: RouteCall[NoQuery, None]) -> LoginWays:
    """List the ways to log in with a browser: with a key, and by these identity providers."""
    root = urlsplit(_base(call)).path  # Where it is mounted.
    ways = [
        LoginWay(name=each.name, label=each.label or each.name, path=f"{root}/api/v1/session/login/{each.name}")
        for each in call.server.options.logins
    ]
    return LoginWays(providers=ways, is_open=call.server.door.is_open)


async def open_session(call: RouteCall[NoQuery, KeyLogin]) -> RouteResponse:
    """Log in with a key: the response sets a session cookie, which no script can read."""
    if not cookies.is_near(call.headers):
        raise EdgeError(EdgeCode.CROSS_SITE, "a session is opened by a page of this server")
    try:
        identity = await call.server.door.admit_key(call.body.key, call.client)
    except InvalidTokenError as error:
        raise _refused(call, str(error)) from None
    check_rate(call.server.rate.take(identity.account), "this credential")
    return await _opened(call, identity, status=201)


async def tell_session(call: RouteCall[NoQuery, None]) -> OwnSession:
    """Return the caller's identity, and the CSRF token of the session."""
    return OwnSession(me=me(call.identity), csrf=call.identity.csrf, expires_at=None)


async def leave_session(call: RouteCall[NoQuery, None]) -> RouteResponse:
    """Log out: the session ends on all servers. A caller with a key or a token has no session to end."""
    kind, _, identity = call.identity.credential.partition(":")
    if kind == "session":  # It is theirs whichever part of the tenant the page looks at.
        whole = msgspec.structs.replace(call.identity, partition="").context(call.trace)
        await call.engine.acting(whole).sessions.end(identity)
        call.server.door.forget()
    return RouteResponse(cookies=(cookies.dropped(cookies.SESSION, is_secure=call.is_secure),))


async def begin_login(call: RouteCall[LoginQuery, None]) -> RouteResponse:
    """Redirect the browser to an identity provider, which redirects it back."""
    provider = _provider(call)
    if not logins.is_own_path(call.query.return_to):
        raise EdgeError(EdgeCode.BAD_QUERY, "`return_to` is a path of this server, such as /runs")
    try:
        where, pending = await call.server.logins.begin(provider, _back(call, provider), call.query.return_to)
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        _log.warning("login_provider_unreachable provider=%r error=%r", provider.name, error)
        raise EdgeError(EdgeCode.PROVIDER_AWAY, f"the provider {provider.name!r} cannot be reached now") from None
    kept = cookies.kept(
        cookies.LOGIN, logins.written(pending), is_secure=call.is_secure, lasts=_LOGIN_LASTS, is_strict=False
    )  # The provider's page sends the browser back, so a strict cookie would not come along.
    return RouteResponse(headers={"location": where}, cookies=(kept,))


async def finish_login(call: RouteCall[ReturnQuery, None]) -> RouteResponse:
    """Finish a login: verify the provider's callback, open a session, and redirect the browser to its target."""
    provider, asked = _provider(call), call.query
    pending = logins.read(cookies.shown(call.headers, cookies.LOGIN, is_secure=call.is_secure))
    if pending is None:
        raise _refused(call, "no login has begun in this browser, or it took too long")
    if asked.error or not asked.code or len(asked.code) > _LONGEST_CODE:
        raise _refused(call, f"the provider refused: {asked.error[:100]!r}")
    try:
        with call.server.door.patience(
            call.client
        ):  # Each code costs a request to the provider, which is another party's system.
            claims = await call.server.logins.finish(
                provider, pending, state=asked.state, code=asked.code, back=_back(call, provider)
            )
            await call.server.door.vouched(claims)
    except InvalidTokenError as error:
        raise _refused(call, str(error)) from None
    opened = await _opened(
        call, call.server.door.claimed(claims)
    )  # Without the rights that the directory may revoke later.
    gone = cookies.dropped(cookies.LOGIN, is_secure=call.is_secure, is_strict=False)
    return RouteResponse(headers={"location": pending.return_to}, cookies=(*opened.cookies, gone))


async def list_sessions(call: RouteCall[SessionsQuery, None]) -> Listing[Session]:
    """List the sessions of browsers, ended ones included, oldest first."""
    size, last = call.page(call.query.limit), cursors.read(call.query.cursor, str) or ""
    found = await call.calls.sessions.list(actor=call.query.actor, after=last, limit=size + 1)
    return cursors.listing(found, size, lambda each: each.id)


async def end_session(call: RouteCall[NoQuery, None]) -> Session:
    """End a browser session, permanently."""
    found = await call.calls.sessions.end(call.path["session"])
    call.server.door.forget()
    return found


async def _opened(call: AnyCall, identity: Identity, status: int = 200) -> RouteResponse:
    context = identity.context(call.trace)
    lifetime = call.server.options.session_lifetime
    most = call.server.options.sessions_per_credential
    made = await call.engine.acting(context).sessions.open(credential=identity.credential, lifetime=lifetime, most=most)
    call.server.door.forget()  # The oldest session may have been ended.
    kept = cookies.kept(cookies.SESSION, made.secret, is_secure=call.is_secure, lasts=lifetime)
    shown = OwnSession(me=me(identity), csrf=cookies.csrf_token(made.secret), expires_at=made.session.expires_at)
    return RouteResponse(value=shown, status=status, cookies=(kept,))


def _provider(call: AnyCall) -> LoginProvider:
    found = call.server.logins.provider(call.path["provider"])
    if found is None:
        raise EdgeError(EdgeCode.NO_ROUTE, "there is no such provider of logins")
    return found


def _back(call: AnyCall, provider: LoginProvider) -> str:
    """Return the redirect URI, which is registered at the provider."""
    return f"{_base(call)}/api/v1/session/callback/{provider.name}"


def _base(call: AnyCall) -> str:
    """Return the base URL of the server for browsers."""
    return call.server.options.public_address.rstrip("/") or call.base


def _refused(call: AnyCall, why: str) -> EdgeError:
    _log.warning("login_failed client=%s reason=%s", call.client, ascii(why))
    return EdgeError(EdgeCode.UNAUTHENTICATED, "the login did not succeed")


_OWN = Subject("access", "/api/v1/session", "", "own")
_OPEN = Subject("access", "/api/v1/session", "", "public")
_SESSIONS = Subject("access", "/api/v1/sessions", "keys:manage", "own")

ROUTES: tuple[Route, ...] = (
    _OPEN.post("", open_session, body=KeyLogin, answer=OwnSession, status=201, example={"key": "sf_0_example"}),
    _OWN.get("", tell_session, answer=OwnSession),
    _OWN.delete("", leave_session),
    _OPEN.get("/ways", tell_ways, answer=LoginWays),
    _OPEN.get("/login/{provider}", begin_login, query=LoginQuery, status=303),
    _OPEN.get("/callback/{provider}", finish_login, query=ReturnQuery, status=303),
    _SESSIONS.get("", list_sessions, query=SessionsQuery, answer=Listing[Session]),
    _SESSIONS.post("/{session}/end", end_session, answer=Session),
)
