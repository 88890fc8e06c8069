"""Engine errors as HTTP responses, for applications of other frameworks."""

from __future__ import annotations

from standfast.errors import StandfastError
from standfast.http.requests.error_responses import SERVER_FAULT, ErrorAnswer, error_answer
from standfast.http.wire.problems import status_of
from standfast.http.wire.tracing import trace_of


def answer_of(error: StandfastError, method: str, path: str, parent: str | None) -> ErrorAnswer | None:
    """Return the HTTP API's response to an error, for a request with this `traceparent`.

    Returns None for a fault of the application itself, which its own error pages, mails and reports handle.
    """
    if status_of(error) >= SERVER_FAULT and not error.retryable:
        return None
    return error_answer(error, method, path, trace_of({"traceparent": parent or ""}))
