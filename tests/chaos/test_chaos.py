"""Everything at once: two workers and an API process, whose handlers, deciders, connections and machines fail in every way at random.

At the end nothing is lost, nothing is doubled, nothing is stuck, everything verifies, and every engine that was not well had said so. The seed is
printed; `STANDFAST_SEED` makes the same choices again, though not the same timing.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from chaos.judging import answers, are_well, judge, left_over
from chaos.plot import LONG_SECONDS, SECONDS
from chaos.stage import Stage, stage
from support.databases import Databases
from support.waiting import eventually

SETTLED_WITHIN = 180.0
"""How long the engines may take to finish what is left when nothing goes wrong any more; generous, for a busy machine."""


@pytest.fixture(params=("sqlite", "postgres"))
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """A stage on either store."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path / 'chaos.db'}"
        else:
            databases: Databases = request.getfixturevalue("postgres_server")
            url = stack.enter_context(databases.prepared())
        yield stack.enter_context(stage(url, tmp_path))


@pytest.mark.timeout(600)
@pytest.mark.row("D-053", "D-078", "D-080", "D-083", "D-111")
def test_nothing_is_lost_doubled_or_stuck(scene: Stage) -> None:
    """Whatever goes wrong, what was acknowledged happens once, what was refused never does, and everything comes to its end."""
    play(scene, SECONDS)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_campaign_of_chaos(scene: Stage) -> None:
    """The same for a quarter of an hour on each store."""
    play(scene, LONG_SECONDS)


def play(scene: Stage, seconds: float) -> None:
    """The whole play, and the judgement."""
    scene.hurt(seconds)
    scene.lower_the_curtain()
    settle(scene)
    eventually(lambda: are_well(scene), within=SETTLED_WITHIN)
    assert scene.end() == [0, 0]
    words = Counter(answers(scene).values())
    assert {"worker killed", "outage"} <= scene.faults.keys(), "a play without misfortunes proves nothing"
    assert words["acked"] > seconds, "a play in which nothing was achieved proves nothing"
    judge(scene)


def settle(scene: Stage) -> None:
    """Wait until the engines have done what is left."""
    deadline = time.monotonic() + SETTLED_WITHIN
    while left := left_over(scene):
        assert time.monotonic() < deadline, f"after {SETTLED_WITHIN} s there is still {left}"
        time.sleep(0.5)
