"""Sentry reports of errors in handlers and in the engine's loops: with tenant, run, step, trace and breadcrumbs."""

from __future__ import annotations

import logging
from typing import TypeVar

from standfast.app.engine import Engine

__all__ = ["report"]

E = TypeVar("E", bound=Engine)

_log = logging.getLogger("standfast.contrib")


def report(engine: E, *, ignore: tuple[type[BaseException], ...] = ()) -> E:
    """Report errors to the client of `sentry_sdk.init`.

    `Retry` is no error; `ignore` names further exceptions to ignore.

    Without sentry-sdk it does nothing.
    """
    try:
        from standfast.contrib.sentry.reports import Reports
    except ImportError as error:
        _log.info("error_reports_disabled reason=sentry_sdk_missing error=%r", error)
        return engine
    reports = Reports(ignore)
    return engine.accompany(reports).listen(reports.heard)
