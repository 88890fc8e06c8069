"""A fresh database for each round: an SQLite file on disk, or a database on a Postgres server whose commits wait for the disk."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol

import psycopg

from devserver.postgres import create_database, drop_database, temporary_server


class Databases(Protocol):
    """Where rounds get their databases from."""

    store: str
    """The word for it in the results."""

    def fresh(self) -> AbstractContextManager[str]:
        """The URL of a new database, which goes when the block is left."""
        ...

    def settle(self, url: str) -> None:
        """Let the database finish what the preparation left to do, so that it does not fall into the measured time."""
        ...


class SQLiteDatabases:
    """Files in the folder for temporary files; set TMPDIR to a folder on the disk that is to be measured."""

    store = "sqlite"

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """A new file."""
        with tempfile.TemporaryDirectory(prefix="standfast-bench-") as folder:
            yield f"sqlite:///{Path(folder) / 'bench.db'}"

    def settle(self, url: str) -> None:  # noqa: ARG002 - the file is closed and holds nothing back
        """Let the system write what it has kept in memory."""
        os.sync()


class PostgresDatabases:
    """Databases on one server."""

    store = "postgres"

    def __init__(self, dsn: str) -> None:
        self._server = dsn

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """A new database on the server."""
        name = f"standfast_bench_{secrets.token_hex(4)}"
        url = create_database(self._server, name)
        try:
            yield url
        finally:
            drop_database(self._server, name)

    def settle(self, url: str) -> None:
        """A checkpoint, if the user may ask for one; and let the system write what it has kept in memory."""
        with psycopg.connect(url, autocommit=True) as connection, suppress(psycopg.errors.InsufficientPrivilege):
            connection.execute("checkpoint")
        os.sync()


@contextmanager
def postgres_databases(dsn: str | None) -> Iterator[PostgresDatabases]:
    """Databases on the named server, else on one of our own with the server's default settings, on disk."""
    if dsn:
        yield PostgresDatabases(dsn)
        return
    with temporary_server(fsync=True, settings={"shared_buffers": "128MB"}) as server:
        yield PostgresDatabases(server.dsn())
