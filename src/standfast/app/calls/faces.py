"""The whole of the calls: those on behalf of one tenant and one actor, and those of the engine itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, overload

from standfast.app.aside import made_aside
from standfast.app.calls.admin import FutureAdmin
from standfast.app.calls.audit import FutureAudit
from standfast.app.calls.batches import FutureBatches
from standfast.app.calls.bodies import FutureBodies
from standfast.app.calls.chains import FutureChains
from standfast.app.calls.charters import FutureCharters
from standfast.app.calls.contracts import FutureContracts
from standfast.app.calls.dead_letters import FutureDeadLetters
from standfast.app.calls.deciders import FutureDeciders
from standfast.app.calls.definitions import FutureDefinitions
from standfast.app.calls.directory import FutureDirectory
from standfast.app.calls.documents import FutureDocuments
from standfast.app.calls.events import FutureEvents
from standfast.app.calls.inbox import FutureInbox
from standfast.app.calls.instances import FutureInstances
from standfast.app.calls.invariants import FutureInvariants
from standfast.app.calls.keys import FutureKeys
from standfast.app.calls.notifications import FutureNotifications
from standfast.app.calls.pauses import FuturePauses
from standfast.app.calls.processes import FutureProcesses
from standfast.app.calls.projections import FutureProjections
from standfast.app.calls.refusals import FutureRefusals
from standfast.app.calls.repeats import FutureRepeats
from standfast.app.calls.reports import FutureReports
from standfast.app.calls.run import FutureRun
from standfast.app.calls.runs import FutureRuns
from standfast.app.calls.schedules import FutureSchedules
from standfast.app.calls.seals import FutureSeals
from standfast.app.calls.sessions import FutureSessions
from standfast.app.calls.start import start_run
from standfast.app.calls.subjects import subject
from standfast.app.calls.tasks import FutureTasks
from standfast.app.calls.workflows import FutureWorkflows
from standfast.app.desk import CallContext, checked_actor
from standfast.app.references import DefinitionLike, InstanceLike, Untyped, checked_instance
from standfast.authoring.definition import I, R, TypedDefinition
from standfast.kernel.actor import SYSTEM, Actor, RequestContext
from standfast.runtime.loops.projections import Projecting
from standfast.runtime.replies import Reply


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
        self.definitions = FutureDefinitions(desk, owner=None)
        self.contracts = FutureContracts(desk, owner=None)
        self.projections = FutureProjections(desk, projecting)
        self.admin = FutureAdmin(desk)

    def acting(self, actor: Actor | str | RequestContext, *, reason: str = "") -> FutureCalls:
        """The calls on behalf of a request, with its tenant and its actor; or for the engine's own tenant by another actor.

        An actor that is given by id alone has no rights: roles and capabilities are said with `Actor(id=…, roles=…)`. `reason` says why,
        for calls that are given no reason of their own: the history and the audit keep it.
        """
        return FutureCalls(self._desk.acting_as(actor, reason))

    def as_tenant(self, tenant: str, *, actor: Actor | str = SYSTEM) -> FutureCalls:
        """The calls on behalf of a tenant: the short way of `acting` with a request context. An actor given by id alone has no rights."""
        return FutureCalls(self._desk.acting(RequestContext(tenant=tenant, actor=checked_actor(actor))))


_MAKERS: Final[Mapping[str, Callable[[CallContext], object]]] = {
    "runs": FutureRuns,
    "processes": FutureProcesses,
    "documents": FutureDocuments,
    "contracts": lambda desk: FutureContracts(desk, owner=desk.request),
    "bodies": FutureBodies,
    "deciders": FutureDeciders,
    "tasks": FutureTasks,
    "notifications": FutureNotifications,
    "directory": FutureDirectory,
    "chains": FutureChains,
    "charters": FutureCharters,
    "workflows": FutureWorkflows,
    "dead_letters": FutureDeadLetters,
    "definitions": lambda desk: FutureDefinitions(desk, owner=desk.request),
    "events": FutureEvents,
    "instances": FutureInstances,
    "invariants": FutureInvariants,
    "seals": FutureSeals,
    "reports": FutureReports,
    "inbox": FutureInbox,
    "pauses": FuturePauses,
    "keys": FutureKeys,
    "sessions": FutureSessions,
    "audit": FutureAudit,
    "refusals": FutureRefusals,
    "repeats": FutureRepeats,
    "schedules": FutureSchedules,
    "batches": FutureBatches,
}
