"""Several people at one document at the same time, on engines with threads: every edit counts once, and one amendment takes its place."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.documents.acting import ANN, BOB, CARL, GIVEN, graph
from app.documents.orders import GIVEN as ORDER
from app.documents.orders import SELLER, keep_stock, register
from app.documents.test_elsewhere import BOTH
from standfast import Actor, Engine, RejectedError, RequestContext
from standfast.features.runs.views import HumanTask
from standfast.graph import model as g
from standfast.graph.definition import Definition
from standfast.graph.model import Node
from support.engines import Live
from support.envelopes import ACTIVE_SLOT, APPROVE_SLOT, approval, both, chain, invoice
from support.waiting import eventually

CALLERS = 6
EACH = 4


def opened(live: Live) -> Engine:
    """An engine that knows invoices, and one of bob's."""
    engine = live.engine()
    engine.register(Definition(graph=graph()))
    engine.acting(RequestContext(actor=BOB)).documents.create("invoice", GIVEN, id="I-1")
    return engine


@pytest.mark.row("E-243", "E-051")
def test_every_edit_is_a_version_of_its_own(live: Live) -> None:
    """However many edit a draft at once, its versions have no gaps, and each is kept."""
    engine = opened(live)
    mine = engine.acting(RequestContext(actor=BOB)).documents

    def edit(caller: int) -> None:
        for number in range(EACH):
            mine.mutate("invoice", "I-1", {"note": f"{caller}/{number}"})

    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(edit, range(CALLERS)))
    versions = [each.version for each in mine.versions("invoice", "I-1")]
    assert versions == list(range(1, CALLERS * EACH + 2))


@pytest.mark.row("E-242", "E-238")
def test_of_several_amendments_one_takes_the_place(live: Live) -> None:
    """The others are refused, and leave no document behind."""
    engine = opened(live)
    mine = engine.acting(RequestContext(actor=BOB)).documents
    mine.transition("invoice", "I-1", "submit")

    def amend(caller: int) -> str:
        try:
            return mine.amend("invoice", "I-1", {"total": caller}, new_id=f"A-{caller}").id
        except RejectedError as error:
            return error.reason

    with ThreadPoolExecutor(CALLERS) as pool:
        told = list(pool.map(amend, range(CALLERS)))
    made = [name for name in told if name.startswith("A-")]
    assert (len(made), told.count("ALREADY_SUPERSEDED")) == (1, CALLERS - 1)
    assert {each.id for each in mine.list("invoice", requester="bob").items} == {"I-1", *made}
    assert mine.get("invoice", "I-1").superseded_by == made[0]


@pytest.mark.row("E-066", "E-916")
def test_branches_that_arrive_at_the_same_moment_meet_once(live: Live) -> None:
    """However often two people decide the last two branches at once, the join, the gate and the booking happen once."""
    engine, booked = live.engine(), Counter[str]()
    bodies = {
        APPROVE_SLOT: both(approval("first"), approval("second", who="user:carl")),
        ACTIVE_SLOT: chain(Node(id="book", op=g.TaskOp(work=g.HandlerCall(handler="book")))),
    }
    engine.handle("book", lambda context: booked.update([str(context.instance)]))
    engine.register(Definition(graph=invoice(bodies)))
    engine.start_worker()
    mine = engine.acting(RequestContext(actor=BOB)).documents
    with ThreadPoolExecutor(2) as pool:
        for number in range(50):
            mine.create("invoice", GIVEN, id=f"I-{number}")
            run = engine.run(mine.transition("invoice", f"I-{number}", "submit").instance)
            tasks, together = {each.name: each for each in run.tasks()}, threading.Barrier(2)

            def decide(who: Actor, task: HumanTask, together: threading.Barrier = together) -> None:
                together.wait(30)
                calls = engine.acting(RequestContext(actor=who)).tasks
                calls.decide(task, "approved", document_version=task.document_version, comment="fine")

            list(pool.map(decide, (ANN, CARL), (tasks["first"], tasks["second"])))
            told = Counter(each.event_type for each in run.history())
            assert {name: told[name] for name in ("branches_met", "approvals_applied")} == {
                "branches_met": 1,
                "approvals_applied": 1,
            }
            assert [each.name for each in run.steps()].count("meet") == 1
    eventually(lambda: {each.status for each in mine.list("invoice", requester="bob").items} == {"active"})
    eventually(lambda: len(booked) == 50)
    assert set(booked.values()) == {1}


def test_coroutines_have_the_same_calls(live: Live) -> None:
    """An edit that becomes an amendment is awaited like any other call."""
    engine = opened(live)

    async def amend() -> str:
        mine = engine.aio.acting(RequestContext(actor=BOB)).documents
        await mine.transition("invoice", "I-1", "submit")
        return (await mine.mutate("invoice", "I-1", {"total": 900})).status

    assert asyncio.run(amend()) == "amended"


@pytest.mark.row("E-002", "E-051", "E-498", "E-901")
def test_many_orders_take_from_one_shelf(live: Live) -> None:
    """Steps of several documents that act on the same other one at the same time: each counts once, none is lost."""
    engine = live.engine()
    keep_stock(engine)
    for kind in ("stock_item", "sales_order"):
        register(engine, kind, BOTH if kind == "sales_order" else "")
    register(engine, "gl_entry")
    mine = engine.acting(RequestContext(actor=SELLER)).documents
    mine.create("stock_item", {"name": "lamp", "on_hand": 100}, id="lamp")
    engine.start_worker()

    def order(number: int) -> None:
        mine.create("sales_order", ORDER, id=f"O-{number}")
        mine.transition("sales_order", f"O-{number}", "submit")

    with ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(order, range(CALLERS)))
    eventually(lambda: {each.status for each in mine.list("sales_order").items} == {"active"})
    shelf = mine.get("stock_item", "lamp")
    assert (shelf.data["reserved"], shelf.version) == (2 * CALLERS, CALLERS + 1)
    assert len(mine.list("gl_entry").items) == CALLERS
