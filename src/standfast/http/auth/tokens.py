"""Validation of tokens (JWT). A token never selects how it is validated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import jwt
import msgspec

from standfast.http.auth.key_sets import Key, KeySet
from standfast.http.wire.options import Issuer
from standfast.kernel.actor import SYSTEM

_REQUIRED: Final = ["exp", "iss", "aud", "sub"]
_KINDS: Mapping[str, str] = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
"""The type of key that each family of algorithms takes."""
_CURVES: Mapping[str, str] = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521", "EdDSA": "Ed25519"}
_LONGEST: Final = 8192
_LAST_SECOND: Final = 253_402_300_799
"""That of the year 9999."""


class InvalidTokenError(Exception):
    """The token does not hold; the message is for the log."""


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a valid token."""

    issuer: str
    subject: str
    tenant: str
    partition: str
    roles: frozenset[str]
    capabilities: frozenset[str]
    ends_at: float = 0
    """When the token ends by the clock of this machine, in seconds since 1970, with the leeway that is given to clocks."""
    nonce: str = ""
    """Which login it was made for; empty for most."""


class Tokens:
    """Checks tokens of the issuers that are believed."""

    def __init__(self, issuers: Iterable[Issuer]) -> None:
        self._issuers = {each.issuer: (each, KeySet(each.jwks)) for each in issuers}

    async def check(self, token: str) -> Claims:
        """Validate a token and return its claims; InvalidTokenError if any check fails."""
        if len(token) > _LONGEST:
            raise InvalidTokenError("it is too long")
        try:
            header = jwt.get_unverified_header(token)
            named = jwt.decode(token, options={"verify_signature": False}).get("iss")
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise InvalidTokenError(f"it cannot be read: {error}") from error
        known = self._issuers.get(named) if isinstance(named, str) else None
        if known is None:
            raise InvalidTokenError(f"its issuer {named!r} is not believed")
        issuer, keys = known
        algorithm = header.get("alg")
        if algorithm not in issuer.algorithms or "crit" in header:
            raise InvalidTokenError(f"it is signed with {algorithm!r}, or requires an unknown extension")
        identity = header.get("kid")
        if identity is not None and not isinstance(identity, str):
            raise InvalidTokenError("the id of its key is no text")
        key = await keys.find(identity)
        if key is None:
            raise InvalidTokenError(f"its key {identity!r} is not known")
        return _claims(issuer, _verified(token, issuer, key, str(algorithm)))


def _verified(token: str, issuer: Issuer, key: Key, algorithm: str) -> dict[str, object]:
    """Return the claims of a token with valid signature, issuer, audience and times."""
    if key.get("kty") != _KINDS[algorithm[:2]] or key.get("alg", algorithm) != algorithm:
        raise InvalidTokenError("its key is not one for its algorithm")
    if algorithm in _CURVES and key.get("crv") != _CURVES[algorithm]:
        raise InvalidTokenError("the curve of its key is not that of its algorithm")
    try:
        claims: dict[str, object] = jwt.decode(
            token,
            key=jwt.PyJWK(key, algorithm=algorithm).key,
            algorithms=[algorithm],
            audience=issuer.audience,
            issuer=issuer.issuer,
            leeway=issuer.leeway,
            options={"require": _REQUIRED},
        )
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError) as error:
        raise InvalidTokenError(str(error)) from error
    if not isinstance(claims["exp"], int | float) or claims["exp"] > _LAST_SECOND:
        raise InvalidTokenError("it never ends")
    return claims


def _claims(issuer: Issuer, claims: Mapping[str, object]) -> Claims:
    subject, nonce = claims.get("sub"), claims.get("nonce")
    tenant = issuer.tenant or claims.get(issuer.tenant_claim)
    partition = claims.get(issuer.partition_claim, "")
    if not isinstance(subject, str) or not subject:
        raise InvalidTokenError("it has no subject")
    if subject == SYSTEM.id:
        raise InvalidTokenError(f"it names {subject!r}, which the engine itself is called")
    if not isinstance(tenant, str) or not tenant:
        raise InvalidTokenError(f"its claim {issuer.tenant_claim!r} names no tenant")
    if not isinstance(partition, str):
        raise InvalidTokenError(f"its claim {issuer.partition_claim!r} is no text")
    return Claims(
        issuer=issuer.issuer,
        subject=subject,
        tenant=tenant,
        partition=partition,
        roles=_texts(claims.get(issuer.roles_claim)),
        capabilities=_texts(claims.get(issuer.capabilities_claim)),
        ends_at=_end(claims["exp"], issuer),
        nonce=nonce if isinstance(nonce, str) else "",
    )


def _end(given: object, issuer: Issuer) -> float:
    assert isinstance(given, int | float), "it was checked"
    return min(given + issuer.leeway.total_seconds(), _LAST_SECOND)


def _texts(given: object) -> frozenset[str]:
    """A claim that is a list of texts, or a text with blanks between."""
    if given is None:
        return frozenset()
    if isinstance(given, str):
        return frozenset(given.split())
    if isinstance(given, list) and all(isinstance(each, str) and each for each in given):
        return frozenset(given)
    raise InvalidTokenError("a claim about rights is neither a text nor a list of texts")
