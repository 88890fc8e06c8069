"""Durations as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standfast.kernel.durations import duration_of, duration_text


@pytest.mark.row("R-105")
@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("24h", timedelta(hours=24)),
        ("5m", timedelta(minutes=5)),
        ("1h30m", timedelta(minutes=90)),
        (" 90s ", timedelta(seconds=90)),
        ("500ms", timedelta(milliseconds=500)),
        ("1.5h", timedelta(minutes=90)),
        ("2w3d", timedelta(days=17)),
        ("0s", timedelta(0)),
    ],
)
def test_a_number_with_its_unit(text: str, meant: timedelta) -> None:
    """Numbers with units, from large to small."""
    assert duration_of(text) == meant


@pytest.mark.row("R-105")
@pytest.mark.parametrize(
    "text", ["", "24", "h", "-1h", "1h 30m", "30m1h", "1h1h", "1y", "1e3s", "٣h", "999999999w", None, 24, "1h.", "1_0s"]
)
def test_what_tells_no_duration(text: object) -> None:
    """Anything else tells none."""
    assert duration_of(text) is None


@given(st.tuples(st.integers(0, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59)))
def test_parts_add_up(parts: tuple[int, int, int, int]) -> None:
    """Days, hours, minutes and seconds in one text are what they are together."""
    days, hours, minutes, seconds = parts
    meant = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    assert duration_of(f"{days}d{hours}h{minutes}m{seconds}s") == meant


@given(st.integers(0, 10**11))
def test_what_is_told_is_read_as_the_same(milliseconds: int) -> None:
    """A duration as a text tells exactly that duration."""
    meant = timedelta(milliseconds=milliseconds)
    assert duration_of(duration_text(meant)) == meant
    assert duration_text(timedelta(days=14)) == "14d"
