"""A notice on its way to somebody, and what a channel is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

import msgspec

from standfast.kernel.ids import InstanceId
from standfast.store.ports.notifications import Recipient

Addresses: TypeAlias = Callable[[str, Recipient], Sequence[str]]
"""Under which addresses somebody of a tenant is reached; none if nobody knows one."""


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What is told to whom. It may be sent more than once, when nobody knows whether it was: the key is the same then."""

    key: str
    """Names what is told to whom by which channel, the same over all attempts and different from every other; give it to the outside world."""
    tenant: str
    kind: Literal["user", "role"]
    to: str
    """The id of a user, an address with an @, or the name of a role."""
    addresses: tuple[str, ...] = ()
    """Where they are reached, as far as somebody knows."""
    subject: str
    """One line."""
    body: str = ""
    html: str = ""
    """The body for channels that show HTML; empty means that there is none but the plain one."""
    instance: InstanceId
    definition: str
    step: int
    node: str
    at: datetime
    """When this attempt is made."""
    partition: str = ""
    """The part of the tenant that the instance is in; empty if it is in none."""
    occasion: str = ""
    """Names what is told, whomever and by whichever channel: the same for all recipients of one occasion."""
    kept_out: tuple[str, ...] = ()
    """Those whom a notice to a role is not for, because they may not decide what it is about. Their addresses are not among `addresses`."""

    @property
    def recipient(self) -> Recipient:
        """Whose list it is found in."""
        return Recipient(self.kind, self.to)


class Channel(Protocol):
    """A way to tell people something. A class of a channel that needs an address has `needs_address = True`."""

    def send(self, notice: Notice, /) -> object:
        """Tell it. `Fail` means that trying again cannot help; after any other error it is tried again."""
        ...


def own_address(_tenant: str, of: Recipient) -> Sequence[str]:
    """What is known where there is no directory: whoever is named by an address is reached there."""
    return (of.name,) if of.kind == "user" and "@" in of.name else ()
