"""The target of a command: a database with tenant and actor, or a server.

Only this module opens engines and connections. Commands receive a `Target` and ask it for the API.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec, cast

import click

from standfast.app.api.sync import Calls
from standfast.app.configuration import FLAG, Configuration, Source, configured
from standfast.app.engine import Engine
from standfast.cli.framework import ASKS_A_SERVER
from standfast.cli.options import FileName
from standfast.cli.remote.lists import ON_DATABASES
from standfast.errors import ConfigurationError, NotFoundError
from standfast.kernel.actor import SYSTEM, Actor, RequestContext
from standfast.store.opening import is_there

if TYPE_CHECKING:
    from standfast.client import Client

P = ParamSpec("P")

_FLAGS: Final = {
    "database": "--database",
    "tenant": "--tenant",
    "partition": "--partition",
    "actor": "--as",
    "roles": "--role",
    "capabilities": "--can",
    "app": "--app",
    "processes": "--processes",
    "server": "--server",
    "api_key": "--api-key",
    "log_format": "--log-format",
    "serve.host": "--host",
    "serve.port": "--port",
    "serve.certificate": "--certificate",
    "serve.certificate_key": "--certificate-key",
}
"""Flags by configuration value, where a command has them."""
_REASON: Final = "audit_reason"


class Target:
    """A database or server, and the acting user."""

    def __init__(self, source: Source, file: str | None = None, reason: str = "") -> None:
        self.source = source
        self.reason = reason
        """Why something is changed, for the audit."""
        self.file = file
        """The configuration file that a flag names; None if none does."""

    @property
    def configuration(self) -> Configuration:
        """Return the configuration of the command."""
        return self.source.configuration

    @property
    def url(self) -> str:
        """The database."""
        return self.configuration.database

    @property
    def shown_url(self) -> str:
        """The same for people to read, without a password."""
        return hidden_password(self.url)

    @property
    def is_remote(self) -> bool:
        """Return whether a server is used instead of a database: the setting of higher precedence counts."""
        server, database = self.source.rank("server"), self.source.rank("database")
        if server == database == FLAG:
            raise ConfigurationError("--server and --database say two places; leave one of them out")
        if server == FLAG and not self.configuration.server:
            raise ConfigurationError(
                "--server names no server; give its address, or leave it out to work on a database"
            )
        return bool(self.configuration.server) and server >= database

    @contextmanager
    def engine(self) -> Iterator[Engine]:
        """Open an engine without a worker, for what concerns all tenants."""
        engine = self.open()
        try:
            yield engine
        finally:
            engine.stop()

    def open(self) -> Engine:
        """Open an engine on an existing database with the current schema; the caller stops it."""
        if self.is_remote and self.source.rank("server") == FLAG:
            raise ConfigurationError(ON_DATABASES)
        if not is_there(self.url):
            raise NotFoundError(
                "database",
                self.url,
                hint=f"`standfast migrate {self.url}` makes it, and --database or STANDFAST_DATABASE names another one",
            )
        return Engine(self.url, settings=self.configuration.settings, migrate=False)

    @contextmanager
    def calls(self) -> Iterator[Calls]:
        """Open the API as the command's actor."""
        if self.is_remote:
            from standfast.cli.remote.calls import RemoteCalls

            self._check_bearer()
            click.get_current_context().meta[ASKS_A_SERVER] = True
            with _client(self.configuration, self.reason) as client:
                yield cast("Calls", RemoteCalls(client))
            return
        with self.engine() as engine:
            yield self.acting(engine)

    @contextmanager
    def plant(self) -> Iterator[tuple[Engine, Calls]]:
        """Open the API of all tenants, and the one of the command's actor."""
        if self.is_remote:
            with self.calls() as calls:
                yield cast("Engine", calls), calls
            return
        with self.engine() as engine:
            yield engine, self.acting(engine)

    def acting(self, engine: Engine) -> Calls:
        """Return the API as the command's actor: the engine itself, unless the command names one."""
        told = self.configuration
        self._check_actor()
        if not self.reason and not any(map(self.source.is_said, ("tenant", "partition", "actor"))):
            return engine
        roles, capabilities = frozenset(told.roles), frozenset(told.capabilities)
        actor = Actor(id=told.actor, roles=roles, capabilities=capabilities) if told.actor else SYSTEM
        return engine.acting(
            RequestContext(tenant=told.tenant, partition=told.partition, actor=actor, reason=self.reason)
        )

    def _check_bearer(self) -> None:
        """Check that no actor flag is given with a server, where the key determines the actor."""
        for name in ("tenant", "actor", "roles", "capabilities"):
            if self.source.is_said(name):
                flag, origin = _FLAGS[name], self.source.origins[name,]
                said = flag if flag == origin else f"{flag} ({origin})"
                raise ConfigurationError(
                    f"the key determines tenant and user on a server, not {said}; leave that out, or use a database"
                )

    def _check_actor(self) -> None:
        """Check the actor: an empty variable must not mean the engine itself, and roles need an actor."""
        if self.source.is_said("actor") and not self.configuration.actor:
            raise ConfigurationError(
                f"{self.source.origins['actor',]} is empty; leave it out to act as the engine itself, or name the acting user"
            )
        for name in ("roles", "capabilities"):
            if self.source.is_said(name) and not self.source.is_said("actor"):
                raise ConfigurationError(
                    f"{self.source.origins[name,]} is about the acting user; name the user with --as, or leave it out: "
                    "the engine itself may do everything (--with-role sets a role of a key's bearer)"
                )


@contextmanager
def _client(told: Configuration, reason: str) -> Iterator[Client]:
    try:
        from standfast.client import Client, Retries
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f'asking a server takes {error.name}, which is not installed; `pip install "standfast[client]"` brings it'
        ) from error
    retries = Retries(attempts=3)
    with Client(told.server, told.api_key, partition=told.partition, reason=reason, retries=retries) as client:
        yield client


config_option = click.option(
    "--config", metavar="FILE", type=FileName(), help="The configuration file, if not ./standfast.toml."
)


def database_scope(function: Callable[Concatenate[Target, P], None]) -> Callable[..., None]:
    """Decorator: the command takes a database without an actor, and receives it as a target."""

    @click.option("--database", metavar="URL", help="sqlite:///file.db or postgresql://user@host/database.")
    @config_option
    @functools.wraps(function)
    def asked(*arguments: P.args, **options: P.kwargs) -> None:
        flags = {name: options.pop(_option(name)) for name in _FLAGS if _option(name) in options}
        config, reason = options.pop("config"), options.pop(_REASON, "")
        file = None if config is None else str(config)
        function(Target(configuration_of(flags, file), file, str(reason)), *arguments, **options)

    return asked


def _option(name: str) -> str:
    """Return click's name of a value's flag."""
    return name.replace(".", "_")


def platform_scope(function: Callable[Concatenate[Target, P], None]) -> Callable[..., None]:
    """Decorator: the same, and it may be a server instead of a database."""
    options = (
        click.option(
            "--server", metavar="URL", help="Ask this server, such as https://standfast.example.org, and no database."
        ),
        click.option("--api-key", metavar="SECRET", help="The API key for the server; better set STANDFAST_API_KEY."),
    )
    return functools.reduce(lambda made, option: option(made), reversed(options), database_scope(function))


def tenant_scope(function: Callable[Concatenate[Target, P], None]) -> Callable[..., None]:
    """Decorator: the command takes a database and an actor, and receives them as a target."""
    options = (
        click.option("--tenant", metavar="NAME", help="The tenant whose data to use."),
        click.option("--partition", metavar="NAME", help="The part of the tenant."),
        click.option("--as", "actor", metavar="ID", help="The acting user; the engine itself by default."),
        click.option("--role", "roles", multiple=True, metavar="NAME", help="A role of the acting user; repeatable."),
        click.option("--can", "capabilities", multiple=True, metavar="NAME", help="What they may do; repeatable."),
    )
    return functools.reduce(lambda made, option: option(made), reversed(options), platform_scope(function))


def acted(function: Callable[Concatenate[Target, P], None]) -> Callable[..., None]:
    """Decorator: like `placed`, for a command that changes something and has no `--reason` of its own."""
    return click.option("--reason", _REASON, default="", help="Why, for the audit.")(tenant_scope(function))


def configuration_of(flags: Mapping[str, object], file: str | None) -> Source:
    """The configuration that a command is given by its flags, the environment and the file; flags that were left out say nothing."""
    said = {name: (value, _FLAGS[name]) for name, value in flags.items() if value not in {None, ()}}
    return configured(said, os.environ, file=file)


def hidden_password(url: str) -> str:
    """A URL for people to read."""
    return re.sub(r"(?<=password=)[^&]*", "***", re.sub(r"(?<=://)([^/@:]*):.*@", r"\1:***@", url))
