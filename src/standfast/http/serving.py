"""Serve the API with uvicorn."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import uvicorn
from starlette.applications import Starlette

from standfast.app.engine import Engine
from standfast.app.signals import GracefulShutdown
from standfast.errors import ConfigurationError
from standfast.http.application import create_app
from standfast.http.connections import Connection
from standfast.http.wire.options import HttpOptions

_LEAVE_SECONDS: Final = 5
"""Time for open requests on shutdown; streams are cut then."""
_IDLE_SECONDS: Final = 15
_MOST_HEADER_BYTES: Final = 32_768
_MOST_REQUESTS: Final = 2000
_BACKLOG: Final = 2048


def serve(  # noqa: PLR0913 - what a server is told
    engine: Engine,
    options: HttpOptions | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    certificate: str = "",
    certificate_key: str = "",
    trusted_proxies: str = "",
    insecure_dev: bool = False,
    on_ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the API until SIGTERM or SIGINT; pending requests are answered first.

    The caller keeps ownership of the engine.

    A second SIGTERM changes nothing; a second SIGINT ends the process immediately. With a certificate it serves https.

    `trusted_proxies` are addresses, separated by commas, whose `X-Forwarded-For` is trusted. Without them all requests
    through a proxy count as one address. `insecure_dev` requires an address of this machine. `on_ready` receives the
    address once requests are accepted; port 0 takes a free one.
    """
    told = configuration(
        engine,
        options,
        host=host,
        port=port,
        certificate=certificate,
        certificate_key=certificate_key,
        trusted_proxies=trusted_proxies,
        insecure_dev=insecure_dev,
    )
    try:
        told.load()
    except OSError as error:  # Those of certificates are of this kind too.
        raise ConfigurationError(f"the certificate cannot be used: {error}; see its files") from error
    with listening(host, port) as line:
        scheme = "https" if certificate else "http"
        shown = f"[{host}]" if ":" in host else host
        address = f"{scheme}://{shown}:{line.getsockname()[1]}"
        _Server(told, lambda: on_ready(address) if on_ready is not None else None).run(sockets=[line])


class _Server(uvicorn.Server):
    """A server that leaves the process to its caller, so that the engine can be stopped after it."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to take requests."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer pending requests.

        Streams would run for a quarter of an hour, so they are ended: their clients reconnect elsewhere.
        """
        app = self.config.app
        if isinstance(app, Starlette):
            app.state.server.hub.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on a signal. The signal is not raised again afterwards, which would end the process before the engine."""
        with GracefulShutdown(self._end):
            yield

    def _end(self) -> None:
        self.should_exit = True


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens; ConfigurationError if the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        line = socket.create_server((host.strip("[]"), port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        told = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(
            f"the server cannot listen at {host}, port {port}: {told}; use another one, or stop the program that has it"
        ) from error
    with line:
        # Head and body of an answer are written one after the other: without this the second waits until the first is acknowledged.
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield line


def configuration(
    engine: Engine,
    options: HttpOptions | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    certificate: str = "",
    certificate_key: str = "",
    trusted_proxies: str = "",
    insecure_dev: bool = False,
) -> uvicorn.Config:
    """Return uvicorn's configuration; ConfigurationError for an insecure one."""
    if insecure_dev and trusted_proxies:
        raise ConfigurationError(
            "insecure_dev is for this machine alone, and a proxy asks for others: leave one of them out"
        )
    check_proxies(trusted_proxies)
    if insecure_dev and not is_loopback(host):
        raise ConfigurationError(
            f"insecure_dev accepts every client that can reach {host!r}: bind to 127.0.0.1, or leave it out and make a key"
        )
    return uvicorn.Config(
        create_app(engine, options, insecure_dev=insecure_dev),
        http=Connection,
        host=host,
        port=port,
        ssl_certfile=certificate or None,
        ssl_keyfile=certificate_key or None,
        server_header=False,
        access_log=False,
        log_config=None,
        lifespan="off",
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=trusted_proxies or None,
        ws="none",
        h11_max_incomplete_event_size=_MOST_HEADER_BYTES,
        limit_concurrency=_MOST_REQUESTS,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_LEAVE_SECONDS,
    )


def check_proxies(trusted: str) -> None:
    """Raise ConfigurationError for trusted proxies that match every address, or none: a trusted proxy chooses the address that limits count."""
    for each in filter(None, map(str.strip, trusted.split(","))):
        try:
            is_sound = ipaddress.ip_network(each, strict=False).prefixlen > 0
        except ValueError:
            is_sound = (
                "/" not in each and each != "*"
            )  # The path of a socket file begins otherwise, and a host has a name.
        if not is_sound:
            raise ConfigurationError(
                f"trusted_proxies cannot be {each!r}: name the addresses or networks of your proxies, such as 10.0.0.0/8"
            )


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
