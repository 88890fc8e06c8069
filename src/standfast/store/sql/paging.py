"""Paging of instance lists, the same for all drivers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice
from uuid import UUID

from standfast.kernel.ids import make_uuid7
from standfast.store.records.instances import InstanceHeader, InstanceQuery

_AHEAD = timedelta(minutes=15)
"""Ids are generated before their instances are stored, possibly in another process. Clocks are assumed to differ by
at most this."""
_BEHIND = timedelta(days=1)
"""An instance started by a message is stored when the message is read. Messages are assumed to wait for at most
this."""

_FIRST = datetime(1970, 1, 2, tzinfo=UTC)
_LAST = datetime(9999, 12, 30, tzinfo=UTC)
_NO_ID = UUID(int=0)
LAST_ID = UUID(int=2**128 - 1)
"""Greater than every instance id."""


def id_range(query: InstanceQuery) -> tuple[UUID, UUID]:
    """Return the range of ids for a page: from the first, inclusive, to the second, exclusive.

    Ids contain their creation time, so that a list of an old month does not read all later instances.
    """
    first, before = _NO_ID, query.before or LAST_ID
    if query.oldest_first and query.before is not None:
        first, before = UUID(int=min(query.before.int + 1, LAST_ID.int)), LAST_ID
    if query.created_after is not None and query.created_after > _FIRST:
        first = max(first, make_uuid7(query.created_after - _BEHIND, 0))
    if query.created_before is not None and query.created_before < _LAST:
        before = min(before, make_uuid7(max(query.created_before, _FIRST) + _AHEAD, 0))
    return first, before


@cache
def turned(statement: str) -> str:
    """Return the statement of a list in reverse order, along the same index."""
    return statement.replace(" desc", "")


def in_order(statement: str, query: InstanceQuery) -> str:
    """Return the statement of a list in the requested order."""
    return turned(statement) if query.oldest_first else statement


def page_of(headers: Iterable[InstanceHeader], query: InstanceQuery, limit: int) -> list[InstanceHeader]:
    """Return the first of these instances in the requested order."""
    return list(islice(sorted(headers, key=lambda header: header.id, reverse=not query.oldest_first), limit))
