"""The reference of sagas names everything that the code has, and nothing else."""

from __future__ import annotations

import ast
import re
import typing
from collections.abc import Iterator
from pathlib import Path

from holdfast import Saga
from holdfast.authoring.saga import StepOptions, words
from holdfast.authoring.saga.definition import StepType
from holdfast.kernel.history import TIMER_CANCELLED, TIMER_REQUEUED
from holdfast.kernel.vocabulary import wire_name
from holdfast.machine import events
from holdfast.machine.checks import POLICY_WORDS
from holdfast.machine.graph import Task

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "holdfast"
PAGE = (ROOT / "docs" / "reference" / "sagas.md").read_text(encoding="utf-8")

CODE_PLACES = {"Diagnostic": 0, "find": 0, "_name": 1, "_word": 1, "_time": 1, "_number": 1, "_refusal": 1}
"""Functions that are given the code of a finding, and the place of the argument."""
CHECKING = ("machine/checks.py", "machine/flow.py", "machine/compiling.py", "authoring/saga", "app/library.py")


def first_column(heading: str) -> list[str]:
    """What the first table below a heading names in its first column."""
    section = PAGE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = section.split("\n|---", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def codes(file: Path) -> Iterator[str]:
    """The codes of findings that a file has."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        place = CODE_PLACES.get(name)
        if place is not None and len(node.args) > place:
            code = node.args[place]
            if isinstance(code, ast.Constant) and isinstance(code.value, str):
                yield code.value


def test_all_step_types_are_listed() -> None:
    """A type that a definition can show is on the page."""
    assert sorted(first_column("Step types")) == sorted(typing.get_args(StepType))


def test_all_options_are_listed() -> None:
    """An option of a step is on the page."""
    assert sorted(first_column("Options of a call")) == sorted(StepOptions.__annotations__)


def test_all_statuses_are_listed() -> None:
    """A word that an instance or a step can be described by is on the page."""
    assert sorted(first_column("Statuses of instances")) == sorted({*words.ACTIVE, *words.TERMINAL})
    assert sorted(first_column("Statuses of steps")) == sorted(words.STEP_STATUSES)


def test_all_events_are_listed() -> None:
    """An event that a history can hold is on the page."""
    known = [wire_name(event)[0] for event in typing.get_args(events.Event)]
    assert sorted(first_column("Events")) == sorted([*known, TIMER_CANCELLED, TIMER_REQUEUED])


def test_all_rejections_are_listed() -> None:
    """A code with which a workflow refuses a command is on the page."""
    sources = [file.read_text(encoding="utf-8") for file in (SOURCE / "machine").rglob("*.py")]
    known = {code for text in sources for code in re.findall(r"Rejection\(\s*code=\"(\w+)\"", text)}
    assert sorted(first_column("Rejections")) == sorted(known)


def test_all_diagnostics_are_listed() -> None:
    """A code of a finding is on the page."""
    places = [SOURCE / each for each in CHECKING]
    files = [file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))]
    known = {code for file in files for code in codes(file)} | set(POLICY_WORDS)
    assert sorted(first_column("Diagnostics")) == sorted(known)


def test_the_defaults_of_the_page_are_those_of_the_builder() -> None:
    """A step that says nothing about its calls has the defaults that the page names."""
    node = Saga("defaults").step("a", "a").build().graph.nodes["a"]
    assert isinstance(node.op, Task)
    work, retry = node.op.work, node.op.work.retry
    assert (retry.max_calls, retry.delay_ms, retry.backoff) == (3, 0, "fixed")
    assert (retry.factor_percent, retry.cap_ms, retry.jitter_percent) == (200, 300_000, 0)
    assert (work.once, work.transactional, work.timeout_ms, node.priority, node.metadata) == (False, False, None, 0, {})
