"""What can happen to questions that nobody answers, and to notices."""

from __future__ import annotations

from standfast.kernel.codec.message_types import message
from standfast.machine.model.engine_tasks import Person
from standfast.machine.model.events.base import Happening


@message(name="task_reminded")
class TaskReminded(Happening, frozen=True, kw_only=True):
    """Those who are asked were reminded."""

    step: int
    count: int
    """Which reminder it was; those that were missed, because nobody worked then, are counted and not made up for."""
    shift_ms: int = 0
    """As much later its times count from, because pauses of more than its run have had its clocks stand still."""


@message(name="task_escalated")
class TaskEscalated(Happening, frozen=True, kw_only=True):
    """Nobody has answered for so long that somebody else is asked too, or that the question ends."""

    step: int
    level: int
    """Which rung of the ladder it was, from 1."""
    people: list[Person] = []  # noqa: RUF012 - every struct gets one of its own
    """Who is asked besides."""
    outcome: str = ""
    """What the question ends by; empty if it goes on."""
    reason: str = ""
    """Why, if somebody did not want to wait until it would by itself."""
    shift_ms: int = 0
    """As much later its times count from, because pauses of more than its run have had its clocks stand still."""
    by: str = ""
    """Who has ended it before its time; empty if it goes on, or has ended by itself."""
    on_behalf_of: str = ""


@message(name="notifications_sent")
class NotificationsSent(Happening, frozen=True, kw_only=True):
    """A step waits until these notices are delivered."""

    step: int
    keys: list[str]


@message(name="notification_delivered")
class NotificationDelivered(Happening, frozen=True, kw_only=True):
    """A notice that a step waits for is delivered."""

    step: int
    key: str


@message(name="notification_failed")
class NotificationFailed(Happening, frozen=True, kw_only=True):
    """Somebody could not be told something."""

    step: int
    key: str
    channel: str
    to: str
    error: str
