"""The two clients: every call of the API (`blocking`, `awaitable`), and the wait for a result."""

from __future__ import annotations

from types import TracebackType
from typing import Self
from uuid import UUID

import httpx

from standfast.client.aio import AsyncCalls
from standfast.client.retries import Retries
from standfast.client.sync import Calls
from standfast.client.transport import AsyncTransport, Transport, options_of
from standfast.client.waiting import ResultWait, value_of

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
