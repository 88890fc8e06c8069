"""A worker in a process of its own, to be killed, stopped and woken by tests.

python tests/support/laborer.py URL LEDGER [hang | wait]

It works on orders and writes into the ledger, a file, what its handler really does. With `hang` a call never ends; with `wait`
it ends once the file LEDGER.go exists.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from standfast import EffectContext, Engine
from support.engines import QUICK
from support.repository import PYTHONPATH
from support.samples import Charge, Deliver, Order, OrderCommand, OrderEffect, Pay, Ship


class Book:
    """A ledger outside of the engine: lines are appended whole, and survive the process."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, line: str) -> None:
        """Append a line."""
        file = os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        try:
            os.write(file, f"{line}\n".encode())
        finally:
            os.close(file)

    def lines(self, prefix: str = "") -> list[str]:
        """The lines that begin so."""
        if not self.path.exists():
            return []
        return [line for line in self.path.read_text().splitlines() if line.startswith(prefix)]


class Labor:
    """The handler."""

    def __init__(self, book: Book, mode: str) -> None:
        self._book = book
        self._mode = mode
        self._go = book.path.with_suffix(".go")

    def handle(self, context: EffectContext, effect: OrderEffect) -> OrderCommand:
        """Do the work, and write it down."""
        self._book.write(f"begin {context.idempotency_key}")
        if self._mode == "hang":
            threading.Event().wait()
        while self._mode == "wait" and not self._go.exists():
            time.sleep(0.01)
        self._book.write(f"done {context.idempotency_key}")
        match effect:
            case Charge(order):
                return Pay(order)
            case Deliver(order):
                return Ship(order)


def main(url: str, ledger: str, mode: str = "") -> None:
    """Work until told to end."""
    engine = Engine(url, settings=QUICK).register(Order(), Labor(Book(Path(ledger)), mode))
    engine.serve()


@contextmanager
def laborer(url: str, book: Book, mode: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A worker in another process; what is left of it is killed when the block is left."""
    command = [sys.executable, __file__, url, str(book.path), *([mode] if mode else [])]
    environment = os.environ | {"PYTHONPATH": PYTHONPATH}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.communicate()


if __name__ == "__main__":
    main(*sys.argv[1:])
