"""When to try again: pure arithmetic over attempt numbers. Randomness comes in as an argument."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Literal

import msgspec

from holdfast.errors import ConfigurationError

Backoff = Literal["fixed", "linear", "exponential"]

_LONGEST = timedelta(days=1000 * 365)
"""No wait is longer, jitter aside, whatever a policy says: so that its end is an instant of the calendar."""


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
                (self.max_attempts < 0, "max_attempts must not be negative"),
                (self.delay < timedelta(0), "delay must not be negative"),
                (self.cap < timedelta(0), "cap must not be negative"),
                (not self.factor >= 1, "factor must be at least 1"),
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
        return min(wait, _LONGEST) * (1 + self.jitter * chance)

    def _growth(self, failures: int) -> float:
        match self.backoff:
            case "fixed":
                return 1.0
            case "linear":
                return float(failures)
            case "exponential":
                return _power(self.factor, failures - 1)


def _power(base: float, exponent: int) -> float:
    try:
        return float(base**exponent)
    except OverflowError:
        return math.inf


NO_RETRY = RetryPolicy(max_attempts=1)
