"""The engine of a Django project, and commands in its transactions."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Final
from urllib.parse import quote, urlencode

import django
from django.apps import apps
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.utils.module_loading import module_has_submodule

from standfast.app.engine import Engine
from standfast.app.unit_of_work import UnitOfWork
from standfast.contrib.django.connections import FreshConnections
from standfast.contrib.embedded_cli import configuration_of
from standfast.errors import ConfigurationError
from standfast.kernel.actor import RequestContext

RUN_URL: Final = "run_url"
_DATABASE: Final = "database"
_MODULE: Final = "workflows"
_LIBPQ: Final = frozenset(
    {
        *("application_name", "client_encoding", "connect_timeout", "passfile", "service", "target_session_attrs"),
        *("sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslpassword", "options"),
    }
)
"""OPTIONS of a database for the server and the driver; the rest is for Django."""
_VENDORS: Final = {"sqlite", "postgresql"}


class _Held:
    """The engine of a process. A forked child has none, and opens its own."""

    def __init__(self) -> None:
        self.engine: Engine | None = None
        self.told: dict[str, object] | None = None
        """The settings with which it was opened; None if the caller of `use` has opened it."""
        self.process = 0
        self.lock = threading.Lock()

    def replace(self, engine: Engine | None, told: dict[str, object] | None = None) -> None:
        """Replace the engine; the previous one is stopped if it was opened here."""
        before = self.engine if self.told is not None and self.process == os.getpid() else None
        self.engine, self.told, self.process = engine, told, os.getpid()
        if before is not None:
            before.stop()


_held = _Held()


def get_engine() -> Engine:
    """Return the engine of the project in this process, opened on first use; it takes commands, and workers work.

    It is reopened when the settings have changed, as under a test runner, which replaces the project's database.
    """
    with _held.lock:
        found = _held.engine if _held.process == os.getpid() else None
        if found is not None and _held.told is None:
            return found
        said = told()
        if found is None or _held.told != said:
            _held.replace(None)
            found = _opened(said)
            _held.replace(found, said)
        return found


def use(engine: Engine | None) -> None:
    """Replace the project's engine, for example by one with a manual clock; None has the next caller open one."""
    with _held.lock:
        _held.replace(engine)


@contextmanager
def atomic(using: str | None = None, *, request: RequestContext | None = None) -> Iterator[UnitOfWork]:
    """Like `transaction.atomic`, with commands decided on the same connection: they commit or roll back with the outermost transaction."""
    alias = using or alias_of_project() or DEFAULT_DB_ALIAS
    engine = (
        get_engine()
    )  # Opened before, if need be: a transaction of SQLite may be the one writer from its beginning.
    with transaction.atomic(using=alias), engine.within(connections[alias], request=request) as unit:
        yield unit


def on_commit(call: Callable[[Engine], object], using: str | None = None) -> None:
    """Call the engine after the commit of the transaction. For an engine on a database of its own.

    Unlike `atomic` the call can be lost: the process may die between the commit and the call.
    """
    transaction.on_commit(partial(_call, call), using=using)


def _call(call: Callable[[Engine], object]) -> None:
    call(get_engine())


def register(engine: Engine) -> None:
    """Register the workflows of the installed apps on an engine; for workers, and for tests that open their own engine."""
    if not apps.models_ready:  # A caller during loading gets the modules loaded so far, and cannot start over.
        django.setup()
    engine.accompany(FreshConnections())
    for config in apps.get_app_configs():
        if not module_has_submodule(config.module, _MODULE):
            continue
        add = getattr(import_module(f"{config.name}.{_MODULE}"), "register", None)
        if add is not None:
            add(engine)


def told(url: str = "") -> dict[str, object]:
    """Return the engine options of the project's settings.

    The database is one of DATABASES, unless STANDFAST or `url` names a URL.
    """
    said = getattr(settings, "STANDFAST", {})
    if not isinstance(said, dict):
        raise ConfigurationError(f"settings.STANDFAST is a dict, not {said!r}")
    given = {name: value for name, value in said.items() if name != RUN_URL}
    database = url or given.get(_DATABASE, DEFAULT_DB_ALIAS)
    if not isinstance(database, str):
        raise ConfigurationError(f"settings.STANDFAST['database'] is an alias of DATABASES or a URL, not {database!r}")
    return {**given, _DATABASE: database if ":" in database else url_of(database)}


def url_of(alias: str) -> str:
    """Return the engine's URL of a database of the project."""
    if alias not in connections:
        raise ConfigurationError(f"DATABASES has no {alias!r}; settings.STANDFAST['database'] names it, or gives a URL")
    connection = connections[alias]
    if connection.vendor not in _VENDORS:
        raise ConfigurationError(
            f"the database {alias!r} is one of {connection.vendor}: the engine takes Postgres or SQLite; give it one of its own"
        )
    told = connection.settings_dict
    name = str(told["NAME"])
    if connection.vendor == "sqlite":
        if connection.is_in_memory_db():
            raise ConfigurationError(
                f"the database {alias!r} is in memory, where only Django can reach it; name a file, or `use` an engine of your own"
            )
        return f"sqlite:///{quote(name)}"
    # Options that are left out are left to libpq, as in Django.
    known = {"user": told["USER"], "password": told["PASSWORD"], "host": told["HOST"], "port": told["PORT"]}
    options = {name: value for name, value in told.get("OPTIONS", {}).items() if name in _LIBPQ}
    query = urlencode({key: value for key, value in {**options, **known}.items() if value}, quote_via=quote)
    return f"postgresql:///{quote(name, safe='')}" + (f"?{query}" if query else "")


def alias_of_project() -> str | None:
    """Return the project's database that holds the engine; None where the engine has one of its own."""
    said = getattr(settings, "STANDFAST", {})
    database = said.get(_DATABASE, DEFAULT_DB_ALIAS) if isinstance(said, dict) else None
    return database if isinstance(database, str) and database in connections else None


def _opened(said: dict[str, object]) -> Engine:
    configuration = configuration_of(said)
    engine = Engine(configuration.database, settings=configuration.settings, tenant=configuration.tenant)
    try:
        register(engine)
    except BaseException:
        engine.stop()
        raise
    return engine
