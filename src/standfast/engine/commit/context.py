"""What the parts of one engine share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from standfast.engine.commit.submission import Submission
from standfast.engine.common.clock import Clock
from standfast.engine.common.handlers import Handlers
from standfast.engine.common.randomness import Randomness
from standfast.engine.common.settings import Settings
from standfast.engine.common.telemetry import Telemetry
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program, Programs
from standfast.store.records.instances import Word


class ReadableTypes(Protocol):
    """What this process can read. Work in other words is left to processes that know them."""

    def commands(self) -> Sequence[Word]:
        """The commands that timers and messages may bring."""
        ...

    def effects(self) -> Sequence[Word]:
        """The effects that handlers can be called for."""
        ...

    def speaker(self, language: str, /) -> Program:
        """A program that reads and writes this language; NotFoundError if nobody here speaks it."""
        ...


class EngineContext:
    """The surroundings of one engine. Nothing here is shared between engines."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock,
        chance: Randomness,
        programs: Programs,
        languages: ReadableTypes,
        submit: Callable[[Submission], None],
        find_key: Callable[[str, InstanceId], str],
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.chance = chance
        self.programs = programs
        """The program of a definition; NotFoundError if nobody registered it."""
        self.languages = languages
        self.submit = submit
        """Hands a command to the committer."""
        self.find_key = find_key
        """The business key of a tenant's instance; empty if it has none."""
        self.telemetry = Telemetry()
        self.handlers = Handlers()
