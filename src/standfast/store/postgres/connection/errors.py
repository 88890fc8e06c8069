"""What psycopg raises, in the engine's own words. The only place that knows SQLSTATEs."""

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
"""The gate of a commit, that of a fact, a unique key, a serialization failure, a deadlock, a prepared statement that was dropped: decide again on what
is there now."""

_STALE = "HF002"
"""A fact that a decision was based on has changed."""

_TAKEN = "23505"
_HELD = "55P03"
"""A lock that somebody else has for longer than one waits."""

_TRANSIENT = ("40001", "40P01")
"""A serialization failure, a deadlock."""

_UNAVAILABLE = ("08", "53", "57P", "58", "25006", "57014", "XX000")
"""No connection, no resources, shutting down, disk trouble, read-only, a statement that took too long."""


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Errors of the driver inside the block leave it as errors of the engine."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error, url) from error


def is_transient(error: BaseException | None) -> bool:
    """Whether it comes of what others did at the same time, be it wrapped by other code: a deadlock or a serialization failure."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, psycopg.Error) and error.sqlstate in _TRANSIENT:
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def translate(error: psycopg.Error, url: str, *, was_sent: bool = False) -> Exception:
    """The engine's error for a driver's error. What was sent may have been done, unless the server says itself that it was not."""
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
