"""Deciders that the tests share. Each is as small as the rule it helps to show."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from standfast import Decider, Decision, EffectContext, Ignored, Message, Moment, Rejection

Answer = Decision | Rejection | Ignored


class Ledger:
    """What was really done, written down outside of the engine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[Hashable] = []

    def add(self, entry: Hashable) -> None:
        """Write something down."""
        with self._lock:
            self._entries.append(entry)

    @property
    def entries(self) -> list[Hashable]:
        """All entries, in order."""
        with self._lock:
            return list(self._entries)

    def count(self, entry: Hashable) -> int:
        """How often an entry was written."""
        return self.entries.count(entry)


class Gauge:
    """How many are inside at this moment, and how many were at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now = 0
        self.most = 0

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Be inside for as long as the block lasts."""
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            yield
        finally:
            with self._lock:
                self.now -= 1


# -- A counter: the simplest state.


@dataclass(frozen=True)
class Add:
    workflow_id: str
    by: int = 1


@dataclass(frozen=True)
class Added:
    by: int


class Counter(Decider[int, Add, Added, None]):
    type = "counter"

    def initial(self) -> int:
        return 0

    def evolve(self, state: int, event: Added) -> int:
        return state + event.by

    def decide(self, state: int, command: Add, moment: Moment) -> Answer:
        return Decision.event(Added(command.by))


# -- A puppet: it decides as the test says.


@dataclass(frozen=True)
class Do:
    workflow_id: str
    what: str = ""


@dataclass(frozen=True)
class Noted:
    what: str


@dataclass(frozen=True)
class Act:
    what: str


Notes = tuple[str, ...]
Choice = Callable[[Notes, Do, Moment], Answer]

END = "end"


def note(state: Notes, command: Do, moment: Moment) -> Answer:
    """Write down what the command says."""
    return Decision.event(Noted(command.what))


def act(state: Notes, command: Do, moment: Moment) -> Answer:
    """Write it down, and have it done unless it is an answer to that."""
    decision = Decision.event(Noted(command.what))
    return decision if command.what.startswith("done") else decision.with_effect(Act(command.what))


class Puppet(Decider[Notes, Do, Noted, Act]):
    """Its state is what was noted; it ends on the note `end`."""

    type = "puppet"

    def __init__(self, choice: Choice = note) -> None:
        self._choice = choice

    def initial(self) -> Notes:
        return ()

    def evolve(self, state: Notes, event: Noted) -> Notes:
        return (*state, event.what)

    def decide(self, state: Notes, command: Do, moment: Moment) -> Answer:
        return self._choice(state, command, moment)

    def is_terminal(self, state: Notes) -> bool:
        return END in state


class Doll(Puppet):
    """Another puppet under another name."""

    type = "doll"


def done(context: EffectContext, effect: object) -> None:
    """A handler with nothing to do."""


# -- An order: payment, a timeout, refusals that are events.


@dataclass(frozen=True)
class Place:
    workflow_id: str
    amount: int


@dataclass(frozen=True)
class Pay:
    workflow_id: str


@dataclass(frozen=True)
class Ship:
    workflow_id: str


@dataclass(frozen=True)
class Cancel:
    workflow_id: str


@dataclass(frozen=True)
class TimeOut:
    workflow_id: str


@dataclass(frozen=True)
class Placed:
    amount: int


@dataclass(frozen=True)
class Paid:
    pass


@dataclass(frozen=True)
class Shipped:
    pass


@dataclass(frozen=True)
class Cancelled:
    why: str


@dataclass(frozen=True)
class CancelRejected:
    why: str


@dataclass(frozen=True)
class Charge:
    order: str
    amount: int


@dataclass(frozen=True)
class Deliver:
    order: str


OrderCommand = Place | Pay | Ship | Cancel | TimeOut
OrderEvent = Placed | Paid | Shipped | Cancelled | CancelRejected
OrderEffect = Charge | Deliver

PAYMENT = "payment"
PATIENCE = timedelta(hours=1)


@dataclass(frozen=True)
class OrderState:
    status: str = "new"
    amount: int = 0


class Order(Decider[OrderState, OrderCommand, OrderEvent, OrderEffect]):
    type = "order"

    def initial(self) -> OrderState:
        return OrderState()

    def evolve(self, state: OrderState, event: OrderEvent) -> OrderState:
        match event:
            case Placed(amount):
                return OrderState("placed", amount)
            case Paid():
                return OrderState("paid", state.amount)
            case Shipped():
                return OrderState("shipped", state.amount)
            case Cancelled():
                return OrderState("cancelled", state.amount)
            case CancelRejected():
                return state

    def decide(self, state: OrderState, command: OrderCommand, moment: Moment) -> Answer:
        match state.status, command:
            case "new", Place(order, amount):
                asked = Decision.event(Placed(amount)).with_effect(Charge(order, amount))
                return asked.with_timer_after(PATIENCE, TimeOut(order), key=PAYMENT)
            case "placed", Pay(order):
                return Decision.event(Paid()).cancel_timer(PAYMENT).with_effect(Deliver(order))
            case "paid", Ship():
                return Decision.event(Shipped())
            case "placed", Cancel() | TimeOut():
                return Decision.event(Cancelled(type(command).__name__))
            case "paid", Cancel():
                return Decision.event(CancelRejected("paid"))
            case _:
                return Rejection(code="out_of_turn", message=f"{type(command).__name__} in {state.status}")

    def is_terminal(self, state: OrderState) -> bool:
        return state.status in {"shipped", "cancelled"}


class Shop:
    """The handler of an order's effects, with a ledger of what it did."""

    def __init__(self, ledger: Ledger | None = None) -> None:
        self.ledger = ledger or Ledger()

    def handle(self, context: EffectContext, effect: object) -> OrderCommand:
        self.ledger.add(type(effect).__name__)
        match effect:
            case Charge(order):
                return Pay(order)
            case Deliver(order):
                return Ship(order)
            case _:
                raise AssertionError(f"an order has no effect {effect!r}")


# -- Two deciders that send messages to one another.


@dataclass(frozen=True)
class Send:
    workflow_id: str
    to: str
    amount: int


@dataclass(frozen=True)
class Confirm:
    workflow_id: str


@dataclass(frozen=True)
class Sent:
    to: str
    amount: int


@dataclass(frozen=True)
class Confirmed:
    pass


class Sender(Decider[str, Send | Confirm, Sent | Confirmed, None]):
    type = "sender"

    def initial(self) -> str:
        return "idle"

    def evolve(self, state: str, event: Sent | Confirmed) -> str:
        return "sent" if isinstance(event, Sent) else "confirmed"

    def decide(self, state: str, command: Send | Confirm, moment: Moment) -> Answer:
        match state, command:
            case "idle", Send(me, to, amount):
                letter = Message(decider="receiver", command=Receive(to, me, amount))
                return Decision.event(Sent(to, amount)).with_message(letter)
            case "sent", Confirm():
                return Decision.event(Confirmed())
            case _:
                return Ignored(reason="out of turn")

    def is_terminal(self, state: str) -> bool:
        return state == "confirmed"


@dataclass(frozen=True)
class Receive:
    workflow_id: str
    sender: str
    amount: int


@dataclass(frozen=True)
class Received:
    sender: str
    amount: int


@dataclass(frozen=True)
class Purse:
    total: int = 0
    senders: list[str] = field(default_factory=list)


class Receiver(Decider[Purse, Receive, Received, None]):
    type = "receiver"

    def initial(self) -> Purse:
        return Purse()

    def evolve(self, state: Purse, event: Received) -> Purse:
        return Purse(state.total + event.amount, [*state.senders, event.sender])

    def decide(self, state: Purse, command: Receive, moment: Moment) -> Answer:
        answer = Message(decider="sender", command=Confirm(command.sender))
        return Decision.event(Received(command.sender, command.amount)).with_message(answer)
