"""Having many commands share one transaction: the committer is held back until all of them are waiting."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from standfast import Decider, Decision, Engine, Moment
from standfast.engine.common.telemetry import Committed, Happening
from support.engines import QUICK
from support.waiting import arrives


@dataclass(frozen=True)
class Stand:
    workflow_id: str = "gate"


@dataclass(frozen=True)
class Stood:
    pass


class Gate(Decider[int, Stand, Stood, None]):
    """Decides when it is told to; until then the committer stands still and commands gather behind it."""

    type = "gate"

    def __init__(self) -> None:
        self.inside = threading.Event()
        self.opened = threading.Event()

    def initial(self) -> int:
        return 0

    def evolve(self, state: int, event: Stood) -> int:
        return state + 1

    def decide(self, state: int, command: Stand, moment: Moment) -> Decision:
        self.inside.set()
        arrives(self.opened)
        return Decision.event(Stood())


ONE_COMMITTER = msgspec.structs.replace(QUICK, committers=1)
"""For engines whose commands shall share a batch."""


class Batching:
    """Puts commands of one engine, which has one committer, into one batch."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._gate = Gate()
        self.sizes: list[int] = []
        """How many commands each commit has carried out."""
        engine.register(self._gate).listen(self._hear)

    @contextmanager
    def one(self) -> Iterator[None]:
        """The commands that are sent in this block are taken together when it ends."""
        self._gate.inside.clear()
        self._gate.opened.clear()
        standing = self._engine.futures.deciders.execute(self._gate, Stand())
        arrives(self._gate.inside)
        try:
            yield
        finally:
            self._gate.opened.set()
            standing.result(timeout=30)

    def _hear(self, happening: Happening) -> None:
        if isinstance(happening, Committed):
            self.sizes.append(happening.commands)
