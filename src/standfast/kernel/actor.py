"""Actors with their rights, and the context of a request. An actor is a person, a program or the engine itself."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias, get_args

import msgspec

Principal = Literal["user", "service", "system"]

_KINDS: tuple[str, ...] = get_args(Principal)
_EVERYTHING = "*"

Needed: TypeAlias = str | tuple[str, ...]
"""A required capability, or several that are required together. The empty text requires none."""


def needed_names(capability: Needed) -> tuple[str, ...]:
    """Return the required capabilities as a tuple, empty if none is required."""
    return tuple(filter(None, (capability,) if isinstance(capability, str) else capability))


def needed_words(capability: Needed) -> str:
    """Format the required capabilities for a message."""
    names = needed_names(capability)
    return f"the {'capability' if len(names) == 1 else 'capabilities'} {' and '.join(map(repr, names))}"


class Actor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An actor with all its rights, so that a decision needs no further lookup."""

    id: str
    """Name or id of a user or program in the host system."""
    kind: Principal = "user"
    """Whether it is a person, a program, or the engine itself."""
    roles: frozenset[str] = frozenset()
    """Roles in the organisation, such as `finance_manager`."""
    capabilities: frozenset[str] = frozenset()
    """Granted capabilities, such as `orders:approve:execute`. A final star matches any suffix: `invoice.*`, `*`."""
    on_behalf_of: str = ""
    """The person whom the actor represents. Empty if the actor acts for itself."""
    key: str = ""
    """Id of the engine's API key that authenticated the actor. Empty without one. A revoked key grants nothing, not
    even for work that is done later."""
    until: datetime | None = None
    """When the roles and capabilities from the request expire, for work done later in the actor's name. None if they
    do not."""

    def __post_init__(self) -> None:
        if type(self.roles) is frozenset and type(self.capabilities) is frozenset and self.kind in _KINDS:
            return
        for name in ("roles", "capabilities"):
            given: object = getattr(self, name)
            if isinstance(given, set | list | tuple):
                msgspec.structs.force_setattr(self, name, frozenset(given))
            elif not isinstance(given, frozenset):
                raise TypeError(f"the {name} of an actor are a set of texts, not {given!r}")
        if self.kind not in _KINDS:
            raise TypeError(f"the kind of an actor is one of {', '.join(_KINDS)}, not {self.kind!r}")

    def may(self, capability: Needed) -> bool:
        """Return whether the actor has the capability, or all of several.

        Every actor has the empty one, which stands for no requirement.
        """
        given = self.capabilities
        if not isinstance(capability, str):
            return bool(capability) and all(map(self.may, capability))
        if not capability or capability in given or _EVERYTHING in given:
            return True
        return any(each.endswith(_EVERYTHING) and capability.startswith(each[:-1]) for each in given)

    def is_one_of(self, roles: frozenset[str]) -> bool:
        """Return whether the actor has one of these roles. The engine itself has every role."""
        return self.kind == "system" or not roles.isdisjoint(self.roles)


SYSTEM = Actor(id="system", kind="system", capabilities=frozenset((_EVERYTHING,)))
"""The actor of all work that no person requested, and of library calls without a context. It may do everything."""


class RequestContext(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The context of a request: its tenant, actor and metadata.

    It accompanies a command, and is stored with work that is decided later.
    """

    tenant: str = "default"
    """The tenant of the request. Data of other tenants is invisible to it."""
    partition: str = ""
    """Partition of the tenant for new instances, such as a site or a department. Empty if there is none."""
    actor: Actor
    """The requesting actor. It is required, because a request without an actor would have every right."""
    brought: Actor | None = None
    """The actor according to the credential alone, if `actor` also has rights that a front end looked up. A commit
    looks them up again. None if nothing was looked up."""
    claims: dict[str, object] = {}
    """Claims of the request's token about the actor, for capability resolvers. They are never stored."""
    trace: str = ""
    """Names the request in logs and traces (a W3C `traceparent`, or any text). It is stored with every event that
    follows from the request."""
    reason: str = ""
    """The actor's reason, for calls without a reason of their own. History and audit store it."""
    session: str = ""
    """Id of the browser session of the request. An ended session grants nothing."""
    expires_at: datetime | None = None
    """When the credential of the request expires, such as the `exp` of a token. Its roles and capabilities then
    expire too, also for later work of the request. None if it does not expire."""
    needs: frozenset[str] = frozenset()
    """Capabilities that the front end requires of the actor for any action of this request. The commit checks them."""
    role_capabilities: dict[str, frozenset[str]] = {}
    """Capabilities by role, as this front end maps them, for the roles that the actor has when the request acts."""
    vouched: frozenset[str] = frozenset()
    """Roles that a host directory granted to the actor for this command alone. They did not come with the request."""
    is_late: bool = False
    """Whether the actor made the request earlier and is not present, as with a schedule or a batch."""
    idempotency_key: str = ""
    """Makes a starting request safe to repeat: the same key returns the same instance, once per definition."""


OWN = RequestContext(actor=SYSTEM)
"""The context of the engine itself, and of library calls without a context."""

_NOBODY = RequestContext(actor=Actor(id="unreadable"))


class _Kept(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The stored form of a request. The engine itself is omitted, because it is the actor of most follow-up work."""

    actor: Actor = SYSTEM
    trace: str = ""
    partition: str = ""
    expires_at: datetime | None = None
    needs: frozenset[str] = frozenset()
    role_capabilities: dict[str, frozenset[str]] = {}


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(_Kept).decode


def context_bytes(*, actor: Actor = SYSTEM, trace: str = "", partition: str = "") -> bytes | None:
    """Encode the actor for work that is done later, or return None for the engine itself.

    The tenant is stored separately.
    """
    is_own = actor is SYSTEM or actor == SYSTEM
    if is_own and not trace and not partition:
        return None
    return _encode(_Kept(SYSTEM if is_own else actor, trace, partition))


def request_bytes(request: RequestContext, *, trace: str) -> bytes | None:
    """Encode a request whose command is decided later.

    Looked-up rights are omitted, because they are looked up again.
    """
    actor = request.brought or request.actor
    if actor is SYSTEM and not trace and not request.partition:
        return None
    return _encode(_Kept(actor, trace, request.partition, request.expires_at, request.needs, request.role_capabilities))


def request_of(context: bytes | None) -> RequestContext:
    """Decode the stored context of work."""
    if context is None:
        return OWN
    try:
        kept = _decode(context)
    except msgspec.MsgspecError:  # The bytes were not written by the engine: grant nothing.
        return _NOBODY
    if kept.expires_at is None and not kept.needs and not kept.role_capabilities:
        return RequestContext(actor=kept.actor, trace=kept.trace, partition=kept.partition)
    return RequestContext(
        actor=kept.actor,
        trace=kept.trace,
        partition=kept.partition,
        expires_at=kept.expires_at,
        needs=kept.needs,
        role_capabilities=kept.role_capabilities,
    )


class _Late(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The stored form of a request for work that is done later in its actor's name."""

    actor: Actor
    partition: str = ""
    role_capabilities: dict[str, frozenset[str]] = {}


_decode_late = msgspec.json.Decoder(_Late).decode


def late_text(request: RequestContext, roles: frozenset[str]) -> str:
    """Return a request as text, for work done later in its actor's name. Empty for the engine itself.

    The front end's capabilities are kept only for `roles`. Looked-up rights are omitted.
    """
    actor = _until_its_end(request)
    if actor.kind == "system":
        return ""
    return _encode(_Late(actor, request.partition, _standing_for(request, roles))).decode()


def late_actor(request: RequestContext) -> Actor | None:
    """Return the actor with the rights from the request alone, without looked-up ones. None for the engine itself.

    Work done later looks the other rights up then, because the directory or a resolver may have revoked them.
    """
    actor = _until_its_end(request)
    if actor.kind == "system":
        return None
    return msgspec.structs.replace(actor, roles=actor.roles - request.vouched) if request.vouched else actor


class Terms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The terms on which work is done later in an actor's name."""

    needs: list[str] = []
    """Capabilities that the actor must have each time. They are those that the original request required."""
    role_capabilities: dict[str, list[str]] = {}
    """Capabilities of the actor's roles at the front end."""


NO_TERMS = Terms()


def late_terms(request: RequestContext, roles: frozenset[str]) -> Terms:
    """Return the terms of a request whose actor has these roles."""
    if request.actor.kind == "system":
        return NO_TERMS
    theirs = _standing_for(request, roles)
    return Terms(needs=sorted(request.needs), role_capabilities={name: sorted(theirs[name]) for name in sorted(theirs)})


def later(actor: Actor | None, terms: Terms, *, tenant: str, partition: str, trace: str) -> RequestContext:
    """Return the context for work done later in an actor's name. None stands for the engine itself."""
    return RequestContext(
        tenant=tenant,
        partition=partition,
        actor=actor or SYSTEM,
        trace=trace,
        needs=frozenset(terms.needs),
        role_capabilities={name: frozenset(each) for name, each in terms.role_capabilities.items()},
        is_late=True,
    )


def _standing_for(request: RequestContext, roles: frozenset[str]) -> dict[str, frozenset[str]]:
    """Return the capabilities that the request's front end gives to these roles."""
    return {name: each for name, each in request.role_capabilities.items() if name in roles}


def _until_its_end(request: RequestContext) -> Actor:
    """Return the actor according to the credential, with rights that expire with it."""
    actor = request.brought or request.actor
    if actor.kind == "system" or actor.until is not None or request.expires_at is None:
        return actor
    return msgspec.structs.replace(actor, until=request.expires_at)


def late_request(text: str) -> RequestContext:
    """Parse a text made by `late_text`."""
    try:
        kept = _decode_late(text)
    except msgspec.MsgspecError:  # The text was not written by the engine: grant nothing.
        return _NOBODY
    return RequestContext(
        actor=kept.actor, partition=kept.partition, role_capabilities=kept.role_capabilities, is_late=True
    )


def partition_of(context: bytes | None) -> str:
    """Return the partition of a stored context."""
    return "" if context is None else request_of(context).partition


def following(context: bytes | None) -> RequestContext:
    """Return the context of follow-up work, such as a handler's result or a timer.

    The engine acts, under the same trace.
    """
    if context is None:
        return OWN
    kept = request_of(context)
    return RequestContext(actor=SYSTEM, trace=kept.trace, partition=kept.partition)


def following_bytes(context: bytes | None) -> bytes | None:
    """Return the same as bytes, to store with a message."""
    request = following(context)
    return context_bytes(trace=request.trace, partition=request.partition)
