"""The shape of the code: sizes, the place of SQL, untyped corners, and what must be documented.

Each test lists every offender at once. A package that does not exist has no offenders.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from support.repository import ROOT, SOURCE, load_generator

LONGEST_MODULE = 500
LONGEST_BODY = 50
LONG_MODULES: dict[str, int] = {}
"""Modules that may be longer, as path below src/holdfast and number of lines; the number may only shrink."""

ANY_PER_THOUSAND_LINES = 5
PACKAGES_WITHOUT_ANY = {"diagrams", "kernel", "machine"}
"""Packages in which everything has a type of its own."""

STATEMENT = re.compile(
    r"(?:^|[(;\n])\s*select\b.*\bfrom\b|\binsert\s+into\b|\bupdate\s+\S+\s+set\b[^;]*=|\bdelete\s+from\b",
    re.IGNORECASE | re.DOTALL,
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of the package as path below src/holdfast, and its file."""
    for file in sorted(SOURCE.rglob("*.py")):
        yield file.relative_to(SOURCE).as_posix(), file


def line_count(file: Path) -> int:
    """How many lines a file has."""
    return len(file.read_text(encoding="utf-8").splitlines())


def parsed(file: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(file.read_text(encoding="utf-8"))


def test_modules_are_short() -> None:
    """No module is longer than 500 lines; the listed exceptions match their size, so that they can only shrink."""
    long = {name: line_count(file) for name, file in modules() if line_count(file) > LONGEST_MODULE}
    assert long == LONG_MODULES, "split the module; if an exception has shrunk, lower its number or drop it"


def body_length(function: Function) -> int:
    """The number of lines from the first statement after the docstring to the last."""
    statements = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if not statements:
        return 0
    return (statements[-1].end_lineno or 0) - statements[0].lineno + 1


def functions(tree: ast.Module) -> Iterator[Function]:
    """All functions and methods of a module, nested ones too."""
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


def test_functions_are_short() -> None:
    """No function body is longer than 50 lines."""
    long = [
        f"{name}:{function.lineno} {function.name}: {body_length(function)} lines"
        for name, file in modules()
        for function in functions(parsed(file))
        if body_length(function) > LONGEST_BODY
    ]
    assert not long


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and value of each string literal; docstrings are prose and left out, inserted values stand as `{}`."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value


def statements(tree: ast.Module) -> list[int]:
    """The lines on which a string holds a SQL statement."""
    return [line for line, text in texts(tree) if STATEMENT.search(text)]


def test_sql_stays_in_the_store() -> None:
    """No module outside the store holds a SQL statement."""
    found = [
        f"{name}:{line}"
        for name, file in modules()
        if not name.startswith("store/")
        for line in statements(parsed(file))
    ]
    assert not found


@pytest.mark.parametrize(
    ("source", "is_statement"),
    [
        ('x = "select a from b"', True),
        ('x = f"SELECT {a}\\nFROM b"', True),
        ('x = "with c as (select 1 from d) table c"', True),
        ('x = f"insert into {table} values (1)"', True),
        ('x = f"update {table} set a = 1"', True),
        ('x = "delete from b"', True),
        ('x = "drop database b"', False),
        ('x = "an update was set aside; please select another"', False),
        ('def f():\n    """select a thing from a list; delete from it"""', False),
    ],
)
def test_statements_are_told_from_prose(source: str, *, is_statement: bool) -> None:
    """The search for SQL finds statements, also with inserted values, and leaves sentences and docstrings alone."""
    assert bool(statements(ast.parse(source))) == is_statement


def untyped_corners(tree: ast.Module) -> int:
    """How often `Any` is used; its import does not count."""
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    attributes = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return names.count("Any") + attributes.count("Any")


def test_any_is_rare() -> None:
    """`Any` does not occur in kernel, diagrams and machine, and elsewhere at most five times in a thousand lines (once is free)."""
    lines: Counter[str] = Counter()
    uses: Counter[str] = Counter()
    for name, file in modules():
        package = name.split("/")[0]
        lines[package] += line_count(file)
        uses[package] += untyped_corners(parsed(file))
    over = {package: used for package, used in uses.items() if used > ceiling(package, lines[package])}
    assert not over


def ceiling(package: str, lines: int) -> int:
    """How often a package of this length may use `Any`."""
    return 0 if package in PACKAGES_WITHOUT_ANY else max(1, lines * ANY_PER_THOUSAND_LINES // 1000)


def test_public_names_are_documented() -> None:
    """Every class, function and module that `holdfast` offers has a docstring of its own."""
    public = {name: getattr(holdfast, name) for name in getattr(holdfast, "__all__", ())}
    silent = [name for name, value in public.items() if can_be_documented(value) and not own_docstring(value)]
    assert not silent


def can_be_documented(value: object) -> bool:
    """Constants and type aliases have no docstring at run time."""
    return inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value)


def own_docstring(value: object) -> str:
    """The docstring that somebody wrote: neither inherited nor the signature that `dataclass` puts in its place."""
    if not inspect.isclass(value):
        return value.__doc__ or ""
    text = str(vars(value).get("__doc__") or "")
    return "" if text.startswith(f"{value.__name__}(") else text


def test_error_codes_are_unique() -> None:
    """A code names one error class, so that a caller can tell them apart by it."""
    codes = Counter(each.code for each in load_generator().error_classes())
    assert not [code for code, uses in codes.items() if uses > 1]


def test_error_codes_are_documented() -> None:
    """Every error code is explained in docs/reference/errors.md."""
    page = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    assert not [each.code for each in load_generator().error_classes() if f"| `{each.code}` |" not in page]


def test_decisions_say_whether_they_still_hold() -> None:
    """Every ADR has a status below its title, and one that takes back a sentence of another is named there in turn."""
    statuses = {
        file.name: file.read_text(encoding="utf-8").split("\n\n")[1] for file in (ROOT / "docs/adr").glob("*.md")
    }
    assert not [name for name, status in statuses.items() if not status.startswith("Status: accepted.")]
    taken_back = [
        (name, other)
        for name, status in statuses.items()
        if "Supersedes" in status
        for other in re.findall(r"\]\(([^)]+)\)", status)
    ]
    assert taken_back
    assert not [pair for pair in taken_back if pair[0] not in statuses[pair[1]]]
