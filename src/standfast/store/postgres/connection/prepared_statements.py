"""Names of prepared statements on the server, by connection. No name is used twice."""

from __future__ import annotations

import contextlib
from typing import Any, Final
from weakref import WeakKeyDictionary

import psycopg
from psycopg import pq

Names = dict[object, bytes]

_names: WeakKeyDictionary[psycopg.Connection[Any], Names | None] = WeakKeyDictionary()
"""None for connections on which prepared statements were dropped by other code."""
_UNSEEN: Final[Names] = {}


def names_of(connection: psycopg.Connection[Any]) -> Names | None:
    """Return the prepared statements of a connection, or None where none are possible, as behind a pooler."""
    if connection.prepare_threshold is None:
        return None
    known = _names.get(connection, _UNSEEN)
    if known is _UNSEEN:
        known = _names[connection] = {}
    return known


def prepare_no_more(connection: psycopg.Connection[Any]) -> None:
    """Stop preparing statements on a connection, because other code drops them."""
    _names[connection] = None


def drop_prepared(connection: psycopg.Connection[Any]) -> None:
    """Forget all statements after a rollback. With its own prepared statements the driver drops the engine's too."""
    if not _names.get(connection):
        return
    del _names[connection]
    if not connection.closed and connection.info.transaction_status == pq.TransactionStatus.IDLE:
        with contextlib.suppress(psycopg.Error):  # The next use of the connection reports the error.
            connection.execute("deallocate all", prepare=False)
