"""Alerts: what operators are told of a run that somebody should look at. Each is an instance of a decider of its own, named by the run and the day.

Whichever processes find the run, and however often, the first of them raises the alert; it is sent like any other effect, and tried again.
"""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from standfast.kernel.codec.message_types import message
from standfast.kernel.decider import COMPLETED, RUNNING, Decider, Status
from standfast.kernel.decision import Answer, Decision, Effect, Ignored
from standfast.kernel.moment import Moment
from standfast.kernel.row_kinds.events import EVENT_KIND
from standfast.machine.model.engine_tasks import NOTICE_HANDLER

ALERT: Final = "$alert"
"""The decider of alerts. Their instances are kept no longer than those of published events."""

_KNOWN = Ignored(reason="this alert was raised before")


class _Word(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What is said to an alert, of it, and by it."""


class Standstill(_Word, frozen=True, kw_only=True):
    """A run that somebody should look at."""

    run: str
    definition: str
    since: str
    """When something last happened to it."""
    what: str = ""
    """What is wrong with it, in a few words; empty if nothing can wake it."""


@message(name="RaiseAlert")
class RaiseAlert(_Word, frozen=True, kw_only=True):
    """Tell operators of a run."""

    id: str
    """The run and the day."""
    about: Standstill
    to: list[str]
    """Whom, each by a channel: `email:ops@example.com`."""


@message(name="alert_raised")
class AlertRaised(_Word, frozen=True, kw_only=True):
    """Operators are told."""

    about: Standstill
    to: list[str]


@message(name="SendAlert")
class SendAlert(_Word, frozen=True, kw_only=True):
    """The effect: tell one of them."""

    about: Standstill
    to: str


class AlertState(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """Whether it was raised."""

    is_raised: bool = False


class AlertDecider(Decider[AlertState, RaiseAlert, AlertRaised, SendAlert]):
    """Decides about one alert."""

    type: ClassVar[str] = ALERT
    is_plain: ClassVar[bool] = True  # Nothing of it comes from outside.
    kind = EVENT_KIND

    def initial(self) -> AlertState:
        """One that nobody has raised."""
        return AlertState()

    def key_of(self, command: RaiseAlert) -> str:
        """The run and the day."""
        return command.id

    def status(self, state: AlertState) -> Status:
        """It is over once it was raised; what is to be sent then is sent all the same."""
        return COMPLETED if state.is_raised else RUNNING

    def evolve(self, state: AlertState, _event: AlertRaised) -> AlertState:
        """The alert after it was raised."""
        state.is_raised = True
        return state

    def decide(self, state: AlertState, command: RaiseAlert, _moment: Moment) -> Answer:
        """Once."""
        if state.is_raised:
            return _KNOWN
        effects = (Effect(body=SendAlert(about=command.about, to=each), handler=NOTICE_HANDLER) for each in command.to)
        return Decision((AlertRaised(about=command.about, to=command.to),), effects=tuple(effects))
