"""The published definitions: each one is stored once, never changes, and is found by its tenant, name and version from any process."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias, TypedDict

from standfast.engine.common.settings import Settings
from standfast.engine.dispatcher import Dispatcher
from standfast.errors import (
    ConfigurationError,
    DefinitionError,
    Diagnostic,
    NotFoundError,
    PayloadError,
    RejectedError,
    StoppedError,
    StoreUnavailableError,
)
from standfast.expressions.model.suggestions import suggestion
from standfast.graph.compiler import copy_graph, graph_bytes, read_graph
from standfast.graph.definition import Definition
from standfast.graph.index import GraphIndex
from standfast.graph.model import IR_VERSION, CallOp, EndOp, Graph, Node
from standfast.graph.replacement_checks import replacing_findings
from standfast.kernel.actor import SYSTEM, RequestContext
from standfast.kernel.codec.codecs import Codec
from standfast.kernel.program import Program
from standfast.kernel.retry import RetryPolicy
from standfast.machine.machine import GraphMachine
from standfast.machine.model.queries.outputs import hidden_name, hidden_told
from standfast.machine.model.rejections import Refusal
from standfast.store.ports.definitions import ClashError, Definitions, Publication
from standfast.store.records.instances import SHARED_TENANT, StoredDefinition
from standfast.store.records.queries import Archived, ArchivedVersion, PublishedDefinition
from standfast.store.sql.nonblocking import check_nonblocking

_FRESH = timedelta(seconds=2)
"""How long a process goes by what it knows of versions that are out of use, and of the newest one of documents."""
_MOST_NAMES = 50
"""Names that a message tells."""
_MILLISECOND = timedelta(milliseconds=1)
_ID = re.compile(r"(?=-v)")

_NO_GRAPH = Graph(
    kind="saga", name="graph", version="", entry="end", nodes={"end": Node(id="end", op=EndOp())}, edges=()
)


Storing: TypeAlias = Callable[[Definitions], list[StoredDefinition]]
"""Stores definitions; what is stored under their names and versions afterwards."""
Writing: TypeAlias = Callable[[Storing, Sequence[StoredDefinition], datetime], list[StoredDefinition]]
"""Stores definitions at an instant, with their audit entries."""


class Library:
    """Graphs and the programs that run them, by tenant, name and version.

    A tenant's own definitions stand before the shared ones of the same name. A version that was published shared is never published
    again for one tenant with another content, so whatever an instance is pinned to stays what it is.
    """

    def __init__(self, codec: Codec, *, limit: int, retry: RetryPolicy | None = None) -> None:
        self._codec = codec
        self._limit = limit
        self._retry = retry
        self.speaker = Program(GraphMachine(_NO_GRAPH), codec, limit=limit)
        """Reads and writes what all graphs have in common; it runs none."""
        self._service: Dispatcher | None = None
        self._definitions: Definitions | None = None
        self._programs: dict[tuple[str, str, str], Program] = {}
        """By tenant, name and version; a shared one once for each tenant that has met it."""
        self._newest: dict[tuple[str, str], str] = {}
        """The version that an unversioned start takes, by tenant and name."""
        self._looked: dict[tuple[str, str], datetime] = {}
        """When it was looked up for those who ask for the most recent one."""
        self._channels: dict[str, str] = {}
        self._archived: frozenset[Archived] = frozenset()
        self._set_aside: frozenset[Archived] = frozenset()
        """Those of them that somebody has archived; a workflow of documents is also archived when another one replaces it."""
        self._archived_at: datetime | None = None
        """Which versions are out of use, and when that was looked up."""
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        """Held by the thread that looks up what is out of use, while the others go by what is known."""

    def attach(self, service: Dispatcher) -> None:
        """Read and publish in the database of this service."""
        self._service = service
        self._definitions = service.store.definitions()

    def names(self) -> set[str]:
        """The names of the definitions that this process has met."""
        return {name for _, name, _ in self._programs}

    def names_for(self, tenant: str) -> set[str]:
        """Those of them that a tenant may know of."""
        return {name for owner, name, _ in self._programs if owner in {tenant, SHARED_TENANT}}

    def publish(
        self, definition: Definition, *, request: RequestContext | None = None, write: Writing | None = None
    ) -> None:
        """Make a workflow known to all processes: for the tenant of a request, or for all. Another content under its name and version is refused.

        `write` stores it with its audit entry; code that registers a workflow when it starts leaves none.
        """
        tenant = SHARED_TENANT if request is None else request.tenant
        told, program = self._publication(definition, tenant, request)
        now = self._now
        if write is None:
            known = self._stored.publish(told.definition, now, triggers=told.triggers)
        else:
            known = write(
                lambda side: [side.publish(told.definition, now, triggers=told.triggers)], [told.definition], now
            )[0]
        if known.hash != definition.graph.hash:
            raise _clash(known)
        self._note_published(known.tenant, program)

    def publish_all(
        self, definitions: Sequence[Definition], *, request: RequestContext | None = None, write: Writing
    ) -> None:
        """The same for several, in one transaction: all of them or none."""
        tenant = SHARED_TENANT if request is None else request.tenant
        told = [self._publication(each, tenant, request) for each in definitions]
        now = self._now
        try:
            asked = [each.definition for each, _ in told]
            known = write(lambda side: side.publish_all([each for each, _ in told], now), asked, now)
        except ClashError as error:
            raise _clash(error.clashing) from None
        owners = {(each.name, each.version): each.tenant for each in known}
        for _, program in told:
            self._note_published(owners[program.type, program.definition_version], program)

    @property
    def _now(self) -> datetime:
        assert self._service is not None
        return self._service.shared.clock.now()

    def _publication(
        self, definition: Definition, tenant: str, request: RequestContext | None
    ) -> tuple[Publication, Program]:
        """A definition as it is stored, and the program that runs it, made of what was written: nothing is stored that this process refuses.

        DefinitionError if it calls what is not there.
        """
        graph = definition.graph
        self.check_name(tenant, graph)
        self.check_calls(tenant, graph)
        compiled = graph_bytes(graph)
        program = self._program_of(read_graph(compiled))
        stored = StoredDefinition(
            tenant=tenant,
            name=graph.name,
            version=graph.version,
            kind=graph.kind,
            source=definition.source,
            compiled=compiled,
            hash=graph.hash,
            compiler=str(IR_VERSION),
            status="published",
            media_type=definition.media_type,
            description=definition.description,
            published_by=SYSTEM.id if request is None else request.actor.id,
        )
        return Publication(stored, {each.event for each in graph.triggers}), program

    def note_published(self, tenant: str, graph: Graph) -> None:
        """A workflow is in the database: remember it, and have unversioned starts take it."""
        self._note_published(tenant, self._program_of(copy_graph(graph)))

    def _note_published(self, tenant: str, program: Program) -> None:
        self._keep(tenant, program)
        self._note_newest(tenant, program.type, program.definition_version)

    def refresh_archived(self) -> None:
        """Look anew at what is out of use."""
        self._look_at_archived()

    def archived(self, tenant: str) -> list[ArchivedVersion]:
        """The versions that are out of use, of a tenant's definitions and of the shared ones."""
        return [each for each in self._stored.archived() if each.tenant in {tenant, SHARED_TENANT}]

    def find_open(self, tenant: str, definition: str, version: str = "") -> tuple[str, str]:
        """The same as `find` for what is to be started: what is out of use is refused, which a process learns of within a moment.

        A database that is away is waited for as long as the start itself would wait for it.
        """
        assert self._service is not None
        try:
            return self._find_open(tenant, definition, version)
        except StoreUnavailableError:
            return self._service.patiently(lambda: self._find_open(tenant, definition, version), may_repeat=True)

    @property
    def is_fresh(self) -> bool:
        """Whether this process looked up a moment ago which versions are archived."""
        return self._was_looked_up(self._now)

    def closed(self, tenant: str, name: str, version: str = "") -> str:
        """Returns why nothing new begins with a version, or, without one, with any; empty if it may, or if nothing of this name is known."""
        self._refresh()
        if version:
            told = f"{name!r} version {version} is archived: nothing new is started with it; restore it, or take another version"
            return told if self._is_archived(tenant, name, version) else ""
        if self.program(tenant, name) is not None or self._newest_archived(tenant, name) is None:
            return ""
        return (
            f"all versions of {name!r} are archived: nothing new is started with them; restore one, or publish another"
        )

    def set_aside(self, tenant: str, name: str, version: str) -> str:
        """Returns why no document goes through a version: somebody has archived it. One that another one has replaced may stand in for that."""
        told = self.closed(tenant, name, version)
        return told if self._is_one_of(self._set_aside, tenant, name, version) else ""

    def _refresh(self) -> None:
        """Look up what is out of use, unless that was done a moment ago, or another thread has begun to do it a moment ago."""
        now = self._now
        if self._was_looked_up(now):
            return
        if not self._looking.acquire(
            blocking=False
        ):  # Never waited for: its holder may wait for a transaction that asks this.
            if not self._was_looked_up(now - _FRESH):
                self._look_at_archived()
            return
        try:
            if not self._was_looked_up(now):  # Another thread may have been done with it just now.
                self._look_at_archived()
        finally:
            self._looking.release()

    def _was_looked_up(self, now: datetime) -> bool:
        return self._archived_at is not None and abs(now - self._archived_at) < _FRESH

    def _find_open(self, tenant: str, definition: str, version: str) -> tuple[str, str]:
        self._check_service()
        self._refresh()
        name, found = self.find(tenant, definition, version)
        told = self.closed(tenant, name, found if version or name != definition else "")
        if told:
            raise RejectedError(reason=Refusal.ARCHIVED.value, message=told)
        return name, found

    def _check_service(self) -> None:
        assert self._service is not None
        if refusal := self._service.refusal():
            raise StoppedError(refusal)

    def _is_archived(self, tenant: str, name: str, version: str) -> bool:
        return self._is_one_of(self._archived, tenant, name, version)

    @staticmethod
    def _is_one_of(known: frozenset[Archived], tenant: str, name: str, version: str) -> bool:
        return any(Archived(owner, name, version) in known for owner in (tenant, SHARED_TENANT))

    def _look_at_archived(self) -> None:
        """Look up what is out of use; of what has changed, which version is the newest is looked up again."""
        listed = self._stored.archived()
        found = frozenset(each.key for each in listed)
        with self._lock:
            changed = {each.name for each in found ^ self._archived}
            self._newest = {key: each for key, each in self._newest.items() if key[1] not in changed}
            self._archived, self._archived_at = found, self._now
            self._set_aside = frozenset(each.key for each in listed if each.archived_by)

    def _known_newest(self, tenant: str, name: str) -> str:
        known = self._newest.get((tenant, name), "")
        return "" if known and self._archived and self._is_archived(tenant, name, known) else known

    def program(self, tenant: str, name: str, version: str = "") -> Program | None:
        """The program of a definition, from the database if this process has not met it yet; None if there is none."""
        wanted = version or self._known_newest(tenant, name) or self._find_newest(tenant, name)
        found = self._programs.get((tenant, name, wanted))
        return found or (self._load(tenant, name, wanted) if wanted else None)

    def known(self, tenant: str, name: str, version: str = "") -> Program | None:
        """Returns the program of a definition for what exists: in use or archived. Without a version the newest in use, or else the newest of all."""
        if version:
            return self.program(tenant, name, version)
        self._refresh()
        return self.program(tenant, name) or self._newest_archived(tenant, name)

    def _newest_archived(self, tenant: str, name: str) -> Program | None:
        """The newest archived version; the tenant's own ones stand before those that all tenants share."""
        self._look_at_archived()
        found = [each for each in self._archived if each.name == name and each.tenant in {tenant, SHARED_TENANT}]
        rank = max(
            ((each.tenant != SHARED_TENANT, version_age(each.version), each.version) for each in found), default=None
        )
        return None if rank is None else self.program(tenant, name, rank[-1])

    def recent(self, tenant: str, name: str) -> Program | None:
        """The newest program of a definition; what another process has published is learnt of within a moment."""
        assert self._service is not None
        now, key = self._service.shared.clock.now(), (tenant, name)
        seen = self._looked.get(key)
        if seen is None or abs(now - seen) >= _FRESH:
            with self._lock:
                self._newest = {each: version for each, version in self._newest.items() if each[1] != name}
                self._looked = {**self._looked, key: now}
        if not self._was_looked_up(now):
            self._look_at_archived()
        return self.program(tenant, name) or self._newest_archived(tenant, name)

    def find(self, tenant: str, definition: str, version: str = "") -> tuple[str, str]:
        """Name and version of what a caller means, in use or archived: a name, a name and a version, or an id such as `order-v1`."""
        program = self.program(tenant, definition, version)
        if program is not None:
            return definition, program.definition_version
        if not version:
            for match in reversed(list(_ID.finditer(definition))):
                name, number = definition[: match.start()], definition[match.start() + 2 :]
                if name and number and self.program(tenant, name, number) is not None:
                    return name, number
            program = self._newest_archived(tenant, definition)
            if program is not None:
                return definition, program.definition_version
        wanted = f"{definition} version {version}" if version else definition
        raise NotFoundError("workflow", wanted, hint=unknown_hint(definition, self.names_for(tenant), "known here are"))

    def callers(self, handler: str) -> list[str]:
        """The definitions that this process has met and whose steps name a handler."""
        return sorted({graph.name for graph in map(graph_of, self._programs.values()) if handler in graph.handlers})

    def channels(self) -> dict[str, str]:
        """The channels that definitions which this process has met tell people by, each with one of those definitions."""
        return self._channels

    def published_names(self) -> set[str]:
        """The names of all definitions of all tenants, met or not."""
        return self._stored.names()

    def listed(self, tenant: str) -> list[PublishedDefinition]:
        """All published versions of a tenant's definitions and of the shared ones, by name, each oldest first."""
        return self._stored.listed(tenant)

    def kept(self, tenant: str, name: str, version: str) -> StoredDefinition | None:
        """A version as it lies in the database, whatever this process remembers of it."""
        return self._stored.get(tenant, name, version)

    def triggered(self, tenant: str, event: str) -> list[Graph]:
        """The workflows that an event starts for a tenant, each in its newest version; its own stand before shared ones of the same name.

        Of one whose versions are all archived that is the newest of these: its start is refused, so that somebody learns of it.
        """
        self._refresh()
        newest: dict[str, tuple[bool, bool, tuple[tuple[bool, int | str], ...], str]] = {}
        for each in self._stored.triggered(tenant, event):
            is_open = Archived(each.tenant, each.name, each.version) not in self._archived
            rank = (is_open, each.tenant != SHARED_TENANT, version_age(each.version), each.version)
            newest[each.name] = max(rank, newest.get(each.name, rank))
        programs = [self.program(tenant, name, rank[-1]) for name, rank in newest.items()]
        graphs = [graph_of(program) for program in programs if program is not None]
        return [graph for graph in graphs if any(each.event == event for each in graph.triggers)]

    def graph(self, tenant: str, definition: str, version: str = "") -> Graph:
        """The graph of a definition. Of one whose versions are all archived it is the newest of these."""
        try:
            name, pinned = self.find(tenant, definition, version)
        except NotFoundError:
            archived = [each.version for each in self.archived(tenant) if each.name == definition and not version]
            if not archived:
                raise
            name, pinned = definition, max(archived, key=version_age)
        program = self.program(tenant, name, pinned)
        assert program is not None
        return graph_of(program)

    def _load(self, tenant: str, name: str, version: str) -> Program | None:
        stored = self._stored.get(tenant, name, version)
        if stored is None:
            return None
        if stored.tenant == tenant:
            return self._add(tenant, read_graph(stored.compiled))
        # A shared one is read once, however many tenants share it.
        shared = self._programs.get((stored.tenant, name, version))
        return self._keep(tenant, shared or self._add(stored.tenant, read_graph(stored.compiled)))

    def _find_newest(self, tenant: str, name: str) -> str:
        """The version that an unversioned start takes: the tenant's newest, or else the newest shared one that this process knows."""
        newest = max(self._stored.versions(tenant, name), key=version_age, default="")
        if not newest and tenant != SHARED_TENANT:
            newest = self._known_newest(SHARED_TENANT, name) or self._find_newest(SHARED_TENANT, name)
        if newest:
            with self._lock:
                self._newest = {**self._newest, (tenant, name): newest}
        return newest

    def _add(self, tenant: str, graph: Graph) -> Program:
        return self._keep(tenant, self._program_of(graph))

    def _program_of(self, graph: Graph) -> Program:
        # The machine bounds what comes in, and so all that it derives from it: nothing of that is ever refused.
        def others(whose: str, version: str) -> GraphIndex | None:
            found = self.program(whose, graph.name, version)
            return None if found is None or not isinstance(found.decider, GraphMachine) else found.decider.routes

        machine = GraphMachine(graph, limit=self._limit, others=others, retry=self._retry)
        return Program(machine, self._codec, limit=sys.maxsize)

    def _keep(self, tenant: str, program: Program) -> Program:
        """Remember a program for a tenant; the one that is remembered already, if any."""
        with self._lock:
            key = tenant, program.type, program.definition_version
            kept = self._programs.get(key, program)
            self._programs = {**self._programs, key: kept}  # Replaced whole: others read it without a lock.
            self._channels = {**dict.fromkeys(sorted(graph_of(kept).channels), kept.type), **self._channels}
            return kept

    def _note_newest(self, tenant: str, name: str, version: str) -> None:
        """A version was published here: unversioned starts take it, unless they know a newer one."""
        with self._lock:
            is_shared = tenant == SHARED_TENANT
            # What tenants take that have none of their own is looked up again.
            kept = {
                key: each for key, each in self._newest.items() if key[1] != name or not is_shared or key[0] == tenant
            }
            known = kept.get((tenant, name))
            if known is None or version_age(version) > version_age(known):
                kept[tenant, name] = version
            self._newest = kept

    def check_name(self, tenant: str, graph: Graph) -> None:
        """Refuse a tenant's workflow under the name of one that all tenants share, unless that allows it and the other asks for the same capabilities.

        The same content under the same version is no other workflow.
        """
        if tenant == SHARED_TENANT:
            return
        newest = max(self._stored.versions(SHARED_TENANT, graph.name), key=version_age, default="")
        known = self._stored.get(SHARED_TENANT, graph.name, graph.version) if newest else None
        if not newest or (known is not None and known.hash == graph.hash):
            return
        problems = list(replacing_findings(self.graph(SHARED_TENANT, graph.name, newest), graph))
        if problems:
            raise DefinitionError(graph.name, problems)

    def check_calls(self, tenant: str, graph: Graph) -> None:
        """Children must exist before their parents, so that no running workflow ever asks for one that does not.

        What calls an archived version is not published either. Each process registers again what was published before.
        """
        calls = [
            (node.id, node.op)
            for node in graph.nodes.values()
            if isinstance(node.op, CallOp) and node.op.definition != graph.name
        ]
        missing = [
            Diagnostic(
                "unknown_workflow",
                f"{name!r} calls {op.definition!r}{' version ' + op.version if op.version else ''}, "
                "which is not published; register it first",
                name,
            )
            for name, op in calls
            if self.known(tenant, op.definition, op.version) is None
        ]
        if missing:
            raise DefinitionError(graph.name, missing)
        closed = [(name, self.closed(tenant, op.definition, op.version)) for name, op in calls]
        found = [Diagnostic("archived", f"{name!r} cannot call it: {told}", name) for name, told in closed if told]
        if found and self._stored.get(tenant, graph.name, graph.version) is None:
            raise DefinitionError(graph.name, found)

    @property
    def _stored(self) -> Definitions:
        """The definitions in the database.

        They have a connection of their own: a committer that meets a definition inside a transaction must not wait for anybody who
        may be waiting for that transaction.
        """
        assert self._definitions is not None
        assert self._service is not None
        self._service.check_process()
        check_nonblocking()  # Here already: whoever asks has a turn before the connection.
        return self._definitions


def _clash(known: StoredDefinition) -> ConfigurationError:
    """That something else was published under a name and version."""
    return ConfigurationError(
        f"{known.name!r} version {known.version} was published before with another content; "
        "a published definition never changes: give the new one another version"
    )


def graph_of(program: Program) -> Graph:
    """The graph that a program runs."""
    assert isinstance(program.decider, GraphMachine)
    return program.decider.graph


def asks_people(program: Program) -> bool:
    """Whether runs of a program, or those that they start, may ask somebody in particular."""
    return isinstance(program.decider, GraphMachine) and program.decider.asks_people


class Patience(TypedDict, total=False):
    """How long runs wait where their definition does not say."""

    wait_ms: int
    escalates: bool


def patience_of(kind: str, settings: Settings) -> Patience:
    """How long a workflow of rules waits where it does not say, and what becomes of its questions then: the settings tell."""
    if kind != "rules":
        return Patience()
    waits = round(settings.resume_timeout / _MILLISECOND)
    return Patience(wait_ms=waits, escalates=settings.resume_auto_escalate)


def check_names(kind: str, data: object) -> None:
    """What begins with an underscore is the engine's own in the state of a process."""
    hidden = hidden_name(data) if kind == "process" else None
    if hidden is not None:
        raise PayloadError(hidden_told(hidden), reason=Refusal.INVALID_FORM)


def version_age(version: str) -> tuple[tuple[bool, int | str], ...]:
    """Orders versions as people do: numbers by value, words by the alphabet and before numbers."""
    parts = re.findall(r"\d+|[^\d.]+", version)
    return tuple((part.isdecimal(), int(part) if part.isdecimal() else part) for part in parts)


def unknown_hint(name: str, known: Iterable[str], are: str) -> str:
    """What to do about a name that nothing here has: the likely one, and those that there are."""
    names = sorted(known)
    told = ", ".join(names[:_MOST_NAMES]) or "none"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    likely = suggestion(name, names).removeprefix("; ")
    return f"{likely} register it first; {are}: {told}{more}".strip()
