"""One process of the chaos test: a worker, or an API process that sends commands and writes down what it was told.

python tests/chaos/player.py worker|caller URL FOLDER
"""

from __future__ import annotations

import faulthandler
import itertools
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from chaos.actors import SETTINGS, Account, Break, Command, Deposit, Send, SetAlarm, cast_of
from chaos.plot import RAISED, draw
from standfast import (
    CommandError,
    Engine,
    HeldError,
    RejectedError,
    StandfastError,
    StoppedError,
    StoreUnavailableError,
)
from support.campaigns import SEED
from support.laborer import Book
from support.repository import PYTHONPATH

ACCOUNTS = 12
FAR_MILLISECONDS = 14 * 24 * 3600 * 1000
_CALLERS = 4
_LOOK_SECONDS = 0.2
_PATIENCE_SECONDS = 20.0


SPOKEN_WITHIN = 1.0
"""Seconds that an engine may take to say how it is, on a machine that others keep busy."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine said about itself."""

    at: float
    took: float
    """Seconds that it took to say it."""
    is_healthy: bool
    said: str


class Operation:
    """One thing that the caller asks for; its name makes it idempotent."""

    def __init__(self, name: str, kind: str, subject: str) -> None:
        self.name = name
        self.kind = kind
        self.subject = subject
        """The account or the trip."""

    @classmethod
    def drawn(cls, name: str) -> Operation:
        """The operation with this name: the same one whenever it is asked for."""
        chance = draw("operation", name)
        kinds = ("deposit", "deposit", "send", "send", "alarm", "far alarm", "trip", "trip", "break")
        kind = kinds[chance % len(kinds)]
        subject = f"trip-{name}" if kind == "trip" else f"a-{chance // 100 % ACCOUNTS}"
        return cls(name, kind, subject)

    def call(self, engine: Engine) -> None:
        """Ask for it; raises what the engine says."""
        chance = draw("amount", self.name)
        amount = 1 + chance % 1000
        match self.kind:
            case "deposit":
                command: Command = Deposit(self.subject, self.name, amount)
            case "send":
                command = Send(self.subject, self.name, amount, f"a-{chance // 1000 % ACCOUNTS}")
            case "alarm":
                command = SetAlarm(self.subject, self.name, chance % 3000)
            case "far alarm":
                command = SetAlarm(self.subject, self.name, FAR_MILLISECONDS * (1 + chance % 5000))
            case "break":
                command = Break(self.subject, self.name, RAISED[chance % len(RAISED)])
            case _:
                self._travel(engine, doomed=chance % 4 == 0)
                return
        engine.futures.deciders.execute(Account, command, command_id=self.name).result(_PATIENCE_SECONDS)

    def _travel(self, engine: Engine, *, doomed: bool) -> None:
        given = {"trip": self.subject, "doomed": doomed, "list": [self.name]}
        started = (
            engine.futures.start("trip", given, key=self.subject, idempotency_key=self.name)
            .result(_PATIENCE_SECONDS)
            .id
        )
        with suppress(RejectedError):  # It may have ended by now, because a step of it failed for good.
            engine.futures.run(started).signal("go", {"from": self.name}).result(_PATIENCE_SECONDS)


class Caller:
    """Sends commands from several threads, and writes down each intention and each answer."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._log = Book(folder / "calls")
        self._curtain = folder / "curtain"
        self._numbers = itertools.count(len(self._log.lines()))

    def run(self) -> None:
        """Repeat what is unknown, then send new commands until the curtain falls, and leave nothing unknown."""
        threads = [threading.Thread(target=self._act, args=(number,)) for number in range(_CALLERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _act(self, number: int) -> None:
        mine = [name for name in unknown(self._log.lines()) if draw("caller", name) % _CALLERS == number]
        for name in mine:
            self._settle(Operation.drawn(name))
        while not self._curtain.exists():
            name = f"{number}-{next(self._numbers)}"
            self._log.write(json.dumps({"intended": name}))
            self._settle(Operation.drawn(name))
            time.sleep(random.random() / 2)  # The pace is no promise; it leaves the machine room for the others.

    def _settle(self, operation: Operation) -> None:
        """Ask until the answer is known; the same name each time makes that safe."""
        while True:
            try:
                operation.call(self._engine)
            except (StoreUnavailableError, TimeoutError):
                continue
            except HeldError:  # A worker stands still inside of a transaction; nothing was written.
                self._log.write(json.dumps({"held": operation.name}))
                continue
            except StoppedError:
                time.sleep(_LOOK_SECONDS)
                continue
            except CommandError as error:
                self._log.write(json.dumps({"refused": operation.name, "why": str(error)}))
                return
            except StandfastError as error:
                self._log.write(json.dumps({"failed": operation.name, "why": f"{type(error).__name__}: {error}"}))
                return
            self._log.write(json.dumps({"acked": operation.name}))
            return


def unknown(lines: list[str]) -> list[str]:
    """The operations that were intended and never answered."""
    told = [json.loads(line) for line in lines]
    answered = {name for each in told for word, name in each.items() if word in {"acked", "refused", "failed"}}
    return [each["intended"] for each in told if each.get("intended") not in {None, *answered}]


def watch(engine: Engine, folder: Path, part: str) -> None:
    """Write down how the engine says it is, again and again."""
    book = Book(folder / f"health-{part}-{os.getpid()}")
    slow = (folder / f"slow-{part}-{os.getpid()}").open("w", encoding="utf-8")
    while True:
        asked_at = time.monotonic()
        faulthandler.dump_traceback_later(SPOKEN_WITHIN, file=slow)  # Whoever does not speak is seen where he stands.
        health = engine.health()
        faulthandler.cancel_dump_traceback_later()
        took = time.monotonic() - asked_at
        said = Sample(at=time.time(), took=took, is_healthy=health.is_healthy, said=str(health))
        book.write(msgspec.json.encode(said).decode())
        time.sleep(_LOOK_SECONDS)


def work(engine: Engine, _folder: Path) -> None:
    """Be a worker until told to end."""
    engine.serve()


def call(engine: Engine, folder: Path) -> None:
    """Be a caller until the curtain falls."""
    Caller(engine, folder).run()
    engine.stop()


PARTS: dict[str, Callable[[Engine, Path], None]] = {"worker": work, "caller": call}


def main(part: str, url: str, folder: str) -> None:
    """Play a part."""
    place = Path(folder)
    engine = opened(url, Book(place / "done"), is_worker=part == "worker")
    threading.Thread(target=watch, args=(engine, place, part), daemon=True).start()
    PARTS[part](engine, place)


def opened(url: str, book: Book, *, is_worker: bool) -> Engine:
    """An engine with everything registered. A process that finds no database tries again, as a service manager would have it."""
    while True:
        with suppress(StoreUnavailableError):
            engine = cast_of(Engine(url, settings=SETTINGS), book)
            return engine.start_worker() if is_worker else engine
        time.sleep(_LOOK_SECONDS)


@contextmanager
def player(part: str, url: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that plays a part; what is left of it is killed when the block is left."""
    command = [sys.executable, __file__, part, url, str(folder)]
    environment = os.environ | {"PYTHONPATH": PYTHONPATH, "STANDFAST_SEED": SEED, "PYTHONHASHSEED": "0"}
    with (folder / f"said-by-{part}s").open("ab") as said:
        process = subprocess.Popen(command, env=environment, stderr=said)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
