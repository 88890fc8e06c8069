"""How a list of instances is cut into pages, the same for all drivers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice
from uuid import UUID

from standfast.kernel.ids import make_uuid7
from standfast.store.records.instances import InstanceHeader, InstanceQuery

_AHEAD = timedelta(minutes=15)
"""Ids are made before their instances are, maybe by another process: no clock is believed to be so far ahead of another one."""
_BEHIND = timedelta(days=1)
"""What is started by a message is made when the message is read: none is believed to wait for longer."""

_FIRST = datetime(1970, 1, 2, tzinfo=UTC)
_LAST = datetime(9999, 12, 30, tzinfo=UTC)
_NO_ID = UUID(int=0)
LAST_ID = UUID(int=2**128 - 1)
"""No instance has this id, or one behind it."""


def id_range(query: InstanceQuery) -> tuple[UUID, UUID]:
    """The ids of a page lie from the first one on and below the second one.

    A span of birth times is a span of ids, so that a list of an old month does not read all that came after it.
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
    """The statement of a list from its other end: the oldest come first, along the same index."""
    return statement.replace(" desc", "")


def in_order(statement: str, query: InstanceQuery) -> str:
    """The statement of a list whose newest come first, in the order that is asked for."""
    return turned(statement) if query.oldest_first else statement


def page_of(headers: Iterable[InstanceHeader], query: InstanceQuery, limit: int) -> list[InstanceHeader]:
    """The first ones of these, in the order that is asked for."""
    return list(islice(sorted(headers, key=lambda header: header.id, reverse=not query.oldest_first), limit))
