"""The channel for developers: the log of the process."""

from __future__ import annotations

import logging

from standfast.notifications.notification import Notice

_log = logging.getLogger("standfast.notices")


class Log:
    """Writes notices into the log, each in one line whatever is in it."""

    def send(self, notice: Notice) -> None:
        """Write it."""
        facts = {"instance": str(notice.instance), "step": notice.step, "key": notice.key}
        _log.info("to %s %r: %r %r", notice.kind, notice.to, notice.subject, notice.body, extra=facts)
