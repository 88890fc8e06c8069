"""Calls of the directory: who there is, what they may do, who stands in for whom."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Literal, TypeVar

from standfast.calls.authorization import check_unbound
from standfast.calls.context import (
    CallContext,
    checked_after,
    checked_bare,
    checked_instant,
    checked_key,
    checked_last,
    checked_limit,
    checked_person,
    checked_text,
)
from standfast.calls.handlers.step_handlers import plain
from standfast.engine.concurrency.replies import Reply
from standfast.errors import ConfigurationError, NotFoundError, PayloadError
from standfast.features.runs.views import HumanTask
from standfast.features.tasks.authorization import open_people
from standfast.features.tasks.views import listed_task
from standfast.graph.values.approver_rules import agreement_in_words
from standfast.kernel.people import Absence, Delegation, DirectoryChange, Grant, Principal, is_address
from standfast.kernel.row_kinds.changes import Change
from standfast.kernel.row_kinds.steps import StoredTask, TaskPlace
from standfast.notifications.templates import is_language
from standfast.people.approvers import Stranded, stranded
from standfast.people.directory import Look
from standfast.people.directory_changes import DirectoryChanges
from standfast.people.directory_tables import TableDirectory
from standfast.store.ports.changes import ChangeQuery
from standfast.store.ports.reading import TenantReader
from standfast.store.ports.store import StoreParts
from standfast.store.ports.tasks import AssigneeRecord, ListedTask, TaskQuery

T = TypeVar("T")

PERSON = "person"
"""What changes of the directory are about."""
_MOST_TASKS = 1000
"""Questions that are looked at at once."""


class FutureDirectory:
    """What can be asked of people, and changed. Who changes it is the actor of these calls (`acting`), and every change is kept.

    Changes take the capability `directory:change`; one's own absences and delegations take none.
    """

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def put(
        self,
        person: str,
        *,
        name: str | None = None,
        email: str | None = None,
        kind: Literal["user", "service"] | None = None,
        manager: str | None = None,
        attributes: Mapping[str, object] | None = None,
    ) -> Reply[Principal]:
        """Write somebody into the directory, or change them: what is not given stays as it is."""

        def change(registrar: DirectoryChanges) -> Principal:
            _checked_id(person)
            given: dict[str, object] = {}
            for key, value in (("name", name), ("email", email)):
                if value is not None:
                    given[key] = checked_text(value, key)
            if email and not is_address(email):
                raise PayloadError(
                    f"{email!r} is no address that mail can be sent to; give one such as 'ann@example.org'"
                )
            if kind is not None:
                given["kind"] = _checked_kind(kind)
            if manager is not None:
                given["manager"] = checked_key(manager, "manager", may_be_empty=True)
            if attributes is not None:
                given["attributes"] = plain(attributes, what="attributes", limit=self._desk.payload_limit)
            return registrar.put(person, given)

        return self._change(change)

    def prefer(self, person: str, *, language: str = "", off: Sequence[str] = ()) -> Reply[Principal]:
        """Say in which language somebody is told what they are told, and by which channels not; about oneself it takes no capability.

        What they do not want by a channel they are told in the application; what their organisation calls mandatory they are told all the
        same. It takes the place of what was said before.
        """

        def change(registrar: DirectoryChanges) -> Principal:
            if not is_language(language):
                raise PayloadError(f"{language!r:.200} is no language; give one such as 'en' or 'de-CH', or none")
            given: object = off
            if not isinstance(given, list | tuple):
                raise PayloadError("`off` is a list of channels, such as ['email']")
            names = sorted({checked_key(each, "channel") for each in off})
            return registrar.prefer(_checked_id(person), {"language": language, "off": names})

        return self._change(change, is_own=person == self._desk.request.actor.id)

    def get(self, person: str) -> Reply[Principal]:
        """Somebody; NotFoundError if the directory does not know them."""

        def read(look: Look) -> Principal:
            found = look.person(checked_key(person, "id of a person"))
            if found is None:
                raise NotFoundError("person", person, hint="`engine.directory.put` writes them into the directory")
            return found

        return self._look(read)

    def list(self, *, after: str | Principal = "", limit: int = 100) -> Reply[builtins.list[Principal]]:
        """Everybody, by id; give the last one as `after` for the next page."""

        def read(look: Look) -> builtins.list[Principal]:
            last = after.id if isinstance(after, Principal) else checked_key(after, "`after`", may_be_empty=True)
            return look.rows.page(after=last, limit=checked_limit(limit))

        return self._look(read)

    def deactivate(self, person: str, *, reason: str = "") -> Reply[None]:
        """From now on somebody can neither decide nor be asked. What they did stays, and delegations of theirs hold."""
        return self._change(
            lambda registrar: registrar.set_active(checked_key(person, "person"), is_active=False), reason
        )

    def activate(self, person: str, *, reason: str = "") -> Reply[None]:
        """Somebody can decide and be asked again."""
        return self._change(
            lambda registrar: registrar.set_active(checked_key(person, "person"), is_active=True), reason
        )

    def set_manager(self, person: str, manager: str) -> Reply[None]:
        """Say whom somebody reports to; nobody if it is empty. RejectedError if that would be a circle."""
        return self._change(
            lambda registrar: registrar.set_manager(
                checked_key(person, "person"), checked_key(manager, "manager", may_be_empty=True)
            )
        )

    def grant(
        self,
        person: str,
        role: str,
        *,
        begins_at: datetime | None = None,
        ends_at: datetime | None = None,
        reason: str = "",
    ) -> Reply[None]:
        """Give somebody a role, from now on unless it says when. To give it again changes nothing."""

        def change(registrar: DirectoryChanges) -> None:
            begin, end = _checked_period(begins_at, ends_at)
            named = checked_key(person, "person")
            registrar.grant(Grant(principal=named, role=checked_bare(role, "role"), begins_at=begin, ends_at=end))

        return self._change(change, reason)

    def revoke(self, person: str, role: str, *, reason: str = "") -> Reply[bool]:
        """Take a role from somebody, at once; False if they did not have it."""
        return self._change(
            lambda registrar: registrar.revoke(checked_key(person, "person"), checked_key(role, "role")), reason
        )

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
    ) -> Reply[Delegation]:
        """Let somebody decide for the giver, for a period: in everything, or only as holder of a role, or in one workflow.

        Both names are on every decision. RejectedError for a delegation to oneself, in a circle, or for a period that ends before it begins.
        """

        def change(registrar: DirectoryChanges) -> Delegation:
            begin, end = _checked_period(begins_at, ends_at)
            return registrar.delegate(
                Delegation(
                    giver=checked_key(giver, "giver"),
                    receiver=checked_key(to, "name of who stands in"),
                    role=checked_key(role, "role", may_be_empty=True),
                    definition=checked_key(definition, "definition", may_be_empty=True),
                    reason=checked_text(reason, "reason"),
                    begins_at=begin,
                    ends_at=end,
                )
            )

        return self._change(change)

    def end_delegation(self, delegation: int | Delegation) -> Reply[bool]:
        """Have a delegation end now; False if it was over."""
        return self._change(lambda registrar: registrar.end_delegation(_number(delegation)))

    def delegations(self, person: str) -> Reply[builtins.list[Delegation]]:
        """The delegations by and to somebody that are not over, those that are only to come included."""

        def read(look: Look) -> builtins.list[Delegation]:
            named = checked_key(person, "person")
            given = look.rows.delegations(givers=[named], at=look.at)
            return [*given, *look.rows.delegations(receiver=named, at=look.at)]

        return self._look(read)

    def absent(
        self,
        person: str,
        *,
        begins_at: datetime | None = None,
        ends_at: datetime | None = None,
        reason: str = "",
    ) -> Reply[Absence]:
        """Say that somebody is away, from now on unless it says when: who stands in for them is asked instead."""

        def change(registrar: DirectoryChanges) -> Absence:
            begin, end = _checked_period(begins_at, ends_at)
            named, why = checked_key(person, "person"), checked_text(reason, "reason")
            return registrar.absent(Absence(principal=named, reason=why, begins_at=begin, ends_at=end))

        return self._change(change)

    def end_absence(self, absence: int | Absence) -> Reply[bool]:
        """Say that somebody is back now; False if they were."""
        return self._change(lambda registrar: registrar.end_absence(_number(absence)))

    def absences(self, person: str) -> Reply[builtins.list[Absence]]:
        """The absences of somebody that are not over, those that are only to come included."""
        return self._look(lambda look: look.rows.absences([checked_key(person, "person")], at=look.at))

    def holders(self, role: str) -> Reply[builtins.list[Principal]]:
        """Those who have a role now and are active, by id."""

        def read(look: Look) -> builtins.list[Principal]:
            found = look.rows.principals(look.holders(checked_key(role, "role")))
            return [each for each in found if each.is_active]

        return self._look(read)

    def roles_of(self, person: str) -> Reply[builtins.list[str]]:
        """The roles that somebody has now, by name."""
        return self._look(lambda look: sorted(look.roles([checked_key(person, "person")])[person]))

    def manager_of(self, person: str) -> Reply[Principal | None]:
        """Whom somebody reports to; None if nobody."""

        def read(look: Look) -> Principal | None:
            found = look.person(checked_key(person, "person"))
            return None if found is None or not found.manager else look.person(found.manager)

        return self._look(read)

    def open_tasks_of_inactive(
        self, *, after: HumanTask | None = None, limit: int = 100
    ) -> Reply[builtins.list[HumanTask]]:
        """Open questions that wait for deactivated people, for whom nobody stands in, oldest first: reassign them.

        One that any of several can decide does not wait for one of them alone. Give the last one as `after` for the next page.
        """
        desk = self._desk

        def read() -> builtins.list[HumanTask]:
            last, most = checked_last(after, HumanTask, "`after`"), checked_limit(limit)
            actor = desk.with_roles().request.actor
            with desk.directory.looking(desk.tenant) as rows:
                lost = stranded(Look(rows, desk.service.shared.clock.now()))
            named = (
                *(AssigneeRecord("role", role) for role in lost.roles),
                *(AssigneeRecord("user", each) for each in lost.people),
            )
            with desk.reader.look() as reader:
                found = _held_up(reader, named, lost, last)
                return [listed_task(each, actor) for each in islice(found, most)] if named else []

        return desk.consult(read)

    def changes(
        self, person: str = "", *, before: int | DirectoryChange = 0, limit: int = 100
    ) -> Reply[builtins.list[DirectoryChange]]:
        """Who changed what and when, newest first, about one person if named; give the last one as `before` for the next page."""
        service = self._desk.service

        def read() -> builtins.list[DirectoryChange]:
            self._check_tables()
            named = checked_key(person, "person", may_be_empty=True)
            last = before.id if isinstance(before, DirectoryChange) else checked_after(before)
            query = ChangeQuery(
                tenant=self._desk.tenant, subject=PERSON, name=named, before=last, limit=checked_limit(limit)
            )
            return [_shown(each) for each in service.survey(lambda parts: parts.changes().page(query))]

        return self._desk.read(read)

    def _look(self, question: Callable[[Look], T]) -> Reply[T]:
        desk = self._desk

        def read() -> T:
            with desk.directory.looking(desk.tenant) as rows:
                return question(Look(rows, desk.service.shared.clock.now()))

        return desk.consult(read)

    def _change(self, change: Callable[[DirectoryChanges], T], reason: str = "", *, is_own: bool = False) -> Reply[T]:
        """Change people, who are those of the whole tenant; `is_own` for what concerns the actor alone."""
        desk = self._desk
        now = desk.service.shared.clock.now()

        def write() -> T:
            tables, acting = self._check_tables(), [desk]
            if not is_own:
                check_unbound(desk, "people")
            entry = desk.changed(PERSON, "", "change", reason=reason)

            def work(parts: StoreParts) -> T:
                with parts.people().changing(desk.tenant) as unit:
                    return change(DirectoryChanges(unit, acting[-1].request.actor, now, told=entry))

            try:
                return desk.operate(work, check=acting.append)
            finally:
                tables.note_change(desk.tenant)

        return desk.act(write)

    def _check_tables(self) -> TableDirectory:
        if not isinstance(self._desk.directory, TableDirectory):
            raise ConfigurationError(
                "the engine has a directory of its own and only reads it: change people there, "
                "or open the engine without `directory`, and they are kept in its database"
            )
        return self._desk.directory


def _shown(change: Change) -> DirectoryChange:
    return DirectoryChange(
        id=change.id,
        principal=change.name,
        action=change.action,
        details=change.after,
        before=change.before,
        reason=change.reason,
        actor=change.actor,
        on_behalf_of=change.on_behalf_of,
        at=change.at,
    )


def _held_up(
    reader: TenantReader, named: tuple[AssigneeRecord, ...], lost: Stranded, after: HumanTask | None
) -> Iterator[ListedTask]:
    """The questions that wait for those of whom no answer can come, page by page."""
    place = None if after is None else TaskPlace(after.asked_at, after.instance, after.step_number)
    while True:
        page = reader.open_tasks(TaskQuery(people=named, after=place, limit=_MOST_TASKS))
        yield from (each for each in page if _is_held_up(reader, each.task, lost))
        if len(page) < _MOST_TASKS:
            return
        place = page[-1].place


def _is_held_up(reader: TenantReader, task: StoredTask, lost: Stranded) -> bool:
    """Whether a question waits for those of whom no answer can come."""
    takes_several = task.agreement not in {"", agreement_in_words("any", 0)}
    return lost.holds_up(open_people(reader, task.instance, task.number), takes_several=takes_several)


def _checked_id(given: object) -> str:
    """The id of a person, which nobody can take for the name of a role."""
    return checked_person(checked_bare(given, "id of a person"))


def _checked_kind(given: object) -> str:
    if given not in {"user", "service"}:
        raise PayloadError(f"the kind is `user` or `service`, not {given!r}")
    return str(given)


def _checked_period(begins_at: object, ends_at: object) -> tuple[datetime | None, datetime | None]:
    return checked_instant(begins_at, "`begins_at`"), checked_instant(ends_at, "`ends_at`")


def _number(given: object) -> int:
    if isinstance(given, Delegation | Absence):
        return given.id
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < 2**63:
        return given
    raise PayloadError(f"{given!r} is not the number of a delegation or an absence; take it from the directory")
