"""Fixtures for the tests of applications; pytest finds them by itself once Standfast is installed.

A package of its own: pytest imports it wherever it is installed, and whoever does not use it should not wait for the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from standfast.testing.manual import ManualEngine


@pytest.fixture
def make_standfast_engine() -> Iterator[Callable[..., ManualEngine]]:
    """Makes engines with a clock of the test's own, with the options of `ManualEngine`; they are stopped when the test is over."""
    from standfast.testing.manual import ManualEngine

    made: list[ManualEngine] = []

    def make(*arguments: object, **options: object) -> ManualEngine:
        engine = ManualEngine(*arguments, **options)  # type: ignore[arg-type]
        made.append(engine)
        return engine

    yield make
    for engine in made:
        engine.stop()


@pytest.fixture
def standfast_engine(make_standfast_engine: Callable[..., ManualEngine]) -> ManualEngine:
    """An engine in memory that does nothing by itself: `drain` does all that is due, `advance` lets time go by."""
    return make_standfast_engine()


@pytest.fixture
def standfast_django_engine() -> Iterator[ManualEngine]:
    """The engine of a project of Django, with a clock of the test's own; for tests with the mark `django_db` of pytest-django.

    With `transaction=True` it is on the database of the test, which `atomic` needs; otherwise in memory.
    """
    from standfast.contrib.django.testing import manual_engine

    with manual_engine() as engine:
        yield engine
