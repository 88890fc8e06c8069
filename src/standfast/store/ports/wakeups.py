"""Hints between the processes on one database."""

from __future__ import annotations

from typing import Protocol


class Wakeups(Protocol):
    """Hints between processes. They may get lost: polling is what guarantees progress."""

    must_send: bool
    """Whether others hear of work only when they are told."""

    def send(self, hint: str) -> None:
        """Tell the other processes."""
        ...

    def listen(self, timeout: float) -> None:
        """Wait for hints, at most this long, and pass them on."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...
