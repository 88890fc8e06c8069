"""Where the engine looks people up: a protocol of one question, the static directory of a file, and a look at one instant.

The tables of the engine's database are another directory (`people/directory_tables`); a host system may bring one of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from pathlib import Path
from typing import ClassVar

import msgspec

from standfast.kernel.people import Absence, Delegation, DirectoryLook, Grant, Principal
from standfast.people.directory_files import Roster, read_roster
from standfast.store.records.instances import DEFAULT_TENANT

_EMPTY = Roster()


class Directory(ABC):
    """Who there is. The engine asks it when a question is to be put to people, and when one of them acts.

    One of the host's own may hang: it is asked on threads that are kept for it, for as long as the setting `people_timeout` says.
    """

    may_hang: bool = True
    """Whether an answer may take longer than one of the engine's own database."""

    changes_unseen: ClassVar[bool] = True
    """Whether its people may change without the engine hearing of it. Then it is asked for every command, and nothing of it is remembered."""

    has_versions: ClassVar[bool] = False
    """Whether it is the engine's own database, which counts the changes of a tenant's people."""

    @property
    def name(self) -> str:
        """What operators call it: its class."""
        return type(self).__name__

    @abstractmethod
    def looking(self, tenant: str) -> AbstractContextManager[DirectoryLook]:
        """A look at the people of a tenant: what is asked in the block fits together."""
        ...

    def is_known_empty(self, tenant: str, now: datetime) -> bool:
        """Whether a tenant certainly has nobody here, as far as that can be told without asking; then nothing is asked."""
        del tenant, now
        return False

    def note_empty(self, tenant: str, now: datetime) -> None:
        """A look has found nobody, which may be remembered for a moment."""
        del tenant, now

    def grants_roles(self, tenant: str, now: datetime) -> bool:
        """Whether roles of a tenant may be granted here, so that those whom a definition names are looked up.

        Every start of a run that asks people asks this, so it is answered without asking the world.
        """
        del tenant, now
        return True

    @staticmethod
    def from_file(path: str | Path, *, tenant: str = DEFAULT_TENANT) -> StaticDirectory:
        """The people of a YAML file, for one tenant. It is read once; ConfigurationError with all its faults if it cannot be."""
        return StaticDirectory(read_roster(path), tenant=tenant)


class StaticDirectory(Directory):
    """People who do not change while the engine runs."""

    may_hang = False
    changes_unseen = False

    def __init__(self, roster: Roster, *, tenant: str = DEFAULT_TENANT) -> None:
        self._look = _StaticLook(roster)
        self._tenant = tenant

    @property
    def name(self) -> str:
        """The name that is stored with what it vouches for."""
        return "StaticDirectory"

    def looking(self, tenant: str) -> AbstractContextManager[DirectoryLook]:
        """Those of the file, for its tenant."""
        return nullcontext(self._look if tenant == self._tenant else _NOBODY)

    def grants_roles(self, tenant: str, now: datetime) -> bool:
        """Whether the file does."""
        del now
        return tenant == self._tenant and self._look.has_grants()


class _StaticLook:
    """A roster as a look."""

    def __init__(self, roster: Roster) -> None:
        self._people = {each.id: each for each in roster.principals}
        self._roster = roster

    def is_empty(self) -> bool:
        """Whether nobody is known."""
        return not self._people

    def has_grants(self) -> bool:
        """Whether anybody has, had or will have a role."""
        return bool(self._roster.grants)

    def principals(self, ids: Sequence[str]) -> list[Principal]:
        """Those who are known."""
        return [self._people[each] for each in sorted(set(ids)) if each in self._people]

    def page(self, *, after: str, limit: int) -> list[Principal]:
        """Everybody, by id."""
        return [self._people[each] for each in sorted(self._people) if each > after][:limit]

    def inactive(self) -> list[str]:
        """Those who are deactivated."""
        return sorted(each.id for each in self._people.values() if not each.is_active)

    def grants(self, *, principals: Sequence[str] = (), role: str = "", at: datetime) -> list[Grant]:
        """Grants that are not over."""
        return [
            each
            for each in self._roster.grants
            if (each.role == role if role else each.principal in principals) and _lasts(each, at)
        ]

    def delegations(self, *, givers: Sequence[str] = (), receiver: str = "", at: datetime) -> list[Delegation]:
        """Delegations that are not over."""
        return [
            each
            for each in self._roster.delegations
            if (each.receiver == receiver if receiver else each.giver in givers) and _lasts(each, at)
        ]

    def absences(self, principals: Sequence[str], *, at: datetime) -> list[Absence]:
        """Absences that are not over."""
        return [each for each in self._roster.absences if each.principal in principals and _lasts(each, at)]


_NOBODY = _StaticLook(_EMPTY)


def _lasts(period: Grant | Delegation | Absence, at: datetime) -> bool:
    return period.ends_at is None or period.ends_at > at


class Crowd(msgspec.Struct, frozen=True):
    """What is to be known of several people at one instant, and of those who stand in for them."""

    people: dict[str, Principal]
    absent: frozenset[str]
    delegations: dict[str, list[Delegation]]
    """Those that hold, by giver, oldest first."""

    def is_here(self, name: str) -> bool:
        """Whether somebody can be asked now; a name that the directory does not know is taken as it is."""
        known = self.people.get(name)
        return known is None or (known.is_active and name not in self.absent)

    def is_active(self, name: str) -> bool:
        """Whether somebody may act at all."""
        known = self.people.get(name)
        return known is None or known.is_active

    def stand_in(self, name: str, *, role: str, definition: str, but: Collection[str] = ()) -> str:
        """Who stands in for somebody in a matter; those in `but` do not. Empty if nobody does."""
        for each in self.delegations.get(name, ()):
            if (
                each.covers(role=role, definition=definition)
                and each.receiver not in but
                and self.is_here(each.receiver)
            ):
                return each.receiver
        return ""


class Look:
    """People at one instant."""

    def __init__(self, rows: DirectoryLook, at: datetime) -> None:
        self.rows = rows
        self.at = at

    def is_empty(self) -> bool:
        """Whether nobody is known."""
        return self.rows.is_empty()

    def person(self, name: str) -> Principal | None:
        """Somebody, if known."""
        return next(iter(self.rows.principals([name])), None)

    def crowd(self, names: Iterable[str]) -> Crowd:
        """All that is to be known of several people."""
        asked = sorted(set(names))
        delegations: dict[str, list[Delegation]] = {}
        for each in self.rows.delegations(givers=asked, at=self.at):
            if each.holds(self.at):
                delegations.setdefault(each.giver, []).append(each)
        others = {each.receiver for several in delegations.values() for each in several}
        everybody = sorted({*asked, *others})
        people = {each.id: each for each in self.rows.principals(everybody)}
        return Crowd(people, self.absent(everybody), delegations)

    def holders(self, role: str) -> list[str]:
        """Those who have a role, by id, deactivated ones too."""
        return sorted({each.principal for each in self.rows.grants(role=role, at=self.at) if each.holds(self.at)})

    def has_people(self, role: str) -> bool:
        """Whether a role is granted to anybody but service accounts."""
        holders = self.holders(role)
        services = {each.id for each in self.rows.principals(holders) if each.kind == "service"}
        return bool(set(holders) - services)

    def roles(self, names: Sequence[str]) -> dict[str, frozenset[str]]:
        """The roles of each of them."""
        found: dict[str, set[str]] = {each: set() for each in names}
        for each in self.rows.grants(principals=names, at=self.at):
            if each.holds(self.at):
                found[each.principal].add(each.role)
        return {name: frozenset(roles) for name, roles in found.items()}

    def delegations_to(self, receiver: str) -> list[Delegation]:
        """Those by which somebody stands in for others."""
        return [each for each in self.rows.delegations(receiver=receiver, at=self.at) if each.holds(self.at)]

    def absent(self, names: Sequence[str]) -> frozenset[str]:
        """Those of them who are away."""
        return frozenset(each.principal for each in self.rows.absences(names, at=self.at) if each.holds(self.at))
