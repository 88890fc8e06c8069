"""The README followed word for word by somebody who has nothing but Python: a fresh clone, the library in an environment of one's own, a project."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from cli.programs import Program
from examples.test_documents import BLOCK, check_story
from standfast.client import Client
from support.repository import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
KNOWN = {"PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME"}
"""What an environment says that was prepared for Standfast; a newcomer's says nothing of the kind."""


@pytest.fixture
def newcomer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody whose shell knows nothing of Standfast."""
    for name in os.environ:
        if name in KNOWN or name.startswith("STANDFAST_"):
            monkeypatch.delenv(name)
    own = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join(each for each in os.environ["PATH"].split(os.pathsep) if each != own))


def said(*command: str, cwd: Path) -> str:
    """What a command says that goes well."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.row("G-30")
@pytest.mark.usefixtures("newcomer")
def test_the_first_run_of_a_fresh_clone(tmp_path: Path) -> None:
    """It sets itself up, tells the story that is quoted, says where to look, answers there, and ends with Ctrl-C."""
    python = shutil.which("python3")
    assert python is not None
    assert "\n    python3 dev.py run " in README
    said("git", "clone", "--quiet", str(ROOT), "standfast", cwd=tmp_path)
    program = Program(
        python, str(tmp_path / "standfast" / "dev.py"), "run", "--port", "0", environment={"PYTHONPATH": ""}
    )
    try:
        address, told = program.heard(r"standfast is at (http://127\.0\.0\.1:\d+)")
        check_story(told)
        with Client(address) as client:
            assert client.list_executions().items
        code, rest = program.end(signal.SIGINT)
    finally:
        program.close()
    assert code == 0
    assert "the data are kept in" in rest


@pytest.mark.long
@pytest.mark.row("G-30")
@pytest.mark.usefixtures("newcomer")
def test_the_library_in_an_environment_of_ones_own(tmp_path: Path) -> None:
    """What `pip install` brings along is enough for the first program, and for a project that is written, served and asked."""
    assert "`'standfast[server]'`" in README
    said("git", "clone", "--quiet", str(ROOT), "standfast", cwd=tmp_path)
    venv.create(tmp_path / "own", with_pip=True)
    bin_ = tmp_path / "own" / "bin"
    said(str(bin_ / "pip"), "install", "--quiet", f"{tmp_path / 'standfast'}[server]", cwd=tmp_path)
    shutil.rmtree(tmp_path / "standfast")  # Nothing of it is needed any more.
    (tmp_path / "first.py").write_text(BLOCK.findall(README)[0], encoding="utf-8")
    told = said(str(bin_ / "python"), "first.py", cwd=tmp_path)
    assert re.fullmatch(r"[0-9a-f-]{36} \{.*'parcel': 'a box with one lamp'.*\}\n", told)
    words = "standfast init shop && cd shop && standfast dev"
    assert f"`{words}`" in README
    path = os.pathsep.join((str(bin_), os.environ["PATH"]))
    line = f"cd {tmp_path} && {words.replace('standfast dev', 'exec standfast dev --port 0')}"
    program = Program("/bin/sh", "-c", line, environment={"PYTHONPATH": "", "PATH": path})
    try:
        address, _ = program.heard(r"standfast is at (http://127\.0\.0\.1:\d+)")
        with Client(address) as client:
            assert client.tell_me().credential == "dev"
        code, _ = program.end(signal.SIGINT)
    finally:
        program.close()
    assert code == 0
