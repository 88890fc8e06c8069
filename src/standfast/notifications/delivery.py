"""Delivers notices: finds the channel and the addresses, sends, and reports the outcome."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, cast

import msgspec

from standfast.engine.common.handlers import EffectContext, Fail
from standfast.errors import ConfigurationError
from standfast.kernel.codec.message_types import name_flaw
from standfast.machine.model.commands.run_commands import EndNotice
from standfast.machine.model.engine_tasks import FullWords, Notify
from standfast.notifications.mail_addresses import People, Roles, address_of
from standfast.notifications.notification import Addresses, Channel, Notice
from standfast.notifications.templates import (
    NotificationPreferences,
    NotificationTemplates,
    is_muted,
    occasion_of,
    reworded,
    wants_of,
)
from standfast.notifications.webhook import Webhook
from standfast.outbound.http import Outbound
from standfast.store.ports.notifications import Recipient

IN_APP: Final = "in_app"
EMAIL: Final = "email"

Sending = Callable[[Notice], object]


class Deliveries:
    """The channels of one process."""

    def __init__(
        self,
        in_app: Channel,
        *,
        clock: Callable[[], datetime],
        addresses: Addresses,
        people: People,
        roles: Roles,
        templates: Callable[[str], NotificationTemplates | None],
        outbound: Outbound,
    ) -> None:
        self.addresses = addresses
        """Resolves recipients to addresses."""
        self._people = people
        """Resolves recipients to users, for their preferences."""
        self._roles = roles
        """Resolves the roles of a recipient."""
        self._templates = templates
        """Returns an organisation's notification templates."""
        self._clock = clock
        self._outbound = outbound
        self._channels: dict[str, Channel | Sending] = {IN_APP: in_app}

    def add(self, name: str, channel: Channel | Sending) -> None:
        """Register a channel: an object with `send`, or a function."""
        if flaw := name_flaw(name):
            raise ConfigurationError(f"the channel's name {name!r} {flaw}; steps find it by that")
        if name == IN_APP:
            raise ConfigurationError(f"{IN_APP!r} is the engine's own channel; take another name")
        if not callable(getattr(channel, "send", channel)):
            told = f"the channel {name!r} is of type {type(channel).__name__}; give a function of a notice, or an object with such a `send`"
            raise ConfigurationError(told)
        self._channels[name] = channel
        if isinstance(channel, Webhook):
            channel.attach(self._outbound)

    def lacking(self, channels: Mapping[str, str]) -> str:
        """Return what to do about the first missing channel; empty if none is missing. `channels` maps each to a definition."""
        for channel, definition in sorted(channels.items()):
            if channel not in self._channels:
                return (
                    f"{definition!r} tells people by {channel!r}, which this process does not have; {_remedy(channel)}"
                )
        return ""

    def run(self, context: EffectContext, errand: Notify) -> EndNotice | None:
        """Deliver a notice, or raise. The result goes to a step that waits for it, or describes what was skipped."""
        channel, notice, muted = self._mannered(self._notice(context, errand), errand)
        left_undone = self.deliver(channel, notice, but=muted | self._spared(context.tenant, channel, errand))
        return _ended(errand, left_undone) if errand.waits or left_undone else None

    def _spared(self, tenant: str, channel: str, errand: Notify) -> frozenset[str]:
        """Return the addresses that get the same from another notice of the channel, or are excluded.

        In the application the reader does both.
        """
        if channel == IN_APP:
            return frozenset()
        others = [Recipient(kind, name) for kind, name in errand.told]
        others += [Recipient("user", name) for name in errand.kept_out]
        return frozenset(address for each in others for address in self.addresses(tenant, each))

    def _mannered(self, notice: Notice, errand: Notify) -> tuple[str, Notice, frozenset[str]]:
        """Return the channel, the reworded notice, and the addresses that have opted out.

        A notice that a step waits for, and one in the application, cannot be opted out of.
        """
        manners, occasion = self._templates(notice.tenant), occasion_of(errand.key)
        is_optional = errand.channel != IN_APP and not errand.waits
        if manners is None and not is_optional:
            return errand.channel, notice, frozenset()
        people = self._people(notice.tenant, notice.recipient)
        wants = {each.id: wants_of(each) for each in people}
        if manners is not None:
            language = wants.get(notice.to, NotificationPreferences()).language if notice.kind == "user" else ""
            notice = reworded(notice, manners.wording(occasion, errand.channel, language or manners.language))
        mandatory = () if manners is None else manners.mandatory
        muted = [
            each for each in people if is_optional and is_muted(wants[each.id], errand.channel, occasion, mandatory)
        ]
        channel = IN_APP if muted and len(muted) == len(people) else errand.channel
        return channel, notice, frozenset(map(address_of, muted))

    def deliver(self, name: str, notice: Notice, *, but: frozenset[str] = frozenset()) -> str:
        """Send a notice by a channel, or raise; return what was skipped because no address is known.

        `but` are addresses to skip. If no other is left, nothing is sent.
        """
        channel = self._channels.get(name)
        if channel is None:
            raise Fail(f"there is no channel {name!r} here; {_remedy(name)}")
        found, is_left = self._addressed(name, notice, but)
        if not is_left:
            return ""
        if name != IN_APP and not found.addresses:
            is_gone = self._has_left(found)
            if is_gone or getattr(channel, "needs_address", False):
                self._send(self._channels[IN_APP], found)
                told = f"{found.kind} {found.to!r}; notified in the application only"
                return f"no active recipient: {told}" if is_gone else f"no known address: {told}"
        self._send(channel, found)
        return ""

    def _has_left(self, notice: Notice) -> bool:
        """Return whether all recipients that the directory knows are deactivated."""
        known = self._people(notice.tenant, notice.recipient)
        return bool(known) and not any(each.is_active for each in known)

    def _notice(self, context: EffectContext, errand: Notify) -> Notice:
        words: Notify | FullWords = errand
        if errand.full is not None:
            roles = self._roles(context.tenant, Recipient(errand.kind, errand.to))
            words = errand.full if all(not roles.isdisjoint(each) for each in errand.full.audience) else errand
        return Notice(
            key=f"{context.instance}/{errand.key}",
            tenant=context.tenant,
            kind=errand.kind,
            to=errand.to,
            subject=words.subject,
            body=words.body,
            html=words.html,
            instance=context.instance,
            definition=context.decider,
            step=errand.step,
            node=errand.node,
            at=self._clock(),
            partition=context.partition,
            occasion=f"{context.instance}/{errand.occasion}" if errand.occasion else "",
            kept_out=tuple(errand.kept_out),
        )

    def _addressed(self, channel: str, notice: Notice, but: frozenset[str]) -> tuple[Notice, bool]:
        """Return the notice with the remaining addresses, and whether any recipient is left."""
        if channel == IN_APP:  # The in-app channel reaches every recipient without an address.
            return notice, True
        known: dict[str, str] = {}
        for each in self.addresses(notice.tenant, notice.recipient):
            known.setdefault(each.casefold(), each)
        spared = {each.casefold() for each in but}
        found = tuple(each for place, each in known.items() if place not in spared)
        is_left = bool(found) or not known
        return (msgspec.structs.replace(notice, addresses=found) if found else notice), is_left

    @staticmethod
    def _send(channel: Channel | Sending, notice: Notice) -> None:
        sending = cast("Sending", getattr(channel, "send", channel))
        result = sending(notice)
        if inspect.iscoroutine(result):  # A handler of the engine has a thread of its own.
            asyncio.run(result)


def _ended(errand: Notify, error: str = "") -> EndNotice:
    return EndNotice(step=errand.step, key=errand.key, channel=errand.channel, to=errand.to, error=error)


def _remedy(channel: str) -> str:
    if channel == EMAIL:
        return "give Settings(mail_host=…, mail_from=…), or a channel of your own under this name"
    return f"register it in every process that works: engine.channel({channel!r}, …)"
