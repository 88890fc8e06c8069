"""A workflow that survives being killed half-way. Run it with: .venv/bin/python examples/survivor.py

An order is placed, paid and shipped. In the middle of the shipping call the process kills itself the hard way (SIGKILL: no clean-up,
no goodbye). A second process opens the same database file and finishes what the first one began.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from standfast import Decider, Decision, EffectContext, Engine, Ignored, Moment, Settings

# -- The workflow: what can be asked of an order, what can happen to it, and what it wants done in the world.


@dataclass(frozen=True)
class PlaceOrder:
    workflow_id: str
    amount: int


@dataclass(frozen=True)
class ConfirmPayment:
    workflow_id: str


@dataclass(frozen=True)
class ConfirmShipment:
    workflow_id: str
    parcel: str


@dataclass(frozen=True)
class OrderPlaced:
    amount: int


@dataclass(frozen=True)
class OrderPaid:
    pass


@dataclass(frozen=True)
class OrderShipped:
    parcel: str


@dataclass(frozen=True)
class ChargeCard:
    order: str
    amount: int


@dataclass(frozen=True)
class ShipParcel:
    order: str


Command = PlaceOrder | ConfirmPayment | ConfirmShipment
Event = OrderPlaced | OrderPaid | OrderShipped


class Order(Decider[str, Command, Event, ChargeCard | ShipParcel]):
    """The state is one word: new, placed, paid or shipped."""

    type = "order"

    def initial(self) -> str:
        return "new"

    def evolve(self, state: str, event: Event) -> str:
        return {OrderPlaced: "placed", OrderPaid: "paid", OrderShipped: "shipped"}[type(event)]

    def decide(self, state: str, command: Command, moment: Moment) -> Decision | Ignored:
        match state, command:
            case "new", PlaceOrder(order, amount):
                return Decision.event(OrderPlaced(amount)).with_effect(ChargeCard(order, amount))
            case "placed", ConfirmPayment(order):
                return Decision.event(OrderPaid()).with_effect(ShipParcel(order))
            case "paid", ConfirmShipment(_, parcel):
                return Decision.event(OrderShipped(parcel))
            case _:
                return Ignored(reason="that has happened already")

    def is_terminal(self, state: str) -> bool:
        return state == "shipped"


# -- The world: handlers do what the workflow asks for, and answer with a command.


def handle(context: EffectContext, effect: ChargeCard | ShipParcel) -> Command:
    match effect:
        case ChargeCard(order, amount):
            say(f"charging {amount} (idempotency key {context.idempotency_key})")
            return ConfirmPayment(order)
        case ShipParcel(order):
            say(f"shipping, attempt {context.attempt} ...")
            if os.environ.get("STANDFAST_EXAMPLE_DIES"):
                say("... and the power goes out. (kill -9)")
                os.kill(os.getpid(), signal.SIGKILL)
            return ConfirmShipment(order, "parcel-77")


# -- The two acts.

QUICK = Settings(
    lease=timedelta(seconds=1.5), beat_interval=timedelta(seconds=0.5)
)  # So that nobody waits long for the second act.


def engine(database: str) -> Engine:
    return Engine(database, settings=QUICK).register(Order(), handle)


def first_act(database: str) -> None:
    with engine(database) as running:
        say("placing order o-1 for 1200")
        running.deciders.execute(Order, PlaceOrder("o-1", 1200))
        say("the order is safe on disk; the engine works on it")
        threading.Event().wait(30)


def second_act(database: str) -> None:
    with engine(database) as running:
        say("nobody repeats the order; the engine notices the unfinished work")
        while running.deciders.state(Order, "o-1") != "shipped":
            time.sleep(0.05)
        for recorded in running.deciders.history(Order, "o-1"):
            print(f"      {recorded.sequence}. {recorded.event}")


def say(text: str) -> None:
    print(f"   {text}", flush=True)


def play(act: str, database: str, **environment: str) -> int:
    command = [sys.executable, __file__, act, database]
    return subprocess.run(command, check=False, env=os.environ | environment).returncode


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        database = f"sqlite:///{Path(folder) / 'orders.db'}"
        print("Act one: a process takes an order.")
        code = play("first", database, STANDFAST_EXAMPLE_DIES="yes")
        print(f"   (the process is dead, exit code {code}; the card was charged, the parcel was not shipped)\n")
        print("Act two: another process opens the same file.")
        code = play("second", database)
        if code == 0:
            print("\nThe order was placed once, paid once and shipped, although the process died in between.")
            print("That is what Standfast is for. Read on in README.md and docs/tutorial.")
        return code


if __name__ == "__main__":
    acts = {"first": first_act, "second": second_act}
    if len(sys.argv) > 2:
        acts[sys.argv[1]](sys.argv[2])
    else:
        sys.exit(main())
