"""Several people at one document at the same time, on engines with threads: every edit counts once, and one amendment takes its place."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.documents.acting import BOB, GIVEN, graph
from holdfast import Engine, RejectedError, RequestContext
from holdfast.authoring.definition import Definition
from support.engines import Live

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


def test_coroutines_have_the_same_calls(live: Live) -> None:
    """An edit that becomes an amendment is awaited like any other call."""
    engine = opened(live)

    async def amend() -> str:
        mine = engine.aio.acting(RequestContext(actor=BOB)).documents
        await mine.transition("invoice", "I-1", "submit")
        return (await mine.mutate("invoice", "I-1", {"total": 900})).status

    assert asyncio.run(amend()) == "amended"
