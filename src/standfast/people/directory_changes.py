"""Changes of the directory in the tables: which of them are sound, and who made them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final, Literal, TypeVar, cast

from msgspec.structs import replace

from standfast.errors import ForbiddenError, NotFoundError
from standfast.kernel.actor import Actor
from standfast.kernel.decision import NOT_ALLOWED
from standfast.kernel.people import PREFERENCES, Absence, Delegation, Grant, Principal
from standfast.kernel.row_kinds.changes import Change
from standfast.machine.model.rejections import Refusal
from standfast.people.cycles import delegation_circle, manager_circle
from standfast.people.rejections import PeopleRefusal, forbidden, refused
from standfast.store.ports.people import DirectoryUnit

P = TypeVar("P", Grant, Delegation, Absence)

_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
CHANGE_DIRECTORY = "directory:change"
"""The capability of whoever keeps the directory. Everybody may delegate what is their own, and say when they are away."""


class DirectoryChanges:
    """Changes the people of one tenant, for one actor, in one transaction: all of a change, or nothing."""

    def __init__(self, unit: DirectoryUnit, actor: Actor, now: datetime, *, told: Change) -> None:
        self._unit = unit
        self._actor = actor
        self._now = now
        self._told = told
        """Who changes something, and why; what it is, is filled in."""

    def put(self, principal: str, given: Mapping[str, object]) -> Principal:
        """Write somebody: what is not given stays as it is."""
        self._check_right()
        before = self._find(principal)
        after = replace(before or Principal(id=principal), **given)
        if after == before:
            return after
        self._check_manager(principal, after.manager)
        self._unit.put(after)
        was = {name: getattr(before, name, None) for name in given}
        self._note(principal, "put", given, before={} if before is None else was)
        return after

    def prefer(self, principal: str, wants: Mapping[str, object]) -> Principal:
        """Say what somebody wants of notices; they may say it of themselves."""
        self._check_right(principal)
        before = self._known(principal)
        after = replace(before, attributes={**before.attributes, PREFERENCES: dict(wants)})
        if after != before:
            self._unit.put(after)
            self._note(
                principal, "prefer", wants, before=cast("dict[str, object]", before.attributes.get(PREFERENCES, {}))
            )
        return after

    def set_active(self, principal: str, *, is_active: bool) -> None:
        """Let somebody act, or not any more."""
        self._check_right()
        before = self._known(principal)
        if before.is_active != is_active:
            self._unit.put(replace(before, is_active=is_active))
            was, now = ({"is_active": each} for each in (before.is_active, is_active))
            self._note(principal, "activate" if is_active else "deactivate", now, before=was)

    def set_manager(self, principal: str, manager: str) -> None:
        """Say whom somebody reports to; nobody if it is empty."""
        self._check_right()
        before = self._known(principal)
        if before.manager != manager:
            self._check_manager(principal, manager)
            self._unit.put(replace(before, manager=manager))
            self._note(principal, "set_manager", {"manager": manager}, before={"manager": before.manager})

    def grant(self, grant: Grant) -> None:
        """Give somebody a role, unless they have it for just as long."""
        self._check_right()
        self._check_active(self._known(grant.principal))
        asked = self._dated(grant)
        for each in self._unit.grants(principals=[grant.principal], at=self._now):
            if each.role == grant.role and each.ends_at == asked.ends_at and each.holds(_begin(asked)):
                return
        self._unit.grant(asked)
        self._note(grant.principal, "grant", {"role": grant.role} | _span(asked))

    def revoke(self, principal: str, role: str) -> bool:
        """Take a role from somebody, also one that is only to come; False if there is none."""
        self._check_right()
        self._known(principal)
        held = [each for each in self._unit.grants(principals=[principal], at=self._now) if each.role == role]
        for each in held:
            self._unit.end("grant", each.id, self._now)
        if held:
            was = {"role": role} | _span(held[0])
            self._note(principal, "revoke", {"role": role, "ends_at": self._now.isoformat()}, before=was)
        return bool(held)

    def delegate(self, delegation: Delegation) -> Delegation:
        """Let somebody stand in for somebody else."""
        asked = self._dated(delegation)
        self._check_right(asked.giver)
        if asked.giver == asked.receiver:
            raise refused(
                Refusal.DELEGATION_TO_SELF, f"{asked.giver!r} cannot stand in for themselves; name somebody else"
            )
        self._known(asked.giver)
        self._check_active(self._known(asked.receiver))
        circle = delegation_circle(asked, lambda givers: self._unit.delegations(givers=[*givers], at=self._now))
        if circle:
            raise refused(
                Refusal.DELEGATION_CIRCLE,
                f"the delegation would lead back to {asked.giver!r}: {' → '.join(circle)}; "
                "end one of the others, or take a period in which they do not hold",
            )
        made = replace(asked, id=self._unit.delegate(asked))
        details = {"to": asked.receiver, "role": asked.role, "definition": asked.definition, "reason": asked.reason}
        told = {"delegation": made.id} | _said(details) | _span(asked)
        self._note(asked.giver, "delegate", told, reason=asked.reason)
        return made

    def end_delegation(self, number: int) -> bool:
        """Have a delegation end now; False if it is over already."""
        found = self._unit.delegation(number)
        return self._end("delegation", number, found, "" if found is None else found.giver)

    def absent(self, absence: Absence) -> Absence:
        """Say that somebody is away."""
        asked = self._dated(absence)
        self._check_right(asked.principal)
        self._known(asked.principal)
        made = replace(asked, id=self._unit.absent(asked))
        told = {"absence": made.id} | _said({"reason": asked.reason}) | _span(asked)
        self._note(asked.principal, "absent", told, reason=asked.reason)
        return made

    def end_absence(self, number: int) -> bool:
        """Say that somebody is back; False if they are already."""
        found = self._unit.absence(number)
        return self._end("absence", number, found, "" if found is None else found.principal)

    def _end(
        self,
        kind: Literal["delegation", "absence"],
        number: int,
        found: Delegation | Absence | None,
        principal: str,
    ) -> bool:
        self._check_right(principal)
        if found is None:
            raise NotFoundError(kind, number, hint=f"`engine.directory.{kind}s` lists those that there are")
        if found.ends_at is not None and found.ends_at <= self._now:
            return False
        self._unit.end(kind, number, self._now)
        was = {"ends_at": None if found.ends_at is None else found.ends_at.isoformat()}
        self._note(principal, f"end_{kind}", {kind: number, "ends_at": self._now.isoformat()}, before=was)
        return True

    def _check_right(self, own: str = "") -> None:
        """Whether the actor may change the directory, or this of their own."""
        found = None if self._actor.kind == "system" else self._find(self._actor.id)
        if found is not None:
            self._check_active(found, is_actor=True)
        if not self._actor.may(CHANGE_DIRECTORY) and (not own or own != self._actor.id):
            raise ForbiddenError(
                reason=NOT_ALLOWED,
                message=f"{self._actor.id!r} may not change the directory: that takes the capability {CHANGE_DIRECTORY!r}; "
                "without it one can delegate what is one's own, and say when one is away",
            )

    def _check_active(self, principal: Principal, *, is_actor: bool = False) -> None:
        if not principal.is_active:
            refusing = forbidden if is_actor else refused
            raise refusing(
                PeopleRefusal.DEACTIVATED, f"{principal.id!r} is deactivated; activate them first, or take another"
            )

    def _check_manager(self, principal: str, manager: str) -> None:
        if not manager:
            return
        if manager != principal:
            self._known(manager)
        if circle := manager_circle(principal, manager, self._manager_of):
            raise refused(
                PeopleRefusal.MANAGER_CIRCLE,
                f"{principal!r} would be their own manager: {' → '.join(circle)}; give one of them another manager first",
            )

    def _manager_of(self, name: str) -> str:
        found = self._find(name)
        return "" if found is None else found.manager

    def _find(self, name: str) -> Principal | None:
        return next(iter(self._unit.principals([name])), None)

    def _known(self, name: str) -> Principal:
        found = self._find(name)
        if found is None:
            raise NotFoundError("person", name, hint="put them into the directory first, with `engine.directory.put`")
        return found

    def _dated(self, period: P) -> P:
        """What begins now unless it says when, and ends after that."""
        dated = period if period.begins_at is not None else replace(period, begins_at=self._now)
        if dated.ends_at is not None and dated.ends_at <= _begin(dated):
            raise refused(
                PeopleRefusal.EMPTY_PERIOD,
                f"the period ends at {dated.ends_at.isoformat()}, and begins at {_begin(dated).isoformat()}; give an end that lies after that",
            )
        return dated

    def _note(
        self,
        principal: str,
        action: str,
        details: Mapping[str, object],
        *,
        before: Mapping[str, object] = _NOTHING,
        reason: str = "",
    ) -> None:
        why = reason or self._told.reason
        self._unit.note(
            replace(self._told, name=principal, action=action, before=dict(before), after=dict(details), reason=why)
        )


def _begin(period: Grant | Delegation | Absence) -> datetime:
    assert period.begins_at is not None, "what is in the tables says when it begins"
    return period.begins_at


def _said(details: Mapping[str, str]) -> dict[str, object]:
    """What was said of it."""
    return {key: value for key, value in details.items() if value}


def _span(period: Grant | Delegation | Absence) -> dict[str, object]:
    """From when to when, for auditors."""
    ends = {} if period.ends_at is None else {"ends_at": period.ends_at.isoformat()}
    return {"begins_at": _begin(period).isoformat(), **ends}
