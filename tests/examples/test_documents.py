"""What the documents show is executed."""

from __future__ import annotations

import importlib
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.programs import Program
from standfast import Engine
from standfast.client import Client

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "standfast"
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


RUNNABLE = [
    "README.md",
    "docs/tutorial/first-decider.md",
    "docs/tutorial/first-saga.md",
    "docs/tutorial/first-process.md",
    "docs/tutorial/first-document.md",
    "docs/how-to/documents-in-your-tables.md",
    "docs/how-to/author-sagas.md",
    "docs/how-to/back-up.md",
    "docs/how-to/move-to-postgres.md",
    "docs/how-to/approve-expenses.md",
    "docs/how-to/ask-people.md",
    "docs/how-to/deploy-deciders.md",
    "docs/how-to/notify-people.md",
    "docs/how-to/operate-sagas.md",
    "docs/how-to/pause-and-resume.md",
    "docs/how-to/repair.md",
    "docs/how-to/redact-and-seal.md",
    "docs/how-to/reports.md",
    "docs/how-to/report-with-sql.md",
    "docs/how-to/working-time.md",
    "docs/reference/deciders.md",
    "docs/how-to/project-events.md",
    "docs/how-to/own-transaction.md",
    "docs/how-to/people.md",
    "docs/how-to/serve-http.md",
    "docs/how-to/use-the-client.md",
    "docs/how-to/schedules.md",
    "docs/how-to/try-workflows-out.md",
    "docs/how-to/batches.md",
    "docs/how-to/pause-definitions.md",
    "docs/how-to/wait-for-events.md",
    "docs/how-to/write-rules.md",
    "docs/how-to/write-processes.md",
    "docs/reference/document-format.md",
    "docs/how-to/fill-slots.md",
    "docs/how-to/call-http-services.md",
    "docs/how-to/say-who-may-do-what.md",
    "docs/tutorial/one-hour.md",
    "docs/how-to/frameworks.md",
    "docs/how-to/observe.md",
    "docs/how-to/trace.md",
    "docs/how-to/operate.md",
    "docs/how-to/maintenance.md",
    "docs/how-to/dead-letters.md",
    "docs/how-to/run-the-database.md",
    "docs/how-to/why.md",
    "docs/how-to/change-a-run.md",
    "docs/how-to/resume-later.md",
    "docs/how-to/act-on-tasks.md",
    "docs/how-to/approval-chains.md",
    "docs/how-to/four-eyes.md",
    "docs/how-to/due-dates.md",
    "docs/how-to/manage-schedules.md",
    "docs/how-to/transactional-handlers.md",
    "docs/how-to/call-the-api.md",
    "docs/how-to/authenticate.md",
    "docs/how-to/receive-webhooks.md",
    "docs/how-to/step-options.md",
    "docs/how-to/branches.md",
    "docs/how-to/wait-and-call.md",
    "docs/how-to/versions-and-handlers.md",
    "docs/how-to/cancel-and-abort.md",
    "docs/how-to/test-workflows.md",
    "docs/coming-from/celery.md",
]


QUIET = "import logging; logging.getLogger('standfast.handlers').setLevel(logging.ERROR)"
"""Handlers of the pages fail on purpose, and the log tells so with a traceback; any other traceback is a mistake."""


@pytest.mark.parametrize("page", RUNNABLE)
def test_the_python_of_a_page_runs_from_top_to_bottom(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who types what the page shows gets no error."""
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    program = "\n".join([QUIET, *blocks])

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


def first_run(folder: Path, *words: str) -> Program:
    """The command `python3 dev.py run` in this very environment, which is set up already; its data are in the folder."""
    program = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import dev
dev.BIN = pathlib.Path(sys.executable).parent
dev.DATA = pathlib.Path(sys.argv[2])
sys.exit(dev.run(sys.argv[3:]))
"""
    return Program(sys.executable, "-c", program, str(ROOT), str(folder), *words)


def test_the_order_is_undone_and_the_first_run_stays_as_a_server(tmp_path: Path) -> None:
    """`dev.py run` tells the story that the README quotes, then serves samples of several kinds without a key, and keeps them when Ctrl-C ends it."""
    program = first_run(tmp_path / "data", "--port", "0")
    try:
        address, told = program.heard(r"standfast is at (http://127\.0\.0\.1:\d+)")
        check_story(told)
        with Client(address) as client:
            runs = client.list_executions().items
            assert client.tell_me().credential == "dev"
            assert {each.definition for each in runs} >= {"order", "expense", "purchases.approval", "discount"}
            assert client.read_document("claim", "C-1").status == "submitted"
            assert client.list_tasks(mine="false").items
            orders = [client.get_execution(each.id) for each in runs if each.definition == "order"]
            [order] = [each.id for each in orders if each.input == {"sku": "lamp", "amount": 1200}]
            client.signal_execution(order, name="packed")
            assert client.result(order, timeout=60) is not None
        code, rest = program.end(signal.SIGINT)
    finally:
        program.close()
    assert code == 0
    assert "authentication is off (development mode)" in rest
    assert f"the data are kept in {tmp_path / 'data'}" in rest
    engine = Engine(f"sqlite:///{tmp_path / 'data' / 'standfast.db'}", migrate=False)
    assert engine.run(order).describe().status == "completed"
    assert [each.definition for each in engine.instances.list(definition="trial")] == ["trial"]
    engine.stop()


def check_story(told: str) -> None:
    """What is told of the order is what the README promises."""
    assert "worker 1 died in the middle of the refund (kill -9)" in told
    assert re.search(r"charge card +rolled_back +1 +2\n", told), "the refund is called again after the crash"
    assert re.search(r"Folded again from its \d+ events, the order is the same: True\.", told)
    quoted = re.findall(r"^    ([✗↶☠↺] .*)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(quoted) == 5
    assert [line for line in quoted if line not in told] == []


@pytest.mark.parametrize(("code", "words", "stays"), [(0, ["--exit"], False), (0, [], True), (1, [], False)])
def test_the_first_run_ends_after_the_story_for_scripts(
    monkeypatch: pytest.MonkeyPatch, code: int, words: list[str], *, stays: bool
) -> None:
    """With `--exit`, and if the story went wrong; otherwise it becomes the server."""
    monkeypatch.syspath_prepend(ROOT)
    dev = importlib.import_module("dev")
    became: list[list[str]] = []

    def become(command: list[str]) -> int:
        became.append(command)
        return 0

    monkeypatch.setattr(dev, "tool", lambda *_command: code)
    monkeypatch.setattr(dev, "stay", become)
    assert dev.run(words) == code
    assert bool(became) == stays
    assert all("dev" in command and str(dev.DATA) in command for command in became)


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
