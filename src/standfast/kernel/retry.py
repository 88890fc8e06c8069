"""When to try again: pure arithmetic over attempt numbers. Randomness comes in as an argument."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Literal

import msgspec

from standfast.errors import ConfigurationError

Backoff = Literal["fixed", "linear", "exponential"]

LONGEST_TIMEOUT = timedelta(days=36_600)
"""A hundred years: added to any date that a clock can show, it is still a date."""

NOT_A_TIMEOUT = (
    "is no time to wait for a handler: give more than zero and at most a hundred years, or None for no limit"
)

_MOST_ATTEMPTS = 2**63 - 1


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often a call is made in all, and how long to wait between two calls."""

    max_attempts: int = 5
    """Calls in all, the first one included; there is no "for ever"."""
    delay: timedelta = timedelta(seconds=1)
    """Wait before the second call; the base of the later ones."""
    backoff: Backoff = "exponential"
    """`fixed`: always `delay`; `linear`: `delay` times the failures so far; `exponential`: doubled each time by `factor`."""
    factor: float = 2.0
    """Growth of the exponential wait per failure."""
    cap: timedelta = timedelta(minutes=5)
    """No wait is longer than this, jitter aside."""
    jitter: float = 0.1
    """Share of the wait that is added at random, from 0 (none) to 1 (up to doubled). A retry is never earlier than asked for."""

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
        """Whether a further call may follow after `attempts` calls were made."""
        return attempts < self.max_attempts

    def wait_after(self, attempts: int, chance: float = 0.0) -> timedelta:
        """How long to wait after the failure of call number `attempts`; `chance` in [0, 1) picks the jitter."""
        if not self.delay:
            return self.delay
        growth = self._growth(max(attempts, 1))
        # Compared as numbers first: the product may be longer than a timedelta can say.
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
    """A policy that goes on for a period: the waits double from `delay` to `cap`, and the last call is made when the period is over."""
    waited, attempts = timedelta(0), 1
    while waited < period:
        reached = delay * 2 ** (attempts - 1)
        if reached >= cap:  # From here on all waits are the same.
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
