"""Calls that know most of what they need, and ask the database for the rest: on a thread for reading, where the caller's must not wait."""

from __future__ import annotations

import functools
from asyncio import _get_running_loop
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from standfast.calls.context import CallContext
from standfast.calls.reply_chaining import and_then
from standfast.engine.concurrency.replies import Reply
from standfast.store.sql.nonblocking import NonblockingThread, WouldBlockError

P = ParamSpec("P")
T = TypeVar("T")


class _Calls(Protocol):
    @property
    def _desk(self) -> CallContext: ...


C = TypeVar("C", bound=_Calls)


def aside(call: Callable[Concatenate[C, P], Reply[T]]) -> Callable[Concatenate[C, P], Reply[T]]:
    """Have a call made at once where it has all that it needs in memory, and on another thread if a loop would wait for the database meanwhile.

    Before it sends its command off, such a call only asks. Callers without a loop wait themselves, and what they send off one after the other stays so.
    """

    @functools.wraps(call)
    def made(calls: C, /, *given: P.args, **named: P.kwargs) -> Reply[T]:
        return made_aside(calls._desk, lambda: call(calls, *given, **named))  # noqa: SLF001 - that of all calls

    return made


def made_aside(desk: CallContext, call: Callable[[], Reply[T]]) -> Reply[T]:
    """The same for one call."""
    if _get_running_loop() is None or not desk.has_readers:
        return call()
    try:
        with NonblockingThread():
            return call()
    except WouldBlockError:
        return and_then(desk.read(call), lambda reply: reply, desk.reply())
