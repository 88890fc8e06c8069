"""Whoever goes along with what an engine does: tracers, error trackers, logs that say whose work a line is about.

A listener hears of things when they are over. A companion is there while they happen: on the thread of the caller, or of the handler, so that
what is kept for that thread or task (the current span, the scope of an error tracker) is right inside of it. Without companions nothing is
made or called.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from standfast.errors import ConfigurationError
from standfast.kernel.ids import InstanceId

_log = logging.getLogger("standfast")

T = TypeVar("T")


class CommandFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A command that is about to be committed."""

    command: str
    """The name under which it is stored: that of its class unless `@message(name=…)` gives another one."""
    definition: str
    """Empty where only the instance is named."""
    tenant: str
    instance: InstanceId | None
    """None where a key names it, or where it is new."""
    key: str
    actor: str
    trace: str
    """What it follows from, as that was stored or said; empty if nothing was."""


class CallFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a handler."""

    definition: str
    tenant: str
    instance: InstanceId
    number: int
    handler: str
    attempt: int
    actor: str
    trace: str
    created_at: datetime
    claimed_at: datetime
    body: Callable[[], object]
    """Reads the effect once more; it raises what the handler's own reading would raise."""


class RequestFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A request over HTTP that is about to be answered."""

    method: str
    route: str
    """Its address as the API declares it, so that there are few of them."""
    request_id: str
    caller: str
    """The `traceparent` that the client sent; empty if it sent none, or none that is sound."""
    trace: str
    """What the request is called otherwise."""


class CommandInterception(Protocol):
    """A companion's way with one command. Its calls come in this order, the first one for each try; they may come on different threads."""

    trace: str
    """What is stored as the trace of the command, and of all that follows from it; empty leaves it as it is."""

    def committed(self, seconds: float, /) -> None:
        """A commit has just ended in which the command was decided; it took so long."""
        ...

    def ended(self, error: BaseException | None, /) -> None:
        """Its caller is about to be answered: all is stored, or this is why not."""
        ...


class CallInterception(Protocol):
    """A companion's way with one call of a handler."""

    trace: str
    """What the handler sees as its trace, and what its answer follows from; empty leaves it as it is."""

    def ended(self, error: BaseException | None, /) -> None:
        """The handler has come back, on the same thread or in the same task; with an error if it failed."""
        ...


class Interceptor:
    """Goes along with what an engine does: derive from it, and say what you want to be there for. Be quick, and raise nothing."""

    def caller(self, trace: str) -> str:
        """The trace of a command that will be decided later: the one that its call names, or that of whoever calls on this thread."""
        return trace

    def request(self, facts: RequestFacts) -> CallInterception | None:
        """A request over HTTP is about to be answered, in its task; its answer, and what is done for it, are called what this says."""
        del facts
        return None

    def command(self, facts: CommandFacts) -> CommandInterception | None:
        """A command is handed in, on the thread of whoever does so."""
        del facts
        return None

    def call(self, facts: CallFacts) -> CallInterception | None:
        """A handler is about to be called, on its thread or in its task."""
        del facts
        return None


class Interceptors:
    """All of one engine. One that raises is logged, and does no harm."""

    def __init__(self) -> None:
        self._all: tuple[Interceptor, ...] = ()
        self.is_any = False
        """Whether there is one. It is asked for every command and every call, so that it is no property."""

    def add(self, companion: Interceptor) -> None:
        """Have it go along from now on."""
        given: object = companion  # What a caller without types gave.
        if not isinstance(given, Interceptor):
            raise ConfigurationError(
                f"{given!r} is no companion: give an object of a class that derives from Companion"
            )
        self._all = (*self._all, companion)
        self.is_any = True

    def caller(self, trace: str) -> str:
        """The trace of a command that will be decided later, as the last of them says."""
        for each in self._all:
            trace = _safely(partial(each.caller, trace)) or trace
        return trace

    def with_request(
        self, method: str, route: str, *, request_id: str, caller: str, trace: str
    ) -> tuple[Sequence[CallInterception], str]:
        """Those who go along with a request, and the trace that it has by them."""
        facts = RequestFacts(method=method, route=route, request_id=request_id, caller=caller, trace=trace)
        found = [each for each in (_safely(partial(each.request, facts)) for each in self._all) if each is not None]
        return found, next((each.trace for each in found if each.trace), trace)

    def with_command(self, facts: CommandFacts) -> tuple[Sequence[CommandInterception], str]:
        """Those who go along with a command, and the trace that it has by them; each is told the one that it has by then."""
        found: list[CommandInterception] = []
        for each in self._all:
            passage = _safely(partial(each.command, facts))
            if passage is not None:
                found.append(passage)
                facts = msgspec.structs.replace(facts, trace=passage.trace or facts.trace)
        return found, facts.trace

    def with_call(self, facts: CallFacts) -> tuple[Sequence[CallInterception], str]:
        """Those who go along with a call, and the trace that it has by them; each is told the one that it has by then."""
        found: list[CallInterception] = []
        for each in self._all:
            attendance = _safely(partial(each.call, facts))
            if attendance is not None:
                found.append(attendance)
                facts = msgspec.structs.replace(facts, trace=attendance.trace or facts.trace)
        return found, facts.trace

    @staticmethod
    def end(ways: Sequence[CommandInterception | CallInterception], error: BaseException | None) -> None:
        """Tell all of them of the end, the last one first: what they keep for the thread is undone in that order."""
        for each in reversed(ways):
            _safely(partial(each.ended, error))


def committed(passages: Sequence[CommandInterception], seconds: float) -> None:
    """Tell all of them of a commit."""
    for each in passages:
        _safely(partial(each.committed, seconds))


ended = Interceptors.end


def _safely(call: Callable[[], T]) -> T | None:
    try:
        return call()
    except Exception:  # noqa: BLE001 - whatever a companion does, the engine goes on
        _log.exception("a companion failed")
        return None
