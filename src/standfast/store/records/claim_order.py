"""The claim order of effects as one number, computed once when a row is written.

Waiting raises the priority of an effect at a constant rate. So who is ahead of whom never changes, and the order by effective
priority is the order by the instant at which an effect would reach the highest priority: no sort of the backlog, one index.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

HIGHEST_PRIORITY = 100
DEFAULT_AGEING = 0.5
"""Points of priority that a second of waiting is worth."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_NEVER_CATCHES_UP = 10**15
"""Microseconds per point when waiting counts for nothing: 30 years."""


@lru_cache(64)  # All effects of a commit are ready at the same instant.
def rank_of(ready_at: datetime, priority: int, *, ageing: float = DEFAULT_AGEING) -> int:
    """The place in the claim order of an effect that is ready at an instant; lower is earlier."""
    missing = HIGHEST_PRIORITY - priority
    penalty = round(missing * 1_000_000 / ageing) if ageing else missing * _NEVER_CATCHES_UP
    return (ready_at - _EPOCH) // _MICROSECOND + penalty


def effective_priority(priority: int, waited: timedelta, *, ageing: float = DEFAULT_AGEING) -> int:
    """The priority that an effect has after waiting, for display."""
    return min(HIGHEST_PRIORITY, priority + int(waited.total_seconds() * ageing))
