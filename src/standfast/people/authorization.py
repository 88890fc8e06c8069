"""Who may act, and with which rights, at the moment of acting. Every front end and every kind of actor comes through here.

The rules are in `docs/adr/0066-authority-at-the-moment-of-acting.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from standfast.engine.commit.facts import Asking
from standfast.errors import ForbiddenError
from standfast.kernel.actor import Actor, RequestContext
from standfast.kernel.decision import NOT_ALLOWED
from standfast.people.access_facts import Access, PersonRows
from standfast.people.capabilities import CapabilityResolver, with_capabilities, with_front_end
from standfast.people.rejections import PeopleRefusal, check_active, forbidden

_names = msgspec.json.Decoder(frozenset[str]).decode


def authorize(access: Access, asking: Asking, resolvers: Sequence[CapabilityResolver], now: datetime) -> RequestContext:
    """Returns the request with the rights that its actor has now. Raises ForbiddenError if the actor may not act.

    Roles are those of the request and those that the directory grants. Capabilities are those of the request and those that resolvers
    and the front end give to these roles. What is done later in an actor's name has the roles of the directory if that has the actor and
    grants roles, what resolvers give if there are any, and of a key what it says now. A key that acts as a person of the directory has no
    more than that person.
    """
    request = asking.request
    if request.tenant != asking.tenant:
        request = replace(request, tenant=asking.tenant)
    actor = request.actor
    _check_credential(access, request, now)
    rows = access.person(actor.id, now)
    check_active(actor, lambda name: access.person(name, now).is_active)
    if request.is_late:
        actor = _brought(access, asking, request, rows, is_resolved=bool(resolvers), now=now)
    if actor.key:
        actor = _as_person(access, asking, actor, rows, resolvers=resolvers, now=now)
    granted = rows.roles(now)
    if asking.stands_in is not None:
        actor = _standing_in(access, actor, asking, now)
    if granted - actor.roles:
        actor = replace(actor, roles=actor.roles | granted)
    known = request if actor is request.actor else replace(request, actor=actor)
    if resolvers:
        known = with_capabilities(resolvers, known)
    if request.role_capabilities:
        known = with_front_end(known)
    if request.needs:
        _check_needs(known.actor, sorted(request.needs))
    return known


def _brought(
    access: Access, asking: Asking, request: RequestContext, rows: PersonRows, *, is_resolved: bool, now: datetime
) -> Actor:
    """Returns the actor of a late request with what came with it, as far as that still counts."""
    actor = request.actor
    if actor.key:
        return _of_key(access, actor)
    if actor.until is not None and now >= actor.until:
        return replace(actor, roles=frozenset(), capabilities=frozenset())
    if asking.vouched is not None:  # The host's directory was asked for this very command.
        is_known, granted = asking.vouched.is_known, asking.vouched.granted
    else:
        is_known = rows.principal is not None
        granted = rows.roles(now) if is_known and access.grants_roles() else None
    return replace(
        actor,
        roles=actor.roles if granted is None else granted,
        capabilities=frozenset() if is_known and is_resolved else actor.capabilities,
    )


def _of_key(access: Access, actor: Actor) -> Actor:
    """Returns an actor who came with a key, with what that says now; it never gives more than they came with."""
    key = access.key(actor.key)
    assert key is not None  # It was checked.
    told = Actor(id=actor.id, roles=_names(key.roles), capabilities=_names(key.capabilities))
    return replace(actor, roles=actor.roles & told.roles, capabilities=_shared(actor, told))


def _as_person(
    access: Access,
    asking: Asking,
    actor: Actor,
    rows: PersonRows,
    *,
    resolvers: Sequence[CapabilityResolver],
    now: datetime,
) -> Actor:
    """Returns the bearer of a key with no more than the person whom the key acts as, if that is a person of the directory."""
    if asking.vouched is not None:
        is_person, granted = asking.vouched.is_person, asking.vouched.granted
    else:
        is_person = rows.principal is not None and rows.principal.kind == "user"
        granted = rows.roles(now) if is_person and access.grants_roles() else None
    return bound(actor, granted, asking.tenant, resolvers) if is_person and granted is not None else actor


def bound(actor: Actor, granted: frozenset[str], tenant: str, resolvers: Sequence[CapabilityResolver]) -> Actor:
    """Returns the bearer of a key with no more than the holder of these roles has. Without resolvers nobody knows what roles may do."""
    actor = replace(actor, roles=actor.roles & granted)
    if not resolvers:
        return actor
    person = RequestContext(tenant=tenant, actor=Actor(id=actor.id, roles=granted))
    return replace(actor, capabilities=_shared(actor, with_capabilities(resolvers, person).actor))


def _shared(one: Actor, other: Actor) -> frozenset[str]:
    """Returns the capabilities that both have."""
    return frozenset(
        {each for each in one.capabilities if other.may(each)} | {each for each in other.capabilities if one.may(each)}
    )


def _check_credential(access: Access, request: RequestContext, now: datetime) -> None:
    actor = request.actor
    if request.expires_at is not None and now >= request.expires_at and not request.is_late:
        raise _ended(f"the credential of {actor.id!r} has expired")
    if actor.key:
        _check_key(access, actor, request, now)
    if request.session and not request.is_late:
        session = access.session(request.session)
        if session is None or session.ended_at is not None or session.expires_at <= now:
            raise _ended(f"the session of {actor.id!r} has ended")


def _check_key(access: Access, actor: Actor, request: RequestContext, now: datetime) -> None:
    key = access.key(actor.key)
    if key is None or key.tenant != request.tenant or key.actor != actor.id:
        raise _ended(f"{actor.id!r} came with a key that is not theirs")
    if key.revoked_at is not None:
        raise _ended(f"the key that {actor.id!r} came with is revoked")
    if key.expires_at is not None and key.expires_at <= now:
        raise _ended(f"the key that {actor.id!r} came with has expired")
    if key.partition not in {"", request.partition}:
        told = f"the key that {actor.id!r} came with is bound to {key.partition!r}"
        raise forbidden(PeopleRefusal.OTHER_PARTITION, f"{told}; act in that part of the tenant")


def _ended(told: str) -> ForbiddenError:
    return forbidden(PeopleRefusal.CREDENTIAL_ENDED, f"{told}; come with another one")


def _standing_in(access: Access, actor: Actor, asking: Asking, now: datetime) -> Actor:
    """Returns the actor as they decide for somebody else, if they stand in for them now in workflows of this name."""
    stands_in, definition = asking.stands_in, asking.definition
    assert stands_in is not None
    giver = stands_in.name
    if access.is_elsewhere and asking.vouched is not None:  # The host's directory was asked for this very command.
        return replace(actor, on_behalf_of=giver, roles=actor.roles | (stands_in.roles or stands_in.lent))
    held = [
        each
        for each in access.delegations_to(actor.id, now)
        if each.giver == giver and each.holds(now) and each.definition in {"", definition}
    ]
    theirs = access.person(giver, now).roles(now)
    lent = {role for role in theirs for each in held if each.role in {"", role}}
    is_whole = any(not each.role for each in held)
    if not stands_in.roles <= lent or not (stands_in.roles or is_whole):
        told = f"{actor.id!r} does not stand in for {giver!r} in this matter any more"
        raise forbidden(PeopleRefusal.NOT_STANDING_IN, f"{told}; somebody who is asked has to decide")
    # Whoever is asked by name is stood in for with all that was lent: the question may take what they have by a role.
    return replace(actor, on_behalf_of=giver, roles=actor.roles | (stands_in.roles or lent))


def _check_needs(actor: Actor, needs: Sequence[str]) -> None:
    for each in needs:
        if not actor.may(each):
            told = f"{actor.id!r} may not do this: that needs the capability {each!r}"
            raise ForbiddenError(reason=NOT_ALLOWED, message=told)
