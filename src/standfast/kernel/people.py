"""People as values: principals, grants, delegations and absences, and the interface to look them up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Literal, Protocol

import msgspec

PREFERENCES: Final = "notices"
"""The attribute of a person that holds their notification preferences."""


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """A person or a program in the directory."""

    id: str
    """Id used by actors and definitions."""
    kind: Literal["user", "service"] = "user"
    """Whether it is a person or a program."""
    name: str = ""
    """Display name."""
    email: str = ""
    is_active: bool = True
    """Whether it may act. A deactivated principal is neither asked nor allowed to decide."""
    manager: str = ""
    """Id of the manager. Empty without one."""
    attributes: Mapping[str, object] = {}
    """Further data of the host system, such as a department or a cost centre."""


class _Period(msgspec.Struct, frozen=True, kw_only=True):
    """Base class of entries that apply for a period."""

    id: int = 0
    """Id among entries of its kind. 0 in a file."""
    begins_at: datetime | None = None
    """Start of the period. None means unlimited."""
    ends_at: datetime | None = None
    """End of the period, exclusive. None means unlimited."""

    def holds(self, at: datetime) -> bool:
        """Return whether it applies at a time."""
        return (self.begins_at is None or self.begins_at <= at) and (self.ends_at is None or at < self.ends_at)

    def meets(self, other: _Period) -> bool:
        """Return whether both apply at a common time."""
        return _precedes(self.begins_at, other.ends_at) and _precedes(other.begins_at, self.ends_at)


def _precedes(begins_at: datetime | None, ends_at: datetime | None) -> bool:
    return begins_at is None or ends_at is None or begins_at < ends_at


class Grant(_Period, frozen=True, kw_only=True):
    """A role granted to a principal."""

    principal: str
    role: str


class Delegation(_Period, frozen=True, kw_only=True):
    """A delegation: the receiver decides in the giver's place."""

    giver: str
    """The person who is represented."""
    receiver: str
    """The person who may decide."""
    role: str = ""
    """Limits it to tasks that the giver has by this role. Empty for all."""
    definition: str = ""
    """Limits it to workflows of this name. Empty for all."""
    reason: str = ""

    def covers(self, *, role: str, definition: str) -> bool:
        """Return whether it covers a task of a workflow for a role, or for the giver by name if the role is empty."""
        return self.role in {"", role} and self.definition in {"", definition}


class Absence(_Period, frozen=True, kw_only=True):
    """An absence of a principal."""

    principal: str
    reason: str = ""


class DirectoryChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change in the directory, for auditors."""

    id: int = 0
    principal: str
    """The principal concerned."""
    action: str
    """Name of the call, such as `grant`."""
    details: Mapping[str, object]
    """The new values."""
    before: Mapping[str, object] = {}
    """The previous values that changed."""
    reason: str = ""
    """Reason given by the acting person."""
    actor: str
    """The acting person."""
    on_behalf_of: str = ""
    at: datetime


class DirectoryLook(Protocol):
    """The people of one tenant at one moment."""

    def is_empty(self) -> bool:
        """Whether no principal is known."""
        ...

    def has_grants(self) -> bool:
        """Whether a role was ever granted."""
        ...

    def principals(self, ids: Sequence[str]) -> list[Principal]:
        """Return the known principals among these ids, by id."""
        ...

    def page(self, *, after: str, limit: int) -> list[Principal]:
        """Return a page of all principals by id, after the given one."""
        ...

    def inactive(self) -> list[str]:
        """Return the ids of the deactivated principals."""
        ...

    def grants(self, *, principals: Sequence[str] = (), role: str = "", at: datetime) -> list[Grant]:
        """Return the grants to principals or of a role that have not ended, oldest first. Future ones are included."""
        ...

    def delegations(self, *, givers: Sequence[str] = (), receiver: str = "", at: datetime) -> list[Delegation]:
        """Return the delegations by or to a principal that have not ended, oldest first. Future ones are included."""
        ...

    def absences(self, principals: Sequence[str], *, at: datetime) -> list[Absence]:
        """Return the absences of these principals that have not ended, oldest first. Future ones are included."""
        ...


def is_address(text: str) -> bool:
    """Return whether the text has the form of a mail address. Only sending a mail verifies it."""
    name, _, domain = text.rpartition("@")
    return bool(name and domain) and not any(each.isspace() for each in text)
