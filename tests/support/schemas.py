"""Databases that newer code has migrated."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg

from standfast.store.sql.migrations import read_migrations

NEWEST = read_migrations("standfast.store.sqlite")[-1].number
"""The newest schema that this code knows."""


def set_schema(url: str, number: int) -> None:
    """Mark a database as migrated by newer code; with 0, as it was."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            file.execute(f"pragma user_version = {number or NEWEST}")
        return
    with psycopg.connect(url) as connection:
        if number:
            connection.execute("insert into standfast.migrations (number, name) values (%s, 'future')", [number])
        else:
            connection.execute("delete from standfast.migrations where name = 'future'")


@contextmanager
def migrated(url: str) -> Iterator[None]:
    """Newer code has migrated the database, for as long as the block lasts."""
    set_schema(url, 999)
    try:
        yield
    finally:
        set_schema(url, 0)
