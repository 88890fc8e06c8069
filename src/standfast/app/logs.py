"""Logs as JSON, a line for each record, in which every record from inside a handler says whose work it is: tenant, run, step, trace.

What companions are told of calls, in the words of workflows.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar, Token
from datetime import UTC, datetime
from typing import Final, NamedTuple, TextIO

import msgspec

from standfast.app.engine import Engine
from standfast.engine.common.interceptors import CallFacts, Interceptor
from standfast.machine.model.commands.run_commands import RunStep


class StepCall(NamedTuple):
    """For what a handler is called."""

    step: str
    """Its name; empty if it is the effect of a decider, or cannot be read."""
    attempt: int
    """1 for the first call."""


def step_call(facts: CallFacts) -> StepCall:
    """The step of a call. A step that is tried again is another effect, so that its attempts are its own."""
    try:
        body = facts.body()
    except Exception:  # noqa: BLE001 - the call itself fails by it, and tells why
        return StepCall("", facts.attempt)
    return StepCall(body.node, body.attempt) if isinstance(body, RunStep) else StepCall("", facts.attempt)


__all__ = ["JsonFormatter", "log_json", "tell_whose"]

_PLAIN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has; the rest was given as `extra`."""
_NAMES: Final = {"instance": "run"}
_current: ContextVar[dict[str, object] | None] = ContextVar("standfast.logs", default=None)
_encode = msgspec.json.Encoder(enc_hook=str).encode


class JsonFormatter(logging.Formatter):
    """Writes a record as one line of JSON, with what was given as `extra`; texts are data, so that no message can forge a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        own: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        given = {_NAMES.get(name, name): value for name, value in vars(record).items() if name not in _PLAIN}
        # What a record itself says, nothing that was given says otherwise.
        told = own | (_current.get() or {}) | given | own
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        if record.stack_info:
            told["stack"] = self.formatStack(record.stack_info)
        try:
            return _encode(told).decode()
        except Exception:  # noqa: BLE001 - what somebody gave as extra may be anything
            return _encode({_telling(name): _telling(value) for name, value in told.items()}).decode()


def _telling(value: object) -> object:
    """A value as it is, or as far as it can be told."""
    with suppress(Exception):  # See above.
        _encode(value)
        return value
    if isinstance(value, str):  # Half of a pair of surrogates, which no JSON has room for.
        return value.encode("utf-8", "backslashreplace").decode()
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - see above
        return f"<a {type(value).__name__} that cannot be shown>"


class _Calls(Interceptor):
    """Has the records of a call say whose it is."""

    def call(self, facts: CallFacts) -> _Call:
        return _Call(facts)


class _Call:
    trace = ""

    def __init__(self, facts: CallFacts) -> None:
        step, attempt = step_call(facts)
        told: dict[str, object] = {
            "tenant": facts.tenant,
            "definition": facts.definition,
            "run": str(facts.instance),
            "step": step,
            "handler": facts.handler,
            "attempt": attempt,
            "actor": facts.actor,
            "trace": facts.trace,
        }
        self._token: Token[dict[str, object] | None] = _current.set({name: each for name, each in told.items() if each})

    def ended(self, error: BaseException | None) -> None:
        """Forget whose it was."""
        del error
        _current.reset(self._token)


def log_json(engine: Engine, stream: TextIO | None = None, *, level: int = logging.INFO) -> logging.Handler:
    """Have all logs of the program written as JSON, to standard error if nothing else is said; the handler, which is added to the root logger.

    A program may say it for each of its engines: every record is one line of a stream.
    """
    root = logging.getLogger()
    handler = _writing_to(stream or sys.stderr, root.handlers)
    root.addHandler(handler)  # Once, however often that is said.
    root.setLevel(level)
    tell_whose(engine)
    return handler


def _writing_to(stream: TextIO, handlers: Sequence[logging.Handler]) -> logging.Handler:
    """One of these that writes JSON to this stream already, or a new one."""
    for each in handlers:
        if (
            isinstance(each, logging.StreamHandler)
            and isinstance(each.formatter, JsonFormatter)
            and each.stream is stream
        ):
            return each
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    return handler


def tell_whose(engine: Engine) -> None:
    """Have every record from inside a handler of an engine say whose work it is."""
    engine.accompany(_Calls())
