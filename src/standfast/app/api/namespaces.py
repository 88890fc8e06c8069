"""The API namespaces: the calls of one tenant and actor, and the calls of the engine itself."""

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
    """The calls of an engine on behalf of one tenant and one actor."""

    request: RequestContext
    """The tenant and the actor of these calls."""
    runs: FutureRuns
    """Workflow runs: list and find them."""
    processes: FutureProcesses
    """Processes: start and advance them, and list the actions open to the caller."""
    documents: FutureDocuments
    """Documents: create, edit, approve and amend them, and read their past versions."""
    contracts: FutureContracts
    """Contracts: the definitions of document types."""
    bodies: FutureBodies
    """Bodies: the steps that an organisation puts into the slots of its documents."""
    deciders: FutureDeciders
    """Commands to deciders, and reads of their instances."""
    tasks: FutureTasks
    """Human tasks and their decisions."""
    notifications: FutureNotifications
    """In-app notifications."""
    directory: FutureDirectory
    """The directory of people: users, roles, capabilities and deputies."""
    chains: FutureChains
    """Approval chains."""
    charters: FutureCharters
    """Charters: the rules and settings of an organisation for its documents."""
    workflows: FutureWorkflows
    """The workflows of documents: suspend them, and migrate documents between them."""
    dead_letters: FutureDeadLetters
    """Dead letters: inspect, requeue and discard them."""
    definitions: FutureDefinitions
    """Published workflow definitions."""
    events: FutureEvents
    """Events, which are delivered to all waiting subscribers."""
    instances: FutureInstances
    """Instances of any kind, for operators."""
    invariants: FutureInvariants
    """Invariants of documents: check and repair them."""
    seals: FutureSeals
    """Seals, which prove that a history was not rewritten."""
    reports: FutureReports
    """Reports over the runs of a period."""
    inbox: FutureInbox
    """Accepted commands that have not been processed yet."""
    pauses: FuturePauses
    """Pauses of a definition, a step, a tenant or of all work."""
    keys: FutureKeys
    """API keys."""
    sessions: FutureSessions
    """Browser sessions."""
    audit: FutureAudit
    """The audit log: who changed what, for whom and why."""
    refusals: FutureRefusals
    """Requests that were denied because of the caller's identity or rights."""
    repeats: FutureRepeats
    """Idempotency records: repeatable requests and their stored responses."""
    schedules: FutureSchedules
    """Schedules, which start workflows at given times."""
    batches: FutureBatches
    """Batches: one operation applied to many runs."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk
        self.request = desk.request

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Create the namespace on first access."""
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
        """Start a workflow and return its run once it is stored.

        A workflow is a name (newest version), a name and a version, an id such as `order-v1`, or a built saga. A typed
        saga takes an input of its type, and its run returns a result of its type. `key` is a business key: one instance
        can have it, ever.

        `idempotency_key` makes the call safe to repeat: the same key returns the same run. With another input or
        business key it raises ReusedIdError. It defaults to the key of the request.

        `delay` postpones the first step, as a timedelta or in seconds.
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
        """Publish an event to all waiting subscribers; short for `events.publish`."""
        return self.events.publish(event, key, payload, event_id=event_id, ttl=ttl, match_one=match_one)

    def run(self, run: InstanceLike) -> FutureRun[object]:
        """Return the handle of a run by its id.

        It does not query the database: a missing run is reported by the first call of the handle.
        """
        return FutureRun(self._desk, checked_instance(run), object)

    def acting(self, actor: Actor | str, *, reason: str = "") -> FutureCalls:
        """Return the same calls for another actor of the tenant. An actor given by id alone has no rights.

        `reason` is recorded for calls that have no reason of their own.
        """
        return FutureCalls(self._desk.acting_as(checked_actor(actor), reason))


class FutureEngineCalls(FutureCalls):
    """The calls of an engine: for its own tenant, for other tenants, and for the engine as a whole."""

    projections: FutureProjections
    """Read models."""
    admin: FutureAdmin
    """Maintenance, backlog and workers."""

    def __init__(self, desk: CallContext, projecting: Projecting) -> None:
        super().__init__(desk)
        self._projecting = projecting

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Create the namespace on first access."""
            if name not in _ENGINE_MAKERS:
                return super().__getattr__(name)
            return subject(self, name, _ENGINE_MAKERS, lambda: (self._desk, self._projecting))

    def acting(self, actor: Actor | str | RequestContext, *, reason: str = "") -> FutureCalls:
        """Return the calls for a request, with its tenant and actor, or for another actor of the engine's own tenant.

        An actor given by id alone has no rights: pass `Actor(id=…, roles=…)` to add roles and capabilities. `reason` is
        recorded in the history and the audit log for calls that have no reason of their own.
        """
        return FutureCalls(self._desk.acting_as(actor, reason))

    def as_tenant(self, tenant: str, *, actor: Actor | str = SYSTEM) -> FutureCalls:
        """Return the calls for a tenant; short for `acting` with a request context.

        An actor given by id alone has no rights.
        """
        return FutureCalls(self._desk.acting(RequestContext(tenant=tenant, actor=checked_actor(actor))))


def _calls(home: str, *given: object, **options: object) -> object:
    """Create an object of a class with calls, `module:class` below `features`.

    The import is lazy, so that an engine loads only the features in use.
    """
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
"""The namespaces of the engine itself, and those that concern all tenants."""
