"""Problem details of a server as the errors of the library: whoever calls from afar catches what they would catch beside the engine."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

import msgspec

from holdfast import errors as e

_SHOWN: Final = 200
_MISSING: Final = re.compile(
    r"""no (?P<kind>.+?) (?P<name>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?:; (?P<hint>.*))?""", re.DOTALL
)
_UNCOMPILED: Final = re.compile(r"(?P<name>.*?) cannot be compiled:", re.DOTALL)


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """The problem details that a server answers with, as far as they say what kind of error it is."""

    status: int
    detail: str
    code: str
    remedy: str = ""
    trace_id: str = ""
    errors: list[e.Diagnostic] = []
    error: str = ""


def error_of(status: int, content: bytes, *, key: str = "") -> e.HoldfastError:
    """The error that a refusal stands for. What to do about it, and where the server's log has it, are notes of it."""
    try:
        told = msgspec.json.decode(content, type=Told)
    except msgspec.DecodeError:
        return not_understood(status, content)
    made = _OF_ENGINE.get(told.error) or _OF_EDGE.get(told.code) or _of_status
    error = made(told) if made is not _reused else e.ReusedIdError(key)
    if told.remedy:
        error.add_note(f"{told.remedy} (trace {told.trace_id})")
    return error


def not_understood(status: int, content: bytes) -> e.HoldfastError:
    """The error of an answer that no server of Holdfast gives: a proxy, another program, an address that leads elsewhere."""
    shown = content[:_SHOWN].decode("utf-8", "replace")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return e.StoreUnavailableError(f"the server answers {status}: {shown}", may_be_done=True)
    return e.ConfigurationError(
        f"no server of Holdfast answers like this ({status}): {shown!r}; see whether the address is right"
    )


def unreachable(address: str, error: Exception, *, may_be_done: bool) -> e.StoreUnavailableError:
    """The error of a server that does not answer."""
    why = str(error) or type(error).__name__
    told = e.StoreUnavailableError(f"the server {address} does not answer: {why}", may_be_done=may_be_done)
    told.add_note("see whether it is up, and whether its address is right")
    return told


def _missing(told: Told) -> e.HoldfastError:
    found = _MISSING.fullmatch(told.detail)
    if found is None:
        return e.NotFoundError("such thing", "", hint=told.detail)
    return e.NotFoundError(found["kind"], ast.literal_eval(found["name"]), hint=found["hint"] or "")


def _refused(told: Told) -> e.HoldfastError:
    return e.RejectedError(reason=told.code, message=told.detail)


def _forbidden(told: Told) -> e.HoldfastError:
    return e.ForbiddenError(reason=told.code, message=told.detail)


def _unfit(told: Told) -> e.HoldfastError:
    return e.PayloadError(told.detail, reason="" if told.code == e.PayloadError.code else told.code)


def _reused(told: Told) -> e.HoldfastError:
    return e.ReusedIdError(told.detail)


def _uncompiled(told: Told) -> e.HoldfastError:
    found = _UNCOMPILED.match(told.detail)
    return e.DefinitionError(found["name"] if found else "the definition", told.errors)


def _unexpressed(told: Told) -> e.HoldfastError:
    return e.ExpressionError(told.detail, reason=told.code)


def _failed(told: Told) -> e.HoldfastError:
    return e.CommandError(told.detail, decider="")


def _lost(told: Told) -> e.HoldfastError:
    return e.StoreUnavailableError(told.detail, may_be_done=True)


def _misled(told: Told) -> e.HoldfastError:
    return e.ConfigurationError(f"{told.detail}: the server is another one than this client was made for")


def _of_status(told: Told) -> e.HoldfastError:
    """Of a server that is newer than this client: what its status says."""
    match told.status:
        case HTTPStatus.NOT_FOUND:
            return _missing(told)
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
            return _forbidden(told)
        case HTTPStatus.CONFLICT | HTTPStatus.UNPROCESSABLE_ENTITY:
            return _refused(told)
        case _:
            return e.HoldfastError(told.detail)


def _plain(kind: Callable[[str], e.HoldfastError]) -> Callable[[Told], e.HoldfastError]:
    return lambda told: kind(told.detail)


_OF_ENGINE: Final[Mapping[str, Callable[[Told], e.HoldfastError]]] = {
    e.HoldfastError.code: _plain(e.HoldfastError),
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

_OF_EDGE: Final[Mapping[str, Callable[[Told], e.HoldfastError]]] = {
    "unauthenticated": _forbidden,
    "not_permitted": _forbidden,
    "partition_bound": _forbidden,
    "platform_only": _forbidden,
    "bad_signature": _forbidden,
    "cross_site": _forbidden,
    "FORBIDDEN": _forbidden,
    "no_route": _misled,
    "method_not_allowed": _misled,
    "malformed": _unfit,
    "VALIDATION_ERROR": _unfit,
    "bad_query": _unfit,
    "bad_cursor": _unfit,
    "bad_header": _unfit,
    "unsupported_media_type": _unfit,
    "body_too_large": _unfit,
    "body_too_deep": _unfit,
    "body_too_slow": _lost,
    "too_many_requests": _plain(e.StoppedError),
    "too_many_streams": _plain(e.StoppedError),
    "changed_meanwhile": _plain(e.ConflictError),
    "VERSION_CONFLICT": _plain(e.ConflictError),
    "condition_unsupported": _unfit,
    "provider_unreachable": _plain(e.StoppedError),
    "internal_error": _plain(e.HoldfastError),
}
"""Refusals of the edge, by their codes, as the error that a caller would deal with in the same way."""
