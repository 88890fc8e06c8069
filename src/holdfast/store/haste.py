"""Threads that must not wait for a database: what they would have to ask is asked on another one.

A thread that serves an asyncio loop serves everybody who is connected there. What it needs it mostly knows already; where it does not, a database that
hangs would hang all of them. So whatever goes to the database looks here first, and whoever began in haste begins again elsewhere.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class WouldWaitError(BaseException):
    """The database would have to be asked on a thread that must not wait. It is nobody's error: nothing was asked and nothing done."""


class _Here(threading.local):
    is_hurried = False


_here = _Here()


def check_haste() -> None:
    """WouldWaitError on a thread that must not wait just now."""
    if _here.is_hurried:
        raise WouldWaitError


@contextmanager
def hurried() -> Iterator[None]:
    """Have nothing asked of a database on this thread as long as the block lasts, or until something is sent off."""
    before, _here.is_hurried = _here.is_hurried, True
    try:
        yield
    finally:
        _here.is_hurried = before


def sent_off() -> None:
    """A command is on its way: it must not be sent again, so that nobody begins anew from here on."""
    _here.is_hurried = False
