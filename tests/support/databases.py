"""A Postgres database for each test, like new: cloned from a template that is prepared once per session, or emptied by its last user."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from psycopg.conninfo import conninfo_to_dict

from devserver.postgres import create_database, drop_database, temporary_server
from standfast.store.opening import open_store
from support.cleaning import Cleaner
from support.warmth import warm_connections

VARIABLE = "STANDFAST_TEST_DSN"


def prepare_template(dsn: str) -> None:
    """Bring the template database into the state in which each test finds its own; called once per session."""
    open_store(dsn).close()


class Databases:
    """The databases of one server, as far as tests need them."""

    def __init__(self, dsn: str) -> None:
        self._server = dsn
        # Another server may serve several runs at once, so the names of each are its own.
        self._prefix = f"standfast_test_{secrets.token_hex(4)}"
        self._numbers = count(1)
        self._cleaner: Cleaner | None = None
        self._clean: list[str] = []
        """Copies of the template that tests have given back, like new."""
        self._warm: list[str] = []
        """Those that somebody is still connected to."""

    @contextmanager
    def empty(self) -> Iterator[str]:
        """The URL of a new, empty database that goes when the block is left."""
        dsn = create_database(self._server, self._name())
        try:
            yield dsn
        finally:
            self._drop(dsn)

    @contextmanager
    def prepared(self) -> Iterator[str]:
        """The URL of a copy of the template for as long as the block lasts, with nothing in it of those who had it before."""
        with self._lent(self._clean) as dsn:
            yield dsn

    @contextmanager
    def warm(self) -> Iterator[str]:
        """The same; and stores that are opened in the block may get sessions that others have had, which have seen the tables before."""
        with self._lent(self._warm) as dsn, warm_connections():
            yield dsn

    @contextmanager
    def _lent(self, clean: list[str]) -> Iterator[str]:
        dsn = clean.pop() if clean else create_database(self._server, self._name(), template=self._template)
        try:
            yield dsn
        finally:
            if self._cleaner is not None and self._cleaner.clean(dsn):
                clean.append(dsn)
                if clean is not self._warm:
                    self._cleaner.hang_up(dsn)
            else:
                self._drop(dsn)

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """The URL of a copy of the template that nobody has had: what was deleted is in no file of it, and costs no query anything."""
        dsn = create_database(self._server, self._name(), template=self._template)
        try:
            yield dsn
        finally:
            self._drop(dsn)

    @contextmanager
    def with_template(self) -> Iterator[Databases]:
        """Prepare the template for as long as the block lasts."""
        dsn = create_database(self._server, self._template)
        try:
            prepare_template(dsn)
            self._cleaner = Cleaner(dsn)
            yield self
        finally:
            for each in (*self._clean, *self._warm):
                if self._cleaner is not None:
                    self._cleaner.forget(each)
                self._drop(each)
            drop_database(self._server, self._template)

    @property
    def _template(self) -> str:
        return f"{self._prefix}_template"

    def _name(self) -> str:
        return f"{self._prefix}_{next(self._numbers)}"

    def _drop(self, dsn: str) -> None:
        drop_database(self._server, str(conninfo_to_dict(dsn)["dbname"]))


@contextmanager
def any_server() -> Iterator[Databases]:
    """The server that STANDFAST_TEST_DSN names by a postgresql:// URL, else one of our own for as long as the block lasts."""
    named = os.environ.get(VARIABLE)
    if named:
        yield Databases(named)
        return
    with temporary_server() as server:
        yield Databases(server.dsn())
