"""Who somebody is when they act: their roles as the directory has them now, and for whom they stand in."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

import msgspec
from msgspec.structs import replace

from standfast.engine.commit.facts import StandsIn
from standfast.kernel.actor import Actor, RequestContext
from standfast.kernel.facts import Deputy, PersonFact
from standfast.kernel.row_kinds.tasks import StoredPerson
from standfast.machine.model.engine_tasks import Person, picked_by
from standfast.people.directory import Directory, Look
from standfast.people.rejections import PeopleRefusal, check_active, forbidden, refused


class StandIn(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody for whom the actor may decide now."""

    id: str
    role: str = ""
    """Only what they are asked as holder of this role; empty for all."""
    definition: str = ""
    """Only in workflows of this name; empty for all."""
    roles: frozenset[str] = frozenset()
    """The roles that they have themselves."""

    def role_for(self, person: Person, definition: str) -> str | None:
        """By which role they are one of those who are asked; empty if by their name, None if they are not, or this is no matter of the actor's.

        Whoever was picked as holder of a role is asked by name, and as holder of this role.
        """
        if self.definition not in {"", definition}:
            return None
        if person.kind == "role":
            is_asked = person.name in self.roles and self.role in {"", person.name}
            return person.name if is_asked else None
        if person.name != self.id:
            return None
        if not self.role:
            return ""
        return self.role if picked_by(person) == self.role and self.role in self.roles else None


class Matter(msgspec.Struct, frozen=True, kw_only=True):
    """Whose matter something is that is done to a question."""

    people: list[Person]
    settled: list[Person] = []
    """Those from whom nothing is wanted any more because they have decided."""
    deciders: frozenset[str] = frozenset()
    """Those who have decided, whoever they stood in for: for another one they act only if they say so."""


class Authority(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody may do as far as the directory knows."""

    actor: Actor
    """With the roles that were granted, besides those that the request says."""
    stands_in_for: list[StandIn] = []
    is_known: bool = False
    """Whether the directory has the actor."""
    is_person: bool = False
    """Whether it has them as a person, and not as a service account."""
    granted: frozenset[str] | None = None
    """All roles that a directory of the host grants to the actor; None if it does not have the actor, or grants no roles at all."""

    @property
    def everybody(self) -> list[str]:
        """The actor, and all for whom they stand in."""
        return list(dict.fromkeys([self.actor.id, *(each.id for each in self.stands_in_for)]))

    def is_asked(self, people: Iterable[Person | StoredPerson]) -> bool:
        """Whether the actor is one of these themselves, or has the role of one."""
        return _is_asked(self.actor, people)

    def stood_in_for(self, people: Iterable[Person], definition: str) -> dict[str, set[str]]:
        """Those for whom the actor can decide on a question to these people, each with the roles by which they are asked."""
        asked = list(people)
        found: dict[str, set[str]] = {}
        for each in self.stands_in_for:
            ways = [way for person in asked if (way := each.role_for(person, definition)) is not None]
            if ways:
                found.setdefault(each.id, set()).update(filter(None, ways))
        return found

    def deciding(self, matter: Matter, *, definition: str = "", on_behalf_of: str = "") -> Actor:
        """As whom the actor decides on a question: as themselves if they are asked or have decided, else for the one they stand in for.

        RejectedError if that is one of several: `on_behalf_of` says which. ForbiddenError if it is somebody for whom they do not stand in.
        """
        if self.actor.kind == "system":
            return replace(self.actor, on_behalf_of=on_behalf_of) if on_behalf_of else self.actor
        stands_in = self.standing_in(matter, definition=definition, on_behalf_of=on_behalf_of)
        if stands_in is None:
            return self.actor
        lent = stands_in.roles or stands_in.lent
        return replace(self.actor, on_behalf_of=stands_in.name, roles=self.actor.roles | lent)

    def standing_in(self, matter: Matter, *, definition: str = "", on_behalf_of: str = "") -> StandsIn | None:
        """For whom the actor decides on a question, by a delegation; None if for themselves. It raises what `deciding` does."""
        actor = self.actor
        is_own = actor.on_behalf_of or on_behalf_of or actor.id in matter.deciders or self.is_asked(matter.people)
        if actor.kind == "system" or (on_behalf_of in {"", actor.id} and is_own):
            return None
        people = [*matter.people, *matter.settled] if on_behalf_of else matter.people
        found = self.stood_in_for(people, definition)
        if on_behalf_of:
            found = {name: roles for name, roles in found.items() if name == on_behalf_of}
        if on_behalf_of and not found:
            raise forbidden(PeopleRefusal.NOT_STANDING_IN, self._not_standing_in(on_behalf_of))
        if len(found) > 1:
            raise refused(
                PeopleRefusal.SEVERAL_STOOD_IN_FOR,
                f"{actor.id!r} stands in for several who are asked: {', '.join(sorted(found))}; say for whom with `on_behalf_of`",
            )
        return next((StandsIn(name, frozenset(roles), self._lent(name)) for name, roles in found.items()), None)

    def is_one_of(self, people: Iterable[Person], *, definition: str = "") -> bool:
        """Whether the actor is one of these people, or stands in for one of them in workflows of this name."""
        return any(
            _is_asked(self.actor, [person])
            or any(each.role_for(person, definition) is not None for each in self.stands_in_for)
            for person in people
        )

    def _lent(self, name: str) -> frozenset[str]:
        return next((each.roles for each in self.stands_in_for if each.id == name), frozenset())

    def _not_standing_in(self, name: str) -> str:
        others = ", ".join(repr(each.id) for each in self.stands_in_for) or "nobody"
        return f"{self.actor.id!r} does not stand in for {name!r} in this matter now; for {others} they do"


def authority(directory: Directory, request: RequestContext, now: datetime) -> Authority:
    """Who the actor of a request is. ForbiddenError if they are deactivated; whoever the directory does not know is as the request says.

    StoreUnavailableError if a directory of the host's own cannot be asked: nobody acts whom it has not vouched for.
    """
    actor = request.actor
    if actor.kind == "system" or directory.is_known_empty(request.tenant, now):
        return Authority(actor=actor)
    with directory.looking(request.tenant) as rows:
        look = Look(rows, now)
        known = look.person(actor.id)
        if known is None and look.is_empty():
            directory.note_empty(request.tenant, now)
            return Authority(actor=actor)
        people = {actor.id: known}
        if actor.on_behalf_of:
            people[actor.on_behalf_of] = look.person(actor.on_behalf_of)
        check_active(actor, lambda name: (found := people[name]) is None or found.is_active)
        found = _known(look, actor)
        if not directory.changes_unseen or known is None:
            return found
        granted = look.roles([actor.id])[actor.id] if look.rows.has_grants() else None
        told = replace(found, is_known=True, is_person=known.kind == "user")
        return replace(told, granted=None if granted is None else frozenset(granted))


def told_of(directory: Directory, tenant: str, names: Collection[str], now: datetime) -> tuple[PersonFact, ...]:
    """What a directory says of people now, as a commit would read it: for those of the host, which no commit can ask."""
    with directory.looking(tenant) as rows:
        look, asked = Look(rows, now), sorted(set(names))
        if look.is_empty():
            return tuple(PersonFact(id=each) for each in asked)
        crowd, roles = look.crowd(asked), look.roles(asked)
        return tuple(
            PersonFact(
                id=name,
                is_kept=True,
                is_known=name in crowd.people,
                is_active=crowd.is_active(name),
                is_away=name in crowd.absent,
                roles=roles[name],
                stand_ins=tuple(
                    Deputy(
                        to=each.receiver,
                        role=each.role,
                        definition=each.definition,
                        is_here=crowd.is_here(each.receiver),
                    )
                    for each in crowd.delegations.get(name, ())
                ),
            )
            for name in asked
        )


def check_heir(directory: Directory, tenant: str, person: Person, now: datetime) -> None:
    """RejectedError if somebody is to be given a question who could never decide it: deactivated, unknown, or a role that nobody has.

    A directory without people knows nobody, and one that grants no roles does not know who has one: there any name is taken.
    """
    with directory.looking(tenant) as rows:
        look = Look(rows, now)
        if look.is_empty() or not person.name.strip():  # That nobody is named the run says itself.
            return
        if person.kind == "role":
            _check_role(look, person.name)
        else:
            _check_user(look, person.name)


def _check_user(look: Look, name: str) -> None:
    known = look.person(name)
    if known is None:
        told = f"{name!r} is not in the directory and could not decide; name somebody who is, or put them into it first"
        raise refused(PeopleRefusal.UNKNOWN_PERSON, told)
    if not known.is_active:
        told = f"{name!r} is deactivated and could not decide; name somebody else, or activate them"
        raise refused(PeopleRefusal.DEACTIVATED, told)


def _check_role(look: Look, role: str) -> None:
    if not look.rows.has_grants():
        return
    holders = look.holders(role)
    crowd = look.crowd(holders)
    if not any(crowd.is_active(each) for each in holders):
        told = f"nobody who could decide has the role {role!r}; name somebody else, or grant it first"
        raise refused(PeopleRefusal.ROLE_OF_NOBODY, told)


def _known(look: Look, actor: Actor) -> Authority:
    given = look.delegations_to(actor.id)
    roles = look.roles([actor.id, *(each.giver for each in given)])
    own = roles[actor.id]
    return Authority(
        actor=replace(actor, roles=actor.roles | own) if own - actor.roles else actor,
        stands_in_for=[
            StandIn(id=each.giver, role=each.role, definition=each.definition, roles=roles[each.giver])
            for each in given
        ],
    )


def _is_asked(actor: Actor, people: Iterable[Person | StoredPerson]) -> bool:
    for each in people:
        if each.name in actor.roles if each.kind == "role" else each.name in {actor.id, actor.on_behalf_of}:
            return True
    return False
