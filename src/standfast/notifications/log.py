"""The log channel, for development: the log of the process."""

from __future__ import annotations

import logging

from standfast.notifications.notification import Notice

_log = logging.getLogger("standfast.notices")


class Log:
    """Writes each notice into the log as one line."""

    def send(self, notice: Notice) -> None:
        """Write the notice."""
        facts = {"instance": str(notice.instance), "step": notice.step, "key": notice.key}
        _log.info(
            "notification kind=%s to=%r subject=%r body=%r",
            notice.kind,
            notice.to,
            notice.subject,
            notice.body,
            extra=facts,
        )
