"""Authentication of calls: the security schemes of the document, with secrets that are read at each call."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Final, Literal, cast
from urllib.parse import quote

import msgspec

from standfast.errors import ConfigurationError
from standfast.expressions.model.suggestions import suggestion
from standfast.outbound.openapi.documents import OpenApiDocument, Tree, below
from standfast.outbound.secrets import check_reference, secret_of

_PLACES: Final = ("header", "query", "cookie")
_SCHEMES: Final = "#/components/securitySchemes"
_HIDDEN: Final = "***"
_SHORTEST: Final = 4
"""Shortest secret that is redacted: a shorter one would match everywhere."""


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """A secret and its location in the request."""

    scheme: str
    where: Literal["header", "query", "cookie"]
    name: str
    kind: Literal["plain", "bearer", "basic"] = "plain"
    reference: str

    def secret(self) -> str:
        """Read the secret."""
        found = secret_of(self.reference, f"the secret of {self.scheme!r}").strip()
        if not found:
            raise ConfigurationError(f"the secret of {self.scheme!r} is empty")
        return found

    def shown(self, secret: str) -> str:
        """Return the secret in the form in which it is sent."""
        if self.kind == "bearer":
            return f"Bearer {secret}"
        return f"Basic {base64.b64encode(secret.encode()).decode()}" if self.kind == "basic" else secret


class SecretRedaction:
    """Removes secrets from texts, in all encodings in which they are sent or quoted as JSON."""

    def __init__(self, secrets: Iterable[str]) -> None:
        spellings = {
            spelling
            for secret in secrets
            for part in (secret, secret.partition(":")[2])
            if len(part) >= _SHORTEST
            for spelling in _spellings(part)
        }
        self._spellings = sorted(spellings, key=len, reverse=True)

    def __call__(self, told: str) -> str:
        """Return the text without the secrets."""
        for each in self._spellings:
            told = told.replace(each, _HIDDEN)
        return told


def _spellings(secret: str) -> tuple[str, ...]:
    quoted = json.dumps(secret, ensure_ascii=False)[1:-1]
    return secret, quoted, quote(secret, safe=""), base64.b64encode(secret.encode()).decode()


class Security:
    """The security schemes of one document, and the secrets for them."""

    def __init__(self, document: OpenApiDocument, secrets: Mapping[str, str]) -> None:
        self._document = document
        components = document.tree.get("components", {})
        schemes = components.get("securitySchemes", {}) if isinstance(components, dict) else {}
        self._schemes = cast("Tree", schemes) if isinstance(schemes, dict) else {}
        for name in secrets:
            if name not in self._schemes:
                told = suggestion(name, self._schemes) or f"; it has {', '.join(self._schemes) or 'none'}"
                raise document.flaw(f"has no security scheme {name!r}, for which a secret is given{told}")
        self._secrets = {name: check_reference(given, f"the secret of {name!r}") for name, given in secrets.items()}

    def credentials(self, operation: Tree, place: str) -> list[Credential]:
        """Return the credentials of an operation: its first alternative for which all secrets are configured."""
        asked = operation.get("security", self._document.tree.get("security", []))
        if not isinstance(asked, list) or not all(isinstance(each, dict) for each in asked):
            raise self._document.flaw(f"does not list at {place!r} what security it needs")
        if not asked:
            return []
        for alternative in sorted(asked, key=lambda each: not each):  # An alternative without secrets comes last.
            if all(name in self._secrets for name in alternative):
                return [self._credential(name) for name in alternative]
        needed = " or ".join(" with ".join(map(repr, each)) for each in asked)
        raise self._document.flaw(f"needs a secret for {needed} at {place!r}; give it as secrets={{…: 'env:NAME'}}")

    def _credential(self, name: str) -> Credential:
        scheme = self._document.part(self._schemes[name], below(_SCHEMES, name))
        reference, kind = self._secrets[name], scheme.get("type")
        where, key = scheme.get("in"), scheme.get("name")
        if kind == "apiKey" and where in _PLACES and isinstance(key, str):
            return Credential(scheme=name, where=where, name=key, reference=reference)
        how = str(scheme.get("scheme", "")).lower()
        if kind == "http" and how == "basic":
            return Credential(scheme=name, where="header", name="Authorization", kind="basic", reference=reference)
        if (kind == "http" and how == "bearer") or str(kind) in {"oauth2", "openIdConnect"}:
            # A configured token is sent; the flow to obtain one is not supported.
            return Credential(scheme=name, where="header", name="Authorization", kind="bearer", reference=reference)
        raise self._document.flaw(f"has a security scheme {name!r} of a kind that is not known here")
