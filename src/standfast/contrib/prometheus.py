"""Prometheus metrics of a process without the HTTP API, such as a worker. The backlog is in the server's `/metrics`."""

from __future__ import annotations

import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from standfast.app.engine import Engine
from standfast.errors import ConfigurationError
from standfast.http.wire.metrics import MEDIA_TYPE, Gauges

__all__ = ["Metrics", "serve_metrics"]


class Metrics:
    """Metrics of an engine in this process, from now on."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._gauges = Gauges()
        engine.listen(self._gauges.heard)

    def text(self) -> str:
        """Return all metrics in the Prometheus text format."""
        health = self._engine.health()
        return self._gauges.text(
            [
                ("standfast_healthy", "Whether this process does its work.", (), float(health.is_healthy)),
                ("standfast_incidents", "Instances that nothing can ever wake.", (), float(len(health.incidents))),
            ]
        )


class MetricsServer:
    """Answers `GET /metrics` until it is closed."""

    def __init__(self, metrics: Metrics, host: str, port: int) -> None:
        self._server = ThreadingHTTPServer((host, port), _answering(metrics))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="standfast-metrics", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Return the port that it listens at."""
        return self._server.server_port

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def serve_metrics(engine: Engine, *, host: str = "127.0.0.1", port: int | range = 9464) -> MetricsServer:
    """Serve the metrics of an engine in this process.

    They name definitions and handlers, so restrict access to the port.

    It takes the first free port of a range: each of several processes has its own, and Prometheus scrapes them all.
    """
    metrics, ports = Metrics(engine), [port] if isinstance(port, int) else port
    failure: OSError | OverflowError | None = None
    for each in ports:
        try:
            return MetricsServer(metrics, host, each)
        except (OSError, OverflowError) as error:
            failure = error
    where = f"{host}:{port}" if isinstance(port, int) else f"{host} from {port.start} to {port.stop - 1}"
    raise ConfigurationError(f"cannot listen at {where}: {failure}; give another host or port") from failure


def _answering(metrics: Metrics) -> type[BaseHTTPRequestHandler]:
    class Answering(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            """Answer with the metrics, or 404."""
            is_there = self.path.partition("?")[0] == "/metrics"
            body = metrics.text().encode() if is_there else b""
            self.send_response(HTTPStatus.OK if is_there else HTTPStatus.NOT_FOUND)
            self.send_header("content-type", MEDIA_TYPE)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - as it is called
            """Write no log line for each scrape."""

    return Answering
