"""Translates errors of the sqlite3 module into the engine's. The only module that knows SQLite's error names."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from standfast.errors import CorruptHistoryError, PayloadError, StoreError, StoreUnavailableError
from standfast.store.ports.store import LostRaceError
from standfast.store.sql.conflicts import opened_twice, row_kind

_UNAVAILABLE = {
    "SQLITE_READONLY": "it is read-only",
    "SQLITE_FULL": "the disk is full",
    "SQLITE_IOERR": "the disk failed, or is full",
    "SQLITE_CANTOPEN": "the file cannot be opened",
    "SQLITE_PERM": "access is denied",
}
_CORRUPT = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Translate errors of the driver inside the block."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, url) from error
    except UnicodeEncodeError as error:
        raise PayloadError(f"{url} cannot store a text: {error}") from error


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether another connection is writing."""
    return _name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def is_missing(error: BaseException | None) -> bool:
    """Return whether a table of the engine is missing."""
    return isinstance(error, sqlite3.OperationalError) and str(error).startswith("no such table")


def translate(error: sqlite3.Error, url: str) -> Exception:
    """Translate a driver's error."""
    name = _name(error)
    if name.startswith("SQLITE_CONSTRAINT"):
        if name in {"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY"}:
            kind = row_kind(str(error).partition("failed: ")[2].partition(".")[0])
            return opened_twice(kind) if kind else LostRaceError(str(error))
        return StoreError(f"{url} refused a change: {error}")
    if name.startswith(_CORRUPT):
        return CorruptHistoryError(f"{url} is damaged: {error}; restore it from a backup")
    if is_busy(error):
        return StoreUnavailableError(
            f"{url} cannot be used now: another process holds its write lock, or a transaction of your own does"
        )
    for prefix, reason in _UNAVAILABLE.items():
        if name.startswith(prefix):
            return StoreUnavailableError(f"{url} cannot be used now: {reason} ({error})")
    return StoreError(f"{url} failed: {error}")


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "") or ""
