"""The claim order of effects as one number, computed once when a row is written.

Waiting raises the priority of all effects at the same rate, so their relative order never changes. Ordering by
effective priority therefore equals ordering by the time at which an effect would reach the highest priority. One index
provides it without sorting.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

HIGHEST_PRIORITY = 100
DEFAULT_AGEING = 0.5
"""Priority points per second of waiting."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NEVER_CATCHES_UP = 10**15
"""Microseconds per point if waiting does not count: 30 years."""


@lru_cache(64)  # All effects of a commit become ready at the same time.
def rank_of(ready_at: datetime, priority: int, *, ageing: float = DEFAULT_AGEING) -> int:
    """Return the place of an effect in the claim order. Lower is earlier."""
    missing = HIGHEST_PRIORITY - priority
    penalty = round(missing * 1_000_000 / ageing) if ageing else missing * _NEVER_CATCHES_UP
    return (ready_at - _EPOCH) // _MICROSECOND + penalty


def effective_priority(priority: int, waited: timedelta, *, ageing: float = DEFAULT_AGEING) -> int:
    """Return the priority of an effect after waiting, for display."""
    return min(HIGHEST_PRIORITY, priority + int(waited.total_seconds() * ageing))
