"""Threads that must not wait for a database.

A thread that runs an asyncio loop serves all its connections, and a hanging database would block all of them. A call
usually finds its data in memory. If not, the database access raises here, and the call is repeated on another thread.
"""

from __future__ import annotations

import threading


class WouldBlockError(BaseException):
    """A call would wait for the database on a thread that must not wait.

    It is no error: nothing was read or written.
    """


class _Here(threading.local):
    is_hurried = False


_here = _Here()


def check_nonblocking() -> None:
    """Raise WouldBlockError on a thread that must not wait."""
    if _here.is_hurried:
        raise WouldBlockError


class NonblockingThread:
    """Context in which this thread must not wait for a database, until a command is sent."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before, _here.is_hurried = _here.is_hurried, True

    def __exit__(self, *_: object) -> None:
        _here.is_hurried = self._before


def sent_off() -> None:
    """Note that a command was sent, so that the call must not be repeated on another thread."""
    _here.is_hurried = False
