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
    """An event for one taker was offered, and nobody here waits for it: the next one gets it."""

    step: int
    id: str
    event: str


@message(name="events_sought")
class EventsSought(Happening, frozen=True, kw_only=True):
    """An event that was in view went to another taker: the step looks for another one."""

    step: int
