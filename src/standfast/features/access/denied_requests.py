"""Calls of whoever audits access: requests that were refused because of who asked."""

from __future__ import annotations

import builtins
from datetime import timedelta

from standfast.calls.authorization import check_unbound
from standfast.calls.context import CallContext, checked_after, checked_key, checked_limit, checked_text
from standfast.engine.concurrency.replies import Reply
from standfast.errors import ForbiddenError
from standfast.features.access.views import RefusedRequest, refused_request
from standfast.kernel.decision import NOT_ALLOWED
from standfast.store.ports.access import StoredRefusal

READ_REFUSALS = "audit:read"
"""The capability of whoever looks at what was refused."""
KEPT = timedelta(days=90)
"""How long a refusal is kept, unless whoever notes it says otherwise."""
_LAST = 2**63 - 1
_LONGEST = 2000
_MOST = 1000


class FutureRefusals:
    """Requests to an edge of the engine, such as its HTTP API, that were refused because of who asked."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def note(
        self,
        *,
        credential: str,
        method: str,
        path: str,
        code: str,
        detail: str = "",
        keep: timedelta = KEPT,
    ) -> Reply[None]:
        """Note that the actor of these calls was refused something; those of the tenant that are older than `keep` are forgotten."""
        service, request = self._desk.service, self._desk.request
        now = service.shared.clock.now()

        def write() -> None:
            refusal = StoredRefusal(
                id=0,
                tenant=self._desk.tenant,
                actor=request.actor.id,
                credential=checked_text(credential, "credential")[:_LONGEST],
                method=checked_text(method, "method")[:_LONGEST],
                path=checked_text(path, "path")[:_LONGEST],
                code=checked_key(code, "code"),
                detail=checked_text(detail, "detail")[:_LONGEST],
                trace=request.trace,
                at=now,
            )
            service.operate(lambda parts: parts.access().note_refusal(refusal, keep_since=now - keep))

        return self._desk.read(write)

    def list(
        self, *, before: RefusedRequest | int | None = None, limit: int = 100
    ) -> Reply[builtins.list[RefusedRequest]]:
        """What was refused to the tenant, newest first; give the last one as `before` for the next page. It takes `audit:read`."""

        def read() -> list[RefusedRequest]:
            check_unbound(self._desk, "refused requests")
            actor = self._desk.request.actor
            if not actor.may(READ_REFUSALS):
                told = f"{actor.id!r} may not look at what was refused: that takes the capability {READ_REFUSALS!r}"
                raise ForbiddenError(reason=NOT_ALLOWED, message=told)
            last = before.id if isinstance(before, RefusedRequest) else before
            below = _LAST if last is None else checked_after(last)
            most, tenant = min(checked_limit(limit), _MOST), self._desk.tenant
            found = self._desk.service.survey(lambda parts: parts.access().refusals(tenant, before=below, limit=most))
            return [refused_request(each) for each in found]

        return self._desk.read(read)
