"""What handlers and the engine's own loops raise, for Sentry: with tenant, run, step and trace, and with what was logged on the way."""

from __future__ import annotations

import logging
from typing import TypeVar

from standfast.app.engine import Engine

__all__ = ["report"]

E = TypeVar("E", bound=Engine)

_log = logging.getLogger("standfast.contrib")


def report(engine: E, *, ignore: tuple[type[BaseException], ...] = ()) -> E:
    """Report to the client that `sentry_sdk.init` has made. `Retry` is a handler's word and no error; `ignore` names more that are none.

    Without sentry-sdk nothing is done.
    """
    try:
        from standfast.contrib.sentry.reports import Reports
    except ImportError as error:
        _log.info("no reports: sentry-sdk is not installed (%s)", error)
        return engine
    reports = Reports(ignore)
    return engine.accompany(reports).listen(reports.heard)
