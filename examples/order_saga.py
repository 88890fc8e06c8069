"""An order that fails in shipping, and is undone although the worker is killed half-way. Run it with: python3 dev.py run --exit

The saga reserves stock, charges a card and ships. Shipping fails, so the card is refunded and the stock released. In the middle of the refund the
worker kills itself the hard way (SIGKILL: no clean-up, no goodbye). A second worker finds the unfinished work in the database and
finishes it. This process only looks on: the timeline is the workflow's own history, as it is written.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from datetime import timedelta
from pathlib import Path

from standfast import Engine, HistoryEntry, Run, Saga, Settings, StepContext

# -- The steps. Each is a plain function that takes what it needs from the data, and answers with what it adds to it.


def reserve_stock(sku: str, quantity: int) -> dict[str, str]:
    work()
    return {"reservation": f"{quantity} x {sku}"}


def release_stock(ctx: StepContext, reservation: str) -> None:
    work()


def charge_card(ctx: StepContext, amount: int) -> dict[str, str]:
    work()
    return {"charge": f"ch-{ctx.step_number}"}


def refund_card(ctx: StepContext) -> None:
    work()
    if os.environ.get("STANDFAST_EXAMPLE_DIES"):
        os.kill(os.getpid(), signal.SIGKILL)
    print(f"refunded {ctx.output}, key {ctx.idempotency_key}", file=sys.stderr, flush=True)


def ship_parcel() -> None:
    work()
    raise ConnectionError("the carrier does not answer")


def notify_customer() -> None:
    work()


# -- The saga: what follows what, and what undoes it.

ORDER = (
    Saga("order")
    .step("reserve stock", reserve_stock)
    .on_failure("release stock", release_stock)
    .step("charge card", charge_card)
    .on_failure("refund card", refund_card)
    .step("ship parcel", ship_parcel, attempts=2)
    .step("notify customer", notify_customer)
    .build()
)

QUICK = Settings(lease=timedelta(seconds=1.5), beat_interval=timedelta(seconds=0.5))  # So that nobody waits long.


def work() -> None:
    """What a step does in the world takes its time."""
    time.sleep(0.15)


# -- The workers: processes that run steps until they die or are stopped.


def serve(database: str) -> None:
    Engine(database, settings=QUICK).register(ORDER).serve()


class Worker:
    """A process of its own."""

    def __init__(self, database: str, *, dies: bool) -> None:
        environment = os.environ | ({"STANDFAST_EXAMPLE_DIES": "yes"} if dies else {})
        self.process = subprocess.Popen(
            [sys.executable, __file__, "worker", database], env=environment, stderr=subprocess.DEVNULL
        )

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


# -- The timeline.

MARKS = {
    "completed": "✓",
    "failed": "✗",
    "rolled_back": "↺",
    "compensation": "↶",
    "running": "▸",
    "pending": "▸",
}
HIDDEN = {"rollback_planned"}


class Timeline:
    """Prints a history while it is written."""

    def __init__(self, run: Run[object]) -> None:
        self.run = run
        self.begun = time.monotonic()
        self.seen = 0
        self.refunds = 0

    def note(self, text: str) -> None:
        print(f"  {time.monotonic() - self.begun:5.1f} s  {text}", flush=True)

    def follow(self) -> str:
        """Print what is new; the status of the order."""
        for entry in self.run.history(after=self.seen):
            self.seen = entry.sequence
            if entry.event_type not in HIDDEN:
                self.note(told(entry))
        return self.run.describe().status


def told(entry: HistoryEntry) -> str:
    mark = MARKS.get(entry.status, "·")
    words = entry.event_type.replace("_", " ")
    step = f"{entry.step_name:<16}" if entry.step_name else " " * 16
    why = f"  ({entry.error})" if entry.error else ""
    return f"{mark} {step} {words}{why}"


def play(database: str) -> int:
    engine = Engine(database)
    engine.register(ORDER)
    workers = [Worker(database, dies=True)]
    order = engine.start("order", {"sku": "lamp", "quantity": 2, "amount": 1200}, key="o-1")
    timeline = Timeline(order)
    timeline.note(f"the order is safe on disk as {order.id}; worker 1 (process {workers[0].process.pid}) runs it")
    deadline = time.monotonic() + 60
    try:
        while timeline.follow() not in {"completed", "failed"} and time.monotonic() < deadline:
            if len(workers) == 1 and workers[0].process.poll() is not None:
                timeline.note("☠ worker 1 died in the middle of the refund (kill -9)")
                workers.append(Worker(database, dies=False))
                timeline.note(f"worker 2 (process {workers[1].process.pid}) starts; nobody tells it what to do")
            threading.Event().wait(0.05)
        timeline.follow()
    finally:
        for worker in workers:
            worker.stop()
    return report(engine, order)


def report(engine: Engine, order: Run[object]) -> int:
    ended = order.describe()
    print(f"\n  The order {ended.status} ({ended.error}), and what was done is undone:\n")
    print(f"  {'step':<18}{'status':<14}{'calls':<8}calls to undo it")
    for step in order.steps():
        print(f"  {step.name:<18}{step.status:<14}{step.retry_count:<8}{step.compensation_retry_count or '-'}")
    sound = order.verify().is_sound
    print(f"\n  Folded again from its {len(order.history())} events, the order is the same: {sound}.")
    engine.stop()
    return 0 if ended.status == "failed" and not ended.reason and sound else 1


def main() -> int:
    if sys.argv[1:2] == ["worker"]:
        serve(sys.argv[2])
        return 0
    with tempfile.TemporaryDirectory() as folder:
        print("\n  An order is placed; the carrier is down; the worker is killed while the order is undone.\n")
        return play(f"sqlite:///{Path(folder) / 'orders.db'}")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
