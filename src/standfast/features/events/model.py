"""Published events: each one is an instance of a decider of its own, so that no two of them wait for one another.

An event is written down, and then the engine finds out who waits for it. Those are told by messages, each by itself, so that one of
them who fails keeps nobody else from it. Until its time to live is over it is kept, for those who begin to wait later. One that is for
one taker alone is offered to one at a time: the event decides who has it, and whoever does not want it says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import ClassVar, TypeAlias
from uuid import UUID

import msgspec

from standfast.kernel.actor import Actor, late_actor, late_terms
from standfast.kernel.codec.message_types import message
from standfast.kernel.decider import COMPLETED, RUNNING, Decider, Status
from standfast.kernel.decision import Answer, Decision, Effect, Ignored, Message
from standfast.kernel.ids import InstanceId
from standfast.kernel.moment import Moment
from standfast.kernel.row_kinds.events import EVENT_KIND, PublicationForgotten, PublicationKept
from standfast.kernel.rows import Record
from standfast.machine.model.commands.run_commands import TakeEvents
from standfast.machine.model.engine_tasks import OWN_HANDLER
from standfast.machine.model.messages import PUBLICATION, AnswerOffer, PublishedMessage, Waiter
from standfast.machine.model.rejections import Refusal, refused

EXPIRY = "expiry"
"""The key of the timer that ends an event."""

_KNOWN = Ignored(reason="this event was published before")
_OVER = Ignored(reason="the event is over")
_OFFERED = Ignored(reason="the event is offered to this taker")

_encode = msgspec.json.Encoder().encode


class _Word(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What is said to an event, of it, and by it."""


# -- commands


@message(name="PublishEvent")
class PublishEvent(_Word, frozen=True, kw_only=True):
    """Something happened."""

    id: str
    event: str
    key: str = ""
    payload: object = None
    ttl_ms: int = 0
    """How long it is kept for those who begin to wait later."""
    match_one: bool = False


@message(name="RouteOn")
class RouteOn(_Word, frozen=True, kw_only=True):
    """The engine has looked who waits for the event, and has started what it triggers."""

    id: str
    waiters: list[Waiter] = []
    after: Waiter | None = None
    """The last one of them, if there are more."""
    place: int = 0
    """Which of the events that this one's step waits for."""
    started: list[str] = []
    """The runs that the event has started."""
    failures: list[str] = []
    """Why others could not be started."""


@message(name="SeekEvent")
class SeekEvent(_Word, frozen=True, kw_only=True):
    """Somebody who has begun to wait wants an event that is for one taker."""

    id: str
    waiter: Waiter
    only_free: bool = False
    """Whether he wants it only if nobody else does; otherwise he waits in line."""


@message(name="ExpireEvent")
class ExpireEvent(_Word, frozen=True, kw_only=True):
    """The event has been kept as long as it should."""

    id: str


Command: TypeAlias = PublishEvent | RouteOn | SeekEvent | AnswerOffer | ExpireEvent


# -- events


@message(name="event_published")
class EventPublished(_Word, frozen=True, kw_only=True):
    """It happened."""

    published: PublishedMessage


@message(name="event_routed")
class EventRouted(_Word, frozen=True, kw_only=True):
    """Those who wait are known, or as many of them as were looked for at once."""

    waiters: list[Waiter] = []
    started: list[str] = []
    failures: list[str] = []
    has_more: bool = False


@message(name="event_wanted")
class EventWanted(_Word, frozen=True, kw_only=True):
    """One more has begun to wait."""

    waiter: Waiter


@message(name="event_offered")
class EventOffered(_Word, frozen=True, kw_only=True):
    """The first of those who wait may have it."""

    waiter: Waiter


@message(name="offer_declined")
class OfferDeclined(_Word, frozen=True, kw_only=True):
    """He does not wait any more."""


@message(name="event_taken")
class EventTaken(_Word, frozen=True, kw_only=True):
    """He has it, and nobody else will."""


@message(name="event_expired")
class EventExpired(_Word, frozen=True, kw_only=True):
    """It is forgotten."""


Event: TypeAlias = EventPublished | EventRouted | EventWanted | EventOffered | OfferDeclined | EventTaken | EventExpired


@message(name="RouteEvent")
class RouteEvent(_Word, frozen=True, kw_only=True):
    """The effect: look who waits for an event, and start what it triggers."""

    published: PublishedMessage
    after: Waiter | None = None
    """The last one who is known; None at first, when the triggers are looked at too."""
    place: int = 0


class PublicationState(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """Where an event stands."""

    published: PublishedMessage | None = None
    is_routed: bool = False
    """Whether all who waited when it was published are known."""
    waiting: list[Waiter] = []
    """Of one that is for one taker: those to whom it will be offered."""
    offered: Waiter | None = None
    taken_by: Waiter | None = None
    is_over: bool = False
    started: list[str] = []
    failures: list[str] = []


class PublicationDecider(Decider[PublicationState, Command, Event, RouteEvent]):
    """Decides about one published event."""

    type: ClassVar[str] = PUBLICATION
    is_plain: ClassVar[bool] = True  # What comes from outside is made plain, and a copy, before it becomes a command.
    kind = EVENT_KIND

    def initial(self) -> PublicationState:
        """An event that nobody has published."""
        return PublicationState()

    def key_of(self, command: Command) -> str:
        """The id of the event."""
        return command.id

    def status(self, state: PublicationState) -> Status:
        """It has ended once it is forgotten, or taken by the only one who gets it."""
        return COMPLETED if state.is_over else RUNNING

    def evolve(self, state: PublicationState, event: Event) -> PublicationState:
        """The event after something happened to it."""
        match event:
            case EventPublished(published=published):
                state.published = published
            case EventRouted():
                state.is_routed = not event.has_more
                state.started, state.failures = [*state.started, *event.started], [*state.failures, *event.failures]
                if state.published is not None and state.published.match_one:
                    state.waiting = [*state.waiting, *event.waiters]
            case EventWanted(waiter=waiter):
                state.waiting = [*state.waiting, waiter]
            case EventOffered(waiter=waiter):
                state.offered, state.waiting = waiter, state.waiting[1:]
            case OfferDeclined():
                state.offered = None
            case EventTaken():
                state.taken_by, state.offered, state.waiting, state.is_over = state.offered, None, [], True
            case EventExpired():
                state.waiting, state.is_over = [], True
        return state

    def decide(self, state: PublicationState, command: Command, moment: Moment) -> Answer:
        """What becomes of the event."""
        if isinstance(command, PublishEvent):
            return _publish(command, moment) if state.published is None else _KNOWN
        published = state.published
        if published is None or state.is_over:
            return refused(Refusal.EVENT_GONE, _GONE) if isinstance(command, SeekEvent) else _OVER
        match command:
            case RouteOn():
                return _route_on(state, published, command)
            case SeekEvent(waiter=waiter) if _is_same(state.offered, waiter):
                return _OFFERED
            case SeekEvent(only_free=True) if state.offered is not None or state.waiting:
                return refused(Refusal.EVENT_WANTED, _WANTED)
            case SeekEvent(waiter=waiter):
                return _offered(state, published, [EventWanted(waiter=waiter)], [waiter])
            case AnswerOffer():
                return _answered(state, published, command)
            case ExpireEvent():
                return _over(state, [EventExpired()])

    def rows_of(self, state: PublicationState, event: Event) -> Sequence[Record]:
        """The row of an event that is kept."""
        return _rows_of(state.published, event)


_WANTED = "others want this event and come first; look for another one, or wait in line"
_GONE = "another taker has this event, or its time is over; look for another one"


def _is_same(one: Waiter | None, other: Waiter) -> bool:
    return one is not None and (one.instance, one.step) == (other.instance, other.step)


def _publish(command: PublishEvent, moment: Moment) -> Decision:
    expires_at = moment.now + timedelta(milliseconds=command.ttl_ms) if command.ttl_ms else None
    published = PublishedMessage(
        id=command.id,
        event=command.event,
        key=command.key,
        payload=command.payload,
        match_one=command.match_one,
        expires_at="" if expires_at is None else expires_at.isoformat(),
        partition=moment.partition,
        at=moment.now.isoformat(),
        publisher=_named(moment.actor),
        asker=late_actor(moment.asked),
        terms=late_terms(moment.asked, moment.actor.roles),
    )
    event = EventPublished(published=published)
    decision = Decision(
        (event,),
        effects=(Effect(body=RouteEvent(published=published), handler=OWN_HANDLER),),
        records=tuple(_rows_of(None, event)),
    )
    return (
        decision if expires_at is None else decision.with_timer_at(expires_at, ExpireEvent(id=command.id), key=EXPIRY)
    )


def _named(actor: Actor) -> Actor | None:
    return None if actor.kind == "system" else actor


def _route_on(state: PublicationState, published: PublishedMessage, command: RouteOn) -> Decision:
    """Tell those who wait; or, if only one may have it, offer it to the first."""
    routed = EventRouted(
        waiters=command.waiters,
        started=command.started,
        failures=command.failures,
        has_more=command.after is not None,
    )
    effects: tuple[Effect, ...] = ()
    if command.after is not None:
        more = RouteEvent(published=published, after=command.after, place=command.place)
        effects = (Effect(body=more, handler=OWN_HANDLER),)
    if published.match_one:
        decision = _offered(state, published, [routed], command.waiters)
    else:
        decision = Decision((routed,), messages=tuple(_told(each, [published]) for each in command.waiters))
        if not published.expires_at and not effects:
            decision = decision.with_event(EventExpired())
    return msgspec.structs.replace(decision, effects=effects)


def _offered(
    state: PublicationState,
    published: PublishedMessage,
    events: list[Event],
    more: Sequence[Waiter] = (),
    *,
    is_free: bool = False,
) -> Decision:
    """These events, and an offer to the next one who waits, unless there is one already; without anybody to wait for, the end."""
    waiting = [*state.waiting, *more]
    if state.offered is not None and not is_free:
        return Decision(tuple(events))
    if waiting:
        offer = EventOffered(waiter=waiting[0])
        return Decision((*events, offer), messages=(_told(waiting[0], [published]),))
    is_known = state.is_routed or any(isinstance(each, EventRouted) and not each.has_more for each in events)
    return Decision((*events, EventExpired()) if is_known and not published.expires_at else tuple(events))


def _answered(state: PublicationState, published: PublishedMessage, command: AnswerOffer) -> Answer:
    offered = state.offered
    if offered is None or (offered.instance, offered.step) != (command.instance, command.step):
        return _OVER
    if command.is_taken:
        return _over(state, [EventTaken()])
    return _offered(state, published, [OfferDeclined()], is_free=True)


def _over(state: PublicationState, events: list[Event]) -> Decision:
    """The end: whoever has looked for this event by himself looks for another one."""
    seekers = tuple(_told(each, []) for each in state.waiting if each.is_seeker)
    records = tuple(row for event in events for row in _rows_of(state.published, event))
    return Decision(tuple(events), cancelled_timers=(EXPIRY,), messages=seekers, records=records)


def _told(waiter: Waiter, events: list[PublishedMessage]) -> Message:
    return Message(
        decider=waiter.definition,
        instance=InstanceId(UUID(waiter.instance)),
        command=TakeEvents(step=waiter.step, events=events, is_found=waiter.is_seeker and bool(events)),
    )


def _rows_of(published: PublishedMessage | None, event: Event) -> Sequence[Record]:
    match event:
        case EventPublished(published=new) if new.expires_at:
            kept = PublicationKept(
                id=new.id,
                event=new.event,
                correlation=new.key,
                match_one=new.match_one,
                expires_at=datetime.fromisoformat(new.expires_at),
                data=_encode(new),
            )
            return [kept]
        case EventTaken() | EventExpired() if published is not None and published.expires_at:
            return [PublicationForgotten()]
        case _:
            return ()
