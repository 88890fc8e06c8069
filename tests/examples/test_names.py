"""What the documents and the source say of an engine is there: every `engine.x`, `engine.x.y` and `engine.x(…).y` leads somewhere."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import CoroutineType
from typing import Any, get_origin

import pytest

from standfast.testing import ManualEngine
from support.recording import hints_of
from support.repository import ROOT, SOURCE

NAME = re.compile(r"(?<![\w./])engine(?=\.[a-z_]+)(?!\.(?:md|py|sql)\b)")
PART = re.compile(r"\s*\.([a-z_]\w*)")
PLAIN = {"settings", "clock"}
"""What an engine keeps beside its calls."""


def pages() -> Iterator[tuple[str, str]]:
    """The text of every page that a reader meets."""
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        yield page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8")


def sentences(file: Path) -> Iterator[str]:
    """The string literals of a module: docstrings, messages of errors, parts of f-strings."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def closed(text: str, start: int) -> int:
    """Where the bracket that opens at `start` is closed; the end of the text if it never is."""
    depth = 0
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place + 1
    return len(text)


def chains(text: str) -> Iterator[list[str]]:
    """The names behind each `engine`, and `()` for a call."""
    for found in NAME.finditer(text):
        place, parts = found.end(), []
        while place < len(text):
            part = PART.match(text, place)
            if part is not None:
                parts.append(part[1])
                place = part.end()
            elif text[place] == "(" and parts[-1] != "()":
                parts.append("()")
                place = closed(text, place)
            else:
                break
        yield parts


def led_to(kind: Any, name: str) -> Any:
    """What an attribute of a class is: a class, or a function of it. Object stands for what is not looked into any further."""
    hints = hints_of(kind)
    if name in hints:
        return get_origin(hints[name]) or hints[name]
    member = getattr(kind, name)
    return hints_of(member.fget)["return"] if isinstance(member, property) else member


def called(function: Any) -> Any:
    """What a call of it gives."""
    if inspect.iscoroutinefunction(function):
        return CoroutineType
    given = hints_of(function).get("return", object)
    kind = get_origin(given) or given
    return kind if inspect.isclass(kind) else object


def leads_nowhere(parts: list[str]) -> bool:
    """Whether one of the names is not there."""
    at: Any = ManualEngine
    if parts[0] in {"commit", "common", "concurrency", "loops", "worker"}:
        return False  # A room of the package of this name.
    for part in parts:
        if at is object:
            return False
        if part == "()":
            at = called(at) if inspect.isfunction(at) else object
        elif part in PLAIN and at is ManualEngine:
            at = object
        else:
            try:
                at = led_to(at, part)
            except AttributeError:
                return True
    return False


def wrong(text: str) -> list[str]:
    """The chains of a text that lead nowhere."""
    return [".".join(["engine", *parts]).replace(".()", "()") for parts in chains(text) if leads_nowhere(parts)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`engine.signal` and `engine.start`", ["engine.signal"]),
        ("engine.admin.backlog(), engine.backlog()", ["engine.backlog()"]),
        ("engine.deciders.execute(f(1), 2), engine.deciders.carry(…)", ["engine.deciders.carry()"]),
        ("engine.start(g(1), (2)).result().x, engine.start(…).value()", ["engine.start().value()"]),
        ("engine.futures.start(…).result(), engine.aio.start(…).result()", ["engine.aio.start().result()"]),
        ('engine.acting("ann").admin, engine.acting("ann").tasks.list(role="x")', ["engine.acting().admin"]),
        ("docs/reference/engine.md, app/engine.py, engine.py, my.engine.nonsense, engine. the end", []),
    ],
)
def test_a_name_that_leads_nowhere_is_found(text: str, found: list[str]) -> None:
    """The test of the pages sees names, namespaces, and what calls give."""
    assert wrong(text) == found


def test_the_pages_name_calls_that_are_there() -> None:
    """A reader who looks for what a page names finds it."""
    assert [(page, name) for page, text in pages() for name in wrong(text)] == []


def test_the_source_names_calls_that_are_there() -> None:
    """So does one who reads an error or a docstring."""
    files = [file for top in (SOURCE, ROOT / "examples") for file in sorted(top.rglob("*.py"))]
    assert files
    assert [
        (file.relative_to(ROOT).as_posix(), name) for file in files for text in sentences(file) for name in wrong(text)
    ] == []


@pytest.mark.row("R-139")
def test_the_parts_of_pauses_are_where_the_page_says() -> None:
    """Every part that the specification of pauses names has its own place, and the page that tells of it leads there."""
    page = (ROOT / "docs" / "internals" / "where-pauses-live.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| `([\w.]+):(\w+)` \|", page, re.MULTILINE)
    assert {"executor", "event router", "resumer", "approval service", "repository", "worker", "HTTP handlers"} <= {
        part for part, _, _ in rows
    }
    assert len({module for _, module, _ in rows}) == len(rows)
    assert all(hasattr(importlib.import_module(module), name) for _, module, name in rows)
