"""The two clients: every call of the API (`blocking`, `awaitable`), and the wait for a result.

Waiting for the result of a run, by asking a server to answer when there is one.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final, Self
from uuid import UUID

import httpx

from standfast.client.aio import AsyncCalls
from standfast.client.models import RunResult
from standfast.client.retries import Retries
from standfast.client.sync import Calls
from standfast.client.transport import AsyncTransport, Transport, options_of
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


_TIMEOUT_SECONDS = 40.0
"""More than a server waits for a result."""


class Client(Calls):
    """A server, for callers who wait. Its calls are those of the API, by their names in the OpenAPI document; errors are those of the library.

    `key` is an API key or a token; where it is of a whole tenant, `partition` names the part of it that is meant. `reason` says why the client changes something, for calls without a reason of their own: the audit keeps it. `transport` is what httpx connects with, for certificates of one's own, or proxies.
    """

    def __init__(
        self,
        address: str,
        key: str = "",
        *,
        partition: str = "",
        reason: str = "",
        retries: Retries | None = None,
        timeout: float = _TIMEOUT_SECONDS,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        http = httpx.Client(transport=transport, **options_of(address, key, timeout, partition, reason=reason))
        super().__init__(Transport(http, retries or Retries()))

    def result(self, run: UUID | str, timeout: float | None = None) -> object:
        """Wait for the end of a run, and return what it came to.

        WorkflowFailedError if it does not end well; TimeoutError after `timeout` seconds, and the run goes on.
        """
        waiting = ResultWait(run, timeout)
        while (ended := waiting.look(self.await_result(run, wait=waiting.seconds))) is None:
            pass
        return value_of(ended)

    def close(self) -> None:
        """Let go of its connections."""
        self._line.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(AsyncCalls):
    """The same for coroutines."""

    def __init__(
        self,
        address: str,
        key: str = "",
        *,
        partition: str = "",
        reason: str = "",
        retries: Retries | None = None,
        timeout: float = _TIMEOUT_SECONDS,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        http = httpx.AsyncClient(transport=transport, **options_of(address, key, timeout, partition, reason=reason))
        super().__init__(AsyncTransport(http, retries or Retries()))

    async def result(self, run: UUID | str, timeout: float | None = None) -> object:  # noqa: ASYNC109 - the run goes on
        """Wait for the end of a run, and return what it came to; see `Client.result`."""
        waiting = ResultWait(run, timeout)
        while (ended := waiting.look(await self.await_result(run, wait=waiting.seconds))) is None:
            pass
        return value_of(ended)

    async def close(self) -> None:
        """Let go of its connections."""
        await self._line.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
