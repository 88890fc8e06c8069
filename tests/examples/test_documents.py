"""What the documents show is executed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial/first-decider.md"])
def test_the_python_of_a_page_runs_from_top_to_bottom(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who types what the page shows gets no error."""
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    program = "\n".join(blocks)

    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)

    assert blocks
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_the_survivor_finishes_in_its_second_act() -> None:
    """`dev.py run` tells of an order that is shipped although the process was killed."""
    done = subprocess.run(
        [sys.executable, "examples/survivor.py"], capture_output=True, text=True, check=False, cwd=ROOT
    )

    assert done.returncode == 0, done.stderr
    assert "exit code -9" in done.stdout
    assert "shipping, attempt 2" in done.stdout
    assert "3. OrderShipped(parcel='parcel-77')" in done.stdout


def test_links_between_pages_lead_somewhere() -> None:
    """Every relative link of the documentation names a file that exists."""
    pages = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    links = [
        (page.relative_to(ROOT).as_posix(), link)
        for page in pages
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    ]

    assert [each for each in links if not (ROOT / each[0]).parent.joinpath(each[1]).exists()] == []
