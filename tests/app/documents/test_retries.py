"""Steps of documents that fail are called again with growing waits: as the settings say, or as the body does."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import msgspec
import pytest

from app.documents.test_dead_ends import MAY, TENANT, Office, in_slot
from app.honesty import CONTRACT
from standfast import RetryPolicy, Settings
from standfast.graph.values.handler_calls import HandlerCall, RetryRule
from support.engines import Place

SLOWLY = RetryPolicy(max_attempts=4, delay=timedelta(seconds=30), jitter=0)


def calls(place: Place, retry: str = "", settings: Settings | None = None) -> list[float]:
    """When a handler that always fails is called, in seconds after its first call."""
    node = f"{{id: p, type: action, action: invoice.post, run_as: 'service_account:gl'{retry}}}"
    office = Office(place.engine(settings), in_slot("posting", node))
    at: list[datetime] = []

    @office.engine.handler("invoice.post")
    def post() -> None:
        at.append(place.clock.now())
        raise RuntimeError("the ledger is locked")

    office.create()
    office.ask("approve", office.who("ann", *MAY))
    office.engine.advance(hours=3)
    assert office.document.run_reason == "step_failed"
    return [(each - at[0]).total_seconds() for each in at]


@pytest.mark.row("E-374", "E-471")
def test_an_action_is_called_five_times_with_growing_waits(place: Place) -> None:
    """Where nobody says anything: after 1, 2, 4 and 8 seconds, and a little more by chance."""
    waits = [later - earlier for earlier, later in pairwise(calls(place))]
    assert [int(each) for each in waits] == [1, 2, 4, 8]


@pytest.mark.row("E-374")
def test_the_setting_reaches_actions(place: Place) -> None:
    """`Settings.retry` counts for every step of a document whose body does not say otherwise."""
    assert calls(place, settings=Settings(retry=SLOWLY)) == [0, 30, 90, 210]


def test_a_body_says_otherwise(place: Place) -> None:
    """Its own `retry` counts, whatever the settings say."""
    assert calls(place, ", retry: {attempts: 3, delay: 10s, jitter: 0}") == [0, 10, 30]


@pytest.mark.row("E-374")
@pytest.mark.parametrize(
    ("written", "at"),
    [
        ("", [0, 30, 90, 210]),
        (", retry: {attempts: 3, delay: 10s, backoff: fixed, jitter: 0}", [0, 10, 20]),
        (", attempts: 1", [0]),
    ],
)
def test_a_task_waits_as_its_body_or_the_setting_says(place: Place, written: str, at: list[float]) -> None:
    """A task without a word for it follows `Settings.retry`; `retry` and `attempts` of the body replace it."""
    node = f"{{id: t, type: task, handler: check{written}}}"
    office = Office(place.engine(Settings(retry=SLOWLY)), in_slot("draft_to_submit", node))
    seen: list[datetime] = []

    @office.engine.handler("check")
    def check() -> None:
        seen.append(place.clock.now())
        raise RuntimeError("the checker is down")

    office.create()
    office.engine.advance(hours=3)
    assert office.document.run_reason == "step_failed"
    assert [(each - seen[0]).total_seconds() for each in seen] == at


@pytest.mark.parametrize(
    ("node", "told"),
    [
        ("{id: p, type: task, handler: check, attempts: 2, retry: {attempts: 3}}", "both `attempts` and `retry`"),
        ("{id: p, type: action, action: invoice.stamp, retry: {attempts: 3}}", "no handler to call again"),
        ("{id: p, type: action, action: order.close, target: entity.number, retry: {attempts: 3}}", "another document"),
    ],
)
def test_a_retry_that_says_nothing_is_refused(place: Place, node: str, told: str) -> None:
    """`retry` where no handler is called, or beside `attempts`, is a mistake of the author."""
    engine = place.engine()
    engine.contracts.publish(CONTRACT)
    body = "base: {entity_type: invoice, envelope_version: 1}\nslots:\n" + in_slot("draft_to_submit", node)
    (problem,) = [each for each in engine.as_tenant(TENANT).bodies.save(body).problems if each.code == "retry"]
    assert told in problem.message


def test_a_graph_of_the_former_compiler_keeps_its_hash_and_its_meaning() -> None:
    """A stored graph that says nothing of a retry means three calls without a wait, as it did when it was stored."""
    former, today = (
        HandlerCall(handler="post", transactional=True),
        HandlerCall(handler="post", retry=RetryRule(is_default=True)),
    )
    assert msgspec.json.encode(former) == b'{"handler":"post","transactional":true}'
    assert msgspec.json.encode(today) == b'{"handler":"post","retry":{"is_default":true}}'
    read = msgspec.json.decode(b'{"handler":"post","transactional":true}', type=HandlerCall)
    assert (read.retry.max_calls, read.retry.delay_ms, read.retry.is_default) == (3, 0, False)
