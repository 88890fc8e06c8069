"""The one door to the repository: what it runs, and what it leaves out."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import venv
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


def test_ctrl_c_ends_the_story_of_the_first_run_without_a_traceback() -> None:
    """Somebody who has seen enough is told nothing of the inside; no worker is left behind."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell has its background jobs ignore it.
    try:
        command = [sys.executable, "dev.py", "run", "--exit"]
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        assert process.stdout is not None
        assert any("reserve stock" in line for line in process.stdout)
        os.killpg(process.pid, signal.SIGINT)
        rest = process.stdout.read()
    assert "Traceback" not in rest
    assert process.returncode == dev.INTERRUPTED
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_an_environment_that_was_half_made_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever interrupts the first run, or lacks what makes environments, has a Python there without pip, which no second run could use."""
    monkeypatch.setattr(dev, "VENV", tmp_path)
    monkeypatch.setattr(dev, "PYTHON", tmp_path / "bin" / "python")
    assert not dev.has_pip()
    venv.EnvBuilder(with_pip=False).create(tmp_path)
    assert not dev.has_pip()
    dev.make_environment()
    assert dev.has_pip()


def test_compiled_modules_are_kept_for_the_next_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the shell that starts the tests does not want its own to be kept; the rest of what it says is left as it is."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("STANDFAST_SEED", "7")
    told = dev.surroundings()
    assert ("PYTHONDONTWRITEBYTECODE" in told, told["STANDFAST_SEED"]) == (False, "7")


@pytest.mark.parametrize("level", ["", "small"])
def test_a_level_that_does_not_exist_is_refused(level: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The message lists the levels, and no test runs."""
    assert dev.test(["--level", *([level] if level else [])]) == 2
    assert "unit, model, engine, fault" in capsys.readouterr().out


@pytest.mark.parametrize("level", dev.LEVELS)
def test_a_level_runs_its_tests_alone(level: str) -> None:
    """Each of four tests has the level of its folder and its fixtures."""
    paths = [
        "tests/kernel/test_ids.py",
        "tests/machine/test_random_graphs.py",
        "tests/app/test_inbox.py",
        "tests/crash/test_crash_publishing.py",
    ]
    command = [sys.executable, "dev.py", "test", "--level", level, *paths, "--collect-only", "-q"]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert [each in told for each in paths] == [each == level for each in dev.LEVELS]
