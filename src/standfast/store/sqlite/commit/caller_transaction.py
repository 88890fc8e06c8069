"""Statements of the engine within a caller's transaction, which the caller commits."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from standfast.errors import ConfigurationError, StoreError
from standfast.store.sql.statements import read_statements
from standfast.store.sqlite.commit.commits import SQLiteUnit
from standfast.store.sqlite.connection.connection import Database
from standfast.store.sqlite.connection.errors import is_missing, translated


class _Sql(msgspec.Struct, frozen=True):
    is_here: str
    begin: str
    mark: str
    keep: str
    undo: str


_sql = read_statements(_Sql, "standfast.store.sqlite", "borrowing.sql")


@contextmanager
def borrowed(given: sqlite3.Connection, database: Database, *, identity: str) -> Iterator[SQLiteUnit]:
    """Join the caller's transaction. Writes of the block are undone when it raises, and the transaction goes on."""
    url = database.url
    with translated(url), _plainly(given):
        if not given.in_transaction:
            if given.isolation_level is None:
                raise ConfigurationError("the connection has no open transaction: begin one, with `begin immediate`")
            given.execute(_sql.begin)  # As the sqlite3 module does before the first writing statement.
        given.execute(_sql.mark)
        try:
            _check_place(given, identity, url)
            yield SQLiteUnit(given, database)
        except BaseException:
            if given.in_transaction:
                given.execute(_sql.undo)
                given.execute(_sql.keep)
            raise
        given.execute(_sql.keep)


@contextmanager
def _plainly(given: sqlite3.Connection) -> Iterator[None]:
    """Return rows as plain tuples, whatever the caller has set."""
    rows, texts = given.row_factory, given.text_factory
    given.row_factory, given.text_factory = None, str
    try:
        yield
    finally:
        given.row_factory, given.text_factory = rows, texts


def _check_place(given: sqlite3.Connection, identity: str, url: str) -> None:
    """Raise if the connection is to another database."""
    try:
        with translated(url):
            is_here = given.execute(_sql.is_here, (identity,)).fetchone() is not None
    except StoreError as error:
        if not is_missing(error.__cause__):
            raise
        is_here = False
    if not is_here:
        raise ConfigurationError(f"the connection is to another database than {url}; give one to that file")
