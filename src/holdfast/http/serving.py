"""Serving the API by itself, with uvicorn."""

from __future__ import annotations

import ipaddress
from typing import Final

import uvicorn

from holdfast.app.engine import Engine
from holdfast.errors import ConfigurationError
from holdfast.http.application import create_app
from holdfast.http.options import HttpOptions

_LEAVE_SECONDS: Final = 5
"""How long open requests may take once the server is asked to end; streams are cut then."""
_IDLE_SECONDS: Final = 15
_MOST_HEADER_BYTES: Final = 32_768
_MOST_REQUESTS: Final = 2000


def serve(
    engine: Engine,
    options: HttpOptions | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    certificate: str = "",
    certificate_key: str = "",
    trusted_proxies: str = "",
    insecure_dev: bool = False,
) -> None:
    """Serve the API until the process is asked to end (SIGTERM, SIGINT). The engine stays the caller's.

    With a certificate it is served by https. `trusted_proxies` are the addresses of those, parted by commas, who say in `X-Forwarded-For`
    for whom they ask: without them all that comes by a proxy counts as one address. `insecure_dev` takes an address of this machine alone.
    """
    uvicorn.Server(
        configuration(
            engine,
            options,
            host=host,
            port=port,
            certificate=certificate,
            certificate_key=certificate_key,
            trusted_proxies=trusted_proxies,
            insecure_dev=insecure_dev,
        )
    ).run()


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
    """How uvicorn is told to serve; ConfigurationError for what would be open to everybody."""
    if insecure_dev and trusted_proxies:
        raise ConfigurationError(
            "insecure_dev is for this machine alone, and a proxy asks for others: leave one of them out"
        )
    if insecure_dev and not is_loopback(host):
        raise ConfigurationError(
            f"insecure_dev lets everybody in who can reach {host!r}: bind to 127.0.0.1, or leave it out and make a key"
        )
    return uvicorn.Config(
        create_app(engine, options, insecure_dev=insecure_dev),
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


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
