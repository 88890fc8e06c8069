"""The names under which the servers behind connections know our statements. No name is used twice."""

from __future__ import annotations

import contextlib
from typing import Any, Final
from weakref import WeakKeyDictionary

import psycopg
from psycopg import pq

Names = dict[object, bytes]

_names: WeakKeyDictionary[psycopg.Connection[Any], Names | None] = WeakKeyDictionary()
"""None where they were dropped under our hands."""
_UNSEEN: Final[Names] = {}


def names_of(connection: psycopg.Connection[Any]) -> Names | None:
    """The statements that are prepared behind a connection; None where nothing can be, as behind a pooler."""
    if connection.prepare_threshold is None:
        return None
    known = _names.get(connection, _UNSEEN)
    if known is _UNSEEN:
        known = _names[connection] = {}
    return known


def prepare_no_more(connection: psycopg.Connection[Any]) -> None:
    """Somebody drops statements under our hands, and may do so again."""
    _names[connection] = None


def drop_prepared(connection: psycopg.Connection[Any]) -> None:
    """Begin anew after a rollback: with its own prepared statements, if it has any, the driver drops ours too."""
    if not _names.get(connection):
        return
    del _names[connection]
    if not connection.closed and connection.info.transaction_status == pq.TransactionStatus.IDLE:
        with contextlib.suppress(psycopg.Error):  # Whoever uses the connection next finds out.
            connection.execute("deallocate all", prepare=False)
