"""What the rows want said is said: each sentence is looked up on the page where a reader would look for it."""

from __future__ import annotations

import re

import pytest

from standfast import Settings
from support.repository import ROOT

DECIDERS = "concepts/deciders.md"
DELIVERY = "concepts/delivery.md"
DEPLOY = "how-to/deploy-deciders.md"


def page(name: str) -> str:
    """The words of a page, whatever its line breaks."""
    return " ".join((ROOT / "docs" / name).read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param(
            DELIVERY,
            "Global order is not needed for workflows to be right",
            marks=pytest.mark.documents("D-046"),
            id="D-046",
        ),
        pytest.param(
            DECIDERS,
            r"no order between the effects of an instance: model order through the state",
            marks=pytest.mark.documents("D-056"),
            id="D-056",
        ),
        pytest.param(
            DELIVERY, r"SQLite has one writer for the whole file", marks=pytest.mark.documents("D-074"), id="D-074"
        ),
        pytest.param(
            DELIVERY,
            r"no exactly-once effects on the outside world, and no transactions across instances",
            marks=pytest.mark.documents("D-081"),
            id="D-081",
        ),
        pytest.param(
            DEPLOY,
            r"additive changes only; code before schema; drain before removing a type.*engine\.admin\.backlog\(\)",
            marks=pytest.mark.documents("D-090"),
            id="D-090",
        ),
        pytest.param(DECIDERS, r"Only executed paths are shown", marks=pytest.mark.documents("D-102"), id="D-102"),
        pytest.param(
            DECIDERS,
            r"## The actor-like model .* mailbox: its commands are decided one at a time",
            marks=pytest.mark.documents("D-104"),
            id="D-104",
        ),
        pytest.param(
            DELIVERY,
            r"## Writing handlers that may be called twice .*context\.idempotency_key",
            marks=pytest.mark.documents("D-105"),
            id="D-105",
        ),
        pytest.param(
            DECIDERS,
            r"## Idempotency .*design commands so that a repeat does no harm",
            marks=pytest.mark.documents("D-113"),
            id="D-113",
        ),
        pytest.param(
            DECIDERS,
            r"a command for the instance that the command names, its own or another one of the same type",
            marks=pytest.mark.documents("D-124"),
            id="D-124",
        ),
        pytest.param(
            DEPLOY,
            r"removing a type that has pending timers, effects or messages.*The work waits untouched; the engine warns",
            marks=pytest.mark.documents("D-089"),
            id="D-089",
        ),
    ],
)
def test_a_page_says_what_a_row_wants_said(name: str, said: str) -> None:
    """The sentence is on the page."""
    assert re.search(said, page(name)), f"docs/{name} does not say: {said}"


def test_the_time_of_recovery_is_that_of_the_settings() -> None:
    """The seconds that the page promises are the lease and two heartbeats of the default settings."""
    settings = Settings()
    seconds = (settings.lease + 2 * settings.beat_interval).total_seconds()
    assert f"within `lease` and two `beat_interval`s: {seconds:g} seconds by default" in page(DELIVERY)
