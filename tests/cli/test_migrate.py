"""The `standfast migrate` command, as an operator runs it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from standfast.cli import main
from standfast.errors import SchemaMismatchError
from standfast.store.opening import open_store
from support.databases import Databases


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and everything that was said."""
    result = CliRunner().invoke(main, ["migrate", *arguments])
    return result.exit_code, result.output


def test_a_new_file_gets_the_schema(tmp_path: Path) -> None:
    """After the command an engine that may not migrate can open the file; a second run changes nothing."""
    url = f"sqlite:///{tmp_path / 'new.db'}"
    with pytest.raises(SchemaMismatchError, match="run `standfast migrate"):
        open_store(url, may_migrate=False)

    assert run(url) == (0, f"{url} has the schema of this code\n")
    assert run(url)[0] == 0
    open_store(url, may_migrate=False).close()


def test_an_empty_server_database_gets_the_schema(postgres_server: Databases) -> None:
    """The same for Postgres."""
    with postgres_server.empty() as dsn:
        assert run(dsn)[0] == 0
        open_store(dsn, may_migrate=False).close()


@pytest.mark.row("EH-16")
def test_a_host_migrates_with_a_tool_of_its_own(tmp_path: Path, postgres_server: Databases) -> None:
    """The SQL that is printed makes the same schema: an engine that may not migrate opens it. What is there already is not printed again."""
    _, script = run("--export", "sqlite")
    with closing(sqlite3.connect(tmp_path / "own.db")) as connection:
        connection.executescript(script)
    open_store(f"sqlite:///{tmp_path / 'own.db'}", may_migrate=False).close()
    with postgres_server.empty() as dsn:
        with psycopg.connect(dsn, autocommit=True) as connected:
            connected.execute(run("--export", "postgres")[1].encode())
        open_store(dsn, may_migrate=False).close()
    assert run("--export", "sqlite", "--after", "9999") == (0, "")
    assert run("--export", "mysql")[0] == 2


def test_what_cannot_be_migrated_is_told_with_its_code() -> None:
    """A wrong URL ends with code 2 and a sentence that says what to write."""
    code, said = run("mysql://x")

    assert code == 2
    assert "use sqlite:///file.db" in said
    assert "[bad_configuration]" in said
