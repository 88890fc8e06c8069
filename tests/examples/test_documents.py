"""What the documents show is executed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "holdfast"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


RUNNABLE = [
    "README.md",
    "docs/tutorial/first-decider.md",
    "docs/tutorial/first-saga.md",
    "docs/tutorial/first-process.md",
    "docs/how-to/author-sagas.md",
    "docs/how-to/approve-expenses.md",
    "docs/how-to/ask-people.md",
    "docs/how-to/deploy-deciders.md",
    "docs/how-to/notify-people.md",
    "docs/how-to/operate-sagas.md",
    "docs/how-to/pause-and-resume.md",
    "docs/how-to/repair.md",
    "docs/reference/deciders.md",
    "docs/how-to/project-events.md",
    "docs/how-to/own-transaction.md",
    "docs/how-to/people.md",
    "docs/how-to/serve-http.md",
    "docs/how-to/pause-definitions.md",
    "docs/how-to/wait-for-events.md",
    "docs/how-to/write-rules.md",
    "docs/how-to/write-processes.md",
    "docs/reference/document-format.md",
    "docs/how-to/fill-slots.md",
    "docs/how-to/call-http-services.md",
    "docs/how-to/say-who-may-do-what.md",
]


@pytest.mark.parametrize("page", RUNNABLE)
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


def test_pages_show_nothing_from_the_inside() -> None:
    """What a reader is taught is the public face: no block reaches into the parts of an engine."""
    inside = re.compile(r"\b\w*engine\w*\.(?:service|runtime|registry|_\w+)\b")
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    blocks = [(page.name, block) for page in pages for block in BLOCK.findall(page.read_text(encoding="utf-8"))]
    shown = [(name, found) for name, block in blocks for found in inside.findall(block)]
    assert shown == []


def played(example: str) -> str:
    """What an example prints."""
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_order_is_undone_although_its_worker_is_killed() -> None:
    """`dev.py run` tells of an order that fails in shipping and is undone by a second worker, and the README quotes it."""
    told = played("examples/order_saga.py")

    assert "worker 1 died in the middle of the refund (kill -9)" in told
    assert re.search(r"charge card +rolled_back +1 +2\n", told), "the refund is called again after the crash"
    assert re.search(r"Folded again from its \d+ events, the order is the same: True\.", told)
    quoted = re.findall(r"^    ([✗↶☠↺] .*)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(quoted) == 5
    assert [line for line in quoted if line not in told] == []


def test_the_survivor_finishes_in_its_second_act() -> None:
    """The example of a decider tells of an order that is shipped although the process was killed."""
    told = played("examples/survivor.py")

    assert "exit code -9" in told
    assert "shipping, attempt 2" in told
    assert "3. OrderShipped(parcel='parcel-77')" in told


def anchors(page: Path) -> set[str]:
    """What can stand behind the # of a link to a page: its headings, in small letters, with hyphens for spaces."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_between_pages_lead_somewhere() -> None:
    """Every relative link of the documentation names a file that exists, and a heading of it if it names one."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    links = [
        (page.relative_to(ROOT).as_posix(), link, page.parent / link, anchor)
        for page in pages
        for link, anchor in re.findall(r"\]\(([^)#:]+)(?:#([^)]*))?\)", page.read_text(encoding="utf-8"))
    ]

    assert [(page, link) for page, link, target, _ in links if not target.exists()] == []
    assert [
        (page, link, anchor) for page, link, target, anchor in links if anchor and anchor not in anchors(target)
    ] == []


def test_what_the_pages_on_the_inside_name_is_there() -> None:
    """A module, a test file or a test that a page on the inside names exists: who renames one is told where it is spoken of."""
    pages = list((ROOT / "docs" / "internals").glob("*.md"))
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    named = set(re.findall(r"`((?:\w+/)+\w+\.py)`", text))
    tests = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py"))

    assert pages
    assert [name for name in sorted(named) if not any((base / name).exists() for base in (ROOT, SOURCE))] == []
    assert [name for name in sorted(set(re.findall(r"`(test_\w+)`", text))) if f"def {name}(" not in tests] == []
    pairs = sorted(set(re.findall(r"`((?:\w+/)+\w+\.py)::(\w+)`", text)))
    assert [pair for pair in pairs if f"def {pair[1]}(" not in (ROOT / pair[0]).read_text(encoding="utf-8")] == []
