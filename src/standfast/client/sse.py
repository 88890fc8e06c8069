"""Server-sent events, line by line, and going on behind the last one after a line broke."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Generic, TypeVar

from standfast.client.requests import ClientRequest, StreamEvent
from standfast.client.retries import Retries, RetrySequence

T = TypeVar("T")

_WITHOUT_VALUE: Final = frozenset({"resync", "end"})
_AGAIN_SECONDS: Final = 0.1
"""How long a client rests that was cut off although all was well: a server ends each stream after a while."""


class Listening(Generic[T]):
    """What a client has heard of one stream."""

    def __init__(self, request: ClientRequest[T], retries: Retries, last: int) -> None:
        self._request = request
        self._retries = retries
        self._last = last or None
        """The last place that it was told; 0 is that of an empty database."""
        self._turns = self._anew()
        self._lines: dict[str, str] = {}
        self.is_over = False
        """Whether nothing more can come: the run that it is about has ended."""

    @property
    def headers(self) -> Mapping[str, str]:
        """What a server is told, so that it goes on behind the last event."""
        told = {"accept": "text/event-stream, application/problem+json"}
        return told if self._last is None else told | {"last-event-id": str(self._last)}

    def heard(self, line: str) -> StreamEvent[T] | None:
        """The event that a line completes; None if it does not complete any."""
        if line:
            field, _, text = line.partition(":")
            self._lines[field] = text.removeprefix(" ")
            return None
        lines, self._lines = self._lines, {}
        self._turns = self._anew()  # Whoever is heard is there.
        if "id" in lines:  # Also where nothing else is told.
            self._last = int(lines["id"])
        if "data" not in lines:
            return None
        name = lines.get("event", "message")
        self.is_over = name == "end"
        value = None if name in _WITHOUT_VALUE else self._request.read(lines["data"].encode())
        return StreamEvent(name=name, id=self._last or 0, value=value)

    def refused(self, status: int, headers: Mapping[str, str], content: bytes) -> float:
        """How long to rest after a refusal; the error that it stands for, if that is to be told."""
        rest = self._turns.refused(status, headers)
        if rest is None:
            self._request.answered(status, content)
        return rest or 0.0

    def lost(self) -> float | None:
        """How long to rest after the line broke; None if nobody is there again and again."""
        self._lines = {}
        return self._turns.lost(was_sent=True)

    def cut(self) -> float:
        """How long to rest after the server ended the stream."""
        self._lines = {}
        return _AGAIN_SECONDS

    def _anew(self) -> RetrySequence:
        return RetrySequence(self._retries, is_repeatable=True)
