"""Login at an identity provider: the code flow of OpenID Connect, with state, nonce and PKCE."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from hashlib import sha256
from typing import Final
from urllib.parse import quote_plus, urlencode

import msgspec

from standfast.errors import ConfigurationError
from standfast.http.auth.tokens import Claims, InvalidTokenError, Tokens
from standfast.http.wire.issuer_client import fetched, is_trusted
from standfast.http.wire.options import LoginProvider
from standfast.kernel.codec.type_cache import settled
from standfast.outbound.secrets import secret_of

_LONGEST_RETURN: Final = 500
_CHANCE_BYTES: Final = 32
_AGAIN_SECONDS: Final = 10.0


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """A pending login. The browser keeps it in a cookie that other sites cannot send."""

    provider: str
    state: str
    nonce: str
    verifier: str
    return_to: str


class _Places(msgspec.Struct, frozen=True):
    """The metadata of a provider."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str


class _Tokens(msgspec.Struct, frozen=True):
    id_token: str


class Logins:
    """The identity providers for logins."""

    def __init__(self, providers: Iterable[LoginProvider]) -> None:
        self._providers = {each.name: each for each in providers}
        self._tokens = {each.name: Tokens([each.issuer]) for each in self._providers.values()}
        self._places: dict[str, _Places] = {}
        self._turn = asyncio.Lock()
        self._again_at: dict[str, float] = {}
        """No request to an unreachable provider before this time."""

    def provider(self, name: str) -> LoginProvider | None:
        """The provider of this name."""
        return self._providers.get(name)

    async def begin(self, provider: LoginProvider, back: str, return_to: str) -> tuple[str, Pending]:
        """Return the provider's URL, and the cookie of the pending login; `back` is the redirect URI."""
        pending = Pending(
            provider=provider.name,
            state=secrets.token_urlsafe(_CHANCE_BYTES),
            nonce=secrets.token_urlsafe(_CHANCE_BYTES),
            verifier=secrets.token_urlsafe(_CHANCE_BYTES),
            return_to=return_to,
        )
        asked = {
            "response_type": "code",
            "client_id": provider.issuer.audience,
            "redirect_uri": back,
            "scope": " ".join(provider.scopes),
            "state": pending.state,
            "nonce": pending.nonce,
            "code_challenge": _plain64(sha256(pending.verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        where = (await self._found(provider)).authorization_endpoint
        return f"{where}{'&' if '?' in where else '?'}{urlencode(asked)}", pending

    async def finish(self, provider: LoginProvider, pending: Pending, *, state: str, code: str, back: str) -> Claims:
        """Return the identity of a callback's code.

        InvalidTokenError unless the login began in this browser, and the provider confirms it.
        """
        if pending.provider != provider.name or not hmac.compare_digest(pending.state.encode(), state.encode()):
            raise InvalidTokenError("the login that came back is not the one that began in this browser")
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": back,
            "client_id": provider.issuer.audience,
            "code_verifier": pending.verifier,
        }
        try:
            where = (await self._found(provider)).token_endpoint
            told = msgspec.json.decode(await fetched(where, form, _client(provider)), type=settled(_Tokens))
        except (OSError, ValueError, msgspec.MsgspecError, ConfigurationError) as error:
            raise InvalidTokenError(f"the provider gave no token: {error}") from error
        claims = await self._tokens[provider.name].check(told.id_token)
        if not hmac.compare_digest(claims.nonce.encode(), pending.nonce.encode()):
            raise InvalidTokenError("the token was made for another login")
        return claims

    async def _found(self, provider: LoginProvider) -> _Places:
        """Return the provider's endpoints, from the options or from its metadata."""
        issuer = provider.issuer.issuer
        if provider.authorization and provider.token:
            return _Places(issuer, provider.authorization, provider.token)
        known = self._places.get(provider.name)
        if known is None:
            async with self._turn:  # Waiting logins use the metadata that the first one has read.
                known = self._places.get(provider.name) or await self._told(provider)
        return known

    async def _told(self, provider: LoginProvider) -> _Places:
        """Return the metadata of a provider; OSError immediately while it is known to be unreachable."""
        if time.monotonic() < self._again_at.get(provider.name, 0.0):
            raise ConnectionError("it was away a moment ago, and is not asked again yet")
        try:
            known = await _introduced(provider)
        except (OSError, ValueError, msgspec.MsgspecError):
            self._again_at[provider.name] = time.monotonic() + _AGAIN_SECONDS
            raise
        self._places[provider.name] = known
        return known


async def _introduced(provider: LoginProvider) -> _Places:
    """Return the metadata of a provider, if it is trustworthy."""
    issuer = provider.issuer.issuer
    address = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    known = msgspec.json.decode(await fetched(address), type=settled(_Places))
    if known.issuer != issuer:
        raise ValueError(f"the metadata at {address} is of the issuer {known.issuer!r}")
    if not is_trusted(known.authorization_endpoint) or not is_trusted(known.token_endpoint):
        raise ValueError(f"the metadata at {address} has an address that is not https")
    return known


def written(pending: Pending) -> str:
    """A pending login as a cookie holds it."""
    return _plain64(msgspec.json.encode(pending))


def read(text: str) -> Pending | None:
    """Return the pending login in a cookie; None unless this server has signed it: a forged cookie must not redirect the browser elsewhere."""
    try:
        found = msgspec.json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=settled(Pending))
    except (ValueError, msgspec.MsgspecError):
        return None
    return found if found.state and found.nonce and is_own_path(found.return_to) else None


def is_own_path(path: str) -> bool:
    """Whether a browser that is sent there stays on this server."""
    is_short = len(path) <= _LONGEST_RETURN
    is_here = path.startswith("/") and not path.startswith(("//", "/\\"))
    return is_here and is_short and path.isascii() and path.isprintable() and "\\" not in path and " " not in path


def _client(provider: LoginProvider) -> dict[str, str]:
    """How the server shows that it is the client; one without a secret has the verifier alone."""
    if not provider.client_secret:
        return {}
    secret = secret_of(provider.client_secret, "client_secret")
    pair = f"{quote_plus(provider.issuer.audience)}:{quote_plus(secret)}"
    return {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def _plain64(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
