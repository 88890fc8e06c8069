"""The kinds of tests that the specification of pause and resume lists are in the suite, each where its kind is at home and about what it is to prove."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from support.repository import ROOT, load_generator

generate = load_generator()


class Expected(NamedTuple):
    """A kind of tests."""

    place: str
    """The folder or the file that it lives in."""
    rows: tuple[str, ...]
    """The requirements that tests of this kind defend, each of them."""
    tools: tuple[str, ...] = ()
    """What a file of this kind cannot do without: names that it imports or fixtures that it takes."""
    without: tuple[str, ...] = ()
    """Modules that it must not need."""


KINDS: Mapping[str, Expected] = {
    "unit": Expected("tests/machine", ("R-118",), ("Host",), ("standfast.store", "standfast.app", "standfast.engine")),
    "REST endpoint": Expected("tests/api/test_routes.py", ("R-067", "R-068", "R-069", "R-070"), ("world",)),
    "REST endpoint, who may": Expected("tests/api/test_matrix.py", ("R-067", "R-068")),
    "approval to resume": Expected("tests/app/rules/test_runs.py", ("R-117",), ("place", "answer")),
    "event to resume": Expected("tests/app/rules/test_resuming.py", ("R-036", "R-093"), ("place", "publish")),
    "load": Expected("tests/app/rules", ("R-120", "R-121", "R-122"), ("live",)),
}
EXECUTED = ("pause-and-resume", "pause-definitions", "write-rules", "wait-for-events", "ask-people", "approve-expenses")
"""Pages about waiting; what they show is run."""


def files_of(kind: Expected) -> list[Path]:
    """The test files at the place of a kind."""
    place = ROOT / kind.place
    return [place] if place.is_file() else sorted(place.rglob("test_*.py"))


def defended(file: Path) -> set[str]:
    """The rows that tests of a file name, each test with something that can fail in it."""
    source = file.read_text(encoding="utf-8")
    tests = {
        each.name
        for each in ast.walk(ast.parse(source))
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_") and _can_fail(each)
    }
    marks = generate.marks_in(source, generate.relative(file))
    return {mark.row for mark in marks if mark.test.rpartition("::")[2] in tests}


def _can_fail(test: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Assert) or "raises" in ast.dump(each) for each in ast.walk(test))


def names_in(file: Path) -> set[str]:
    """The names that a file uses, and the modules that it imports."""
    found: set[str] = set()
    for each in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match each:
            case ast.Name(id=name) | ast.arg(arg=name):
                found.add(name)
            case ast.ImportFrom(module=str(module)):
                found.add(module)
            case _:
                pass
    return found


@pytest.mark.row("R-143")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_test_is_there(kind: str) -> None:
    """A test of the kind defends each of its rows; without it the kind is missing, whatever other tests prove."""
    expected = KINDS[kind]
    files = {file: defended(file) for file in files_of(expected)}
    for row in expected.rows:
        holding = [file for file, rows in files.items() if row in rows]
        assert holding, f"no test below {expected.place} defends {row}"
        names = set.union(*map(names_in, holding))
        assert set(expected.tools) <= names
        assert not [each for each in names if each.startswith(expected.without)] if expected.without else True


@pytest.mark.row("R-143")
def test_what_pages_show_is_run() -> None:
    """Documentation with examples that are programs: the pages about waiting are among those that the tests run, and the worked example too."""
    from examples.test_documents import BLOCK, RUNNABLE

    for page in EXECUTED:
        name = f"docs/how-to/{page}.md"
        assert name in RUNNABLE
        assert BLOCK.findall((ROOT / name).read_text(encoding="utf-8"))
    assert "R-111" in defended(ROOT / "tests/app/rules/test_runs.py")
