"""A client of the HTTP API, blocking and for coroutines, with the types and the errors of the library. It needs the extra `standfast[client]`."""

from standfast.client.clients import AsyncClient, Client
from standfast.client.requests import StreamEvent
from standfast.client.retries import Retries

__all__ = ["AsyncClient", "Client", "Retries", "StreamEvent"]
