"""`why` and `resume_options` are honest: each call that they recommend is accepted and changes something, and nothing is a dead end.

STANDFAST_SEED=7 .venv/bin/pytest tests/app/test_honesty.py looks at other definitions and other moves.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from app.honesty import World, document_world, explored, random_world, rules_world
from standfast.testing import ManualEngine
from support.campaigns import SEED
from support.engines import Place

LONGEST = 5
"""Moves in a row."""
WORLDS: dict[str, Callable[[ManualEngine, Random], World]] = {
    "graphs": random_world,
    "rules": rules_world,
    "documents": document_world,
}


def check(engine: ManualEngine, kind: str, seed: str, *, longest: int = LONGEST) -> None:
    """Everything that is recommended on a way of random moves is as it is said."""
    rng = Random(f"{SEED}/{seed}")
    told = list(explored(WORLDS[kind](engine, rng), rng, longest=longest))
    assert not told, f"seed {SEED}/{seed}: " + "\n".join(told)


@pytest.mark.row("E-682")
@pytest.mark.parametrize("kind", WORLDS)
@pytest.mark.parametrize("number", range(2))
def test_what_is_recommended_is_accepted(place: Place, kind: str, number: int) -> None:
    """On both stores, for sagas, processes, rules and documents with bodies."""
    check(place.engine(), kind, f"store {number}")


@pytest.mark.parametrize("kind", WORLDS)
def test_more_of_what_is_recommended_is_accepted(kind: str) -> None:
    """The same for more definitions."""
    for number in range(12):
        with ManualEngine(is_alone=False) as engine:
            check(engine, kind, f"more {number}")


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", WORLDS)
@pytest.mark.parametrize("share", range(4))
def test_a_campaign_of_recommendations(kind: str, share: int) -> None:
    """The same for a thousand definitions of each kind, and longer ways."""
    for number in range(share, 1000, 4):
        with ManualEngine(is_alone=False) as engine:
            check(engine, kind, f"long {number}", longest=8)
