"""The line to a server, over httpx: it sends, waits and sends again. What is sent, and when again, is decided elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final, TypedDict, TypeVar
from urllib.parse import quote

import httpx

from standfast.client.errors import unreachable
from standfast.client.requests import ClientRequest, StreamEvent
from standfast.client.retries import Retries, RetrySequence
from standfast.client.sse import Listening
from standfast.errors import ConfigurationError

T = TypeVar("T")

_SILENCE_SECONDS: Final = 60.0
"""A stream that is silent for so long is dead: a server says something every quarter of a minute."""
_NEVER_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_OK: Final = 200


class HttpxOptions(TypedDict):
    """What both kinds of clients of httpx are made with."""

    base_url: str
    headers: dict[str, str]
    timeout: httpx.Timeout
    follow_redirects: bool
    verify: bool


def check_address(address: str) -> None:
    """ConfigurationError for what is no address of a server, or has a password in it, which would be told with every failure."""
    try:
        parts = httpx.URL(address)
        is_address = parts.scheme in {"http", "https"} and bool(parts.host)
    except (httpx.InvalidURL, TypeError):
        parts, is_address = httpx.URL(), False
    if parts.userinfo:
        raise ConfigurationError("the address of a server has no name and no password in it; give a key instead")
    if not is_address:
        raise ConfigurationError(f"{address!r} is no address of a server; write it like https://standfast.example.org")


def options_of(address: str, key: str, timeout: float, partition: str, *, reason: str = "") -> HttpxOptions:
    """How httpx is told where to and as whom; ConfigurationError for what is no address."""
    check_address(address)
    headers = {"user-agent": "standfast"} | ({"authorization": f"Bearer {key}"} if key else {})
    headers |= {"standfast-partition": quote(partition, safe="")} if partition else {}
    headers |= {"standfast-reason": quote(reason, safe=" ")} if reason else {}
    if not all(value.isascii() and value.isprintable() for value in headers.values()):
        raise ConfigurationError("the key is none: it has characters that no key has")
    return HttpxOptions(
        base_url=address.rstrip("/"),
        headers=headers,
        timeout=httpx.Timeout(timeout),
        follow_redirects=False,  # They would carry the key to wherever they lead.
        verify=address.startswith("https://"),  # Without, the certificates of the world are not read for nothing.
    )


def _sent(request: ClientRequest[Any]) -> dict[str, Any]:
    return {
        "method": request.method,
        "url": request.path,
        "params": request.parameters,
        "content": request.content,
        "headers": request.headers,
    }


def _given_up(http: httpx.Client | httpx.AsyncClient, error: httpx.HTTPError, *, was_sent: bool) -> Exception:
    return unreachable(str(http.base_url).rstrip("/"), error, may_be_done=was_sent)


def _rested(rest: float | None, http: httpx.Client | httpx.AsyncClient, error: httpx.HTTPError) -> float:
    if rest is None:
        raise _given_up(http, error, was_sent=False) from error
    return rest


class Transport:
    """A line whose callers wait."""

    def __init__(self, http: httpx.Client, retries: Retries) -> None:
        self._http = http
        self._retries = retries

    def ask(self, request: ClientRequest[T]) -> T:
        """The answer to a request."""
        turns = RetrySequence(self._retries, is_repeatable=request.is_repeatable)
        while True:
            try:
                response = self._http.request(**_sent(request))
            except httpx.HTTPError as error:
                was_sent = not isinstance(error, _NEVER_SENT)
                if (rest := turns.lost(was_sent=was_sent)) is None:
                    raise _given_up(self._http, error, was_sent=was_sent) from error
            else:
                if (rest := turns.refused(response.status_code, response.headers, response.content)) is None:
                    return request.answered(response.status_code, response.content)
            time.sleep(rest)

    def listen(self, request: ClientRequest[T], last: int) -> Iterator[StreamEvent[T]]:
        """The events of a stream; a line that breaks is made anew, and goes on behind the last event."""
        listening = Listening(request, self._retries, last)
        while not listening.is_over:
            try:
                with self._http.stream(
                    "GET", request.path, headers=listening.headers, timeout=_SILENCE_SECONDS
                ) as response:
                    if response.status_code == _OK:
                        yield from filter(None, map(listening.heard, response.iter_lines()))
                        rest = listening.cut()
                    else:
                        rest = listening.refused(response.status_code, response.headers, response.read())
            except httpx.HTTPError as error:
                rest = _rested(listening.lost(), self._http, error)
            if not listening.is_over:
                time.sleep(rest)

    def close(self) -> None:
        """Let go of its connections."""
        self._http.close()


class AsyncTransport:
    """The same for coroutines."""

    def __init__(self, http: httpx.AsyncClient, retries: Retries) -> None:
        self._http = http
        self._retries = retries

    async def ask(self, request: ClientRequest[T]) -> T:
        """The answer to a request."""
        turns = RetrySequence(self._retries, is_repeatable=request.is_repeatable)
        while True:
            try:
                response = await self._http.request(**_sent(request))
            except httpx.HTTPError as error:
                was_sent = not isinstance(error, _NEVER_SENT)
                if (rest := turns.lost(was_sent=was_sent)) is None:
                    raise _given_up(self._http, error, was_sent=was_sent) from error
            else:
                if (rest := turns.refused(response.status_code, response.headers, response.content)) is None:
                    return request.answered(response.status_code, response.content)
            await asyncio.sleep(rest)

    async def listen(self, request: ClientRequest[T], last: int) -> AsyncIterator[StreamEvent[T]]:
        """The events of a stream; a line that breaks is made anew, and goes on behind the last event."""
        listening = Listening(request, self._retries, last)
        while not listening.is_over:
            try:
                async with self._http.stream(
                    "GET", request.path, headers=listening.headers, timeout=_SILENCE_SECONDS
                ) as response:
                    if response.status_code == _OK:
                        async for line in response.aiter_lines():
                            if (event := listening.heard(line)) is not None:
                                yield event
                        rest = listening.cut()
                    else:
                        content = await response.aread()
                        rest = listening.refused(response.status_code, response.headers, content)
            except httpx.HTTPError as error:
                rest = _rested(listening.lost(), self._http, error)
            if not listening.is_over:
                await asyncio.sleep(rest)

    async def close(self) -> None:
        """Let go of its connections."""
        await self._http.aclose()
