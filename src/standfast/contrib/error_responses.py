"""What applications of other frameworks answer when the engine refuses."""

from __future__ import annotations

from standfast.errors import StandfastError
from standfast.http.requests.error_responses import SERVER_FAULT, ErrorAnswer, error_answer
from standfast.http.wire.problems import status_of
from standfast.http.wire.tracing import trace_of


def answer_of(error: StandfastError, method: str, path: str, parent: str | None) -> ErrorAnswer | None:
    """The answer of the HTTP API to this error, for whoever came with this `traceparent`.

    None where it is the application's own fault: that is for whoever looks after it, with its pages, mails and reports.
    """
    if status_of(error) >= SERVER_FAULT and not error.retryable:
        return None
    return error_answer(error, method, path, trace_of({"traceparent": parent or ""}))
