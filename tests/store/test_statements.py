"""SQL by name: what is declared, what is in the files and what is used are the same statements."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import msgspec
import pytest

from standfast.store.sql.statements import numbered, read_statements
from support.repository import SOURCE

DRIVERS = ["sqlite", "postgres"]
NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def files(driver: str) -> list[Path]:
    """The files with statements of a driver."""
    return sorted((SOURCE / "store" / driver / "sql").glob("*.sql"))


def code(driver: str) -> str:
    """All Python of a driver."""
    return "\n".join(path.read_text(encoding="utf-8") for path in (SOURCE / "store" / driver).rglob("*.py"))


@pytest.mark.parametrize("driver", DRIVERS)
def test_every_file_is_read(driver: str) -> None:
    """No file of statements lies about unread."""
    source = code(driver)
    assert [path.name for path in files(driver) if f'"{path.name}"' not in source] == []


@pytest.mark.parametrize("driver", DRIVERS)
def test_every_statement_is_used(driver: str) -> None:
    """Every statement is named where it is run, as an attribute or as a part of a commit."""
    source = code(driver)
    kinds = set(re.findall(r'yield "(\w+)", ', source))
    parts = {f"{way}_{kind}" for way in ("consumed", "finished") for kind in kinds}
    used = set(re.findall(r"_sql\.(\w+)", source)) | set(re.findall(r'(?:Part)?\(\s*"(\w+)",', source)) | parts
    named = {name for path in files(driver) for name in NAME.findall(path.read_text(encoding="utf-8"))}
    assert named - used == set()


@pytest.mark.parametrize("driver", DRIVERS)
def test_statements_never_read_the_clock(driver: str) -> None:
    """Time is an argument; the database's clock is asked only where the argument may be missing, or by name."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in files(driver)).lower()
    assert not re.search(r"\bnow\(\)|current_timestamp|datetime\('now'\)", text)
    asked = [line for line in text.splitlines() if "clock_timestamp()" in line or "'now'" in line]
    allowed = re.compile(
        r"coalesce\(\?::timestamptz, clock_timestamp\(\)\)|^select (clock_timestamp|strftime)|default clock_timestamp"
    )
    assert [line for line in asked if not allowed.search(line)] == []


class Two(msgspec.Struct, frozen=True):
    one: str
    two: str


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the SQL of a package that can be imported."""
    folder = tmp_path / "sampled" / "sql"
    folder.mkdir(parents=True)
    (tmp_path / "sampled" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sampled", raising=False)
    return folder


def test_statements_are_stripped(package: Path) -> None:
    """Comments, line breaks and the closing semicolon are for readers; what is run is one line."""
    (package / "a.sql").write_text(
        "-- essay\n\n-- name: one\n-- why\nselect 1,\n    -- inside\n    2;\n\n-- name: two\nselect 3\n"
    )
    assert read_statements(Two, "sampled", "a.sql") == Two("select 1, 2", "select 3")


@pytest.mark.parametrize("text", ["-- name: one\nselect 1", "-- name: one\nx\n-- name: two\nx\n-- name: three\nx"])
def test_a_file_must_match_its_declaration(package: Path, text: str) -> None:
    """A statement that is missing, or that nobody declared, stops the import."""
    (package / "a.sql").write_text(text)
    with pytest.raises(AssertionError, match="differ from Two"):
        read_statements(Two, "sampled", "a.sql")


def test_placeholders_are_counted() -> None:
    """The first question mark is the first argument."""
    assert numbered("select ?, ? where ? = 1") == "select $1, $2 where $3 = 1"
