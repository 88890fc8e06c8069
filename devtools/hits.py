"""A plugin of pytest that writes down which tests come to which blocks of the package; `mutate.py` runs it.

    HITS=file.json python -m pytest -p devtools.hits …

Each block of a function (its body, a branch, the body of a loop) gets a call in front that notes its number. That costs a few percent,
where tracing every line would take several times as long. What runs in another process is not seen.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final, NamedTuple

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
NOTE: Final = "__standfast_hit__"


class Block(NamedTuple):
    """Statements that are all run if the first one is, unless one of them leaves."""

    file: str
    first: int
    last: int


class Blocks:
    """All blocks of modules that were imported, by number."""

    def __init__(self) -> None:
        self.all: list[Block] = []
        self.hit: set[int] = set()
        self.imported: dict[str, None] = {}

    def numbered(self, block: Block) -> int:
        """The number of a block."""
        self.all.append(block)
        return len(self.all) - 1


BLOCKS: Final = Blocks()


def blocks_of(file: str, tree: ast.Module) -> Iterator[tuple[Block, list[ast.stmt]]]:
    """The blocks of all functions of a module, with their statements."""
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for each in [node, *_within(node)]:
            for name in ("body", "orelse", "finalbody"):
                body = getattr(each, name, None)
                if isinstance(body, list) and body:
                    yield Block(file, body[0].lineno, body[-1].end_lineno or body[-1].lineno), body


def _within(function: ast.AST) -> Iterator[ast.AST]:
    """What has blocks in a function, those of functions inside of it apart."""
    for node in ast.iter_child_nodes(function):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            yield node
        yield from _within(node)


class Noting(importlib.machinery.SourceFileLoader):
    """Reads a module with a note in front of each block."""

    def get_code(self, fullname: str) -> CodeType | None:
        """Never the compiled one, which has no notes."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def source_to_code(  # type: ignore[override]
        self, data: bytes, path: str, *, _optimize: int = -1
    ) -> CodeType:
        """The module with its notes."""
        tree = ast.parse(data)
        file = str(Path(path).relative_to(ROOT))
        for block, body in list(blocks_of(file, tree)):
            number = BLOCKS.numbered(block)
            call = ast.Call(ast.Name(NOTE, ast.Load()), [ast.Constant(number)], [])
            has_docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
            place = 1 if has_docstring and len(body) > 1 else 0
            body.insert(place, ast.copy_location(ast.Expr(call), body[0]))
        ast.fix_missing_locations(tree)
        return compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)

    def exec_module(self, module: ModuleType) -> None:
        """Lend it what notes."""
        vars(module)[NOTE] = BLOCKS.hit.add
        super().exec_module(module)


class Finder(importlib.abc.MetaPathFinder):
    """Finds modules of the package, for `Noting` to read."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """As Python would, but for who reads it."""
        if not fullname.startswith("standfast."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = Noting(fullname, spec.loader.path)
        return spec


class Recording:
    """What the tests of one process came to."""

    def __init__(self) -> None:
        self.tests: dict[str, tuple[float, list[int]]] = {}
        self._shared: dict[tuple[str, str], set[int]] = {}
        """What making a fixture that several tests share has come to: it is of each of them, whichever is the first."""

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        """Keep apart what is done for several tests at once."""
        if fixturedef.scope == "function":
            return (yield)
        before = set(BLOCKS.hit)
        BLOCKS.hit.clear()
        try:
            return (yield)
        finally:
            self._shared[fixturedef.baseid, fixturedef.argname] = set(BLOCKS.hit)
            BLOCKS.hit.update(before)

    def _lent(self, item: pytest.Item) -> set[int]:
        info = getattr(item, "_fixtureinfo", None)
        known = [] if info is None else [each for several in info.name2fixturedefs.values() for each in several]
        return set().union(*(self._shared.get((each.baseid, each.argname), ()) for each in known))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Everything between the beginning and the end of a test is of the test."""
        BLOCKS.hit.clear()
        began = time.perf_counter()
        found = yield
        self.tests[item.nodeid] = (time.perf_counter() - began, sorted(BLOCKS.hit | self._lent(item)))
        return found

    def pytest_sessionfinish(self) -> None:
        """Write it down, for each process by itself."""
        if not self.tests:
            return
        file = Path(os.environ["HITS"])
        worker = os.environ.get("PYTEST_XDIST_WORKER", "one")
        written = {"blocks": BLOCKS.all, "tests": self.tests}
        file.with_name(f"{file.name}.{worker}").write_text(json.dumps(written), encoding="utf-8")


sys.meta_path.insert(0, Finder())


def pytest_configure(config: pytest.Config) -> None:
    """Listen to the tests of this process."""
    config.pluginmanager.register(Recording(), "hits")
