"""The project's engine in tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connections

from standfast.contrib.django.databases import is_in_memory, is_of_tests
from standfast.contrib.django.engines import alias_of_project, register, told, url_of, use
from standfast.contrib.embedded_cli import configuration_of
from standfast.errors import ConfigurationError
from standfast.store.opening import remove_schema
from standfast.testing import ManualEngine

_IN_MEMORY: Final = "sqlite://"


@contextmanager
def manual_engine() -> Iterator[ManualEngine]:
    """Replace the project's engine during a test by one with a manual clock; in `setUp`: `self.enterContext(manual_engine())`.

    It has the workflows of the installed apps, with tenant and settings of settings.STANDFAST. In a test that commits,
    such as a `TransactionTestCase`, it uses the test's database, and removes its rows after the test. It is in memory
    in a `TestCase`, which never commits. It is also in memory where the test's database is, or where the engine has a
    database of its own.
    """
    url = _place(alias_of_project())
    _clear(url)
    configuration = configuration_of(told(url))
    engine = ManualEngine(url, settings=configuration.settings, tenant=configuration.tenant)
    try:
        register(engine)
        use(engine)
        yield engine
    finally:
        use(None)
        engine.stop()
        _clear(url)


def _place(alias: str | None) -> str:
    if alias is None or is_in_memory(alias) or connections[alias].in_atomic_block:
        return _IN_MEMORY
    if not is_of_tests(alias):
        raise ConfigurationError(
            f"the database {alias!r} is none of a test runner, and what the engine has in it would be removed behind the test: "
            "have it made first, in pytest-django by the mark django_db(transaction=True)"
        )
    return url_of(alias)


def _clear(url: str) -> None:
    if url != _IN_MEMORY:
        # A driven engine leaves a worker behind that is alive by the test's clock.
        remove_schema(url, with_unfinished=True, with_workers=True)
