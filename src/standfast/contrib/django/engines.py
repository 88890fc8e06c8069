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
"""What OPTIONS of a database say to the server and the driver; the rest is for Django."""
_VENDORS: Final = {"sqlite", "postgresql"}


class _Held:
    """The engine of a process. A forked child has none, and opens its own."""

    def __init__(self) -> None:
        self.engine: Engine | None = None
        self.told: dict[str, object] | None = None
        """What the settings said when it was opened; None if somebody else has opened it."""
        self.process = 0
        self.lock = threading.Lock()

    def replace(self, engine: Engine | None, told: dict[str, object] | None = None) -> None:
        """Hold another one; the last one is stopped if it was opened here."""
        before = self.engine if self.told is not None and self.process == os.getpid() else None
        self.engine, self.told, self.process = engine, told, os.getpid()
        if before is not None:
            before.stop()


_held = _Held()


def get_engine() -> Engine:
    """The engine of the project in this process, opened when it is first asked for; it takes commands, and workers work.

    It is opened anew when the settings say something else since, as under a test runner, which gives the project another database.
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
    """Have another engine be that of the project, such as one with a clock of the test's own; None has the next caller open one."""
    with _held.lock:
        _held.replace(engine)


@contextmanager
def atomic(using: str | None = None, *, request: RequestContext | None = None) -> Iterator[UnitOfWork]:
    """`transaction.atomic`, in which commands are decided on the same connection: all of it becomes true with the outermost commit, or never was."""
    alias = using or alias_of_project() or DEFAULT_DB_ALIAS
    engine = (
        get_engine()
    )  # Opened before, if need be: a transaction of SQLite may be the one writer from its beginning.
    with transaction.atomic(using=alias), engine.within(connections[alias], request=request) as unit:
        yield unit


def on_commit(call: Callable[[Engine], object], using: str | None = None) -> None:
    """Have the engine called once the transaction has committed, if it does. For an engine on a database of its own.

    Unlike `atomic` it can be lost: the process may die between the commit and the call.
    """
    transaction.on_commit(partial(_call, call), using=using)


def _call(call: Callable[[Engine], object]) -> None:
    call(get_engine())


def register(engine: Engine) -> None:
    """Have an engine know what the installed apps have; for workers, which find it by its name, and for tests that open their own."""
    if not apps.models_ready:  # Whoever asks while the project is loaded has what it takes, and cannot begin anew.
        django.setup()
    engine.accompany(FreshConnections())
    for config in apps.get_app_configs():
        if not module_has_submodule(config.module, _MODULE):
            continue
        add = getattr(import_module(f"{config.name}.{_MODULE}"), "register", None)
        if add is not None:
            add(engine)


def told(url: str = "") -> dict[str, object]:
    """What the settings of the project say of the engine; its database is one of DATABASES, unless a URL is given there or here."""
    said = getattr(settings, "STANDFAST", {})
    if not isinstance(said, dict):
        raise ConfigurationError(f"settings.STANDFAST is a dict, not {said!r}")
    given = {name: value for name, value in said.items() if name != RUN_URL}
    database = url or given.get(_DATABASE, DEFAULT_DB_ALIAS)
    if not isinstance(database, str):
        raise ConfigurationError(f"settings.STANDFAST['database'] is an alias of DATABASES or a URL, not {database!r}")
    return {**given, _DATABASE: database if ":" in database else url_of(database)}


def url_of(alias: str) -> str:
    """A database of the project as the engine opens it."""
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
                f"the database {alias!r} is in memory, where nobody else can reach it; name a file, or `use` an engine of your own"
            )
        return f"sqlite:///{quote(name)}"
    # What is left out is left to libpq, as in Django.
    known = {"user": told["USER"], "password": told["PASSWORD"], "host": told["HOST"], "port": told["PORT"]}
    options = {name: value for name, value in told.get("OPTIONS", {}).items() if name in _LIBPQ}
    query = urlencode({key: value for key, value in {**options, **known}.items() if value}, quote_via=quote)
    return f"postgresql:///{quote(name, safe='')}" + (f"?{query}" if query else "")


def alias_of_project() -> str | None:
    """The database of the project in which the engine is; None where it has one of its own."""
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
