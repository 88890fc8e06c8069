"""Retry policies: computes delays from attempt numbers. Randomness is an argument."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Literal

import msgspec

from standfast.errors import ConfigurationError

Backoff = Literal["fixed", "linear", "exponential"]

LONGEST_TIMEOUT = timedelta(days=36_600)
"""A hundred years. Added to any date of a clock it is still a date."""

NOT_A_TIMEOUT = (
    "is no time to wait for a handler: give more than zero and at most a hundred years, or None for no limit"
)

_MOST_ATTEMPTS = 2**63 - 1


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A retry policy: the number of calls, and the delay between two calls."""

    max_attempts: int = 5
    """Total number of calls, including the first. It is always limited."""
    delay: timedelta = timedelta(seconds=1)
    """Delay before the second call, and base of the later ones."""
    backoff: Backoff = "exponential"
    """`fixed`: always `delay`; `linear`: `delay` times the failures so far; `exponential`: multiplied by `factor`
    each time."""
    factor: float = 2.0
    """Factor of the exponential delay per failure."""
    cap: timedelta = timedelta(minutes=5)
    """Maximum delay, without jitter."""
    jitter: float = 0.1
    """Random addition as a share of the delay, from 0 (none) to 1 (up to doubled). A retry is never early."""

    def __post_init__(self) -> None:
        problems = [
            text
            for broken, text in (
                (not _is_count(self.max_attempts), f"max_attempts must be a whole number from 0 to {_MOST_ATTEMPTS}"),
                (not timedelta(0) <= self.delay <= LONGEST_TIMEOUT, "delay must lie between 0 and a hundred years"),
                (not timedelta(0) <= self.cap <= LONGEST_TIMEOUT, "cap must lie between 0 and a hundred years"),
                (not 1 <= self.factor < math.inf, "factor must be a number of at least 1"),
                (not 0 <= self.jitter <= 1, "jitter must lie between 0 and 1"),
                (self.backoff not in {"fixed", "linear", "exponential"}, f"unknown backoff {self.backoff!r}"),
            )
            if broken
        ]
        if problems:
            raise ConfigurationError(f"retry policy: {'; '.join(problems)}")

    def allows_another(self, attempts: int) -> bool:
        """Return whether another call may follow after `attempts` calls."""
        return attempts < self.max_attempts

    def wait_after(self, attempts: int, chance: float = 0.0) -> timedelta:
        """Return the delay after the failure of call number `attempts`. `chance` in [0, 1) selects the jitter."""
        if not self.delay:
            return self.delay
        growth = self._growth(max(attempts, 1))
        # Compared as numbers first, because the product may overflow a timedelta.
        wait = self.cap if growth >= self.cap / self.delay else self.delay * growth
        return wait * (1 + self.jitter * chance)

    def _growth(self, failures: int) -> float:
        match self.backoff:
            case "fixed":
                return 1.0
            case "linear":
                return float(failures)
            case "exponential":
                return _power(self.factor, failures - 1)


def lasting(period: timedelta, *, delay: timedelta, cap: timedelta) -> RetryPolicy:
    """Return a policy for a period: the delays double from `delay` to `cap`, and the last call comes at its end."""
    waited, attempts = timedelta(0), 1
    while waited < period:
        reached = delay * 2 ** (attempts - 1)
        if reached >= cap:  # From here on all delays are equal.
            attempts += -((waited - period) // cap)
            break
        waited, attempts = waited + reached, attempts + 1
    return RetryPolicy(max_attempts=attempts, delay=delay, cap=cap)


def _is_count(number: float) -> bool:
    return isinstance(number, int) and 0 <= number <= _MOST_ATTEMPTS


def _power(base: float, exponent: int) -> float:
    try:
        return float(base**exponent)
    except OverflowError:
        return math.inf


NO_RETRY = RetryPolicy(max_attempts=1)
