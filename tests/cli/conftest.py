"""Fixtures for tests of the command line: the command itself, and databases of both kinds with the schema in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import Standfast
from cli.stage import stage
from standfast.store.opening import open_store
from support.engines import Live, live

__all__ = ["live", "stage"]


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No command of a test reads the configuration file of whoever runs the tests."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def standfast() -> Standfast:
    """The command without a database."""
    return Standfast()


@pytest.fixture
def based(live: Live) -> Standfast:
    """The command with a database of its own that has the schema; on both stores."""
    open_store(live.url).close()
    return Standfast(live.url)
