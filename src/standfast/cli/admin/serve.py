"""`standfast server`: serve the HTTP API of a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from standfast.app.configuration import Configuration, Serving
from standfast.app.engine import Engine
from standfast.app.signals import GracefulShutdown
from standfast.cli.applications import equip, found_in
from standfast.cli.framework import verb
from standfast.cli.logs import begin_logs, log_option, tell_calls
from standfast.cli.options import FileName
from standfast.cli.target import Target, database_scope
from standfast.errors import ConfigurationError

if TYPE_CHECKING:
    from standfast.http import HttpOptions

_HOW = "give module:attribute, such as shop.web:options"


@verb(
    "server",
    "standfast server --database postgresql://user@host/db --host 0.0.0.0 --port 8080",
    "standfast server --app shop.workflows:register --with-worker",
    "standfast server --insecure-dev",
)
@click.option("--host", "serve_host", metavar="ADDRESS", help="The address that it listens at.")
@click.option("--port", "serve_port", type=click.IntRange(0, 65535), help="The port; 0 takes one that is free.")
@click.option("--certificate", "serve_certificate", metavar="FILE", type=FileName(), help="The certificate, for https.")
@click.option("--certificate-key", "serve_certificate_key", metavar="FILE", type=FileName(), help="Its private key.")
@click.option("--app", metavar="MODULE:ATTRIBUTE", help="The application, as for a worker.")
@click.option("--with-worker", is_flag=True, help="Work in the same process; it takes --app.")
@log_option
@click.option("--insecure-dev", is_flag=True, help="Turn authentication off; only this machine can connect.")
@database_scope
def server(place: Target, *, with_worker: bool, insecure_dev: bool) -> None:
    """Serve the HTTP API until SIGTERM or Ctrl-C.

    On shutdown, pending requests are answered, streams end, and, with a worker, running handlers finish; the exit code
    is 0. A second SIGTERM changes nothing, a second Ctrl-C ends the process immediately. Clients need an API key
    (`standfast keys create`), or a token of an issuer ([serve] in standfast.toml).
    """
    begin_logs(place)
    told = place.configuration
    if with_worker and not told.app:
        raise ConfigurationError("--with-worker needs --app: the functions that the steps of runs call")
    check_extra()
    engine = place.open()
    with GracefulShutdown() as departure:
        try:
            tell_calls(place, engine)
            if told.app:
                equip(engine, told.app)
            options = options_of(told.serve)
            if not insecure_dev:
                _check_door(engine, options)
            serve_engine(engine, told, options, works=with_worker, insecure_dev=insecure_dev)
            if with_worker:
                click.echo("shutting down: running handlers may finish (Ctrl-C ends it now)", err=True)
        finally:
            departure.begin()
            engine.stop()


def check_extra() -> None:
    """Raise ConfigurationError if the server's dependencies are not installed."""
    try:
        import standfast.http  # noqa: F401 - whether it is there
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f'serving takes {error.name}, which is not installed; `pip install "standfast[server]"` brings it'
        ) from error


def serve_engine(engine: Engine, told: Configuration, options: HttpOptions, *, works: bool, insecure_dev: bool) -> None:
    """Serve an engine, optionally with a worker, until a signal."""
    from standfast.http import serve

    if works:
        engine.start_worker()

    def ready(address: str) -> None:
        click.echo(f"serving at {address}", err=True)
        if insecure_dev:
            click.echo(
                "INSECURE: authentication is off (development mode); only this machine can connect",
                err=True,
            )

    serving = told.serve
    serve(
        engine,
        options,
        host=serving.host,
        port=serving.port,
        certificate=serving.certificate,
        certificate_key=serving.certificate_key,
        trusted_proxies=",".join(serving.trusted_proxies),
        insecure_dev=insecure_dev,
        on_ready=ready,
    )


def options_of(told: Serving) -> HttpOptions:
    """Return the server's options: the configuration's values override those from Python."""
    import msgspec

    from standfast.http import HttpOptions, Issuer

    given = found_in(told.options, _HOW) if told.options else HttpOptions()
    if not isinstance(given, HttpOptions):
        raise ConfigurationError(f"{told.options} is no HttpOptions; {_HOW}")
    issuers = given.issuers
    if told.issuer or told.jwks or told.audience:
        issuer = Issuer(
            issuer=told.issuer,
            audience=told.audience,
            jwks=told.jwks,
            algorithms=told.algorithms,  # type: ignore[arg-type]  # Which of them are known is checked with all the rest.
            tenant=told.token_tenant,
        )
        issuers = (*issuers, issuer)
    plain = Serving()
    names = ("public_address", "platform_tenant", "open_metrics", "requests_per_second", "burst")
    said = {name: getattr(told, name) for name in names if getattr(told, name) != getattr(plain, name)}
    return msgspec.structs.replace(given, issuers=issuers, **said)


def _check_door(engine: Engine, options: HttpOptions) -> None:
    if not options.issuers and not engine.admin.has_keys():
        raise ConfigurationError(
            "no client could authenticate: there is no valid API key, and no trusted token issuer; "
            "`standfast keys create NAME --actor ID --scope '*'` makes a key, and --insecure-dev does without, on this machine alone"
        )
