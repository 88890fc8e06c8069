"""Fixtures for all tests. Every test that asks for Postgres gets a real one; nothing is skipped for want of it."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.campaigns import GRAPHS, SEED
from support.databases import Databases, any_server

TESTS = Path(__file__).resolve().parent
UNIT = {"authoring", "diagrams", "expressions", "kernel", "machine"}
"""Folders of tests that need no engine, unless they take a fixture with one."""
MODEL = {
    "authoring/document/test_fuzz.py",
    "expressions/test_attacks.py",
    "expressions/test_fuzz.py",
    "expressions/test_reference.py",
    "machine/test_growth.py",
    "machine/test_random_graphs.py",
    "machine/test_remedies.py",
    "machine/test_rules.py",
}
"""Tests that compare with an independent reference, or count the calls of large inputs."""
FAULT = {"chaos", "crash", "faults"}
ENGINES = {"live", "place", "postgres_dsn", "store", "world"}
"""Fixtures with an engine or a store."""
COLLECT_AFTER = 10_000
"""So many objects of a test: Python's own 700 make the garbage collector look ten times as often."""


@pytest.fixture(scope="session", autouse=True)
def _alone() -> Iterator[None]:
    """No test sees what the engine reads from the environment of whoever runs the tests; what campaigns read was read when they were imported."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith(("STANDFAST_", "WORKFLOW_")) and not name.startswith("STANDFAST_TEST_"):
                patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Databases]:
    """One server for the session (one for each worker of a parallel run), with the template ready."""
    with any_server() as databases, databases.with_template():
        yield databases


@pytest.fixture
def postgres_dsn(postgres_server: Databases) -> Iterator[str]:
    """The URL of a database of the test's own: a fresh clone of the template, dropped afterwards."""
    with postgres_server.prepared() as dsn:
        yield dsn


def pytest_report_header() -> str:
    """What it takes to have the same random choices again."""
    return f"random graphs: {GRAPHS}, chaos, both with STANDFAST_SEED={SEED}"


def pytest_sessionstart() -> None:
    """While tests are collected everything is kept, so nobody looks for garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Sixteen thousand tests stay until the end: the garbage collector need not go through them again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
    gc.enable()


def level_of(item: pytest.Item) -> str:
    """The level of a test, by its place and the fixtures that it takes. `tests/README.md` describes the levels."""
    place = item.path.relative_to(TESTS)
    if place.parts[0] in FAULT:
        return "fault"
    if place.parts[0] not in UNIT or ENGINES.intersection(getattr(item, "fixturenames", ())):
        return "engine"
    return "model" if place.as_posix() in MODEL else "unit"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark a test with its level."""
    item.add_marker(level_of(item))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes a minute whatever the machine does begins first, so that nobody waits for it at the end."""
    items.sort(key=lambda item: item.path.parent.name != "chaos")
