"""The fixtures that pytest finds once Standfast is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import tomllib
from importlib import import_module
from pathlib import Path

from support.repository import ROOT

TESTS = """
    import pytest
    from datetime import timedelta
    from standfast import Saga, StoppedError

    made = []

    def test_time_goes_by_when_the_test_says_so(standfast_engine):
        calls = []
        def flaky():
            calls.append(standfast_engine.clock.now())
            if len(calls) == 1:
                raise ConnectionError
            return {}
        standfast_engine.register(Saga("order").step("ship", flaky, attempts=2, delay=3600).build())
        run = standfast_engine.start("order", {})
        standfast_engine.drain()
        assert len(calls) == 1
        standfast_engine.advance(hours=1)
        assert run.describe().status == "completed"
        made.append(standfast_engine)

    def test_engines_end_with_their_test(make_standfast_engine, tmp_path):
        with pytest.raises(StoppedError):
            made[0].drain()
        assert make_standfast_engine(f"sqlite:///{tmp_path / 'h.db'}").instances.list() == []
        assert make_standfast_engine(seed=7).instances.list() == []
"""


def test_a_test_of_an_application_gets_an_engine_with_a_clock_of_its_own(tmp_path: Path) -> None:
    """A real run of pytest in another process, in which the plugin is found by its name."""
    (tmp_path / "test_shop.py").write_text(textwrap.dedent(TESTS), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_standfast", "-p", "no:cacheprovider", str(tmp_path)]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment, timeout=110
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_the_package_tells_pytest_of_the_plugin() -> None:
    """The entry point names a module that is there, and that does not bring the engine along."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (name,) = project["project"]["entry-points"]["pytest11"].values()
    assert {"standfast_engine", "make_standfast_engine"} <= set(vars(import_module(name)))
    assert f"src/{name}" in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
