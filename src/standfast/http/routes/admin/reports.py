"""Routes of reports over the runs of a period."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec

from standfast.features.operations.reports import Report
from standfast.http.requests.routing import Route, RouteCall, Subject


class ReportQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs are counted."""

    since: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    until: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """The last thirty days if neither is given."""
    version: str = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 10_000


async def report(call: RouteCall[ReportQuery, None]) -> Report:
    """Report on the runs of a workflow, or the documents of a type, that began in a period: duration, waiting times, decisions and retries."""
    asked = call.query
    return await call.calls.reports.of(
        call.path["name"], version=asked.version, since=asked.since, until=asked.until, limit=asked.limit
    )


_REPORTS = Subject("reports", "/api/v1/reports", "execution:read", "own")

ROUTES: tuple[Route, ...] = (_REPORTS.get("/{name}", report, query=ReportQuery, answer=Report),)
