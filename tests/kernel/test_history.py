"""Events as they lie in a store."""

from __future__ import annotations

import pytest

from kernel.orders import ORDER, stored
from standfast.errors import CorruptHistoryError
from standfast.kernel.history import TIMER_CANCELLED, check_sequence


@pytest.mark.row("D-039")
@pytest.mark.parametrize("after", [0, 7])
def test_a_stretch_without_gaps_is_good(after: int) -> None:
    """Events follow one another by one, from the beginning or from a snapshot."""
    check_sequence([], after=after)
    check_sequence([stored(after + 1, "Placed", b""), stored(after + 2, "Paid", b"")], after=after)


@pytest.mark.row("D-039")
@pytest.mark.parametrize("sequences", [(2,), (1, 3), (1, 1), (2, 1), (0, 1)])
def test_gaps_and_repetitions_are_corruption(sequences: tuple[int, ...]) -> None:
    """A missing or doubled event stops everything, with the instance, the number and what to do."""
    with pytest.raises(CorruptHistoryError, match=rf"{ORDER}: event \d is missing.*backup"):
        check_sequence([stored(number, "Placed", b"") for number in sequences], after=0)


@pytest.mark.row("D-070")
def test_the_kernels_own_events_are_marked() -> None:
    """Deciders are never shown events of the kernel, whose names begin with a dollar sign."""
    assert stored(1, TIMER_CANCELLED, b"").is_system
    assert not stored(1, "Placed", b"").is_system
