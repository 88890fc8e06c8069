"""Calls of published events: publishing one, and those that are kept."""

from __future__ import annotations

import builtins
from datetime import timedelta

import msgspec

from standfast.calls.authorization import check_reader
from standfast.calls.context import (
    CallContext,
    checked_flag,
    checked_id,
    checked_key,
    checked_last,
    checked_limit,
    failed,
)
from standfast.calls.handlers.step_handlers import plain
from standfast.engine.commit.submission import CommandOutcome, receipt_key
from standfast.engine.concurrency.replies import Reply
from standfast.errors import NotFoundError, PayloadError, StandfastError
from standfast.features.events.model import PublicationState, PublishEvent
from standfast.features.events.views import PublishedEvent, kept_event, published_event
from standfast.kernel.codec.message_types import LONGEST_NAME
from standfast.kernel.retry import LONGEST_TIMEOUT
from standfast.kernel.row_kinds.events import PublicationPlace
from standfast.machine.model.messages import PUBLICATION
from standfast.store.ports.reading import TenantReader

_LARGEST_KEY = 10**LONGEST_NAME
"""Whole numbers from here on are longer than a key may be."""


class FutureEvents:
    """What can be asked of events that are published to whoever waits for them."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def publish(
        self,
        event: str,
        key: str | int = "",
        payload: object = None,
        *,
        event_id: str = "",
        ttl: timedelta | float | None = None,
        match_one: bool = False,
    ) -> Reply[str]:
        """Tell all that something happened; the answer, the id of the event, is there when it is stored.

        Every step that waits for this event and key goes on, and every workflow that it triggers starts. It is kept for its time to live
        (`ttl`, a timedelta or seconds; None means the setting `event_ttl`, 0 keeps nothing) for those who begin to wait later. With
        `match_one` only one of those who wait gets it. `event_id` makes the call safe to repeat: the same id is the same event, and with
        another content a ReusedIdError.
        """
        shared = self._desk.service.shared
        try:
            identity = checked_id(event_id, "event id", may_be_empty=True) or str(
                shared.chance.new_id(shared.clock.now())
            )
            command = PublishEvent(
                id=identity,
                event=checked_key(event, "event"),
                key=_event_key(key),
                payload=plain(payload, what="payload", limit=self._desk.payload_limit),
                ttl_ms=_milliseconds(shared.settings.event_ttl if ttl is None else ttl),
                match_one=checked_flag(match_one, "match_one"),
            )
        except StandfastError as error:
            return failed(error)
        address = self._desk.address(PUBLICATION, identity)
        receipt = receipt_key(address, event_id) if event_id else None

        def told(_outcome: CommandOutcome) -> str:
            return identity

        return self._desk.command(address, command, told, receipt=receipt)

    def list(
        self, *, event: str = "", after: PublishedEvent | None = None, limit: int = 100
    ) -> Reply[builtins.list[PublishedEvent]]:
        """The events that are kept, of one name or of all, oldest first; give the last one as `after` for the next page.

        It takes the capability `execution:read`.
        """

        def read(reader: TenantReader) -> list[PublishedEvent]:
            check_reader(self._desk, what="list events")
            known = checked_last(after, PublishedEvent, "`after`")
            last = None if known is None else PublicationPlace(known.published_at, known.instance)
            now = self._desk.service.shared.clock.now()
            named = checked_key(event, "event", may_be_empty=True)
            found = reader.publications(event=named, now=now, after=last, limit=checked_limit(limit))
            return [kept_event(each) for each in found]

        return self._desk.look(read)

    def get(self, event_id: str) -> Reply[PublishedEvent]:
        """One event, by its id, with what it started; NotFoundError once it is forgotten.

        Whoever published it may look at it; others need the capability `execution:read`.
        """

        def read(reader: TenantReader) -> PublishedEvent:
            identity = checked_key(event_id, "event id")
            address = self._desk.address(PUBLICATION, identity)
            tracked = self._desk.folded(reader, address)
            if tracked is None:
                raise NotFoundError("event", identity)
            assert isinstance(tracked.state, PublicationState)
            found = published_event(tracked.header, tracked.state)
            check_reader(self._desk, found.publisher, what="look at events of others")
            return found

        return self._desk.look(read)


def _event_key(key: object) -> str:
    """What an event is published for: a whole number is the text that a step with such a key waits for."""
    if isinstance(key, int) and not isinstance(key, bool) and abs(key) < _LARGEST_KEY:
        return checked_key(str(key), "key")
    return checked_key(key, "key", may_be_empty=True)


def _milliseconds(ttl: object) -> int:
    try:
        given = ttl if isinstance(ttl, timedelta) else timedelta(seconds=msgspec.convert(ttl, float))
    except (msgspec.ValidationError, OverflowError, ValueError):
        raise PayloadError(f"the ttl must be a timedelta or a number of seconds, not {ttl!r}") from None
    if not timedelta(0) <= given <= LONGEST_TIMEOUT:
        raise PayloadError(f"the ttl must be from nothing to a hundred years, not {ttl!r}")
    return round(given.total_seconds() * 1000)
