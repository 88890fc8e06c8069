"""The engine of one process on one database."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import ParamSpec, Self, TypeVar, cast, overload

from standfast.app.api.namespaces import FutureEngineCalls
from standfast.app.api.sync import EngineCalls
from standfast.app.builtin import deliveries_of, register_builtin_deciders, serve_builtin_deciders, serve_webhooks
from standfast.app.lifecycle import Callbacks, Channels, EngineLifecycle
from standfast.app.signals import GracefulShutdown
from standfast.app.unit_of_work import UnitOfWork
from standfast.calls.catalog.organisation_settings import Organisation, Rules
from standfast.calls.catalog.registry import Registry, shared_handler
from standfast.calls.context import CallContext, checked_tenant
from standfast.calls.fact_source import EngineFacts
from standfast.calls.handlers.builtin import BuiltinHandlers
from standfast.calls.handlers.registration import Handling, NamedHandlers
from standfast.calls.handlers.step_handlers import check_step_handler, takes_effects
from standfast.calls.pools import ReaderPool, answering
from standfast.calls.references import BRINGS_ITS_OWN, AnyTyped, unregistrable
from standfast.calls.waiters import CompletionWaiters, report_timeouts
from standfast.engine.common.clock import Clock, DatabaseClock
from standfast.engine.common.gc_tuning import OWN_PROCESS, collect_after
from standfast.engine.common.handlers import Function
from standfast.engine.common.health import Health, HealthProblem, Watched, WriteLock, problems_of
from standfast.engine.common.interceptors import Interceptor
from standfast.engine.common.randomness import Randomness, SystemRandomness
from standfast.engine.common.settings import Settings
from standfast.engine.common.telemetry import Listener
from standfast.engine.concurrency.process_forks import INHERITED
from standfast.engine.dispatcher import Dispatcher
from standfast.engine.loops.housekeeping import WorkflowDuties
from standfast.engine.loops.projections import Projection
from standfast.engine.worker_process import WorkerProcess
from standfast.errors import ConfigurationError, StoppedError, StoreUnavailableError
from standfast.features.documents.webhooks import Webhooks
from standfast.features.operations.alerts import Alerting
from standfast.features.processes.operation_handlers import Invocations
from standfast.features.runs.incidents import directory_incidents
from standfast.features.runs.resume import RESUMPTION
from standfast.features.runs.run_calls import final_state
from standfast.features.sagas.options import handler_name
from standfast.features.tasks.review import TaskReview
from standfast.graph.definition import Definition, TypedDefinition
from standfast.graph.model import KINDS
from standfast.kernel.actor import SYSTEM, Actor, RequestContext
from standfast.kernel.codec.codecs import Codec, JsonCodec
from standfast.kernel.decider import Decider
from standfast.kernel.ids import InstanceId
from standfast.kernel.retry import RetryPolicy
from standfast.machine.machine import GRAPH_LANGUAGE
from standfast.machine.model.engine_tasks import FindPeople, Notify, ReviewPeople
from standfast.notifications.notification import Channel, Notice
from standfast.outbound.invokers import Invoker
from standfast.people.access_facts import Accesses
from standfast.people.approver_service import ApproverService, directory_of
from standfast.people.capabilities import CapabilityResolver, checked_resolvers
from standfast.people.directory import Directory
from standfast.people.resolvers import Resolver
from standfast.store.opening import DEFAULT_URL, open_store
from standfast.store.ports.store import Store
from standfast.store.records.instances import DEFAULT_TENANT, InstanceHeader

S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")
F = TypeVar("F")
T = TypeVar("T")
P = ParamSpec("P")

_log = logging.getLogger("standfast")


_LOOK_SECONDS = 0.5
"""Interval at which `serve` checks whether the engine was stopped otherwise."""


def _checked_settings(settings: Settings | None) -> Settings:
    given: object = settings  # Callers without type checks may pass anything.
    if given is not None and not isinstance(given, Settings):
        raise ConfigurationError(f"the settings are of type {type(given).__name__}; give Settings(…)")
    return settings or Settings()


class Engine(EngineCalls):
    """Durable workflows on one database.

    An open engine takes commands. `start_worker` makes it work too: it runs handlers, timers and projections until
    `stop`. Used as a context manager, with `with` or `async with`, it does both, and closes at the end.

    Its calls return with their result. `aio` has the same calls for coroutines. `futures` has them for callers with
    many calls in flight.
    """

    def __init__(  # noqa: PLR0913 - the options of the public face, all by name
        self,
        url: str = DEFAULT_URL,
        *,
        settings: Settings | None = None,
        codec: Codec | None = None,
        tenant: str = DEFAULT_TENANT,
        migrate: bool = True,
        store: Store | None = None,
        clock: Clock | None = None,
        chance: Randomness | None = None,
        threads: bool = True,
        directory: Directory | None = None,
        capabilities: CapabilityResolver | Sequence[CapabilityResolver] | None = None,
        invokers: Mapping[str, Invoker] | None = None,
    ) -> None:
        checked_tenant(tenant)
        self.settings = _checked_settings(settings)
        self._codec, self._has_threads, clock = codec or JsonCodec(), threads, clock or DatabaseClock()
        self._limit = self.settings.unhealthy_after.total_seconds()
        resolvers = checked_resolvers(capabilities)
        self.registry = Registry(self._codec, self.settings, now=clock.now)
        register_builtin_deciders(self.registry)
        self._store = self._open(url, may_migrate=migrate) if store is None else store.share()
        try:
            people = directory_of(directory, self._store, now=clock.now, patience=self.settings.people_timeout)
            self.service = Dispatcher(
                self._store,
                self.settings,
                clock=clock,
                chance=chance or SystemRandomness(),
                catalog=self.registry,
                facts=EngineFacts(Accesses(people, resolvers), self.registry, limit=self.settings.max_payload_bytes),
                timer_fired=report_timeouts,
                has_threads=threads,
            )
            self.registry.attach(self.service)
            handlers = self.service.shared.handlers
            self._named = NamedHandlers(handlers, self._codec, required=self.registry.required)
            self._invocations = Invocations(self.settings, clock.now, self._named, invokers)
            self.errands = BuiltinHandlers(handlers, self.settings)
            self.office = ApproverService(self.service, people)
            self.deliveries = deliveries_of(self.service, self.office, self._invocations.outbound, self.registry)
            self._answering = answering(self.service.shared, people) if threads else None
            endings = CompletionWaiters(self.service, self._headers, final_state, has_threads=threads)
            self._desk = CallContext(
                self.service,
                self.registry,
                endings,
                self._answering,
                directory=people,
                request=RequestContext(tenant=tenant, actor=SYSTEM),
                resolvers=resolvers,
            )
            self.runtime = WorkerProcess(self.service, self._serve_runs())
            super().__init__(FutureEngineCalls(self._desk, self.runtime.projecting))
            self._life = EngineLifecycle(self.service, self.runtime, endings, self._readers, leave=self._leave)
            if not threads:
                self.runtime.attach()
            self.service.start()  # Last, so that every configuration error is raised before a thread starts.
        except BaseException:
            self._store.close()
            raise

    def _serve_runs(self) -> WorkflowDuties:
        """Register the built-in handlers of runs; return the duties of housekeeping for workflows."""
        self.errands.add(FindPeople, self.office.finder.find)
        self.errands.add(ReviewPeople, self.office.finder.review)
        reviews = TaskReview(self._desk, self.office.finder)
        self.errands.add(Notify, reviews.delivering(self.deliveries.run))
        alerts = Alerting(self._desk, self.errands, self.deliveries)
        serve_builtin_deciders(self._desk, self.errands)
        webhooks = Webhooks(self._invocations.outbound, self._invocations.lent, self.service.shared.clock.now)
        serve_webhooks(webhooks, self.errands, self._named)
        return WorkflowDuties(RESUMPTION, KINDS, review=reviews.look, alert=alerts.tell)

    # -- set-up

    @overload
    def register(
        self,
        definition: Decider[S, C, E, F],
        effects: Handling[F, C] | None = None,
        *,
        concurrency: int | None = None,
        timeout: timedelta | None = None,
        retry: RetryPolicy | None = None,
    ) -> Self: ...

    @overload
    def register(self, definition: Definition | AnyTyped) -> Self: ...

    def register(
        self,
        definition: Decider[S, C, E, F] | Definition | AnyTyped,
        effects: Handling[F, C] | None = None,
        *,
        concurrency: int | None = None,
        timeout: timedelta | None = None,
        retry: RetryPolicy | None = None,
    ) -> Self:
        """Register a definition: a saga, or a decider with the handler of its effects.

        A saga is published in the database, so that any process can run it. Its handlers are registered in this
        process. A decider's handler is a function of context and effect, plain or async. It returns a command for the
        instance, or None. A process without a handler leaves its work to other processes.
        """
        self._check_open()
        if isinstance(definition, Definition | TypedDefinition):
            if (effects, concurrency, timeout, retry) != (None, None, None, None):
                raise ConfigurationError(BRINGS_ITS_OWN)
            return self._register_workflow(definition if isinstance(definition, Definition) else definition.definition)
        if isinstance(definition, type) and issubclass(definition, Decider):
            raise ConfigurationError(f"a decider is registered as an object: register({definition.__name__}())")
        if not isinstance(definition, Decider):
            raise ConfigurationError(unregistrable(definition))
        if effects is None:
            self.registry.add(definition)
            return self
        function = cast("Function", getattr(effects, "handle", effects))
        if not takes_effects(function):
            raise ConfigurationError(
                f"the handler for {definition.type!r} is of type {type(effects).__name__} and cannot be called with two arguments; "
                "give a function of (context, effect), or an object with such a `handle`"
            )
        for workflow in self.registry.library.callers(definition.type):
            raise shared_handler(workflow, definition.type)
        program = self.registry.add(definition)
        self.service.shared.handlers.register(
            program.type, function, concurrency=concurrency, timeout=timeout, retry=retry, foreign=GRAPH_LANGUAGE
        )
        self.registry.handled.add(program.type)
        return self

    def handle(
        self,
        name: str,
        function: object,
        *,
        concurrency: int | None = None,
        timeout: timedelta | None = None,
        capability: str = "",
    ) -> Self:
        """Register a handler of steps or of decider effects by name: a function, plain or async, or an object.

        The handler of a step may take the context, the data as a whole, or values of it by name; an object has
        `execute`. The handler of an effect takes context and effect; an object has `handle`. A process without the
        handler leaves the work to other processes.

        With a `capability` it is called only for steps that require it of the starter of the run. Other steps that name
        the handler fail.
        """
        self._check_open()
        if not name:
            raise ConfigurationError("a handler needs a name of its own; steps find it by that")
        if name.startswith("$"):
            raise ConfigurationError(
                f"the handler's name {name!r} begins with '$', which is kept for the engine; take another"
            )
        self._named.add(name, function, concurrency=concurrency, timeout=timeout, capability=capability)
        return self

    def handler(self, name: str = "", *, capability: str = "") -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Decorator: register a function as a handler of steps; the name defaults to the function's. See `handle`."""

        def add(function: Callable[P, T]) -> Callable[P, T]:
            self.handle(name or handler_name(function), function, capability=capability)
            return function

        return add

    def govern(self, *, rules: Rules | None = None, organisation: Organisation | None = None) -> Self:
        """Set an organisation's rules for a document type and action, and its settings, which expressions read as `org`."""
        self._check_open()
        self.registry.charters.tell(rules, organisation)
        return self

    def channel(self, name: str, channel: Channel | Callable[[Notice], object]) -> Self:
        """Register a notification channel by name: a function of a notice, plain or async, or an object with `send`.

        Raise `Fail` where a retry cannot help; any other error is retried. Every worker process needs the channel.
        """
        self._check_open()
        self.deliveries.add(name, channel)
        return self

    def invoker(self, name: str, invoker: Invoker) -> Self:
        """Register an invoker by name. It makes the calls of steps whose `operation` names it.

        `OpenApi(ApiDocument(…))` is the one for operations of OpenAPI documents; others are instances of a class that
        is an `Invoker`. Every worker process needs the invoker.
        """
        self._check_open()
        self._invocations.add(name, invoker)
        return self

    def _register_workflow(self, definition: Definition) -> Self:
        self.registry.check_free(definition.graph)
        for name, function in definition.handlers.items():
            check_step_handler(function, name)
            self.handle(name, function)
        self.registry.library.publish(definition)
        return self

    def resolve_people(self, name: str, function: Resolver) -> Self:
        """Register a resolver by name: a function that returns the approvers of a step.

        It takes a PeopleRequest (the data, the requester, the tenant). It returns the id of a user, `role:<name>`, a
        list of these, or None. Any exception is retried. Every worker process needs the resolver.
        """
        self._check_open()
        self.office.resolvers.add(name, function)
        return self

    def resolver(self, name: str = "") -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Decorator: register a function as a resolver; the name defaults to the function's."""

        def add(function: Callable[P, T]) -> Callable[P, T]:
            self.resolve_people(name or handler_name(function), cast("Resolver", function))
            return function

        return add

    @contextmanager
    def within(
        self, connection: object, *, request: RequestContext | Actor | str | None = None
    ) -> Iterator[UnitOfWork]:
        """Decide commands in the caller's open transaction, on the caller's connection to the same database.

        Their writes commit or roll back with the caller's rows. `connection` is a connection of psycopg or sqlite3, or
        the wrapper of Django or SQLAlchemy. `request` is a request with its tenant, or an actor of the engine's own
        tenant, as in `acting`. Without it the engine itself acts.
        """
        self._check_open()
        if connection is None:
            raise ConfigurationError("give the connection that has your transaction open, not None")
        unit = UnitOfWork(self._desk if request is None else self._desk.acting_as(request), connection)
        with self._store.entered():
            try:
                yield unit
            finally:
                unit.end()

    def project(self, projection: Projection) -> Self:
        """Keep a read model up to date while the engine runs. Retention deletes no event that it has not read."""
        self._check_open()
        self.runtime.projecting.add(projection)
        self.service.operate(lambda parts: parts.feed().enter(projection.name))
        return self

    def listen(self, listener: Listener) -> Self:
        """Call `listener` with every telemetry event."""
        self.service.shared.telemetry.listen(listener)
        return self

    def accompany(self, companion: Interceptor) -> Self:
        """Add an interceptor of every command and every handler call: a tracer, an error tracker, a log context."""
        self.service.shared.telemetry.companions.add(companion)
        return self

    # -- life

    def start_worker(self) -> Self:
        """Run effects, timers, messages and projections in this process."""
        if not self._has_threads:
            raise ConfigurationError(
                "an engine without threads is driven by drain(); open it with threads=True to start it"
            )
        self._life.start(self._warn_of_orphans)
        return self

    def stop(self, timeout: timedelta | None = None) -> None:
        """Stop gracefully: take nothing new, let running handlers finish, commit their results, and leave.

        A call that exceeds `timeout` is abandoned, and the log names it; a transactional one loses its connection. A
        hanging part delays the stop by a few seconds more than `timeout` at most.

        Further callers wait until the stop is complete. A handler, decider, listener or projection cannot wait, because
        the stop waits for it: its call returns, and the engine stops in the background.
        """
        self._life.stop(timeout)

    def _open(self, url: str, *, may_migrate: bool) -> Store:
        return open_store(url, codec=self._codec.name, may_migrate=may_migrate, readers=self.settings.readers)

    def _leave(self) -> None:
        self._store.close()

    def serve(self, shutdown: threading.Event | None = None) -> None:
        """Start, and work until `shutdown` is set, SIGTERM or SIGINT arrives, or `stop` is called; then stop gracefully.

        A second SIGTERM changes nothing. A second SIGINT ends the process immediately.
        """
        asked = shutdown or threading.Event()
        with GracefulShutdown(asked.set):
            try:
                if self.settings.collect_after is None:
                    collect_after(OWN_PROCESS)
                self.start_worker()
                while not (self._life.is_closed or asked.wait(_LOOK_SECONDS)):
                    pass
            finally:
                self.stop()

    def drain(self) -> int:
        """Do all due work and its consequences on this thread; return the number of items.

        For engines without threads.
        """
        self._check_driven()
        return self.runtime.drain()

    def execute_next(self) -> bool:
        """Call the handler of the most urgent effect on this thread, and process its failure.

        Returns False if no effect is due. For engines without threads.
        """
        self._check_driven()
        self.runtime.heartbeat.step()
        has_called = bool(self.runtime.execute_next())
        self.runtime.intake.chores.drain()
        return has_called

    def _check_driven(self) -> None:
        if self._has_threads:
            raise ConfigurationError(
                "this engine works in threads of its own once it is started; open it with threads=False to drive it"
            )
        self._check_open()

    def _check_open(self) -> None:
        self.service.check_process()
        if self._life.is_closed:
            raise StoppedError("the engine is stopped; open a new one")

    def __enter__(self) -> Self:
        return self.start_worker() if self._has_threads else self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)  # It waits for handlers, and must not block the event loop meanwhile.

    # -- operations

    def health(self) -> Health:
        """Return whether this process works, and what prevents it. It does not query the database, so it is cheap."""
        loops = [*self.runtime.loops, *self.service.loops, *self._desk.endings.loops]
        problems = self._standstill() or problems_of(self.parts())
        return Health(
            is_healthy=not problems,
            needs_restart=not all(each.is_outside for each in problems),
            problems=[each.told for each in problems],
            has_worker=self._life.is_started and not self._standstill(),
            maintenance=self.service.maintenance,
            pauses=[str(each.scope) for each in self.service.standing.pauses],
            incidents=self._incidents(),
            loops={loop.name: round(loop.silent_for, 3) for loop in loops},
        )

    def _incidents(self) -> list[str]:
        """Return the incidents that this process knows of."""
        housekeeping, due_work = self.runtime.housekeeping, self.runtime.due_work
        unread = [each.told for each in housekeeping.unread.known]
        silent = [each.told for each in directory_incidents(self.office.directory)]
        return [*silent, *housekeeping.incidents.told(), *unread, *due_work.unreadable.told()]

    def incident_counts(self) -> dict[str, int]:
        """Return the number of incidents by kind, as far as this process knows; for metrics."""
        housekeeping = self.runtime.housekeeping
        return {
            "stuck": len(housekeeping.incidents.known),
            "no_approver": len(housekeeping.incidents.undecidable),
            "refused_schedule": len(housekeeping.incidents.refused),
            "hung_call": len(housekeeping.incidents.hung),
            "unreadable": len(housekeeping.unread.known) + len(self.runtime.due_work.unreadable.told()),
            "directory_unreachable": len(directory_incidents(self.office.directory)),
        }

    def _standstill(self) -> list[HealthProblem]:
        """Return why no part of the engine works here; empty if it works."""
        told = INHERITED if self.service.is_inherited else "the engine is stopped" if self._life.is_closed else ""
        return [HealthProblem(told, is_outside=False)] if told else []

    def parts(self) -> list[Watched]:
        """Return all parts of the engine that can stop, including those of a started worker.

        `health` checks each of them.
        """
        readers = [part for each in self._readers for part in each.parts]
        if readers:
            readers.append(Callbacks(limit=self._limit))
        database = WriteLock(self._store, limit=self._limit)
        channels = [Channels(self.deliveries, self.registry.library)] if self._life.is_started else []
        return [*self.service.parts(), *self.runtime.parts(), *self._desk.endings.loops, *channels, *readers, database]

    @property
    def _readers(self) -> list[ReaderPool]:
        """Return the reader pools."""
        return [] if self._answering is None else self._answering.all

    def _headers(self, tenant: str, partition: str, instances: Collection[InstanceId]) -> list[InstanceHeader]:
        return self._store.reader(tenant, partition).headers(list(instances))

    def _warn_of_orphans(self) -> None:
        """Warn of orphaned work: effects of types that this code does not know.

        They are safe, but they do not progress.
        """
        try:
            known = {*self.registry.names(), *self.registry.library.published_names()}
            waiting = self._desk.keep(lambda keeper: keeper.backlog(), is_patient=False)
        except StoreUnavailableError as error:  # The worker recovers when the database is back.
            _log.warning("orphaned_work_check_failed error=%r", error)
            return
        for each in waiting:
            if each.kind != "effect" and each.name not in known and not self.registry.is_decider(each.name):
                kind = {"timer": "timers", "inbox": "messages"}[each.kind]
                _log.warning("orphaned_work count=%d kind=%s definition=%r", each.count, kind, each.name)
