"""Problem details of a server as the errors of the library: whoever calls from afar catches what they would catch beside the engine."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

import msgspec

from standfast import errors as e
from standfast.kernel.codec.type_cache import settled

_SHOWN: Final = 200
_MISSING: Final = re.compile(
    r"""no (?P<kind>.+?) (?P<name>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?:; (?P<hint>.*))?""", re.DOTALL
)
_UNCOMPILED: Final = re.compile(r"(?P<name>.*?) cannot be compiled:", re.DOTALL)


class ServerProblem(msgspec.Struct, frozen=True, kw_only=True):
    """The problem details that a server answers with, as far as they say what kind of error it is."""

    status: int
    detail: str
    code: str
    remedy: str = ""
    trace_id: str = ""
    errors: list[e.Diagnostic] = []
    error: str = ""
    retryable: bool = False


def error_of(status: int, content: bytes, *, key: str = "") -> e.StandfastError:
    """The error that a refusal stands for. What to do about it, and where the server's log has it, are notes of it."""
    try:
        told = msgspec.json.decode(content, type=settled(ServerProblem))
    except msgspec.DecodeError:
        return not_understood(status, content)
    made = _OF_ENGINE.get(told.error, _of_edge)
    error = made(told) if made is not _reused else e.ReusedIdError(key)
    if told.remedy:
        error.add_note(f"{told.remedy} (trace {told.trace_id})")
    return error


def not_understood(status: int, content: bytes) -> e.StandfastError:
    """The error of an answer that no server of Standfast gives: a proxy, another program, an address that leads elsewhere."""
    shown = content[:_SHOWN].decode("utf-8", "replace")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return e.StoreUnavailableError(f"the server answers {status}: {shown}", may_be_done=True)
    return e.ConfigurationError(
        f"no server of Standfast answers like this ({status}): {shown!r}; see whether the address is right"
    )


def unreachable(address: str, error: Exception, *, may_be_done: bool) -> e.StoreUnavailableError:
    """The error of a server that does not answer."""
    why = str(error) or type(error).__name__
    told = e.StoreUnavailableError(f"the server {address} does not answer: {why}", may_be_done=may_be_done)
    told.add_note("see whether it is up, and whether its address is right")
    return told


def _missing(told: ServerProblem) -> e.StandfastError:
    found = _MISSING.fullmatch(told.detail)
    if found is None:
        return e.NotFoundError("such thing", "", hint=told.detail)
    return e.NotFoundError(found["kind"], ast.literal_eval(found["name"]), hint=found["hint"] or "")


def _refused(told: ServerProblem) -> e.StandfastError:
    return e.RejectedError(reason=told.code, message=told.detail)


def _forbidden(told: ServerProblem) -> e.StandfastError:
    return e.ForbiddenError(reason=told.code, message=told.detail)


def _unfit(told: ServerProblem) -> e.StandfastError:
    return e.PayloadError(told.detail, reason="" if told.code == e.PayloadError.code else told.code)


def _reused(told: ServerProblem) -> e.StandfastError:
    return e.ReusedIdError(told.detail)


def _uncompiled(told: ServerProblem) -> e.StandfastError:
    found = _UNCOMPILED.match(told.detail)
    return e.DefinitionError(found["name"] if found else "the definition", told.errors)


def _unexpressed(told: ServerProblem) -> e.StandfastError:
    return e.ExpressionError(told.detail, reason=told.code)


def _failed(told: ServerProblem) -> e.StandfastError:
    return e.CommandError(told.detail, decider="")


def _lost(told: ServerProblem) -> e.StandfastError:
    return e.StoreUnavailableError(told.detail, may_be_done=True)


def _misled(told: ServerProblem) -> e.StandfastError:
    return e.ConfigurationError(f"{told.detail}: the server is another one than this client was made for")


def _plain(kind: Callable[[str], e.StandfastError]) -> Callable[[ServerProblem], e.StandfastError]:
    return lambda told: kind(told.detail)


_OF_ENGINE: Final[Mapping[str, Callable[[ServerProblem], e.StandfastError]]] = {
    e.StandfastError.code: _plain(e.StandfastError),
    e.DefinitionError.code: _uncompiled,
    e.ExpressionError.code: _unexpressed,
    e.RejectedError.code: _refused,
    e.ForbiddenError.code: _forbidden,
    e.CommandError.code: _failed,
    e.WorkflowFailedError.code: _refused,
    e.NotFoundError.code: _missing,
    e.ConflictError.code: _plain(e.ConflictError),
    e.HeldError.code: _plain(e.HeldError),
    e.ReusedIdError.code: _reused,
    e.PayloadError.code: _unfit,
    e.ReplayError.code: _plain(e.ReplayError),
    e.UnknownEventError.code: _plain(e.ReplayError),
    e.StoreError.code: _plain(e.StoreError),
    e.StoreUnavailableError.code: _lost,
    e.SchemaMismatchError.code: _plain(e.SchemaMismatchError),
    e.CorruptHistoryError.code: _plain(e.CorruptHistoryError),
    e.StoppedError.code: _plain(e.StoppedError),
    e.DeadlockError.code: _plain(e.DeadlockError),
    e.ConfigurationError.code: _plain(e.ConfigurationError),
}
"""How each error of the library is made again. A test walks the tree, so that a new one cannot be forgotten."""

_OF_EDGE: Final[Mapping[int, Callable[[ServerProblem], e.StandfastError]]] = {
    HTTPStatus.UNAUTHORIZED: _forbidden,
    HTTPStatus.FORBIDDEN: _forbidden,
    HTTPStatus.NOT_FOUND: _misled,
    HTTPStatus.METHOD_NOT_ALLOWED: _misled,
    HTTPStatus.REQUEST_TIMEOUT: _lost,
    HTTPStatus.CONFLICT: _plain(e.ConflictError),
    HTTPStatus.PRECONDITION_FAILED: _plain(e.ConflictError),
    HTTPStatus.TOO_MANY_REQUESTS: _plain(e.StoppedError),
}
"""What the edge refuses by itself, by the status, as the error that a caller would deal with in the same way; see `_of_edge` for all others."""


def _of_edge(told: ServerProblem) -> e.StandfastError:
    if told.status in _OF_EDGE:
        return _OF_EDGE[told.status](told)
    if told.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return (
            _lost(told)
            if told.retryable or told.status == HTTPStatus.SERVICE_UNAVAILABLE
            else e.StandfastError(told.detail)
        )
    return _unfit(told)
