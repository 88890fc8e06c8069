"""Calls of auditors: who changed what, for whom, why, and what was so before and after."""

from __future__ import annotations

import builtins

from holdfast.app.acts import AuditEntry, audit_of
from holdfast.app.desk import Desk, checked_after, checked_key, checked_limit
from holdfast.app.references import InstanceLike, checked_instance
from holdfast.app.rights import check_unbound
from holdfast.errors import ForbiddenError, PayloadError
from holdfast.kernel.changes import Change
from holdfast.kernel.decision import NOT_ALLOWED
from holdfast.runtime.replies import Reply
from holdfast.store.changes import ChangeQuery
from holdfast.store.reading import Reader
from holdfast.store.shapes import SHARED_TENANT

READ_AUDIT = "audit:read"
"""The capability of auditors."""
_MOST = 1000


class FutureAudit:
    """Who did what. It takes the capability `audit:read`."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def changes(
        self,
        *,
        subject: str = "",
        name: str = "",
        actor: str = "",
        is_shared: bool = False,
        before: Change | int | None = None,
        limit: int = 100,
    ) -> Reply[builtins.list[Change]]:
        """What was changed that is no instance: people, definitions, keys, rules, pauses; newest first. Give the last one as `before` for the next page.

        `subject` is one sort of thing, such as `person` or `key`, `name` one of them, `actor` who did it. `is_shared` asks for what
        concerns all tenants, which is for the engine itself to ask.
        """

        def read() -> builtins.list[Change]:
            check_unbound(self._desk, "changes")
            self._check()
            if name and not subject:
                raise PayloadError("a `name` is that of a `subject`, such as 'person'; say which sort of thing it is")
            last = before.id if isinstance(before, Change) else 0 if before is None else checked_after(before)
            query = ChangeQuery(
                tenant=self._tenant(is_shared),
                subject=checked_key(subject, "subject", may_be_empty=True),
                name=checked_key(name, "name", may_be_empty=True),
                actor=checked_key(actor, "actor", may_be_empty=True),
                before=last,
                limit=min(checked_limit(limit), _MOST),
            )
            return self._desk.service.survey(lambda parts: parts.changes().page(query))

        return self._desk.read(read)

    def of(self, instance: InstanceLike) -> Reply[builtins.list[AuditEntry]]:
        """What people did to an instance: a run, a document, a schedule, a batch; in order. What the engine did by itself is in its history."""

        def read(reader: Reader) -> builtins.list[AuditEntry]:
            self._check()
            return audit_of(self._desk, reader, checked_instance(instance))

        return self._desk.look(read)

    def _tenant(self, is_shared: bool) -> str:  # noqa: FBT001 - what the caller says
        if not is_shared:
            return self._desk.tenant
        if self._desk.request.actor.kind != "system":
            told = "what concerns all tenants is for the engine itself to look at"
            raise ForbiddenError(reason=NOT_ALLOWED, message=told)
        return SHARED_TENANT

    def _check(self) -> None:
        actor = self._desk.looked_up().request.actor
        if not actor.may(READ_AUDIT):
            told = f"{actor.id!r} may not look at the audit: that takes the capability {READ_AUDIT!r}"
            raise ForbiddenError(reason=NOT_ALLOWED, message=told)
