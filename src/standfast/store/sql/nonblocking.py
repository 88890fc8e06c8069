"""Threads that must not wait for a database: what they would have to ask is asked on another one.

A thread that serves an asyncio loop serves everybody who is connected there, and whoever asks for a future wants to go on. What such a call needs is mostly
known already; where it is not, a database that hangs would hang all of them. So whatever goes to the database looks here first, and whoever began in haste
begins again elsewhere.
"""

from __future__ import annotations

import threading


class WouldBlockError(BaseException):
    """The database would have to be asked on a thread that must not wait. It is nobody's error: nothing was asked and nothing done."""


class _Here(threading.local):
    is_hurried = False


_here = _Here()


def check_nonblocking() -> None:
    """WouldWaitError on a thread that must not wait just now."""
    if _here.is_hurried:
        raise WouldBlockError


class NonblockingThread:
    """Has nothing asked of a database on this thread as long as its block lasts, or until something is sent off."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before, _here.is_hurried = _here.is_hurried, True

    def __exit__(self, *_: object) -> None:
        _here.is_hurried = self._before


def sent_off() -> None:
    """A command is on its way: it must not be sent again, so that nobody begins anew from here on."""
    _here.is_hurried = False
