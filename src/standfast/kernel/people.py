"""People as values: who there is, what they may do since when, who stands in for whom, who is away; and how they are looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Literal, Protocol

import msgspec

PREFERENCES: Final = "notices"
"""The attribute of a person that holds their notification preferences."""


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """A person or a program that the directory knows."""

    id: str
    """As actors and definitions name it."""
    kind: Literal["user", "service"] = "user"
    """Whether it is a person or a program."""
    name: str = ""
    """For people to read."""
    email: str = ""
    is_active: bool = True
    """Whether it may act at all; a deactivated one can neither be asked nor decide."""
    manager: str = ""
    """Id of whom it reports to; empty if nobody."""
    attributes: Mapping[str, object] = {}
    """Whatever else the host system wants to keep: a department, a cost centre."""


class _Period(msgspec.Struct, frozen=True, kw_only=True):
    """Something that holds for a while."""

    id: int = 0
    """Names it among those of its kind; 0 in a file."""
    begins_at: datetime | None = None
    """None means that it always held."""
    ends_at: datetime | None = None
    """The first instant at which it no longer holds; None means that no end is known."""

    def holds(self, at: datetime) -> bool:
        """Whether it holds at an instant."""
        return (self.begins_at is None or self.begins_at <= at) and (self.ends_at is None or at < self.ends_at)

    def meets(self, other: _Period) -> bool:
        """Whether both hold at some instant."""
        return _precedes(self.begins_at, other.ends_at) and _precedes(other.begins_at, self.ends_at)


def _precedes(begins_at: datetime | None, ends_at: datetime | None) -> bool:
    return begins_at is None or ends_at is None or begins_at < ends_at


class Grant(_Period, frozen=True, kw_only=True):
    """A role that somebody has."""

    principal: str
    role: str


class Delegation(_Period, frozen=True, kw_only=True):
    """Somebody stands in for somebody else."""

    giver: str
    """For whom decisions may be made."""
    receiver: str
    """Who may make them."""
    role: str = ""
    """Only for what the giver is asked as holder of this role; empty for all."""
    definition: str = ""
    """Only for workflows of this name; empty for all."""
    reason: str = ""

    def covers(self, *, role: str, definition: str) -> bool:
        """Whether it is about a question to the holders of a role, or to the giver by name (an empty role), in a workflow."""
        return self.role in {"", role} and self.definition in {"", definition}


class Absence(_Period, frozen=True, kw_only=True):
    """Somebody is away."""

    principal: str
    reason: str = ""


class DirectoryChange(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody changed in the directory, for auditors."""

    id: int = 0
    principal: str
    """Whom it is about."""
    action: str
    """What was done: the name of the call, such as `grant`."""
    details: Mapping[str, object]
    """What is so since then."""
    before: Mapping[str, object] = {}
    """What was so before, as far as it is something else now."""
    reason: str = ""
    """Why, in the words of who did it."""
    actor: str
    """Who did it."""
    on_behalf_of: str = ""
    at: datetime


class DirectoryLook(Protocol):
    """The people of one tenant, as of one moment."""

    def is_empty(self) -> bool:
        """Whether nobody is known at all."""
        ...

    def has_grants(self) -> bool:
        """Whether a role was ever granted to anybody."""
        ...

    def principals(self, ids: Sequence[str]) -> list[Principal]:
        """Those of them who are known, by id."""
        ...

    def page(self, *, after: str, limit: int) -> list[Principal]:
        """Everybody, by id, after one of them."""
        ...

    def inactive(self) -> list[str]:
        """Those who are deactivated, by id."""
        ...

    def grants(self, *, principals: Sequence[str] = (), role: str = "", at: datetime) -> list[Grant]:
        """The grants to somebody, or of a role, that are not over, oldest first; those that have not begun are among them."""
        ...

    def delegations(self, *, givers: Sequence[str] = (), receiver: str = "", at: datetime) -> list[Delegation]:
        """The delegations by or to somebody that are not over, oldest first; those that have not begun are among them."""
        ...

    def absences(self, principals: Sequence[str], *, at: datetime) -> list[Absence]:
        """The absences of these that are not over, oldest first; those that have not begun are among them."""
        ...


def is_address(text: str) -> bool:
    """Whether mail could be sent to what somebody gave as an address; nothing more is known of it before it was tried."""
    name, _, domain = text.rpartition("@")
    return bool(name and domain) and not any(each.isspace() for each in text)
