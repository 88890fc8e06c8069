"""The one door to the repository: what it runs, and what it leaves out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dev

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("options", "is_chosen"), [((), False), (("--long",), True)])
def test_long_campaigns_are_run_by_those_who_ask_for_them(options: tuple[str, ...], *, is_chosen: bool) -> None:
    """Paths alone do not choose tests that are marked `long`; the option does."""
    command = [sys.executable, "dev.py", "test", "tests/crash/test_crash_everywhere.py", "--collect-only", "-q"]
    told = subprocess.run([*command, *options], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert ("test_every_point_of_every_scenario" in told) is is_chosen


def test_compiled_modules_are_kept_for_the_next_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the shell that starts the tests does not want its own to be kept; the rest of what it says is left as it is."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("HOLDFAST_SEED", "7")
    told = dev.surroundings()
    assert ("PYTHONDONTWRITEBYTECODE" in told, told["HOLDFAST_SEED"]) == (False, "7")
