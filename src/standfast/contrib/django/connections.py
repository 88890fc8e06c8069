"""Connections of Django in handlers: looked at before and after each call, as Django does around each request.

A thread of a worker lives for weeks. Without this it would keep a connection that the server has ended, and every call on it would fail.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from asgiref.sync import SyncToAsync
from django.db import connections

from standfast.engine.common.interceptors import CallFacts, CallInterception, Interceptor


class FreshConnections(Interceptor):
    """Closes what is broken, or older than CONN_MAX_AGE, around the calls of handlers."""

    trace = ""

    def call(self, facts: CallFacts) -> CallInterception:
        """A handler is about to be called."""
        del facts
        _look()
        return self

    def ended(self, error: BaseException | None, /) -> None:
        """It has come back, on the same thread or in the same task."""
        del error
        _look()


def _look() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        _close_old()
        return
    # Coroutines have Django work on one thread, where one thing comes after the other; it has ended when the program does.
    with suppress(RuntimeError):
        SyncToAsync.single_thread_executor.submit(_close_old)


def _close_old() -> None:
    """What `close_old_connections` does, but for those that somebody has a transaction open on: a test that drives the engine itself has one."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
