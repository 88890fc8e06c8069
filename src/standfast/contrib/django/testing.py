"""The engine of a project in its tests."""

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
    """The engine of the project for as long as a test lasts, with a clock that the test moves; in `setUp` it is `self.enterContext(manual_engine())`.

    It knows what the installed apps have, with tenant and settings of settings.STANDFAST. In a test that commits, as a `TransactionTestCase`
    does, it is on the database of the test, and whatever it has made there is removed behind the test. In one that never commits, as a
    `TestCase`, and where that database is in memory or the
    engine has one of its own, it is in memory.
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
        # Who drives an engine leaves a worker behind, alive by the clock of the test.
        remove_schema(url, with_unfinished=True, with_workers=True)
