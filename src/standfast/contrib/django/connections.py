"""Django connections in handlers: checked before and after each call, as Django does around each request.

A worker thread lives for weeks. Without this it would keep a connection that the server has closed, and every query on
it would fail.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from asgiref.sync import SyncToAsync
from django.db import connections

from standfast.engine.common.interceptors import CallFacts, CallInterception, Interceptor


class FreshConnections(Interceptor):
    """Closes broken connections, and those older than CONN_MAX_AGE, around handler calls."""

    trace = ""

    def call(self, facts: CallFacts) -> CallInterception:
        """Check the connections before a handler call."""
        del facts
        _look()
        return self

    def ended(self, error: BaseException | None, /) -> None:
        """Check them after the call, on the same thread or in the same task."""
        del error
        _look()


def _look() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        _close_old()
        return
    # Coroutines run Django on one shared thread, which ends with the program.
    with suppress(RuntimeError):
        SyncToAsync.single_thread_executor.submit(_close_old)


def _close_old() -> None:
    """Close old connections as `close_old_connections` does, except those with an open transaction: a test that drives the engine has one."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
