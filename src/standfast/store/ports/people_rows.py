"""Rows about people as the statements of both drivers give them, their instants already read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from standfast.kernel.people import Absence, Delegation, Grant, Principal

Row = Sequence[Any]


def principal(row: Row) -> Principal:
    """Somebody, as the directory keeps him."""
    return Principal(
        id=row[0],
        kind=row[1],
        name=row[2],
        email=row[3],
        is_active=bool(row[4]),
        manager=row[5],
        attributes=json.loads(row[6]),
    )


def grant(row: Row) -> Grant:
    """A role that somebody has."""
    return Grant(id=row[0], begins_at=row[1], ends_at=row[2], principal=row[3], role=row[4])


def delegation(row: Row) -> Delegation:
    """Who stands in for whom."""
    return Delegation(
        id=row[0],
        begins_at=row[1],
        ends_at=row[2],
        giver=row[3],
        receiver=row[4],
        role=row[5],
        definition=row[6],
        reason=row[7],
    )


def absence(row: Row) -> Absence:
    """Who is away."""
    return Absence(id=row[0], begins_at=row[1], ends_at=row[2], principal=row[3], reason=row[4])
