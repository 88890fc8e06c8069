"""Connections of Django in handlers: looked at before and after each call, as Django does around each request.

A thread of a worker lives for weeks. Without this it would keep a connection that the server has ended, and every call on it would fail.
"""

from __future__ import annotations

import asyncio

from django.db import close_old_connections

from holdfast.runtime.companions import Attendance, CallFacts, Companion


class FreshConnections(Companion):
    """Closes what is broken, or older than CONN_MAX_AGE, around the calls of handlers that are plain functions."""

    trace = ""

    def call(self, facts: CallFacts) -> Attendance | None:
        """A handler is about to be called."""
        del facts
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            close_old_connections()
            return self
        return None  # In the loop's thread Django lets nobody use a connection.

    def ended(self, error: BaseException | None, /) -> None:
        """It has come back, on the same thread."""
        del error
        close_old_connections()
