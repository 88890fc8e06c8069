"""Fixtures for tests of the command line: the command itself, and databases of both kinds with the schema in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import Holdfast
from cli.stage import stage
from holdfast.store.opening import open_store
from support.engines import Live, live

__all__ = ["live", "stage"]


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No command of a test reads the configuration file of whoever runs the tests."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def holdfast() -> Holdfast:
    """The command without a database."""
    return Holdfast()


@pytest.fixture
def based(live: Live) -> Holdfast:
    """The command with a database of its own that has the schema; on both stores."""
    open_store(live.url).close()
    return Holdfast(live.url)
