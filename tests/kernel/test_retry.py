"""Waits between attempts: pure arithmetic that never fails, whatever the attempt."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from standfast.errors import ConfigurationError
from standfast.kernel.retry import LONGEST_TIMEOUT, NO_RETRY, Backoff, RetryPolicy
from support.untimed import untimed

policies = st.builds(
    RetryPolicy,
    delay=st.timedeltas(timedelta(0), LONGEST_TIMEOUT),
    backoff=st.sampled_from(get_args(Backoff)),
    factor=st.floats(1, 1e12),
    cap=st.timedeltas(timedelta(0), LONGEST_TIMEOUT),
    jitter=st.floats(0, 1),
)


def waits(backoff: Backoff) -> list[float]:
    """The first waits of a policy without jitter, in seconds."""
    policy = RetryPolicy(delay=timedelta(seconds=2), backoff=backoff, cap=timedelta(seconds=9), jitter=0)
    return [policy.wait_after(attempt).total_seconds() for attempt in range(1, 6)]


@pytest.mark.parametrize(
    ("backoff", "expected"),
    [("fixed", [2, 2, 2, 2, 2]), ("linear", [2, 4, 6, 8, 9]), ("exponential", [2, 4, 8, 9, 9])],
)
@pytest.mark.row("G-06")
def test_waits_grow_as_the_backoff_says(backoff: Backoff, expected: list[float]) -> None:
    """Fixed stays, linear adds, exponential multiplies; none goes beyond the cap."""
    assert waits(backoff) == expected


@untimed
@given(policies, st.integers(0, 10**6), st.floats(0, 1, exclude_max=True))
def test_a_wait_can_always_be_computed(policy: RetryPolicy, attempt: int, chance: float) -> None:
    """No policy and no number of attempts makes the arithmetic overflow; only jitter goes beyond the cap, nothing beyond the calendar."""
    wait = policy.wait_after(attempt, chance)
    longest = datetime(9000, 1, 1, tzinfo=UTC) - datetime(2200, 1, 1, tzinfo=UTC)
    assert timedelta(0) <= wait <= min(policy.cap, longest / 2) * 2 + timedelta(microseconds=1)


@untimed
@given(policies, st.integers(1, 100), st.floats(0, 1, exclude_max=True))
def test_jitter_only_adds(policy: RetryPolicy, attempt: int, chance: float) -> None:
    """A retry is never earlier than asked for, and later by the jitter's share at most."""
    plain, jittered = policy.wait_after(attempt), policy.wait_after(attempt, chance)
    assert plain <= jittered <= plain * (1 + policy.jitter) + timedelta(microseconds=1)


@untimed
@given(policies, st.integers(1, 200))
def test_waits_never_shrink(policy: RetryPolicy, attempt: int) -> None:
    """The more failures, the longer the wait."""
    assert policy.wait_after(attempt) <= policy.wait_after(attempt + 1)


def test_the_first_call_counts() -> None:
    """`max_attempts` is calls in all, so that one means no retry."""
    assert not NO_RETRY.allows_another(1)
    assert RetryPolicy(max_attempts=2).allows_another(1)
    assert not RetryPolicy(max_attempts=2).allows_another(2)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"max_attempts": -1}, "max_attempts"),
        ({"delay": timedelta(seconds=-1)}, "delay"),
        ({"cap": timedelta(seconds=-1)}, "cap"),
        ({"factor": 0.5}, "factor"),
        ({"factor": float("nan")}, "factor"),
        ({"factor": float("inf")}, "factor"),
        ({"max_attempts": float("nan")}, "max_attempts"),
        ({"max_attempts": float("inf")}, "max_attempts"),
        ({"max_attempts": 2**63}, "max_attempts"),
        ({"delay": timedelta.max}, "delay"),
        ({"cap": timedelta.max}, "cap"),
        ({"jitter": 1.5}, "jitter"),
        ({"jitter": float("nan")}, "jitter"),
        ({"backoff": "quadratic"}, "quadratic"),
    ],
)
def test_nonsense_is_refused(settings: dict[str, object], complaint: str) -> None:
    """A policy that cannot be meant is refused where it is written."""
    build: type = RetryPolicy
    with pytest.raises(ConfigurationError, match=complaint):
        build(**settings)


def test_all_mistakes_are_told_at_once() -> None:
    """Whoever repairs a policy hears of every mistake the first time."""
    with pytest.raises(ConfigurationError, match=r"delay .*; jitter "):
        RetryPolicy(delay=timedelta(seconds=-1), jitter=2)
