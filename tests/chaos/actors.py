"""The workflows of the chaos test: sagas that pay and ship, accounts that send one another money, a read model, and handlers that misbehave."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, cast

from chaos.plot import Mood, draw, mood
from standfast import (
    Decider,
    Decision,
    EffectContext,
    Engine,
    Fail,
    Ignored,
    Message,
    Moment,
    Retry,
    RetryPolicy,
    Saga,
    SagaDefinition,
    Settings,
    StepContext,
)
from support.laborer import Book

LIMIT = timedelta(seconds=0.6)
"""How long a call of a handler may take."""

SETTINGS = Settings(
    lease=timedelta(seconds=1.5),
    beat_interval=timedelta(seconds=0.3),
    poll_interval=timedelta(seconds=0.2),
    timer_poll_interval=timedelta(seconds=0.2),
    threads=8,
    handler_timeout=LIMIT,
    retry=RetryPolicy(max_attempts=40, delay=timedelta(seconds=0.05), cap=timedelta(seconds=0.5)),
    command_retry=RetryPolicy(max_attempts=40, delay=timedelta(seconds=0.05), cap=timedelta(seconds=0.5)),
    patience=timedelta(seconds=3),
    shutdown_timeout=timedelta(seconds=5),
    missing_handler_cooldown=timedelta(seconds=2),
    unhealthy_after=timedelta(seconds=2),
)


class Connection(Protocol):
    """As much of a connection as the test needs, of either driver."""

    def execute(self, statement: str, parameters: Sequence[object] = (), /) -> object:
        """Run a statement."""
        ...


# -- accounts


@dataclass(frozen=True)
class Deposit:
    """Money comes in."""

    workflow_id: str
    operation: str
    amount: int


@dataclass(frozen=True)
class Send:
    """Money goes to another account."""

    workflow_id: str
    operation: str
    amount: int
    to: str


@dataclass(frozen=True)
class Receive:
    """Money comes from another account."""

    workflow_id: str
    operation: str
    amount: int


@dataclass(frozen=True)
class SetAlarm:
    """A timer, near or far."""

    workflow_id: str
    operation: str
    milliseconds: int


@dataclass(frozen=True)
class Ring:
    """The timer fires."""

    workflow_id: str
    operation: str


@dataclass(frozen=True)
class Printed:
    """The receipt of a deposit is printed."""

    workflow_id: str
    operation: str


@dataclass(frozen=True)
class Break:
    """The decider raises."""

    workflow_id: str
    operation: str
    error: str


@dataclass(frozen=True)
class Moved:
    """Money came or went."""

    operation: str
    amount: int


@dataclass(frozen=True)
class AlarmSet:
    """A timer runs."""

    operation: str


@dataclass(frozen=True)
class Rang:
    """A timer has fired."""

    operation: str


@dataclass(frozen=True)
class ReceiptPrinted:
    """The receipt of a deposit is there."""

    operation: str


@dataclass(frozen=True)
class PrintReceipt:
    """What a deposit asks for."""

    account: str
    operation: str


Command = Deposit | Send | Receive | SetAlarm | Ring | Printed | Break
Event = Moved | AlarmSet | Rang | ReceiptPrinted

ERRORS: dict[str, BaseException] = {
    "ValueError": ValueError("no"),
    "SystemExit": SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt(),
    "CancelledError": asyncio.CancelledError(),
    "GeneratorExit": GeneratorExit(),
    "RecursionError": RecursionError("deep"),
    "MemoryError": MemoryError(),
}


class Account(Decider[int, Command, Event, PrintReceipt]):
    """The state is the balance, in cents; it may be negative."""

    type = "account"

    def initial(self) -> int:
        """An empty account."""
        return 0

    def evolve(self, state: int, event: Event) -> int:
        """Count the money."""
        return state + event.amount if isinstance(event, Moved) else state

    def decide(self, state: int, command: Command, moment: Moment) -> Decision | Ignored:
        """Move money, set timers, or break."""
        match command:
            case Deposit(account, operation, amount):
                return Decision.event(Moved(operation, amount)).with_effect(PrintReceipt(account, operation))
            case Send(_, operation, amount, to):
                receive = Message(decider="account", command=Receive(to, operation, amount))
                return Decision.event(Moved(operation, -amount)).with_message(receive)
            case Receive(_, operation, amount):
                return Decision.event(Moved(operation, amount))
            case SetAlarm(account, operation, milliseconds):
                after = timedelta(milliseconds=milliseconds)
                return Decision.event(AlarmSet(operation)).with_timer_after(after, Ring(account, operation))
            case Ring(_, operation):
                return Decision.event(Rang(operation))
            case Printed(_, operation):
                return Decision.event(ReceiptPrinted(operation))
            case Break(_, _, error):
                raise ERRORS[error]


# -- how handlers misbehave


class Unstorable:
    """What client libraries like to answer."""


def misbehave(how: Mood, data: object) -> object:
    """Do what the mood says, and come back if that is how it ends: with an answer that spoils the call, or None."""
    error = _RAISED.get(how)
    if error is not None:
        raise error()
    deed = _DEEDS.get(how)
    if deed is not None:
        deed()
    if how == "spoils its data":
        spoil(data)
    return Unstorable() if how == "answers what cannot be stored" else None


def sleep_too_long() -> None:
    """Take longer than a call may take."""
    time.sleep(1.2 * LIMIT.total_seconds())


def leak() -> None:
    """Leave threads behind."""
    for _ in range(3):
        threading.Thread(target=time.sleep, args=(2.0,), daemon=True).start()


_RAISED: dict[Mood, Callable[[], BaseException]] = {
    "raises": lambda: ConnectionError("the other side does not answer"),
    "asks for a retry": lambda: Retry("later", after=0.05),
    "asks for a retry in thirty thousand years": lambda: Retry("429", after=1e12),
    "exits": lambda: SystemExit(4),
    "interrupts": KeyboardInterrupt,
    "cancels": asyncio.CancelledError,
}
_DEEDS: dict[Mood, Callable[[], object]] = {
    "is too slow": sleep_too_long,
    "hangs": lambda: threading.Event().wait(),
    "leaks": leak,
    "dies": lambda: os.kill(os.getpid(), signal.SIGKILL),
}


def spoil(data: object) -> None:
    """Change whatever was given, as careless code does."""
    if isinstance(data, dict):
        data["spoilt"] = True
        for value in data.values():
            spoil(value)
    elif isinstance(data, list):
        data.append("spoilt")


class Handlers:
    """The handlers of one worker. The book, a file, says what they really did."""

    def __init__(self, book: Book) -> None:
        self._book = book

    def print_receipt(self, context: EffectContext, effect: object) -> Command:
        """Print the receipt of a deposit."""
        assert isinstance(effect, PrintReceipt)
        if misbehave(mood(context.idempotency_key, context.attempt), None):
            raise ConnectionError(
                "what it would answer is no command, which would be final, and receipts have to be printed"
            )
        self._book.write(f"printed {effect.operation}")
        return Printed(effect.account, effect.operation)

    async def reserve(self, ctx: StepContext) -> object:
        """The first step of a trip, on the event loop."""
        how = mood(ctx.idempotency_key, ctx.attempt)
        if how in {"is too slow", "hangs"}:  # As coroutines do; one in eight blocks the loop as well.
            if draw("blocks", ctx.idempotency_key) % 8 == 0:
                sleep_too_long()
            await asyncio.sleep(3600)
            return None
        answer = misbehave(how, ctx.input)
        self._book.write(f"reserved {ctx.instance}")
        return answer or {"reservation": f"r-{ctx.input['trip']}"}

    def release(self, ctx: StepContext) -> object:
        """Undo the reservation."""
        answer = misbehave(mood(ctx.idempotency_key, ctx.attempt), ctx.input)
        self._book.write(f"released {ctx.instance}")
        return answer

    def pay(self, ctx: StepContext) -> object:
        """Pay inside the commit: exactly once."""
        connection = cast("Connection", ctx.connection)
        mark = "?" if "sqlite" in type(connection).__module__ else "%s"
        connection.execute(
            f"insert into chaos_paid (trip, key) values ({mark}, {mark})", [ctx.input["trip"], ctx.idempotency_key]
        )
        answer = misbehave(mood(ctx.idempotency_key, ctx.attempt), ctx.input)
        return answer or {"paid": True}

    def refund(self, ctx: StepContext) -> object:
        """Undo the payment."""
        answer = misbehave(mood(ctx.idempotency_key, ctx.attempt), ctx.input)
        self._book.write(f"refunded {ctx.instance}")
        return answer

    def ship(self, ctx: StepContext) -> object:
        """The last step; some trips are doomed, and go back from here."""
        answer = misbehave(mood(ctx.idempotency_key, ctx.attempt), ctx.input)
        if ctx.input["doomed"]:
            raise Fail("nobody goes there")
        self._book.write(f"shipped {ctx.instance}")
        return answer or {"parcel": ctx.input["reservation"]}


def trip(handlers: Handlers) -> SagaDefinition:
    """A saga with everything in it: a step on the loop, a wait, branches, one of them transactional, a signal, a last step that may fail."""
    return (
        Saga("trip")
        .step("reserve", handlers.reserve, attempts=40, delay=0.05, timeout=LIMIT)
        .on_failure("release", handlers.release, attempts=40, delay=0.05, timeout=LIMIT)
        .wait("pause", 0.2)
        .fork(
            "both",
            lambda branch: branch.step(
                "pay", handlers.pay, transactional=True, attempts=40, delay=0.05, timeout=1
            ).on_failure("refund", handlers.refund, attempts=40, delay=0.05, timeout=LIMIT),
            lambda branch: branch.wait_for("go", "go"),
        )
        .join("met")
        .step("ship", handlers.ship, attempts=40, delay=0.05, timeout=LIMIT)
        .build()
    )


class Placed(Protocol):
    """Where an event stands."""

    @property
    def position(self) -> int: ...
    @property
    def instance(self) -> object: ...
    @property
    def sequence(self) -> int: ...


class Seen:
    """A read model: the position of every event, once."""

    name = "seen"

    def apply(self, events: Sequence[Placed], connection: object) -> None:
        """Write the positions down; one that was there already would be an error."""
        mark = "?" if "sqlite" in type(connection).__module__ else "%s"
        for event in events:
            cast("Connection", connection).execute(
                f"insert into chaos_seen (position, instance, sequence) values ({mark}, {mark}, {mark})",
                [event.position, str(event.instance), event.sequence],
            )

    def clear(self, connection: object) -> None:
        """Forget everything."""
        cast("Connection", connection).execute("delete from chaos_seen")


def cast_of(engine: Engine, book: Book) -> Engine:
    """Register everything with an engine."""
    handlers = Handlers(book)
    return engine.register(Account(), handlers.print_receipt, timeout=LIMIT).register(trip(handlers)).project(Seen())
