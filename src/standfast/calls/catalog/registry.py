"""Which definitions this process knows, and the programs that run them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TypeVar

from standfast.calls.catalog.definitions import Library, unknown_hint
from standfast.calls.catalog.organisation_settings import OrganisationSettings
from standfast.calls.catalog.rate_limits import WorkflowRate
from standfast.engine.common.settings import Settings
from standfast.engine.dispatcher import Dispatcher
from standfast.errors import ConfigurationError, DefinitionError, Diagnostic, NotFoundError
from standfast.graph.model import Graph
from standfast.kernel.codec.codecs import Codec
from standfast.kernel.codec.message_types import SYSTEM_PREFIX, MessageTypeSet
from standfast.kernel.decider import Decider
from standfast.kernel.program import Program
from standfast.machine.machine import GRAPH_LANGUAGE
from standfast.store.records.instances import SHARED_TENANT, Word

S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")
F = TypeVar("F")


_log = logging.getLogger("standfast")


class Registry:
    """Programs by the name of their definition: deciders of the code, and published graphs."""

    def __init__(self, codec: Codec, settings: Settings, *, now: Callable[[], datetime]) -> None:
        self.codec = codec
        self._limit = settings.max_payload_bytes
        self._deciders: dict[str, Program] = {}
        self.handled: set[str] = set()
        """Deciders that were registered with their handler, which has their name."""
        self.library = Library(codec, limit=self._limit, retry=settings.retry)
        self.charters = OrganisationSettings()
        """What organisations say about their documents."""
        self.rate = None if settings.workflow_rate is None else WorkflowRate(settings.workflow_rate, now)
        """How much tenants may ask of workflows; None means that nobody counts."""
        self.required: dict[str, str] = {}
        """The capability that a handler of this process requires, by name."""
        graphs = self.library.speaker
        self._commands, self._effects = _words(graphs, graphs.commands), _words(graphs, graphs.effects)

    def attach(self, service: Dispatcher) -> None:
        """Read and publish definitions and settings in the database of a dispatcher, which itself asks here for programs."""
        self.library.attach(service)
        self.charters.attach(service)

    def add(self, decider: Decider[S, C, E, F], *, is_own: bool = False) -> Program:
        """Make a decider known, of the application or of the engine's own; there can be only one of a type."""
        program = Program(decider, self.codec, limit=sys.maxsize if is_own else self._limit, is_own=is_own)
        for flaw in program.state_flaws():
            _log.warning(
                "%r gets no snapshots, so each load replays a whole history: %s could never be read back: %s",
                program.type,
                flaw.place,
                flaw.reason,
            )
        if program.type in self._deciders or program.type in self.library.names():
            raise ConfigurationError(f"there is already a decider or workflow of type {program.type!r}")
        self._deciders = {**self._deciders, program.type: program}  # Replaced whole: others read it without a lock.
        self._commands = (*self._commands, *_words(program, program.commands))
        self._effects = (*self._effects, *_words(program, program.effects))
        return program

    def get(self, tenant: str, name: str, version: str = "", /) -> Program:
        """The program of a tenant's definition, or of a shared one, in use or archived; deciders have one version, the code, and serve all tenants."""
        program = self._deciders.get(name) or self.library.known(tenant, name, version)
        if program is None:
            raise self._unknown(name, {*self._deciders, *self.library.names_for(tenant)})
        return program

    def commands(self) -> Sequence[Word]:
        """The commands that this process can read: those of all graphs, and of the deciders of its code."""
        return self._commands

    def effects(self) -> Sequence[Word]:
        """The effects that this process can read: the calls of steps, which all graphs share, and those of its deciders."""
        return self._effects

    def speaker(self, language: str, /) -> Program:
        """A program that reads and writes a language: a decider its own, and one for all graphs, met or not."""
        program = self.library.speaker if language == GRAPH_LANGUAGE else self._deciders.get(language)
        if program is None:
            raise self._unknown(language, self._deciders)
        return program

    def is_decider(self, name: str) -> bool:
        """Whether a definition is a decider of the code."""
        return name in self._deciders

    def check_free(self, graph: Graph, tenant: str = SHARED_TENANT) -> None:
        """Refuse a workflow of a tenant before anything of it is stored.

        Its name, or that of a handler of its steps, may belong to a decider, or its name to a shared workflow; or a step does not ask for
        what its handler requires.
        """
        if graph.name.startswith(SYSTEM_PREFIX) and not self.is_decider(graph.name):
            told = f"the name {graph.name!r} begins with '$', which Standfast keeps for itself; give it another one"
            raise DefinitionError(graph.name, [Diagnostic("reserved_name", told, "name")])
        if self.is_decider(graph.name):
            raise ConfigurationError(f"there is already a decider of type {graph.name!r}")
        for handler in sorted(graph.handlers & self.handled):
            raise shared_handler(graph.name, handler)
        problems = list(self._unasked(graph))
        if problems:
            raise DefinitionError(graph.name, problems)
        self.library.check_name(tenant, graph)

    def _unasked(self, graph: Graph) -> Iterator[Diagnostic]:
        """Steps that name a handler of this process without asking the starter of the run for what it requires."""
        for node in graph.nodes.values() if self.required else ():
            for work in filter(None, (node.op.call, node.compensation)):
                wanted = self.required.get(work.handler, "")
                if wanted and work.capability != wanted:
                    told = f"the handler {work.handler!r} of {node.id!r} requires the capability {wanted!r}"
                    yield Diagnostic("handler_capability", f"{told}; name it in the step", node.id)

    def kinds(self) -> set[str]:
        """What the instances of the deciders of this code are called in lists; those of the engine's own are not for lists."""
        return {each.kind for name, each in self._deciders.items() if not name.startswith(SYSTEM_PREFIX)}

    def names(self) -> set[str]:
        """The names of all definitions that this process has met."""
        own = {name for name in self._deciders if name.startswith("$")}
        return {*self._deciders, *self.library.names()} - own

    def _unknown(self, name: str, known: Iterable[str]) -> NotFoundError:
        told = unknown_hint(name, [each for each in known if not each.startswith(SYSTEM_PREFIX)], "registered are")
        return NotFoundError("decider or workflow", name, hint=told)


def shared_handler(workflow: str, handler: str) -> ConfigurationError:
    """Steps name a handler that a decider has."""
    return ConfigurationError(
        f"steps of {workflow!r} name the handler {handler!r}, which handles the effects of the decider {handler!r}; "
        "give the handler of the steps another name"
    )


def _words(program: Program, vocabulary: MessageTypeSet) -> tuple[Word, ...]:
    return tuple(Word(program.language, *each) for each in sorted(vocabulary.readable()))
