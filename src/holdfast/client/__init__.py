"""A client of the HTTP API, blocking and for coroutines, with the types and the errors of the library. It needs the extra `holdfast[client]`."""

from holdfast.client.clients import AsyncClient, Client
from holdfast.client.requests import StreamEvent
from holdfast.client.retries import Retries

__all__ = ["AsyncClient", "Client", "Retries", "StreamEvent"]
