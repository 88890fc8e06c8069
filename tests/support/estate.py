"""A database in which everything occurs that the engine can write, and what it takes to see later whether all of it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from api.world import ACME, BODY, INVOICE, NORTH, World, contract, documented
from app.processes.acting import INPUT, published
from histories.deciders import Accounts, told
from histories.golden import FILES, read
from histories.test_going_on import take_in
from standfast import Calls, Engine, ProjectedEvent, Run, Saga, Settings
from standfast.engine.common.clock import ManualClock
from standfast.testing import ManualEngine
from support.samples import Add, Counter

SETTINGS = Settings(observe_inputs=True, snapshot_events=1, auto_resume_after_approval=False)
ODD = "Grüße, \U0001f600 “quoted” \\ 'x' \t\u2028 ﷺ"
"""Letters that something might stumble over on the way."""


class Seen:
    """A read model in memory."""

    name = "seen"

    def __init__(self) -> None:
        self.positions: list[int] = []

    def apply(self, events: Sequence[ProjectedEvent], connection: object) -> None:
        """Write down which events came."""
        self.positions += [each.position for each in events]

    def clear(self, connection: object) -> None:
        """Forget them."""
        self.positions.clear()


class Printer:
    """Something that steps are done with; out of order at first."""

    def __init__(self) -> None:
        self.is_broken = True

    def print(self) -> dict[str, object]:
        """Print, if it can."""
        if self.is_broken:
            raise ValueError("the printer is on fire")
        return {"printed": ODD}


class Estate(NamedTuple):
    """What is in the database, by what is asked for later."""

    waiting: Run[Any]
    """Waits for a signal."""
    sleeping: Run[Any]
    """Waits for a timer of an hour."""
    shipping: Run[Any]
    """Its effect is in somebody's hands."""
    asking: Run[Any]
    """Asks two people, of whom one has answered."""
    printing: Run[Any]
    """Its step has given up."""
    listening: Run[Any]
    """Waits for an event."""
    resting: Run[Any]
    """Is paused."""
    invoice: UUID
    secret: str
    """Of an API key."""
    session: str
    golden: int
    """Instances of other times, of every kind."""


def opened(url: str, clock: ManualClock, printer: Printer, seen: Seen) -> ManualEngine:
    """An engine that knows all that the estate is of."""
    engine = ManualEngine(url, settings=SETTINGS, clock=clock, is_alone=False)
    engine.register(Counter()).register(Accounts(), told).project(seen)
    register(engine, printer)
    return engine


def register(engine: Engine, printer: Printer) -> None:
    """The workflows of the estate."""
    engine.register(Saga("wait").wait_for("packed", "packed").step("ship", lambda: {"parcel": 7}).build())
    engine.register(Saga("sleep").wait("night", timedelta(hours=1)).build())
    engine.register(Saga("order").step("ship", lambda: {"parcel": 77}).build())
    engine.register(Saga("sign").human("sign", ask=["user:ann", "user:bob"], agree="all").build())
    engine.register(Saga("print", dlq=True).step("print", printer.print, attempts=1).build())
    engine.register(Saga("listen").wait_for_event("paid", "shop.paid", key="n").build())
    engine.register(Saga("welcome").trigger("shop.opened").step("greet", lambda: {"greeted": True}).build())
    engine.register(
        Saga("tell").notify("tell", to=["ann", "role:approver"], subject="Grüße \U0001f600", channel="in_app").build()
    )
    published(engine)


def furnish(engine: ManualEngine) -> Estate:
    """Fill a database."""
    world = World(engine)
    try:
        return _furnished(engine, world)
    finally:
        world.close()


def _furnished(engine: ManualEngine, world: World) -> Estate:
    whole, north = world.calls(ACME), world.calls(ACME, NORTH)
    golden = take_in(engine.service.store, engine, read(FILES / "documents.json"))
    waiting = whole.start("wait", {"note": ODD}, key="w-1", idempotency_key="once")
    sleeping = whole.start("sleep")
    asking = whole.start("sign", {"n": 1})
    printing = north.start("print", {"n": 1})
    listening = whole.start("listen", {"n": "7"})
    whole.start("tell")
    engine.drain()
    (task,) = [each for each in whole.tasks.list() if each.instance == asking.id]
    ann = world.calls(ACME, actor="ann")
    ann.tasks.comment(task, ODD)
    ann.tasks.approve(task, comment=ODD)
    ann.notifications.mark_all_read()
    whole.events.publish("shop.opened", "k", {}, event_id="opening", ttl=3600)
    north.processes.start("orders.approval", INPUT)
    for number in range(3):
        whole.deciders.execute(Counter, Add("c", number), command_id=f"add {number}")
    resting = _rested(engine, whole)
    _organised(world)
    draft = documented(world)
    assert draft
    engine.drain()
    north.documents.transition("acme_invoice", "acme-1", "submit")
    engine.drain()
    whole.batches.begin("pause", [waiting.id], reason="of acme")
    whole.schedules.put("nightly", "order", {}, cron="0 13 * * *")
    whole.schedules.trigger("nightly")
    key = whole.keys.create("robot's", actor="robot", capabilities=["execution:read"])
    session = whole.sessions.open(credential=f"key:{key.key.id}")
    whole.refusals.note(credential="key:1", method="GET", path="/", code="not_permitted", detail=ODD)
    whole.repeats.begin("repeat", b"\x00\xff")
    whole.repeats.answer("repeat", 200, "{}", b"\x00answered\xff")
    engine.drain()
    engine.run(waiting.id)
    whole.run(waiting.id).resume("go on")
    whole.seals.seal()
    whole.pauses.pause("listen", reason=ODD, clock="stand_still")
    engine.drain()
    whole.deciders.submit(Counter, Add("c", 100))
    shipping = whole.start("order")
    return Estate(
        waiting, sleeping, shipping, asking, printing, listening, resting,
        north.documents.get("acme_invoice", "acme-1").instance, key.secret, session.secret, len(golden),
    )  # fmt: skip


def _rested(engine: ManualEngine, whole: Calls) -> Run[Any]:
    run = whole.start("wait", {"n": 2})
    engine.drain()
    run.pause(reason="a rest")
    engine.drain()
    run.request_resume("later", data={"n": 1})
    return run


def _organised(world: World) -> None:
    """People, chains, rules: what is no run."""
    whole = world.calls(ACME)
    whole.directory.put("acme-ann", name=ODD)
    whole.directory.put("acme-bob")
    whole.directory.grant("acme-ann", "acme-role")
    whole.directory.delegate("acme-ann", "acme-bob")
    whole.directory.absent("acme-bob")
    whole.chains.publish("acme-chain", [{"asks": ["manager"]}])
    whole.bodies.govern(two_person=False)
    whole.contracts.publish(contract("acme_bill"))
    whole.bodies.publish(whole.bodies.save({**BODY, "base": {"entity_type": "acme_bill", "envelope_version": 1}}).id)
    whole.documents.create("acme_bill", INVOICE, id="bill-1")
    whole.workflows.suspend("acme_bill", "1-org", ODD)
