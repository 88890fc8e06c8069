"""Waiting for the result of a run, by asking a server to answer when there is one."""

from __future__ import annotations

import time
from typing import Final
from uuid import UUID

from standfast.client.models import RunResult
from standfast.errors import WorkflowFailedError

_TURN_SECONDS: Final = 20.0
"""How long a server is asked to wait at a time: less than servers and proxies allow."""


class ResultWait:
    """One wait for one run."""

    def __init__(self, run: UUID | str, timeout: float | None) -> None:
        self._run = run
        self._ends_at = None if timeout is None else time.monotonic() + timeout

    @property
    def seconds(self) -> float:
        """How long the server is asked to wait this time."""
        return (
            _TURN_SECONDS if self._ends_at is None else min(_TURN_SECONDS, max(0.0, self._ends_at - time.monotonic()))
        )

    def look(self, found: RunResult) -> RunResult | None:
        """A run that has ended; None if it has not, and TimeoutError if it is not waited for any longer."""
        if found.is_finished:
            return found
        if self._ends_at is not None and time.monotonic() >= self._ends_at:
            raise TimeoutError(f"run {self._run} has not ended: it is {found.status}; it goes on")
        return None


def value_of(found: RunResult) -> object:
    """What a run came to; WorkflowFailedError if it did not end well."""
    if found.status != "completed":
        raise WorkflowFailedError(instance=str(found.id), status=found.status, reason=found.error)
    return found.result
