"""Calls of auditors: who changed what, on whose behalf, why, and the values before and after."""

from __future__ import annotations

import builtins

from standfast.calls.authorization import check_unbound
from standfast.calls.context import CallContext, checked_after, checked_key, checked_limit
from standfast.calls.references import InstanceLike, checked_instance
from standfast.engine.concurrency.replies import Reply
from standfast.errors import ForbiddenError, PayloadError
from standfast.features.runs.audit_entries import AuditEntry, audit_of, last_act
from standfast.kernel.decision import NOT_ALLOWED
from standfast.kernel.row_kinds.changes import Change
from standfast.store.ports.changes import ChangeQuery
from standfast.store.records.instances import SHARED_TENANT

READ_AUDIT = "audit:read"
"""The capability of auditors."""


class FutureAudit:
    """The audit of a tenant. Reading it takes the capability `audit:read`."""

    def __init__(self, desk: CallContext) -> None:
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
        """List changes of people, definitions, keys, rules and pauses, newest first. Give the last one as `before` for the next page.

        `subject` is one kind of thing, such as `person` or `key`, `name` one of them, `actor` who changed it. `is_shared` lists what
        concerns all tenants; only the engine itself may read that.
        """

        def read() -> builtins.list[Change]:
            check_unbound(self._desk, "changes")
            self._check()
            if name and not subject:
                raise PayloadError("`name` needs a `subject`, such as 'person'; give both")
            last = before.id if isinstance(before, Change) else 0 if before is None else checked_after(before)
            query = ChangeQuery(
                tenant=self._tenant(is_shared),
                subject=checked_key(subject, "subject", may_be_empty=True),
                name=checked_key(name, "name", may_be_empty=True),
                actor=checked_key(actor, "actor", may_be_empty=True),
                before=last,
                limit=checked_limit(limit),
            )
            return self._desk.service.survey(lambda parts: parts.changes().page(query))

        return self._desk.read(read)

    def of(
        self, instance: InstanceLike, *, after: AuditEntry | int = 0, limit: int = 100
    ) -> Reply[builtins.list[AuditEntry]]:
        """List what callers did to an instance, in order: a run, a document, a schedule or a batch. Give the last entry as `after` for the next page.

        What the engine did by itself is in the history.
        """

        def read() -> builtins.list[AuditEntry]:
            self._check()
            identity, last, most = checked_instance(instance), last_act(after), checked_limit(limit)
            with self._desk.reader.look() as reader:
                return audit_of(self._desk, reader, identity, after=last, limit=most)

        return self._desk.read(read)

    def _tenant(self, is_shared: bool) -> str:  # noqa: FBT001 - what the caller says
        if not is_shared:
            return self._desk.tenant
        if self._desk.request.actor.kind != "system":
            told = "only the engine itself may read changes that concern all tenants; leave `is_shared` out"
            raise ForbiddenError(reason=NOT_ALLOWED, message=told)
        return SHARED_TENANT

    def _check(self) -> None:
        actor = self._desk.looked_up().request.actor
        if not actor.may(READ_AUDIT):
            told = f"{actor.id!r} may not read the audit: that takes the capability {READ_AUDIT!r}"
            raise ForbiddenError(reason=NOT_ALLOWED, message=told)
