"""A notice to a recipient, and the interface of a channel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

import msgspec

from standfast.kernel.ids import InstanceId
from standfast.store.ports.notifications import Recipient

Addresses: TypeAlias = Callable[[str, Recipient], Sequence[str]]
"""The addresses of a recipient in a tenant; empty if none is known."""


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """A notice to a recipient. It may be sent more than once, after an unknown outcome; the key is the same then."""

    key: str
    """Idempotency key: identifies content, recipient and channel, the same over all attempts.

    Pass it to the receiving system.
    """
    tenant: str
    kind: Literal["user", "role"]
    to: str
    """The id of a user, an address with an @, or the name of a role."""
    addresses: tuple[str, ...] = ()
    """The known addresses of the recipient."""
    subject: str
    """One line."""
    body: str = ""
    html: str = ""
    """The HTML body, for channels that show HTML; empty if there is only the plain one."""
    instance: InstanceId
    definition: str
    step: int
    node: str
    at: datetime
    """The time of this attempt."""
    partition: str = ""
    """The partition of the instance; empty if it has none."""
    occasion: str = ""
    """Identifies the occasion over all recipients and channels."""
    kept_out: tuple[str, ...] = ()
    """Users whom a notice to a role excludes, because they may not decide the task.

    Their addresses are not in `addresses`.
    """

    @property
    def recipient(self) -> Recipient:
        """Return the recipient, whose list the notice belongs to."""
        return Recipient(self.kind, self.to)


class Channel(Protocol):
    """A notification channel. A class of a channel that needs an address has `needs_address = True`."""

    def send(self, notice: Notice, /) -> object:
        """Send the notice. `Fail` means that a retry cannot help; any other error is retried."""
        ...


def own_address(_tenant: str, of: Recipient) -> Sequence[str]:
    """Return addresses without a directory: a recipient named by an address is reached there."""
    return (of.name,) if of.kind == "user" and "@" in of.name else ()
