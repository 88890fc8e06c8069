"""Who acts: a person, a program or the engine itself, with what they may do; and the request in which they do it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias, get_args

import msgspec

Principal = Literal["user", "service", "system"]

_KINDS: tuple[str, ...] = get_args(Principal)
_EVERYTHING = "*"

Needed: TypeAlias = str | tuple[str, ...]
"""A capability that is needed, or several that are needed together; the empty text if none is."""


def needed_names(capability: Needed) -> tuple[str, ...]:
    """The capabilities one by one; none for the empty one."""
    return tuple(filter(None, (capability,) if isinstance(capability, str) else capability))


def needed_words(capability: Needed) -> str:
    """Say which capabilities are needed."""
    names = needed_names(capability)
    return f"the {'capability' if len(names) == 1 else 'capabilities'} {' and '.join(map(repr, names))}"


class Actor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Somebody who acts. What they may do is said here, once, so that a decision needs to ask nobody else."""

    id: str
    """A user's or a program's name or id, as the host system knows it."""
    kind: Principal = "user"
    """Whether it is a person, a program, or the engine itself."""
    roles: frozenset[str] = frozenset()
    """Roles in the organisation, such as `finance_manager`."""
    capabilities: frozenset[str] = frozenset()
    """What the actor may do, such as `orders:approve:execute`. A star at the end stands for whatever follows: `invoice.*`, `*`."""
    on_behalf_of: str = ""
    """Whom the actor stands in for; empty if it acts for itself."""
    key: str = ""
    """Id of the engine's API key that the actor came with; empty if none. A key that was revoked lets nobody act, also later."""
    until: datetime | None = None
    """When the roles and capabilities end that came with the request, for what is done later in the actor's name. None if no end is known."""

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
        """Whether the actor has a capability, or all of several. Everybody has the empty one: it is what is asked for where nothing is asked for."""
        given = self.capabilities
        if not isinstance(capability, str):
            return bool(capability) and all(map(self.may, capability))
        if not capability or capability in given or _EVERYTHING in given:
            return True
        return any(each.endswith(_EVERYTHING) and capability.startswith(each[:-1]) for each in given)

    def is_one_of(self, roles: frozenset[str]) -> bool:
        """Whether the actor has one of these roles; the engine itself has every role."""
        return self.kind == "system" or not roles.isdisjoint(self.roles)


SYSTEM = Actor(id="system", kind="system", capabilities=frozenset((_EVERYTHING,)))
"""The actor of everything that no person asked for, and of a library's calls without a context. It may do everything."""


class RequestContext(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """For whom something is asked. It goes with a command all the way, and is kept with whatever is decided later."""

    tenant: str = "default"
    """The tenant whose data this is about; nothing of another one is seen or changed."""
    partition: str = ""
    """A part of the tenant that new instances belong to, such as a site or a department; empty if it has none."""
    actor: Actor
    """Who asks. It must be said: a request without an actor would be one with every right."""
    brought: Actor | None = None
    """The actor as the credential says it, where `actor` has besides what a front end has looked up for this request. A commit looks that up
    again. None if nothing was looked up."""
    claims: dict[str, object] = {}
    """What the token of the request says of the actor, for resolvers of capabilities; it is never stored."""
    trace: str = ""
    """Names the request in logs and traces (a W3C `traceparent`, or any text); kept with every event that follows from it."""
    reason: str = ""
    """Why, in the actor's words, for calls that are given no reason of their own: the history and the audit keep it."""
    session: str = ""
    """Id of the session of a browser that the request came with; one that has ended lets nobody act."""
    expires_at: datetime | None = None
    """When the credential of the request ends, such as the `exp` of a token. Roles and capabilities that came with it end then, also for what the
    request has begun and the engine does later. None if no end is known."""
    needs: frozenset[str] = frozenset()
    """Capabilities that the actor must have when the request acts: what a front end demands, whatever it is that is done. Checked in the commit."""
    role_capabilities: dict[str, frozenset[str]] = {}
    """What roles stand for at this front end: capabilities by role, for the roles that the actor has when the request acts."""
    vouched: frozenset[str] = frozenset()
    """Roles of the actor that a directory of the host has told for this command alone. They did not come with the request."""
    is_late: bool = False
    """Whether the actor asked for it before and is not there now, as with a schedule or a batch."""
    idempotency_key: str = ""
    """Makes a request that starts something safe to repeat: the same key gets the same instance, once for each definition."""


OWN = RequestContext(actor=SYSTEM)
"""What the engine does of its own accord, and a library's calls without a context: nobody asked for it by name."""

_NOBODY = RequestContext(actor=Actor(id="unreadable"))


class _Kept(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What is stored of a request. The engine itself is not written down: it is what most of what follows by itself is done by."""

    actor: Actor = SYSTEM
    trace: str = ""
    partition: str = ""
    expires_at: datetime | None = None
    needs: frozenset[str] = frozenset()
    role_capabilities: dict[str, frozenset[str]] = {}


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(_Kept).decode


def context_bytes(*, actor: Actor = SYSTEM, trace: str = "", partition: str = "") -> bytes | None:
    """For whom something is done, to be kept with it until it is; None if that is the engine itself. The tenant is kept beside it."""
    is_own = actor is SYSTEM or actor == SYSTEM
    if is_own and not trace and not partition:
        return None
    return _encode(_Kept(SYSTEM if is_own else actor, trace, partition))


def request_bytes(request: RequestContext, *, trace: str) -> bytes | None:
    """A request whose command is decided later, to be kept with it. What was looked up for it is not kept: it is looked up again."""
    actor = request.brought or request.actor
    if actor is SYSTEM and not trace and not request.partition:
        return None
    return _encode(_Kept(actor, trace, request.partition, request.expires_at, request.needs, request.role_capabilities))


def request_of(context: bytes | None) -> RequestContext:
    """For whom something is done, as it was kept."""
    if context is None:
        return OWN
    try:
        kept = _decode(context)
    except msgspec.MsgspecError:  # Something other than the engine wrote it: whoever asks so may do nothing.
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
    """What is kept of a request for what is done later in its actor's name."""

    actor: Actor
    partition: str = ""
    role_capabilities: dict[str, frozenset[str]] = {}


_decode_late = msgspec.json.Decoder(_Late).decode


def late_text(request: RequestContext, roles: frozenset[str]) -> str:
    """Returns a request as text, for what is done later in its actor's name; empty if that is the engine itself.

    Of what roles stand for at the front end only that of `roles` is kept. What was looked up for the request is not kept.
    """
    actor = _until_its_end(request)
    if actor.kind == "system":
        return ""
    return _encode(_Late(actor, request.partition, _standing_for(request, roles))).decode()


def late_actor(request: RequestContext) -> Actor | None:
    """Returns who asks, with what came with the request and nothing that was looked up for it; None if that is the engine itself.

    Whoever acts later in their name looks up the rest then: what the directory or a resolver gave could be taken away meanwhile.
    """
    actor = _until_its_end(request)
    if actor.kind == "system":
        return None
    return msgspec.structs.replace(actor, roles=actor.roles - request.vouched) if request.vouched else actor


class Terms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """On which terms something is done later in an actor's name."""

    needs: list[str] = []
    """Capabilities that the actor must have each time: those that it took to ask for it."""
    role_capabilities: dict[str, list[str]] = {}
    """What the actor's roles stood for at the front end."""


NO_TERMS = Terms()


def late_terms(request: RequestContext, roles: frozenset[str]) -> Terms:
    """Returns the terms of a request whose actor has these roles."""
    if request.actor.kind == "system":
        return NO_TERMS
    theirs = _standing_for(request, roles)
    return Terms(needs=sorted(request.needs), role_capabilities={name: sorted(theirs[name]) for name in sorted(theirs)})


def later(actor: Actor | None, terms: Terms, *, tenant: str, partition: str, trace: str) -> RequestContext:
    """Returns the request of what is done later in an actor's name; None stands for the engine itself."""
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
    """Returns what these roles stand for at the front end of a request."""
    return {name: each for name, each in request.role_capabilities.items() if name in roles}


def _until_its_end(request: RequestContext) -> Actor:
    """Returns the actor as the credential says it; what came with the request ends with it."""
    actor = request.brought or request.actor
    if actor.kind == "system" or actor.until is not None or request.expires_at is None:
        return actor
    return msgspec.structs.replace(actor, until=request.expires_at)


def late_request(text: str) -> RequestContext:
    """Returns the request of a text that `late_text` has made."""
    try:
        kept = _decode_late(text)
    except msgspec.MsgspecError:  # Something other than the engine wrote it: whoever asks so may do nothing.
        return _NOBODY
    return RequestContext(
        actor=kept.actor, partition=kept.partition, role_capabilities=kept.role_capabilities, is_late=True
    )


def partition_of(context: bytes | None) -> str:
    """The part of the tenant that something is done for."""
    return "" if context is None else request_of(context).partition


def following(context: bytes | None) -> RequestContext:
    """What follows from work by itself, be it a handler's result or a timer: the engine's own doing, under the same trace."""
    if context is None:
        return OWN
    kept = request_of(context)
    return RequestContext(actor=SYSTEM, trace=kept.trace, partition=kept.partition)


def following_bytes(context: bytes | None) -> bytes | None:
    """The same, to be kept with a message."""
    request = following(context)
    return context_bytes(trace=request.trace, partition=request.partition)
