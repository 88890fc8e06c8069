"""An error as the answer to a request: its status, its headers and the problem. It needs no server, so that every framework can answer alike."""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from standfast.http.wire.problems import MEDIA_TYPE, headers_of, problem_of
from standfast.http.wire.tracing import Trace

_log = logging.getLogger("standfast.http")
_encode = msgspec.json.Encoder(enc_hook=str).encode
SERVER_FAULT: Final = 500


class ErrorAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An error response."""

    status: int
    headers: dict[str, str]
    body: bytes
    media_type: str = MEDIA_TYPE


def error_answer(
    error: BaseException, method: str, path: str, trace: Trace, *, is_of_processes: bool = False
) -> ErrorAnswer:
    """Return the response to an error.

    For a server error the client gets only the trace id, which the log line has too.
    """
    problem = problem_of(error, trace_id=trace.trace_id, is_of_processes=is_of_processes)
    where = method, path, trace.trace_id
    if (
        problem.status >= SERVER_FAULT and problem.retryable
    ):  # There may be many of them while a database is unavailable.
        _log.warning("request_unavailable method=%s path=%r trace=%s error=%r", *where, error)
    elif problem.status >= SERVER_FAULT:
        _log.error("request_failed method=%s path=%r trace=%s", *where, exc_info=error)
    return ErrorAnswer(status=problem.status, headers=headers_of(error), body=_encode(problem))
