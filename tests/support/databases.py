"""A fresh Postgres database for each test, cloned from a template that is prepared once per session."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from devserver.postgres import create_database, drop_database, temporary_server
from holdfast.store.opening import open_store

VARIABLE = "HOLDFAST_TEST_DSN"


def prepare_template(dsn: str) -> None:
    """Bring the template database into the state in which each test finds its own; called once per session."""
    open_store(dsn).close()


class Databases:
    """The databases of one server, as far as tests need them."""

    def __init__(self, dsn: str) -> None:
        self._server = dsn
        # Another server may serve several runs at once, so the names of each are its own.
        self._prefix = f"holdfast_test_{secrets.token_hex(4)}"
        self._numbers = count(1)

    @contextmanager
    def empty(self) -> Iterator[str]:
        """The URL of a new, empty database that goes when the block is left."""
        with self._made(template=None) as dsn:
            yield dsn

    @contextmanager
    def prepared(self) -> Iterator[str]:
        """The URL of a new copy of the template that goes when the block is left."""
        with self._made(template=self._template) as dsn:
            yield dsn

    @contextmanager
    def with_template(self) -> Iterator[Databases]:
        """Prepare the template for as long as the block lasts."""
        dsn = create_database(self._server, self._template)
        try:
            prepare_template(dsn)
            yield self
        finally:
            drop_database(self._server, self._template)

    @property
    def _template(self) -> str:
        return f"{self._prefix}_template"

    @contextmanager
    def _made(self, *, template: str | None) -> Iterator[str]:
        name = f"{self._prefix}_{next(self._numbers)}"
        dsn = create_database(self._server, name, template=template)
        try:
            yield dsn
        finally:
            drop_database(self._server, name)


@contextmanager
def any_server() -> Iterator[Databases]:
    """The server that HOLDFAST_TEST_DSN names by a postgresql:// URL, else one of our own for as long as the block lasts."""
    named = os.environ.get(VARIABLE)
    if named:
        yield Databases(named)
        return
    with temporary_server() as server:
        yield Databases(server.dsn())
