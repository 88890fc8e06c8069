"""JSON log formatter, with the context of the handler call in each record: tenant, run, step and trace.

Also the step of a call, for interceptors.
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
    """The step of a handler call."""

    step: str
    """The step's name; empty for an effect of a decider, or where it cannot be read."""
    attempt: int
    """1 for the first call."""


def step_call(facts: CallFacts) -> StepCall:
    """Return the step of a call. Each retry of a step is an effect of its own, so attempts are counted by step."""
    try:
        body = facts.body()
    except Exception:  # noqa: BLE001 - the call itself fails by it, and tells why
        return StepCall("", facts.attempt)
    return StepCall(body.node, body.attempt) if isinstance(body, RunStep) else StepCall("", facts.attempt)


__all__ = ["JsonFormatter", "log_json", "tell_whose"]

_PLAIN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""Attributes of every record; all others were passed as `extra`."""
_NAMES: Final = {"instance": "run"}
_current: ContextVar[dict[str, object] | None] = ContextVar("standfast.logs", default=None)
_encode = msgspec.json.Encoder(enc_hook=str).encode


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON, with its `extra` fields.

    Texts are escaped, so that no message can forge a line.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format the record."""
        own: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        given = {_NAMES.get(name, name): value for name, value in vars(record).items() if name not in _PLAIN}
        # The record's own fields win over `extra`.
        told = own | (_current.get() or {}) | given | own
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        if record.stack_info:
            told["stack"] = self.formatStack(record.stack_info)
        try:
            return _encode(told).decode()
        except Exception:  # noqa: BLE001 - an extra field may be anything
            return _encode({_telling(name): _telling(value) for name, value in told.items()}).decode()


def _telling(value: object) -> object:
    """Return a value as JSON data, or its text."""
    with suppress(Exception):  # See above.
        _encode(value)
        return value
    if isinstance(value, str):  # Half of a surrogate pair, which JSON cannot hold.
        return value.encode("utf-8", "backslashreplace").decode()
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - see above
        return f"<a {type(value).__name__} that cannot be shown>"


class _Calls(Interceptor):
    """Adds the context of a handler call to its records."""

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
        """Remove the context."""
        del error
        _current.reset(self._token)


def log_json(engine: Engine, stream: TextIO | None = None, *, level: int = logging.INFO) -> logging.Handler:
    """Write all logs of the program as JSON, to standard error by default; return the handler, added to the root logger.

    Calling it again for another engine adds no second handler: every record is one line of a stream.
    """
    root = logging.getLogger()
    handler = _writing_to(stream or sys.stderr, root.handlers)
    root.addHandler(handler)  # Once, however often it is called.
    root.setLevel(level)
    tell_whose(engine)
    return handler


def _writing_to(stream: TextIO, handlers: Sequence[logging.Handler]) -> logging.Handler:
    """Return the existing JSON handler of this stream, or a new one."""
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
    """Add the context of the handler call to every record from inside a handler of an engine."""
    engine.accompany(_Calls())
