"""The in-app channel: a row in the recipient's list."""

from __future__ import annotations

from collections.abc import Callable

from standfast.notifications.notification import Notice
from standfast.store.ports.notifications import NewNotification


class InApp:
    """Writes notices into the recipients' lists; each appears there once."""

    def __init__(self, write: Callable[[NewNotification], bool]) -> None:
        self._write = write

    def send(self, notice: Notice) -> None:
        """Write the notice."""
        told = NewNotification(
            tenant=notice.tenant,
            key=notice.key,
            kind=notice.kind,
            recipient=notice.to,
            instance=notice.instance,
            step=notice.step,
            subject=notice.subject,
            body=notice.body,
            partition=notice.partition,
            occasion=notice.occasion,
            kept_out=notice.kept_out,
        )
        self._write(told)
