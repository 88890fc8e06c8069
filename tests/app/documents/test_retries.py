"""Steps of documents that fail are called again with growing waits: as the settings say, or as the body does."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from app.documents.test_dead_ends import MAY, Office, in_slot
from holdfast import RetryPolicy, Settings
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
