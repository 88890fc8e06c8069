"""The check behind all these tests can fail: planted faults in state, snapshot, row and memory are each noticed."""

from __future__ import annotations

import pytest

from standfast import Settings
from support.engines import Place
from support.folding import assert_folded
from support.inside import lanes_of
from support.samples import Add, Counter


class Drifting(Counter):
    """Folds differently each time it is asked: not a pure function."""

    type = "drifting"
    count = 0

    def evolve(self, state: int, event: object) -> int:
        Drifting.count += 1
        return Drifting.count


def test_an_impure_decider_is_noticed(place: Place) -> None:
    """A fold that does not come to the same state twice fails the check."""
    engine = place.engine().register(Drifting())
    engine.deciders.execute(Drifting, Add("d-1"))
    with pytest.raises(AssertionError, match="the state in memory is wrong"):
        assert_folded(engine)
    place.must_fold = False


def spoil(place: Place, statement: str) -> None:
    """Change the database behind the engine's back."""
    prefix = "" if place.url.startswith("sqlite") else "standfast."
    with place.store.writer().unit() as unit:
        unit.connection.execute(statement.format(prefix))  # type: ignore[attr-defined]
    place.must_fold = False


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("update {}instances set status = 'completed'", "another status"),
        ("update {}instances set version = version + 1", "other events"),
        ("update {}snapshots set version = version - 1", "the snapshot is wrong"),
    ],
)
def test_a_row_that_lies_is_noticed(place: Place, statement: str, said: str) -> None:
    """Rows that contradict the events fail the check."""
    engine = place.engine(Settings(snapshot_events=2)).register(Counter())
    for _ in range(5):
        engine.deciders.execute(Counter, Add("c-1"))
    assert_folded(engine)
    spoil(place, statement)
    with pytest.raises(AssertionError, match=said):
        assert_folded(engine)


def test_a_memory_that_lies_is_noticed(place: Place) -> None:
    """A cached state that is not the fold fails the check."""
    engine = place.engine().register(Counter())
    engine.deciders.execute(Counter, Add("c-1"))
    header = engine.instances.list()[0]
    memory = lanes_of(engine)[0].cache
    memory._by_id[header.id.int].state = 77
    with pytest.raises(AssertionError, match="the state in memory is wrong"):
        assert_folded(engine)
    place.must_fold = False
