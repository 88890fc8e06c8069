"""The whole of the calls: those on behalf of one tenant and one actor, and those of the engine itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, overload

from standfast.app.api.subjects import subject
from standfast.calls.context import CallContext, checked_actor
from standfast.calls.nonblocking import made_aside
from standfast.calls.references import DefinitionLike, InstanceLike, Untyped, checked_instance
from standfast.engine.concurrency.replies import Reply
from standfast.engine.loops.projections import Projecting
from standfast.features.runs.run_calls import FutureRun
from standfast.features.runs.start import start_run
from standfast.graph.definition import I, R, TypedDefinition
from standfast.kernel.actor import SYSTEM, Actor, RequestContext

if TYPE_CHECKING:
    from standfast.features.access.denied_requests import FutureRefusals
    from standfast.features.access.idempotency import FutureRepeats
    from standfast.features.access.keys import FutureKeys
    from standfast.features.access.sessions import FutureSessions
    from standfast.features.batches.calls import FutureBatches
    from standfast.features.deciders.calls import FutureDeciders
    from standfast.features.deciders.inbox import FutureInbox
    from standfast.features.deciders.projections import FutureProjections
    from standfast.features.definitions.calls import FutureDefinitions
    from standfast.features.documents.calls import FutureDocuments
    from standfast.features.documents.invariants.calls import FutureInvariants
    from standfast.features.documents.publishing.body_calls import FutureBodies
    from standfast.features.documents.publishing.contract_calls import FutureContracts
    from standfast.features.documents.publishing.workflow_calls import FutureWorkflows
    from standfast.features.documents.settings_calls import FutureCharters
    from standfast.features.events.calls import FutureEvents
    from standfast.features.operations.admin import FutureAdmin
    from standfast.features.operations.audit import FutureAudit
    from standfast.features.operations.dead_letters import FutureDeadLetters
    from standfast.features.operations.instances import FutureInstances
    from standfast.features.operations.reports import FutureReports
    from standfast.features.operations.seals import FutureSeals
    from standfast.features.processes.calls import FutureProcesses
    from standfast.features.runs.calls import FutureRuns
    from standfast.features.runs.pause_calls import FuturePauses
    from standfast.features.schedules.calls import FutureSchedules
    from standfast.features.tasks.calls import FutureTasks
    from standfast.features.tasks.chain_calls import FutureChains
    from standfast.features.tasks.directory_calls import FutureDirectory
    from standfast.features.tasks.notification_calls import FutureNotifications


class FutureCalls:
    """What can be asked of an engine on behalf of one tenant and one actor."""

    request: RequestContext
    """For whom the calls are made."""
    runs: FutureRuns
    """Workflows: listing and finding them."""
    processes: FutureProcesses
    """Processes: starting and advancing them, and what a caller can do with one."""
    documents: FutureDocuments
    """Documents: creating, editing, approving and amending them, and what they were."""
    contracts: FutureContracts
    """Contracts: what a type of documents is."""
    bodies: FutureBodies
    """Bodies: what an organisation puts into the slots of its documents."""
    deciders: FutureDeciders
    """Commands to deciders, and questions about their instances."""
    tasks: FutureTasks
    """Questions to people, and their answers."""
    notifications: FutureNotifications
    """What people were told in the application."""
    directory: FutureDirectory
    """People: who there is, what they may do, who stands in for whom."""
    chains: FutureChains
    """Approval chains."""
    charters: FutureCharters
    """What organisations say of their documents."""
    workflows: FutureWorkflows
    """The workflows of documents: taken out of use, and moved from one to another."""
    dead_letters: FutureDeadLetters
    """What gave up, and what is to become of it."""
    definitions: FutureDefinitions
    """Workflows as they were published."""
    events: FutureEvents
    """Events that are published to whoever waits for them."""
    instances: FutureInstances
    """Instances of any kind, for operators."""
    invariants: FutureInvariants
    """Whether the rules hold that every document keeps, and what sets it right."""
    seals: FutureSeals
    """What tells whether anybody rewrote a history."""
    reports: FutureReports
    """What runs of a period tell of work as a whole."""
    inbox: FutureInbox
    """Commands that were accepted and wait."""
    pauses: FuturePauses
    """What is held back, of a definition, a step, a tenant or all."""
    keys: FutureKeys
    """API keys."""
    sessions: FutureSessions
    """Sessions of browsers."""
    audit: FutureAudit
    """Who changed what, for whom and why."""
    refusals: FutureRefusals
    """Requests that were refused because of who asked."""
    repeats: FutureRepeats
    """Requests that may be sent again, and what they were answered."""
    schedules: FutureSchedules
    """What starts workflows at given times."""
    batches: FutureBatches
    """One thing done to many runs."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk
        self.request = desk.request

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """The calls of a subject, when they are asked for first."""
            return subject(self, name, _MAKERS, lambda: self._desk)

    @overload
    def start(
        self,
        definition: TypedDefinition[I, R],
        input: I,
        *,
        version: str | int = "",
        key: str = "",
        idempotency_key: str = "",
        delay: timedelta | float = 0,
        comment: str = "",
    ) -> Reply[FutureRun[R]]: ...

    @overload
    def start(
        self,
        definition: Untyped,
        input: object = None,
        *,
        version: str | int = "",
        key: str = "",
        idempotency_key: str = "",
        delay: timedelta | float = 0,
        comment: str = "",
    ) -> Reply[FutureRun[object]]: ...

    def start(
        self,
        definition: DefinitionLike,
        input: object = None,  # noqa: A002 - the word that everybody uses for it
        *,
        version: str | int = "",
        key: str = "",
        idempotency_key: str = "",
        delay: timedelta | float = 0,
        comment: str = "",
    ) -> Reply[FutureRun[Any]]:
        """Start a workflow; the answer, its run, is there when it is stored.

        It is given by name (the newest version), by name and version, by id such as `order-v1`, or as the finished saga itself; one
        with types takes an input of its type, and its run gives a result of its type.
        `key` is a business key: there can be one instance with it, ever. `idempotency_key` makes the call safe to repeat: the same
        key gives the same run, and with another input or business key ReusedIdError; without it, that of the request counts.
        `delay` puts the first step off, as a timedelta or in seconds.
        """
        return made_aside(
            self._desk,
            lambda: start_run(
                self._desk,
                definition,
                input,
                version=version,
                key=key,
                idempotency_key=idempotency_key,
                delay=delay,
                comment=comment,
            ),
        )

    def publish(
        self,
        event: str,
        key: str | int = "",
        payload: object = None,
        *,
        event_id: str = "",
        ttl: timedelta | float | None = None,
        match_one: bool = False,
    ) -> Reply[str]:
        """Tell whoever waits for it that something happened: the short way of `events.publish`."""
        return self.events.publish(event, key, payload, event_id=event_id, ttl=ttl, match_one=match_one)

    def run(self, run: InstanceLike) -> FutureRun[object]:
        """The handle of a run by its id. Nothing is asked of the database: whether there is such a run is seen when it is asked."""
        return FutureRun(self._desk, checked_instance(run), object)

    def acting(self, actor: Actor | str, *, reason: str = "") -> FutureCalls:
        """The calls for the same tenant by another actor. One that is given by id alone has no rights.

        `reason` says why, for calls that are given no reason of their own.
        """
        return FutureCalls(self._desk.acting_as(checked_actor(actor), reason))


class FutureEngineCalls(FutureCalls):
    """What can be asked of an engine: on behalf of its own tenant, on behalf of others, and of itself as a whole."""

    projections: FutureProjections
    """Read models."""
    admin: FutureAdmin
    """Maintenance, what waits, who works."""

    def __init__(self, desk: CallContext, projecting: Projecting) -> None:
        super().__init__(desk)
        self._projecting = projecting

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """The calls of a subject, when they are asked for first."""
            if name not in _ENGINE_MAKERS:
                return super().__getattr__(name)
            return subject(self, name, _ENGINE_MAKERS, lambda: (self._desk, self._projecting))

    def acting(self, actor: Actor | str | RequestContext, *, reason: str = "") -> FutureCalls:
        """The calls on behalf of a request, with its tenant and its actor; or for the engine's own tenant by another actor.

        An actor that is given by id alone has no rights: roles and capabilities are said with `Actor(id=…, roles=…)`. `reason` says why,
        for calls that are given no reason of their own: the history and the audit keep it.
        """
        return FutureCalls(self._desk.acting_as(actor, reason))

    def as_tenant(self, tenant: str, *, actor: Actor | str = SYSTEM) -> FutureCalls:
        """The calls on behalf of a tenant: the short way of `acting` with a request context. An actor given by id alone has no rights."""
        return FutureCalls(self._desk.acting(RequestContext(tenant=tenant, actor=checked_actor(actor))))


def _calls(home: str, *given: object, **options: object) -> object:
    """An object of a class with calls, `module:class` below `features`; imports it, so that an engine loads only features in use."""
    module, _, name = home.partition(":")
    made: Callable[..., object] = getattr(import_module(f"standfast.features.{module}"), name)
    return made(*given, **options)


_HOMES: Final = {
    "runs": "runs.calls:FutureRuns",
    "processes": "processes.calls:FutureProcesses",
    "documents": "documents.calls:FutureDocuments",
    "bodies": "documents.publishing.body_calls:FutureBodies",
    "deciders": "deciders.calls:FutureDeciders",
    "tasks": "tasks.calls:FutureTasks",
    "notifications": "tasks.notification_calls:FutureNotifications",
    "directory": "tasks.directory_calls:FutureDirectory",
    "chains": "tasks.chain_calls:FutureChains",
    "charters": "documents.settings_calls:FutureCharters",
    "workflows": "documents.publishing.workflow_calls:FutureWorkflows",
    "dead_letters": "operations.dead_letters:FutureDeadLetters",
    "events": "events.calls:FutureEvents",
    "instances": "operations.instances:FutureInstances",
    "invariants": "documents.invariants.calls:FutureInvariants",
    "seals": "operations.seals:FutureSeals",
    "reports": "operations.reports:FutureReports",
    "inbox": "deciders.inbox:FutureInbox",
    "pauses": "runs.pause_calls:FuturePauses",
    "keys": "access.keys:FutureKeys",
    "sessions": "access.sessions:FutureSessions",
    "audit": "operations.audit:FutureAudit",
    "refusals": "access.denied_requests:FutureRefusals",
    "repeats": "access.idempotency:FutureRepeats",
    "schedules": "schedules.calls:FutureSchedules",
    "batches": "batches.calls:FutureBatches",
}
_CONTRACTS: Final = "documents.publishing.contract_calls:FutureContracts"
_DEFINITIONS: Final = "definitions.calls:FutureDefinitions"
_MAKERS: Final[Mapping[str, Callable[[CallContext], object]]] = {
    **{name: partial(_calls, home) for name, home in _HOMES.items()},
    "contracts": lambda desk: _calls(_CONTRACTS, desk, owner=desk.request),
    "definitions": lambda desk: _calls(_DEFINITIONS, desk, owner=desk.request),
}
_ENGINE_MAKERS: Final[Mapping[str, Callable[[tuple[CallContext, Projecting]], object]]] = {
    "contracts": lambda parts: _calls(_CONTRACTS, parts[0], owner=None),
    "definitions": lambda parts: _calls(_DEFINITIONS, parts[0], owner=None),
    "projections": lambda parts: _calls("deciders.projections:FutureProjections", *parts),
    "admin": lambda parts: _calls("operations.admin:FutureAdmin", parts[0]),
}
"""What the engine has of its own, or for all tenants."""
