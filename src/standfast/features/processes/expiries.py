"""Active processes whose time is over, for operators: of their own tenant, and of all tenants for the engine itself."""

from __future__ import annotations

from datetime import datetime
from typing import cast

from standfast.calls.authorization import check_reader
from standfast.calls.context import (
    CallContext,
    checked_instant,
    checked_last,
    checked_limit,
    checked_tenant,
)
from standfast.errors import ForbiddenError
from standfast.features.processes.views import ExpiredProcess
from standfast.features.runs.reads import LARGEST_PAGE
from standfast.kernel.decision import NOT_ALLOWED
from standfast.store.ports.expiries import ExpiredQuery
from standfast.store.ports.pauses import ALL_TENANTS
from standfast.store.records.instances import InstanceHeader


def expired(
    desk: CallContext, *, before: datetime | None, tenant: str, after: ExpiredProcess | None, limit: int
) -> list[ExpiredProcess]:
    """A page of them, those whose time was over first first."""
    check_reader(desk, what="look for processes whose time is over")
    last = checked_last(after, ExpiredProcess, "`after`")
    is_own = desk.request.actor.kind != "system" or bool(desk.request.partition)
    query = ExpiredQuery(
        before=checked_instant(before, "before") or desk.service.shared.clock.now(),
        tenant=_whose(desk, tenant),
        partition=desk.request.partition if is_own else None,
        after=None if last is None else (last.expires_at, last.id),
        limit=min(checked_limit(limit), LARGEST_PAGE),
    )
    return [_shown(each) for each in desk.service.survey(lambda parts: parts.expiries().expired(query))]


def _whose(desk: CallContext, tenant: str) -> str | None:
    """The tenant whose processes are wanted; None for those of all."""
    if tenant in {"", desk.tenant}:
        return desk.tenant
    if desk.request.actor.kind != "system" or desk.request.partition:
        told = f"{desk.request.actor.id!r} may look for processes of tenant {desk.tenant!r} and no other; leave `tenant` out"
        raise ForbiddenError(reason=NOT_ALLOWED, message=told)
    return None if tenant == ALL_TENANTS else checked_tenant(tenant)


def _shown(header: InstanceHeader) -> ExpiredProcess:
    return ExpiredProcess(
        id=header.id,
        tenant_id=header.tenant,
        partition_id=header.partition,
        workflow_id=header.definition,
        workflow_version=header.definition_version,
        subject_id=header.started_by,
        business_key=header.key,
        expires_at=cast("datetime", header.deadline_at),
    )
