"""Random processes, walked at random: the machine, and a whole engine on both stores, stand where a small interpreter of the same file does."""

from __future__ import annotations

import pytest

from app.processes.walking import Machine, Whole, walk
from standfast.testing import ManualEngine
from support.engines import Place

WALKS, PARTS, WHOLE = 2000, 8, 40


@pytest.mark.row("P-113", "P-167")
@pytest.mark.parametrize("part", range(PARTS))
def test_the_machine_stands_where_the_interpreter_does(part: int) -> None:
    """Status, step and every refusal agree, move by move: advances, signals, resumes, cancellations and time."""
    for number in range(WALKS // PARTS):
        walk(f"{part}/{number}", Machine)


@pytest.mark.row("P-102")
def test_an_engine_stands_where_the_interpreter_does() -> None:
    """The same through the public calls, for some of them."""
    for number in range(WHOLE):
        engine = ManualEngine()
        try:
            walk(f"0/{number}", lambda text, engine=engine: Whole(engine, text))
        finally:
            engine.stop()


def test_an_engine_on_either_store_stands_where_the_interpreter_does(place: Place) -> None:
    """One walk on a database of its own; what is left of it is the fold of its events."""
    walk("store/1", lambda text: Whole(place.engine(), text))


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_very_many_walks() -> None:
    """Ten times as many."""
    for number in range(10 * WALKS):
        walk(f"long/{number}", Machine)
