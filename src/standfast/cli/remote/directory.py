"""People and approval chains, asked of a server; see `remote`."""
# ruff: noqa: D102 - the words of the engine's own calls, which say what they mean

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from standfast.calls.paging import written
from standfast.cli.remote.lists import Missing, gathered, whole
from standfast.features.runs.views import HumanTask
from standfast.kernel.people import Absence, Delegation, DirectoryChange, Principal
from standfast.people.approval_chains import Chain

if TYPE_CHECKING:
    from standfast.client import Client


class RemoteDirectory(Missing):
    """People."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def put(
        self,
        person: str,
        *,
        name: str | None = None,
        email: str | None = None,
        kind: Literal["user", "service"] | None = None,
        manager: str | None = None,
        attributes: dict[str, object] | None = None,
    ) -> Principal:
        return self._client.put_person(
            person, name=name, email=email, kind=kind, manager=manager, attributes=attributes
        )

    def get(self, person: str) -> Principal:
        return self._client.get_person(person)

    def list(self, *, after: str = "", limit: int = 100) -> builtins.list[Principal]:
        place = written(after) if after else ""
        return gathered(lambda cursor, size: self._client.list_people(cursor=cursor, limit=size), place, limit)

    def prefer(self, person: str, *, language: str = "", off: Sequence[str] = ()) -> Principal:
        return self._client.prefer(person, language=language, off=off)

    def deactivate(self, person: str) -> None:
        self._client.deactivate_person(person)

    def activate(self, person: str) -> None:
        self._client.activate_person(person)

    def grant(
        self, person: str, role: str, *, begins_at: datetime | None = None, ends_at: datetime | None = None
    ) -> None:
        self._client.grant_role(person, role, begins_at=begins_at, ends_at=ends_at)

    def revoke(self, person: str, role: str) -> bool:
        return self._client.revoke_role(person, role).was

    def delegate(
        self,
        giver: str,
        to: str,
        *,
        begins_at: datetime | None = None,
        ends_at: datetime | None = None,
        role: str = "",
        definition: str = "",
        reason: str = "",
    ) -> Delegation:
        return self._client.add_delegation(
            giver=giver,
            to=to,
            begins_at=begins_at,
            ends_at=ends_at,
            role=role,
            definition=definition,
            reason=reason,
        )

    def end_delegation(self, delegation: int) -> bool:
        return self._client.end_delegation(delegation).was

    def delegations(self, person: str) -> builtins.list[Delegation]:
        return self._client.list_delegations(person=person)

    def absent(
        self, person: str, *, begins_at: datetime | None = None, ends_at: datetime | None = None, reason: str = ""
    ) -> Absence:
        return self._client.add_absence(person=person, begins_at=begins_at, ends_at=ends_at, reason=reason)

    def end_absence(self, absence: int) -> bool:
        return self._client.end_absence(absence).was

    def absences(self, person: str) -> builtins.list[Absence]:
        return self._client.list_absences(person=person)

    def holders(self, role: str) -> builtins.list[Principal]:
        return whole(lambda cursor, size: self._client.list_holders(role, cursor=cursor, limit=size))

    def roles_of(self, person: str) -> builtins.list[str]:
        return self._client.list_roles(person)

    def open_tasks_of_inactive(self, *, after: HumanTask | None = None, limit: int = 100) -> Sequence[HumanTask]:
        place = "" if after is None else written([after.asked_at, after.instance, after.step_number])
        return gathered(lambda cursor, size: self._client.list_stranded(cursor=cursor, limit=size), place, limit)

    def changes(self, person: str = "", *, before: int = 0, limit: int = 100) -> builtins.list[DirectoryChange]:
        place = written(before) if before else ""
        return gathered(
            lambda cursor, size: self._client.list_changes(person=person, cursor=cursor, limit=size), place, limit
        )


class RemoteChains(Missing):
    """Approval chains."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def publish(self, name: str, stages: Sequence[Mapping[str, object]], *, description: str = "") -> Chain:
        return self._client.publish_chain(name=name, stages=[*map(dict, stages)], description=description)

    def get(self, name: str, version: int = 0) -> Chain:
        return self._client.get_chain(name, version=version)

    def list(self) -> builtins.list[Chain]:
        return whole(lambda cursor, size: self._client.list_chains(cursor=cursor, limit=size))

    def versions(self, name: str) -> builtins.list[Chain]:
        return whole(lambda cursor, size: self._client.list_chain_versions(name, cursor=cursor, limit=size))
