"""Who waits for a published event, what it starts, and which events came before somebody waited: what the engine finds out after the commit."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

import msgspec

from standfast.calls.context import CallContext
from standfast.calls.fact_source import ReadFacts
from standfast.calls.handlers.builtin import BuiltinHandlers
from standfast.engine.commit.facts import Place
from standfast.engine.commit.submission import CommandOutcome
from standfast.engine.common.handlers import EffectContext
from standfast.errors import ExpressionError, RejectedError, StandfastError
from standfast.expressions import Expression
from standfast.features.events.model import RouteEvent, RouteOn, SeekEvent
from standfast.features.runs.start import start_run
from standfast.graph.index import EVENT, names_of
from standfast.graph.model import EventTrigger, Graph
from standfast.kernel.actor import SYSTEM, Actor, RequestContext, later
from standfast.kernel.codec.canonical import canonical_hash
from standfast.kernel.codec.message_types import LONGEST_NAME
from standfast.kernel.facts import RightsFact, rights_fact
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.events import StoredPublication
from standfast.machine.model.commands.run_commands import TakeEvents
from standfast.machine.model.engine_tasks import FindEvents, Sought
from standfast.machine.model.messages import PUBLICATION, PublishedMessage, Waiter
from standfast.store.ports.events import Subscriber

PAGE = 200
"""Those who wait, or events, that are looked at together."""

_log = logging.getLogger("standfast")
_decode = msgspec.json.Decoder(PublishedMessage).decode


class EventRouter:
    """Does the errands that are about published events."""

    def __init__(self, desk: CallContext, errands: BuiltinHandlers) -> None:
        self._desk = desk
        errands.add(RouteEvent, self.route)
        errands.add(FindEvents, self.find)

    # -- from an event to those who wait

    def route(self, context: EffectContext, effect: RouteEvent) -> RouteOn:
        """A page of those who wait for an event; with the first one, the runs that the event starts."""
        desk, published = self._acting(context, effect.published), effect.published
        last = None if effect.after is None else _subscriber(effect.after, effect.place)
        found = desk.reader.subscribers(published.event, published.key, after=last, limit=PAGE)
        known = None if last is None else last[:2]
        waiters = {each[:2]: _waiter(each) for each in found if each[:2] != known}  # A step is told once.
        runs, failures = ([], []) if effect.after is not None else self._start(desk, published)
        has_more = len(found) == PAGE
        return RouteOn(
            id=published.id,
            waiters=list(waiters.values()),
            after=_waiter(found[-1]) if has_more else None,
            place=found[-1].place if has_more else 0,
            started=runs,
            failures=failures,
        )

    def _start(self, desk: CallContext, published: PublishedMessage) -> tuple[list[str], list[str]]:
        """Start what the event triggers. It may be asked for again: the id of the event makes each start happen once."""
        runs, failures = list[str](), list[str]()
        acting = self._desk.acting(_request_of(desk, published))
        for graph, number, trigger in self._triggered(desk, published):
            try:
                run = start_run(
                    acting,
                    graph.name,
                    _input(trigger, published),
                    version=graph.version,
                    key=_key(trigger, published),
                    idempotency_key=_start_key(published, number),
                    delay=0,
                    comment="",
                ).result()
            except StandfastError as error:
                if error.retryable:
                    raise
                failures.append(f"{graph.name}: {error}")
            else:
                runs.append(str(run.id))
        return runs, failures

    def _triggered(self, desk: CallContext, published: PublishedMessage) -> Iterator[tuple[Graph, int, EventTrigger]]:
        for graph in desk.registry.library.triggered(desk.tenant, published.event):
            matching = (each for each in graph.triggers if each.event == published.event)
            for number, trigger in enumerate(matching):
                if _counts(trigger, published):
                    yield graph, number, trigger

    # -- from one who waits to the events

    def find(self, context: EffectContext, errand: FindEvents) -> TakeEvents | None:
        """The events that are kept and that a step waits for, the oldest of each; those for one taker are asked to offer themselves.

        Of those the oldest is asked that nobody else wants. If others want all of them, the step waits in the line of one: not everybody in
        that of the same, because all who are in a line look again when its event is over.
        """
        desk, anywhere = (
            self._acting(context, None),
            self._desk.acting(RequestContext(tenant=context.tenant, actor=SYSTEM, trace=context.trace)),
        )
        waiter = Waiter(instance=str(context.instance), definition=context.decider, step=errand.step, is_seeker=True)
        found, is_sought = dict[str, PublishedMessage](), False
        publishers = _Publishers(desk, errand, context)
        until = datetime.fromisoformat(errand.until) if errand.until else None
        for sought in errand.sought:
            match = None if sought.match is None else Expression.from_data(sought.match)
            wanted = list[StoredPublication]()
            for each in self._kept(desk, sought, until):
                event = _decode(each.data)
                if each.id in errand.taken or each.id in found or not _holds(match, errand, event):
                    continue
                if not publishers.may_bring(event):
                    continue
                if not each.match_one:
                    found[each.id] = event
                    break
                if self._seek(anywhere, each, waiter, only_free=True):
                    is_sought = True
                    break
                wanted.append(each)
            else:
                if until is not None:
                    continue  # Whoever waits in line would wait longer than there is time.
                start = context.instance.int % len(wanted) if wanted else 0
                next((each for each in wanted[start:] + wanted[:start] if self._seek(anywhere, each, waiter)), None)
        if found:
            return TakeEvents(step=errand.step, events=list(found.values()), is_found=True)
        return TakeEvents(step=errand.step, is_over=True) if until is not None and not is_sought else None

    def _kept(self, desk: CallContext, sought: Sought, until: datetime | None) -> Iterator[StoredPublication]:
        """Those that are kept; with an instant, those that were published by then, also if they have been kept long enough since."""
        now, last = desk.service.shared.clock.now(), None
        while True:
            page = desk.reader.kept_for(sought.event, sought.key, now=until or now, after=last, limit=PAGE)
            for each in page:
                if until is not None and each.published_at > until:
                    return
                yield each
            if len(page) < PAGE:
                return
            last = page[-1].place

    def _seek(self, desk: CallContext, event: StoredPublication, waiter: Waiter, *, only_free: bool = False) -> bool:
        """Ask an event for one taker to offer itself; False if it is over, or if others want it and only a free one is asked for."""
        address = desk.address(PUBLICATION, instance=event.instance)
        try:
            command = SeekEvent(id=event.id, waiter=waiter, only_free=only_free)
            desk.command(address, command, _noted, may_create=False, is_unasked=True).result()
        except RejectedError:
            return False
        except StandfastError as error:
            if error.retryable:
                raise
            return False  # It was forgotten since.
        return True

    def _acting(self, context: EffectContext, published: PublishedMessage | None) -> CallContext:
        """Where the calls are made: for the tenant and the partition of the event, and on behalf of whoever published it."""
        actor = SYSTEM if published is None else published.actor
        return self._desk.acting(
            RequestContext(tenant=context.tenant, partition=context.partition, actor=actor, trace=context.trace)
        )


class _Publishers:
    """Who may bring what a step waits for, as things are now. Each publisher is looked up once, and told of once."""

    def __init__(self, desk: CallContext, errand: FindEvents, context: EffectContext) -> None:
        self._errand = errand
        self._context = context
        self._facts = ReadFacts(desk.service, Place(context.tenant, context.partition))
        self._may: dict[str, bool] = {}

    def may_bring(self, event: PublishedMessage) -> bool:
        """Whether an event counts by its publisher. The run judges that again when it takes the event."""
        if event.publisher is None or not self._errand.capability:
            return True
        who = f"{event.publisher.id} {event.asked}"
        if who not in self._may:
            self._may[who] = all(map(self._actor(event).may, self._errand.capability))
            if not self._may[who]:
                _log.warning(
                    "event_does_not_count event=%s publisher=%s lacks=%s instance=%s step=%s",
                    event.id,
                    event.publisher.id,
                    ",".join(self._errand.capability),
                    self._context.instance,
                    self._errand.step,
                )
        return self._may[who]

    def _actor(self, event: PublishedMessage) -> Actor:
        if not event.asked:
            return event.actor
        found = self._facts.get(rights_fact(event.asked)).value
        assert isinstance(found, RightsFact)
        return event.actor if found.is_elsewhere else found.actor or Actor(id=event.actor.id)


def _request_of(desk: CallContext, published: PublishedMessage) -> RequestContext:
    """On whose behalf an event starts runs: the publisher's, with the rights of now. What was looked up when it was published does not count."""
    known = desk.request
    if published.asker is None:
        return known
    return later(published.asker, published.terms, tenant=known.tenant, partition=known.partition, trace=known.trace)


def _noted(_outcome: CommandOutcome) -> None:
    """It is queued; it will offer itself."""


def _waiter(found: Subscriber) -> Waiter:
    return Waiter(instance=str(found.instance), definition=found.definition, step=found.number)


def _subscriber(waiter: Waiter, place: int) -> Subscriber:
    return Subscriber(InstanceId(UUID(waiter.instance)), waiter.step, place, waiter.definition)


def _holds(match: Expression | None, errand: FindEvents, event: PublishedMessage) -> bool:
    try:
        return match is None or match.holds({**names_of(errand.data), **errand.names, EVENT: event.payload})
    except ExpressionError:
        return False


# -- triggers


def _start_key(published: PublishedMessage, number: int) -> str:
    """What makes a start happen once; another trigger of the same workflow is another start. An id may be as long as a key is."""
    key = f"{published.id}#{number}" if number else published.id
    whole = f"{PUBLICATION}:{key}"
    return whole if len(whole.encode()) <= LONGEST_NAME else f"{PUBLICATION}:{canonical_hash(key)}"


def _named(published: PublishedMessage) -> dict[str, object]:
    """What the expressions of a trigger can read."""
    return {EVENT: published.payload, "key": published.key}


def _counts(trigger: EventTrigger, published: PublishedMessage) -> bool:
    """Whether an event starts a run; a question that cannot be answered is answered by no."""
    try:
        return trigger.when is None or Expression.from_data(trigger.when).holds(_named(published))
    except ExpressionError:
        return False


def _key(trigger: EventTrigger, published: PublishedMessage) -> str:
    if trigger.key is None:
        return ""
    value = Expression.from_data(trigger.key).evaluate(_named(published))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value  # type: ignore[return-value]


def _input(trigger: EventTrigger, published: PublishedMessage) -> object:
    if trigger.input is not None:
        return {
            name: Expression.from_data(stored).evaluate(_named(published)) for name, stored in trigger.input.items()
        }
    payload = published.payload
    return {} if payload is None else payload if isinstance(payload, dict) else {EVENT: payload}
