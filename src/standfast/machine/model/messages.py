"""Published events as runs meet them, and what a run tells an event that is for one taker alone."""

from __future__ import annotations

from typing import Final

import msgspec

from standfast.kernel.actor import NO_TERMS, SYSTEM, Actor, Terms, late_text, later
from standfast.kernel.codec.message_types import message

PUBLICATION: Final = "$event"
"""The decider of published events: every event is an instance of it."""


class PublishedMessage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An event, as those who wait for it get it."""

    id: str
    """Tells it from every other event of the tenant, or of the partition that it was published in."""
    event: str
    key: str = ""
    payload: object = None
    match_one: bool = False
    """Whether it is for one taker alone, who has to say whether he takes it."""
    expires_at: str = ""
    """Until when it is kept; empty if it is forgotten at once."""
    partition: str = ""
    """The part of the tenant that it was published in; empty if in none, so that it is for all of them."""
    at: str = ""
    """When it was published; empty in those of old, which count as published when they arrive."""
    publisher: Actor | None = None
    """Who published it, with what they might do then; None if that was the engine itself."""
    asker: Actor | None = None
    """The same with what came with the request alone, so that their rights can be looked up again; None in those of old."""
    terms: Terms = NO_TERMS
    """What it took to publish it at the front end, and what roles stood for there."""

    @property
    def asked(self) -> str:
        """What came with the request of the publisher, as a text that names their rights of now; empty if nothing is to be looked up."""
        if self.asker is None:
            return ""
        request = later(self.asker, self.terms, tenant="", partition=self.partition, trace="")
        return late_text(request, frozenset(self.terms.role_capabilities))

    @property
    def actor(self) -> Actor:
        """On whose behalf a run goes on with it."""
        return self.publisher or SYSTEM


class Waiter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A step that waits."""

    instance: str
    definition: str
    step: int
    is_seeker: bool = False
    """Whether it has looked for this event by itself, and would look for another one if it does not get this."""


@message(name="AnswerOffer")
class AnswerOffer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Somebody who was offered an event says whether he takes it."""

    id: str
    instance: str
    step: int
    is_taken: bool = False
