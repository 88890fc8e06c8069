"""Middleware that answers engine errors of views as the HTTP API does."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from standfast.contrib.error_responses import answer_of
from standfast.errors import StandfastError


class AnswerErrors(MiddlewareMixin):  # type: ignore[misc]
    """Answers errors of the engine with their status and problem details: `"standfast.contrib.django.middleware.AnswerErrors"` in MIDDLEWARE.

    A transaction of ATOMIC_REQUESTS has been rolled back by then. Errors of the project itself stay exceptions.
    """

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Convert an exception of a view."""
        if not isinstance(error, StandfastError):
            return None
        told = answer_of(error, str(request.method), request.path, request.headers.get("traceparent"))
        if told is None:
            return None
        return HttpResponse(told.body, status=told.status, headers=told.headers, content_type=told.media_type)
