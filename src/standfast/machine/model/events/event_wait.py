"""What happens between a run and published events."""

from __future__ import annotations

from standfast.kernel.codec.message_types import message
from standfast.machine.model.events.base import Happening


@message(name="event_received")
class EventReceived(Happening, frozen=True, kw_only=True):
    """A published event came that a step waits for."""

    step: int
    place: int = 0
    """Which of the events that the step waits for."""
    id: str
    event: str
    key: str = ""
    payload: object = None
    publisher: str = ""
    """Who published it; empty if the engine did."""
    at: str
    expires_at: str = ""
    """Until when it can be met again, and has to be remembered; empty if it cannot."""


@message(name="event_declined")
class EventDeclined(Happening, frozen=True, kw_only=True):
    """An event was not taken. One for one taker is offered to the next; one that was found does not count because of its publisher, and the step looks on."""

    step: int
    id: str
    event: str
    publisher: str = ""
    """Whose event does not count, because they may not take a way on from the step; empty if that is not why."""


@message(name="events_sought")
class EventsSought(Happening, frozen=True, kw_only=True):
    """The step looks for events anew: one that was in view went to another taker, or its time is over and one may have been published before."""

    step: int
    over_at: str = ""
    """When the time of the step was over, as ISO 8601; empty while it lasts."""
