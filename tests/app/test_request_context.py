"""For whom something is asked: it goes with a command all the way, and is kept with whatever is decided later."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from standfast import (
    Actor,
    Decision,
    EffectContext,
    Engine,
    Fail,
    Message,
    Moment,
    PayloadError,
    Rejection,
    RequestContext,
    Saga,
    StepContext,
)
from standfast.features.deciders.views import Recorded
from standfast.kernel.actor import SYSTEM as THE_SYSTEM
from standfast.kernel.actor import request_of
from standfast.testing import ManualEngine
from support.engines import Live, Place
from support.samples import Act, Answer, Do, Doll, Noted, Notes, Puppet

HOUR = timedelta(hours=1)
ADA = Actor(id="ada", roles=frozenset({"finance", "board"}), capabilities=frozenset({"orders.*"}), on_behalf_of="grace")
REQUEST = RequestContext(actor=ADA, trace="00-trace-01", partition="berlin")


def recorded(engine: Engine, key: str = "p-1", decider: Any = Puppet) -> list[Recorded]:
    """The history of an instance of the request's partition: a key is one of that."""
    return engine.acting(replace(REQUEST, actor=THE_SYSTEM)).deciders.history(decider, key)


def asked(events: list[Recorded]) -> list[tuple[str, str, str]]:
    """Who asked for each event, for whom, and under which trace."""
    return [(each.actor, each.on_behalf_of, each.trace) for each in events]


SYSTEM = ("system", "", "00-trace-01")
BY_ADA = ("ada", "grace", "00-trace-01")


def far(state: Notes, command: Do, moment: Moment) -> Answer:
    """An effect whose result sets a timer, which sends a message to a doll."""
    decision = Decision.event(Noted(command.what))
    match command.what:
        case "begin":
            return decision.with_effect(Act("work"))
        case "worked":
            return decision.with_timer_after(HOUR, Do(moment.key, "rang"), key="bell")
        case "rang":
            return decision.with_message(Message(decider="doll", command=Do("d-1", "told")))
        case _:
            return decision


@pytest.mark.row("G-24")
def test_whatever_follows_from_a_command_has_its_trace(place: Place) -> None:
    """From the command to its effect, the handler's result, a timer, and a message to another instance."""
    heard: list[tuple[str, str]] = []

    def handle(context: EffectContext, effect: Act) -> Do:
        heard.append((context.actor.id, context.trace))
        return Do("p-1", "worked")

    engine = place.engine().register(Puppet(far), handle).register(Doll())
    engine.acting(REQUEST).deciders.execute(Puppet, Do("p-1", "begin"))
    engine.advance(hours=2)
    assert heard == [("ada", "00-trace-01")]
    assert asked(recorded(engine)) == [BY_ADA, SYSTEM, SYSTEM]
    assert asked(recorded(engine, "d-1", Doll)) == [SYSTEM]


def test_a_child_has_the_trace_and_the_partition_of_its_parent(place: Place) -> None:
    """What a workflow starts belongs to the same request and the same part of the tenant, and to whoever wanted the first one."""
    engine = place.engine()
    engine.handle("work", lambda: None)
    engine.register(Saga("child").step("a", "work").build())
    engine.register(Saga("parent").call("sub", "child").build())
    parent = engine.acting(REQUEST).start("parent", {}).id
    engine.drain()
    (child,) = engine.runs.list(parent=parent).items
    entries = engine.run(parent).history() + engine.run(child.id).history()
    assert {each.trace for each in entries} == {"00-trace-01"}
    assert {each.on_behalf_of for each in entries if each.actor == "ada"} == {"grace"}
    rows = {each.id: (each.partition, each.started_by) for each in engine.instances.list()}
    assert rows == {parent: ("berlin", "grace"), child.id: ("berlin", "grace")}


def test_roles_and_capabilities_survive_the_inbox(place: Place) -> None:
    """A command that is decided later is decided for whoever asked, with what he may do, on whichever engine."""
    seen: list[tuple[Actor, str]] = []

    def look(state: Notes, command: Do, moment: Moment) -> Answer:
        seen.append((moment.actor, moment.partition))
        return Decision.event(Noted(command.what))

    place.engine().register(Puppet(look)).acting(REQUEST).deciders.submit(Puppet, Do("p-1", "later"))
    engine = place.engine().register(Puppet(look))
    engine.drain()
    assert seen == [(ADA, "berlin")]
    assert seen[0][0].may("orders.approve")
    assert asked(recorded(engine)) == [BY_ADA]


def test_a_message_that_gave_up_is_decided_for_the_same_actor_when_it_is_put_back(place: Place) -> None:
    """A dead letter keeps for whom its message was accepted."""
    seen: list[Actor] = []
    is_closed = True

    def look(state: Notes, command: Do, moment: Moment) -> Answer:
        seen.append(moment.actor)
        return Rejection(code="closed", message="come back later") if is_closed else Decision.event(Noted("in"))

    engine = place.engine().register(Puppet(look))
    engine.acting(REQUEST).deciders.submit(Puppet, Do("p-1", "later"))
    engine.advance(days=1)
    (letter,) = engine.dead_letters.list()
    is_closed = False
    engine.dead_letters.requeue(letter.id)
    engine.drain()
    assert set(seen) == {ADA}
    assert asked(recorded(engine)) == [BY_ADA]


def test_an_effect_that_gave_up_is_put_back_for_the_same_actor(place: Place) -> None:
    """The call that an operator asks for again is made for whoever asked first, under his trace."""
    heard: list[tuple[Actor, str]] = []

    def handle(context: EffectContext, effect: Act) -> None:
        heard.append((context.actor, context.trace))
        if len(heard) == 1:
            raise Fail("no stamps")

    engine = place.engine().register(Puppet(far), handle)
    engine.acting(REQUEST).deciders.execute(Puppet, Do("p-1", "begin"))
    engine.drain()
    (letter,) = engine.dead_letters.list()
    engine.dead_letters.requeue(letter.id)
    engine.drain()
    assert heard == [(ADA, "00-trace-01")] * 2


def test_a_step_handler_knows_for_whom_it_works(place: Place) -> None:
    """A step that follows from another step's result is the engine's own doing, under the trace of the start."""
    heard: list[tuple[str, str]] = []

    def work(context: StepContext) -> None:
        heard.append((context.actor.id, context.trace))

    engine = place.engine()
    engine.register(Saga("order").step("a", work).step("b", work).build())
    engine.acting(REQUEST).start("order", {})
    engine.drain()
    assert heard == [("ada", "00-trace-01"), ("system", "00-trace-01")]


def test_a_transactional_call_goes_on_under_the_trace(place: Place) -> None:
    """The result of a handler that runs inside its commit is decided under the trace of what asked for it."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        return decision.with_effect(Act("pay"), transactional=True) if command.what == "begin" else decision

    engine = place.engine().register(Puppet(choose), lambda _context, _effect: Do("p-1", "paid"))
    engine.acting(REQUEST).deciders.execute(Puppet, Do("p-1", "begin"))
    engine.drain()
    assert asked(recorded(engine)) == [BY_ADA, SYSTEM]


def test_an_engine_that_is_used_without_a_context_writes_none(place: Place) -> None:
    """No column holds anything for it: not of events, nor of effects, timers and messages, nor of instances."""

    def all_kinds(state: Notes, command: Do, moment: Moment) -> Answer:
        timer = Decision.event(Noted(command.what)).with_effect(Act("a")).with_timer_after(HOUR, Do(moment.key, "b"))
        return timer.with_message(Message(decider="doll", command=Do("d-1", "c")))

    engine = place.engine().register(Puppet(all_kinds)).register(Doll())
    engine.deciders.execute(Puppet, Do("p-1", "begin"))
    schema = "standfast." if place.url.startswith("postgres") else ""
    with place.store.writer().unit() as unit, unit.lend() as lent:
        connection: Any = lent
        found = [
            connection.execute(f"select {columns} from {schema}{table}").fetchall()
            for columns, table in (
                ("on_behalf_of, trace", "events"),
                ("context", "effects"),
                ("context", "timers"),
                ("context", "inbox"),
                ("partition, paused_at, deadline_at, attributes", "instances"),
            )
        ]
    assert all(rows and all(value is None for row in rows for value in row) for rows in found), found


@pytest.mark.parametrize(
    "request_",
    [
        RequestContext(actor=ADA, trace="a\x00b"),
        RequestContext(actor=ADA, partition="x" * 2000),
        RequestContext(tenant="*", actor=ADA),
        RequestContext(actor=Actor(id="")),
        RequestContext(actor=Actor(id="ada", on_behalf_of="\ud800")),
        RequestContext(actor=Actor(id="ada", roles=frozenset({"\x00"}))),
    ],
)
def test_a_context_that_no_database_could_keep_is_refused(request_: RequestContext) -> None:
    """It is refused where it is given, and not by a commit of other people's commands."""
    engine = ManualEngine()
    with pytest.raises(PayloadError):
        engine.acting(request_)
    engine.stop()


def test_a_request_that_is_sent_again_starts_nothing_more(place: Place) -> None:
    """The idempotency key of a request is that of the start that it brings, in whichever process it arrives."""
    asked = RequestContext(actor=ADA, idempotency_key="r-1")
    saga = Saga("order").step("a", lambda: None).build()
    first, second = (place.engine().register(saga).acting(asked).start("order", {}).id for _ in range(2))
    assert first == second


def test_live_engines_keep_the_trace(live: Live) -> None:
    """With real threads too, where effects are handed over by the commit that asks for them."""
    engine = live.engine().register(Saga("order").step("a", lambda: None).step("b", lambda: None).build())
    engine.start_worker()
    calls = engine.acting(REQUEST)
    instance = calls.start("order", {}).id
    calls.run(instance).result(30)
    assert {each.trace for each in engine.run(instance).history()} == {"00-trace-01"}


@pytest.mark.parametrize(
    "wrong",
    [{"roles": "boss"}, {"capabilities": "orders:approve"}, {"roles": None}, {"kind": "admin"}, {"kind": None}],
)
def test_an_actor_is_made_of_sets_and_known_words(wrong: dict[str, Any]) -> None:
    """A text for a set would be a set of letters; nothing of the kind gets as far as a database, where nobody could read it."""
    with pytest.raises(TypeError, match=r"of an actor"):
        Actor(id="ann", **wrong)
    assert Actor(id="ann", roles={"boss"}).roles == frozenset({"boss"})  # type: ignore[arg-type]


def test_a_context_that_nobody_can_read_is_that_of_somebody_without_rights() -> None:
    """Something other than the engine wrote it; the work itself is done, and keeps nobody else from his."""
    for spoilt in (b"{", b'{"actor":{"id":"eve","kind":"boss"}}', b"\xff"):
        assert request_of(spoilt).actor.capabilities == frozenset()
        assert request_of(spoilt).actor.kind == "user"
