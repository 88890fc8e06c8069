"""Options of the HTTP API: limits, trusted issuers, and their rights."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from standfast.errors import ConfigurationError
from standfast.http.wire.issuer_client import is_trusted
from standfast.kernel.names import is_misleading
from standfast.outbound.secrets import check_reference

_NAME: Final = re.compile(r"[A-Za-z0-9._~-]{1,200}")

OWN_USE = frozenset(
    {"process:use", "task:use", "notification:use", "directory:use", "documents:read", "documents:write"}
)
"""The capabilities of every token: use processes and documents, decide the caller's tasks, read the caller's
notifications."""

ROLES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "viewer": frozenset(
            {
                "execution:read",
                "definition:read",
                "directory:read",
                "chains:read",
                "schedule:read",
                "batch:read",
                "documents:read",
                "bodies:read",
                "contracts:read",
                "charters:read",
            }
        ),
        "operator": frozenset(
            {
                "execution:*",
                "task:*",
                "event:*",
                "schedule:*",
                "batch:*",
                "definition:read",
                "directory:read",
                "chains:read",
                "documents:read",
                "documents:write",
                "bodies:read",
                "contracts:read",
                "charters:read",
            }
        ),
        "author": frozenset(
            {
                "definition:*",
                "chains:*",
                "bodies:*",
                "contracts:*",
                "charters:read",
                "documents:read",
                "execution:read",
                "directory:read",
            }
        ),
        "administrator": frozenset({"*"}),
    }
)
"""The capabilities of roles in tokens and keys, unless the options override them."""

Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Signature algorithms of tokens, all with a private key.

With a shared secret, a server that verifies tokens could make them.
"""


class Issuer(msgspec.Struct, frozen=True, kw_only=True):
    """A trusted token issuer."""

    issuer: str
    """The claim `iss`, exactly."""
    audience: str
    """The required value of the claim `aud`: this API."""
    jwks: str
    """The public keys of the issuer: the path of a file, or a URL that begins with https://."""
    algorithms: tuple[Algorithm, ...] = ("RS256",)
    """The accepted signature algorithms; a token can select only among these."""
    leeway: timedelta = timedelta(seconds=30)
    """Tolerated difference between its clock and that of this machine."""
    tenant: str = ""
    """The tenant of all its tokens; empty if a claim names it."""
    tenant_claim: str = "tenant"
    partition_claim: str = "partition"
    roles_claim: str = "roles"
    capabilities_claim: str = "scope"
    """Which claims tell the rest: texts, lists of texts, or texts with blanks between."""


class LoginProvider(msgspec.Struct, frozen=True, kw_only=True):
    """An identity provider for browser logins: the code flow of OpenID Connect."""

    name: str
    """The last part of the address at which a login begins, `/api/v1/session/login/<name>`."""
    issuer: Issuer
    """The issuer of the login tokens, trusted for nothing else; its `audience` is the client id of this server."""
    label: str = ""
    """The text of the login button."""
    client_secret: str = ""
    """Reference to the client secret of this server: `env:NAME` or `file:/path`; empty if it has none."""
    authorization: str = ""
    """The authorization endpoint; empty means the one in the provider's metadata."""
    token: str = ""
    """The token endpoint; empty means the one in the provider's metadata."""
    scopes: tuple[str, ...] = ("openid",)


class InboundHook(msgspec.Struct, frozen=True, kw_only=True):
    """An address that another system posts events to, signed by the rules of Standard Webhooks."""

    name: str
    """The last part of its address, `/hooks/<name>`."""
    secrets: tuple[str, ...]
    """Each `whsec_` and the base64 of 24 to 64 bytes; several while one is replaced by another."""
    event: str
    """Name of the event that a delivery is published as."""
    tenant: str = "default"
    key: str = ""
    """The field of the body, such as `data.order_id`, that holds the event's key; empty if it has none."""
    tolerance: timedelta = timedelta(minutes=5)
    """How old a delivery may be, or how far in the future."""


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the HTTP API."""

    issuers: tuple[Issuer, ...] = ()
    """Issuers whose tokens (JWT) are accepted; API keys always are."""
    logins: tuple[LoginProvider, ...] = ()
    """Identity providers for browser logins; a login with a key is always possible."""
    public_address: str = ""
    """Public URL of this server, such as https://flows.example.org; empty means the URL of each request."""
    session_lifetime: timedelta = timedelta(hours=12)
    """How long a browser stays in at most."""
    session_idle: timedelta = timedelta(hours=1)
    """How long an idle session lives."""
    sessions_per_credential: int = 100
    """Sessions per key, or per user of a provider; one more ends the oldest."""
    hooks: tuple[InboundHook, ...] = ()
    """Addresses that other systems post events to."""
    roles: Mapping[str, frozenset[str]] = ROLES
    """The capabilities that a role of a token, of a key or of the directory stands for."""
    everyone: frozenset[str] = OWN_USE
    """The capabilities of every token, whatever its claims."""
    uses_directory: bool = False
    """Whether callers with a token also have their roles in the directory, and are refused if they are deactivated
    there."""
    platform_tenant: str = ""
    """The tenant whose credentials may use calls that concern all tenants, such as workers and queues; empty means
    the engine's own tenant."""
    max_body_bytes: int = 1_048_576
    """The largest body of a request."""
    body_timeout: timedelta = timedelta(seconds=10)
    """How long a client may take to send its body."""
    max_depth: int = 64
    """How deep a body may be nested."""
    max_page: int = 500
    """The largest page of a list; a larger limit is reduced to this."""
    longest_wait: timedelta = timedelta(seconds=30)
    """How long a request may wait for a result."""
    requests_per_second: float = 500.0
    """Requests per second of a credential in the long run."""
    burst: int = 1000
    """Size of a burst above that rate."""
    failures_per_second: float = 1.0
    """Failed authentications per second of an address in the long run, including unsigned deliveries."""
    failures_burst: int = 20
    """Size of a burst above that rate."""
    streams_per_credential: int = 20
    """Open event streams per credential."""
    max_streams: int = 1000
    """Open event streams of all credentials together."""
    waits_per_credential: int = 500
    """Requests of a credential that may wait for results at the same time."""
    stream_lifetime: timedelta = timedelta(minutes=15)
    """When a stream ends, so that its credential is looked at again; clients go on where they were."""
    stream_backlog: int = 1000
    """Number of events that a client may be behind before it must reload."""
    stream_interval: timedelta = timedelta(milliseconds=250)
    """Interval at which events of other processes are read, while streams are open."""
    heartbeat: timedelta = timedelta(seconds=15)
    """How often something is sent on a stream that has nothing to tell."""
    credential_memory: timedelta = timedelta(seconds=5)
    """How long a credential that was found good is not looked up again. One that is revoked elsewhere reads for so long, and changes nothing."""
    keep_refusals: timedelta = timedelta(days=90)
    """How long refused requests are kept for auditors."""
    refusals_per_second: float = 1.0
    """Denied requests of a credential that are stored per second in the long run; the others are counted and logged."""
    refusals_burst: int = 1000
    """Size of a burst above that rate."""
    open_metrics: bool = False
    """Serve `/metrics` without a credential, because only permitted readers can reach it."""

    def is_secure(self, base: str) -> bool:
        """Whether browsers come by https to an address of this server; a proxy may have taken that off on the way."""
        return base.startswith("https://") or self.public_address.startswith("https://")


def checked_options(options: HttpOptions) -> HttpOptions:
    """Options that make sense together; ConfigurationError says which do not."""
    for name in (
        "max_body_bytes",
        "max_depth",
        "max_page",
        "burst",
        "failures_burst",
        "refusals_burst",
        "max_streams",
        "waits_per_credential",
        "stream_backlog",
        "sessions_per_credential",
    ):
        if getattr(options, name) < 1:
            raise ConfigurationError(f"the option {name!r} must be at least 1, not {getattr(options, name)!r}")
    for name in ("requests_per_second", "failures_per_second", "refusals_per_second"):
        if not getattr(options, name) > 0:
            raise ConfigurationError(f"the option {name!r} must be more than 0, not {getattr(options, name)!r}")
    for issuer in options.issuers:
        _check_issuer(issuer)
    if len({each.issuer for each in options.issuers}) != len(options.issuers):
        raise ConfigurationError("two issuers have the same `issuer`, and only one of them would be believed")
    _check_logins(options)
    names = [hook.name for hook in options.hooks]
    if len(set(names)) != len(names):
        raise ConfigurationError("two inbound hooks have the same name; give each a name of its own")
    for name in (*names, *(each.name for each in options.logins)):
        _check_name(name)
    return options


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or is_misleading(name):
        told = "the name of a hook or of a provider of logins is the last part of an address"
        raise ConfigurationError(f"{told}: letters, digits and -._~ alone, not {name!r}")


def _check_logins(options: HttpOptions) -> None:
    names = [each.name for each in options.logins]
    if len(set(names)) != len(names) or not all(names):
        raise ConfigurationError("every provider of logins needs a name of its own")
    for each in options.logins:
        _check_issuer(each.issuer)
        if each.client_secret:
            check_reference(each.client_secret, f"the client_secret of {each.name!r}")
        for place in filter(None, (each.authorization, each.token, options.public_address)):
            if not is_trusted(place):
                raise ConfigurationError(f"logins go by https: {place!r} does not")
    if not timedelta(0) < options.session_idle <= options.session_lifetime <= timedelta(days=30):
        raise ConfigurationError("a session is idle for less than it lasts, and lasts at most 30 days")


def _check_issuer(issuer: Issuer) -> None:
    known = set(Algorithm.__args__)  # type: ignore[attr-defined]
    if not issuer.algorithms or not known.issuperset(issuer.algorithms):
        told = f"the algorithms of an issuer are of {', '.join(sorted(known))}, not {issuer.algorithms!r}"
        raise ConfigurationError(f"{told}: such tokens could be forged")
    if not issuer.issuer or not issuer.audience:
        raise ConfigurationError(
            "an issuer needs `issuer` and `audience`: without them the server would accept any token of any issuer"
        )
    if "://" in issuer.jwks and not is_trusted(issuer.jwks):
        raise ConfigurationError(f"the keys of an issuer come from a file or by https, not from {issuer.jwks!r}")
