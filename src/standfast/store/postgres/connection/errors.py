"""Translates psycopg's errors into the engine's. The only module that knows SQLSTATEs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from standfast.errors import (
    ConfigurationError,
    HeldError,
    PayloadError,
    SchemaMismatchError,
    StoreError,
    StoreUnavailableError,
)
from standfast.store.ports.store import LostRaceError, StaleFactError
from standfast.store.sql.conflicts import opened_twice, row_kind

_LOST = ("HF001", "HF002", "23505", "40001", "40P01", "26000")
"""Lost races, to be decided again: a version gate, a fact gate, a unique key, a serialization failure, a deadlock, a
dropped prepared statement."""

_STALE = "HF002"
"""A fact of a decision has changed."""

_TAKEN = "23505"
_HELD = "55P03"
"""Another transaction holds a lock for too long."""

_TRANSIENT = ("40001", "40P01")
"""A serialization failure or a deadlock."""

_UNAVAILABLE = ("08", "53", "57P", "58", "25006", "57014", "XX000")
"""No connection, no resources, shutdown, disk failure, read-only server, or statement timeout."""


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Translate errors of the driver inside the block."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error, url) from error


def is_transient(error: BaseException | None) -> bool:
    """Return whether an error, possibly wrapped, results from concurrent transactions: a deadlock or a serialization failure."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, psycopg.Error) and error.sqlstate in _TRANSIENT:
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def translate(error: psycopg.Error, url: str, *, was_sent: bool = False) -> Exception:
    """Translate a driver's error.

    The outcome of a sent statement is unknown, unless the server reports that it failed.
    """
    state = error.sqlstate or ""
    said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if state == _TAKEN and (kind := row_kind(error.diag.table_name or "")):
        return opened_twice(kind)
    if state in _LOST:
        return StaleFactError(said) if state == _STALE else LostRaceError(said)
    if state == _HELD:
        return HeldError(f"another transaction holds a row of {url} that is needed ({said}); it must end first")
    if state.startswith(_UNAVAILABLE) or (not state and isinstance(error, psycopg.OperationalError)):
        return StoreUnavailableError(f"{url} cannot be used now: {said}", may_be_done=was_sent and not state)
    if state in {"42P01", "3F000", "42703", "42883"}:
        return SchemaMismatchError(f"{url} lacks the tables of this code ({said}): run `standfast migrate` on it")
    if state == "42501":
        return ConfigurationError(
            f"{url}: the database user may not do this ({said}); grant it the role standfast_engine"
        )
    if state.startswith("22"):
        return PayloadError(f"{url} cannot store a value: {said}")
    return StoreError(f"{url} failed: {said} [{state}]")
