"""Opens a store from a URL. The only module that names the drivers."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from standfast.errors import ConfigurationError, NotFoundError
from standfast.store.copy.port import Copyable
from standfast.store.ports.store import Store
from standfast.store.sql.migrations import read_migrations
from standfast.store.sql.removal import Removal, made_by
from standfast.store.sqlite.admin.removal import SQLiteRemoval
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.copy import SQLiteCopyable
from standfast.store.sqlite.store import DEFAULT_PATIENCE, SQLiteStore, sqlite_script

DEFAULT_URL = "sqlite:///standfast.db"
_COPYING_PATIENCE = 3.0
"""Seconds to wait for another writer of a file that is copied from or to."""


def open_store(
    url: str = DEFAULT_URL, *, codec: str = "json", may_migrate: bool = True, prepare: bool = True, readers: int = 4
) -> Store:
    """Open the store at `url`: `sqlite:///file.db`, `sqlite://` for memory, or `postgresql://user@host/database`.

    `readers` is the number of server connections for queries, shared by all engines of the store.
    """
    match str(url).partition(":")[0]:
        case "sqlite":
            return SQLiteStore(_sqlite_path(url), codec=codec, may_migrate=may_migrate)
        case "postgresql" | "postgres":
            return _open_postgres(url, codec=codec, may_migrate=may_migrate, prepare=prepare, readers=readers)
        case _:
            raise _unknown(url)


def remove_schema(url: str, *, with_unfinished: bool = False, with_workers: bool = False) -> Removal:
    """Remove everything that Standfast has created in the database at `url`, and nothing else.

    Raises RejectedError without changes if workers are alive or instances have not ended, unless the arguments allow
    it. It also does so if foreign tables or views depend on those of Standfast. The roles of a Postgres server stay,
    because other databases may use them.
    """
    match str(url).partition(":")[0]:
        case "sqlite":
            database = Database(_sqlite_path(url), patience=DEFAULT_PATIENCE)
            try:
                made = made_by(read_migrations("standfast.store.sqlite"))
                return SQLiteRemoval(database).remove(made, with_unfinished=with_unfinished, with_workers=with_workers)
            finally:
                database.close()
        case "postgresql" | "postgres":
            return _remove_postgres(url, with_unfinished=with_unfinished, with_workers=with_workers)
        case _:
            raise _unknown(url)


def open_copyable(url: str, *, is_source: bool) -> Copyable:
    """Open the database at `url` for a copy.

    An in-memory database is refused, because only its own process can read it.
    """
    match str(url).partition(":")[0]:
        case "sqlite":
            path = _sqlite_path(url)
            if not path:
                raise ConfigurationError(f"{url!r} is a database in memory, which ends with its process; name a file")
            if is_source and not Path(path).exists():
                raise NotFoundError("database", url, hint="so that there is nothing to copy")
            return SQLiteCopyable(Database(path, patience=_COPYING_PATIENCE))
        case "postgresql" | "postgres":
            return _open_postgres_copyable(url)
        case _:
            raise _unknown(url)


def migration_script(driver: str, *, after: int = 0) -> str:
    """Return the SQL script that migrates a database of a driver, `sqlite` or `postgres`, to this code's schema.

    Empty if it is current.
    """
    if driver == "sqlite":
        return sqlite_script(after)
    if driver == "postgres":
        try:
            from standfast.store.postgres.admin.schema import postgres_script
        except ImportError as error:
            raise _without_driver() from error
        return postgres_script(after)
    raise ConfigurationError(f"there is no driver {driver!r}; name sqlite or postgres")


def is_there(url: str) -> bool:
    """Return whether the file of a URL exists. Always true for a server, which is checked when it is opened."""
    path = _sqlite_path(url) if url.partition(":")[0] == "sqlite" else ""
    return not path or Path(path).exists()


def _open_postgres(url: str, *, codec: str, may_migrate: bool, prepare: bool, readers: int) -> Store:
    try:
        from standfast.store.postgres.store import PostgresStore
    except ImportError as error:
        raise _without_driver() from error
    return PostgresStore(url, codec=codec, may_migrate=may_migrate, prepare=prepare, readers=readers)


def _remove_postgres(url: str, *, with_unfinished: bool, with_workers: bool) -> Removal:
    try:
        from standfast.store.postgres.admin.removal import PostgresRemoval
        from standfast.store.postgres.connection.connection import ReconnectingConnection
    except ImportError as error:
        raise _without_driver() from error
    line = ReconnectingConnection(url)
    try:
        made = made_by(read_migrations("standfast.store.postgres"))
        return PostgresRemoval(line).remove(made, with_unfinished=with_unfinished, with_workers=with_workers)
    finally:
        line.close()


def _open_postgres_copyable(url: str) -> Copyable:
    try:
        from standfast.store.postgres.connection.connection import ReconnectingConnection
        from standfast.store.postgres.copy import PostgresCopyable
    except ImportError as error:
        raise _without_driver() from error
    return PostgresCopyable(ReconnectingConnection(url))


def _without_driver() -> ConfigurationError:
    return ConfigurationError("Postgres needs its driver: pip install 'standfast[postgres]'")


def _unknown(url: object) -> ConfigurationError:
    dialect, plus, driver = str(url).partition("://")[0].partition("+")
    is_dialect = bool(plus) and dialect in {"postgresql", "postgres", "sqlite"}
    told = f"; leave out '+{driver}', which is for SQLAlchemy" if is_dialect and driver.isidentifier() else ""
    return ConfigurationError(
        f"{_begun(url)!r} is not a database Standfast knows: use sqlite:///file.db, sqlite:// or postgresql://user@host/database{told}"
    )


def _begun(url: object) -> object:
    """Return the part of an unknown URL that is safe to show, because it may contain a password."""
    if not isinstance(url, str):
        return url
    scheme, mark, _ = url.partition("://")
    return f"{scheme}{mark}…" if mark else "…" if set(url) & {"@", "="} else url


def _sqlite_path(url: str) -> str:
    """Return the path in a URL: three slashes for a relative path, four for an absolute one, two for memory."""
    rest = url.removeprefix("sqlite:")
    if rest in {"", "//", "//:memory:", "/:memory:", "///:memory:"}:
        return ""
    if not rest.startswith("///"):
        raise ConfigurationError(
            f"{url!r}: write sqlite:///file.db for a relative path and sqlite:////folder/file.db for an absolute one"
        )
    return unquote(rest.removeprefix("///").split("?")[0])
