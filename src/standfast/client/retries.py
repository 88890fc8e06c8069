"""When a request is sent again, and after how long. It computes; whoever sends does the waiting."""

from __future__ import annotations

import random
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

import msgspec

from standfast.kernel.codec.type_cache import settled

_NOT_BEGUN: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS})
"""Answers that say that nothing was done."""
_PASSING: Final = frozenset({HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT})
"""Answers of a server, or of a proxy before it, that may be another one in a moment."""

_UNDER_WAY: Final = "key_under_way"
"""The code of a refusal that says that the first request under an `Idempotency-Key` has no answer yet."""


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """How patient a client is with a server that does not answer, or says that it cannot now.

    What may have been done is sent again only if that does no harm: questions, and requests with an `Idempotency-Key`.
    """

    attempts: int = 5
    """How often a request is sent at most."""
    delay: float = 0.2
    """Seconds before the second time; each further rest is twice as long, give or take a half."""
    longest_delay: float = 10.0
    """The longest rest, also if a server asks for a longer one."""


class RetrySequence:
    """The times that one request is sent."""

    def __init__(self, retries: Retries, *, is_repeatable: bool) -> None:
        self._retries = retries
        self._is_repeatable = is_repeatable
        self._sent = 0

    def lost(self, *, was_sent: bool) -> float | None:
        """How many seconds to rest after no answer came; None if it is not to be sent again."""
        return self._rest() if not was_sent or self._is_repeatable else None

    def refused(self, status: int, headers: Mapping[str, str], content: bytes = b"") -> float | None:
        """How many seconds to rest after an answer; None if it stays at that answer."""
        is_under_way = status == HTTPStatus.CONFLICT and self._is_repeatable and _code(content) == _UNDER_WAY
        if status in _NOT_BEGUN or (status in _PASSING and self._is_repeatable) or is_under_way:
            return self._rest(_seconds(headers.get("retry-after", "")))
        return None

    def _rest(self, wanted: float = 0.0) -> float | None:
        self._sent += 1
        if self._sent >= self._retries.attempts:
            return None
        rest: float = self._retries.delay * 2 ** (self._sent - 1) * random.uniform(0.5, 1.5)  # noqa: S311 - so that not all come back at once
        return min(max(rest, wanted), self._retries.longest_delay)


class _Problem(msgspec.Struct):
    code: str = ""


def _code(content: bytes) -> str:
    try:
        return msgspec.json.decode(content, type=settled(_Problem)).code
    except msgspec.DecodeError:  # No server of ours answers like this, which whoever reads it tells.
        return ""


def _seconds(text: str) -> float:
    return float(text) if text.isascii() and text.isdecimal() else 0.0
