"""A small workflow for the tests of the kernel: an order that is placed, paid in parts, and shipped or cancelled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import msgspec

from standfast.kernel.codec.codecs import JsonCodec
from standfast.kernel.decider import Decider
from standfast.kernel.decision import Answer, Decision, Ignored, Rejection
from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.kernel.moment import Moment
from standfast.kernel.program import Program

NOON = datetime(2026, 3, 31, 12, tzinfo=UTC)
ORDER = InstanceId(UUID("019d0000-0000-7000-8000-000000000001"))


@dataclass(frozen=True)
class Place:
    workflow_id: str
    total: Decimal


@dataclass(frozen=True)
class Pay:
    workflow_id: str
    amount: Decimal


class Cancel(msgspec.Struct, frozen=True):
    workflow_id: str
    reason: str = ""


@dataclass(frozen=True)
class Remind:
    workflow_id: str


@dataclass(frozen=True)
class Placed:
    total: Decimal


@dataclass(frozen=True)
class Paid:
    amount: Decimal


class Cancelled(msgspec.Struct, frozen=True):
    reason: str


@dataclass(frozen=True)
class Charge:
    amount: Decimal


@dataclass(frozen=True)
class Order:
    total: Decimal = Decimal(0)
    paid: Decimal = Decimal(0)
    is_cancelled: bool = False


class Orders(Decider[Order, Place | Pay | Cancel | Remind, Placed | Paid | Cancelled, Charge]):
    """Orders."""

    type = "order"

    def initial(self) -> Order:
        """Nothing was ordered."""
        return Order()

    def evolve(self, state: Order, event: Placed | Paid | Cancelled) -> Order:
        """Add up."""
        match event:
            case Placed():
                return replace(state, total=event.total)
            case Paid():
                return replace(state, paid=state.paid + event.amount)
            case Cancelled():
                return replace(state, is_cancelled=True)

    def decide(self, state: Order, command: Place | Pay | Cancel | Remind, moment: Moment) -> Answer:
        """Take money until the total is reached."""
        match command:
            case Place():
                remind = Remind(command.workflow_id)
                placed = Decision.event(Placed(command.total)).with_effect(Charge(command.total))
                return placed.with_timer_after(timedelta(hours=1), remind, key="reminder")
            case Pay() if command.amount <= 0:
                return Rejection(code="no_money", message="an amount must be positive")
            case Pay():
                return Decision.event(Paid(command.amount))
            case Cancel():
                return Decision.event(Cancelled(command.reason)).cancel_timer("reminder")
            case Remind():
                return Ignored(reason="reminders are for show")

    def is_terminal(self, state: Order) -> bool:
        """A cancelled order has ended."""
        return state.is_cancelled


def orders() -> Program:
    """The workflow, ready to run."""
    return Program(Orders(), JsonCodec())


def moment(version: int = 0) -> Moment:
    """The circumstances of a command at noon."""
    return Moment(now=NOON, instance=ORDER, version=version)


def stored(sequence: int, kind: str, data: bytes, version: int = 1) -> StoredEvent:
    """An event as it comes from a store."""
    return StoredEvent(
        instance=ORDER,
        sequence=sequence,
        type=kind,
        version=version,
        data=data,
        at=NOON,
        actor="ada",
        comment="",
        cause="",
        tenant="default",
    )
