"""From a URL to a store: what can be written, and what is said about the rest."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from standfast.errors import ConfigurationError, StoreUnavailableError
from standfast.store.opening import DEFAULT_URL, open_store
from standfast.store.ports.store import Store
from support.desks import Desk
from support.rows import (
    born,
    by_id,
)


@pytest.mark.parametrize("url", ["", "standfast.db", "mysql://host/db", "sqlite3:///x.db", "/tmp/x.db", "POSTGRES"])
def test_unknown_urls_are_refused(url: str) -> None:
    """A URL of another kind is refused with the kinds that there are."""
    with pytest.raises(ConfigurationError, match=r"use sqlite:///file.db, sqlite:// or postgresql://"):
        open_store(url)


def test_an_address_of_sqlalchemy_is_told_as_such() -> None:
    """Whoever hands over the address of their ORM is told what to leave out of it, and no password is repeated."""
    with pytest.raises(ConfigurationError, match=r"leave out '\+psycopg', which is for SQLAlchemy") as caught:
        open_store("postgresql+psycopg://shop:secret@127.0.0.1/shop")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["sqlite://file.db", "sqlite:/file.db", "sqlite:file.db", "sqlite://host/file.db"])
def test_slashes_must_be_right(url: str) -> None:
    """Two slashes and a name is the usual slip; the message shows how to write it."""
    with pytest.raises(ConfigurationError, match=r"sqlite:///file.db for a relative path and sqlite:////folder"):
        open_store(url)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:s3cret@host:port/db",
        "postgresql://ada:s3cret@host:99999/db",
        "postgresql://ada:s3cret@host/db?nonsense=1",
        "postgresql://ada:s3cret@[::1/db",
        "postgresql:s3cret",
    ],
)
def test_malformed_postgres_urls_are_refused(url: str) -> None:
    """A Postgres URL that cannot be read is a configuration error that repeats nothing secret."""
    with pytest.raises(ConfigurationError, match=r"not a (Postgres URL|port)") as caught:
        open_store(url)
    assert "s3cret" not in str(caught.value)


def test_an_absent_server_is_unavailable_and_no_secret_is_told() -> None:
    """Nobody listens there: worth trying again, and the password is in no message."""
    with pytest.raises(StoreUnavailableError, match=r"^postgresql://127.0.0.1:1/db cannot be used now") as caught:
        open_store("postgresql://ada:s3cret@127.0.0.1:1/db?connect_timeout=2")
    assert caught.value.retryable
    assert "s3cret" not in str(caught.value)


def test_an_absent_database_is_unavailable(postgres_dsn: str) -> None:
    """The server is there and the database is not: the message names it."""
    with pytest.raises(StoreUnavailableError, match="nowhere"):
        open_store(postgres_dsn.rpartition("/")[0] + "/nowhere")


def test_a_url_is_told_without_secrets(postgres_dsn: str) -> None:
    """What a store calls itself has neither user, password nor options."""
    store = open_store(postgres_dsn.replace("postgres@", "postgres:s3cret@") + "?application_name=x")
    assert store.url.startswith("postgresql://127.0.0.1:")
    assert not any(part in store.url for part in ("s3cret", "postgres@", "application_name"))
    store.close()


def test_a_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """A new database file is readable by nobody else, whatever the umask is."""
    before = os.umask(0)
    try:
        open_store(f"sqlite:///{tmp_path / 'new.db'}").close()
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.db").stat().st_mode) == 0o600


def test_the_default_is_a_file_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a URL the store is standfast.db in the working folder; three slashes are relative, four absolute."""
    monkeypatch.chdir(tmp_path)
    open_store().close()
    open_store("sqlite:///with%20space.db").close()
    open_store(f"sqlite:///{tmp_path}/absolute.db").close()
    assert DEFAULT_URL == "sqlite:///standfast.db"
    assert {path.name for path in tmp_path.iterdir()} == {"standfast.db", "with space.db", "absolute.db"}


@pytest.mark.row("D-114")
@pytest.mark.parametrize("url", ["sqlite://", "sqlite:", "sqlite:///:memory:", "sqlite://:memory:"])
def test_memory_has_several_spellings_and_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Each store in memory is its own, and leaves nothing behind."""
    monkeypatch.chdir(tmp_path)
    first, second = Desk(open_store(url)), Desk(open_store(url))
    head = first.born(born())
    assert second.writer.load([by_id(head.id)]) == [None]
    first.store.close()
    second.store.close()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    """The folder is not made silently; the message asks whether it exists."""
    with pytest.raises(ConfigurationError, match="does the folder exist"):
        open_store(f"sqlite:///{tmp_path / 'nowhere' / 'x.db'}")


@pytest.mark.row("D-116")
def test_another_codec_is_refused(store: Store, store_url: str) -> None:
    """A database remembers the codec that it was written with, and no other may open it."""
    if store_url != "sqlite://":
        with pytest.raises(ConfigurationError, match=r"was written with the 'json' codec.*not with 'msgpack'"):
            open_store(store_url, codec="msgpack")
        open_store(store_url, codec="json").close()


@pytest.mark.row("D-116")
def test_a_codec_of_ones_own_is_remembered(tmp_path: Path) -> None:
    """Any name will do, as long as it stays the same."""
    url = f"sqlite:///{tmp_path / 'x.db'}"
    open_store(url, codec="rot13").close()
    open_store(url, codec="rot13").close()
    with pytest.raises(ConfigurationError, match="rot13"):
        open_store(url)


def test_a_store_works_without_prepared_statements(postgres_dsn: str) -> None:
    """Behind a transaction pooler nothing may be prepared; the store does the same without."""
    store = open_store(postgres_dsn, prepare=False)
    desk = Desk(store)
    heads = [desk.born(born()) for _ in range(3)]
    assert [each is not None for each in desk.writer.load([by_id(head.id) for head in heads])] == [True] * 3
    assert desk.query("select count(*) from pg_prepared_statements") == [(0,)]
    store.close()


def test_a_url_that_is_missing_is_refused_with_a_sentence() -> None:
    """An environment variable that is not set is what is mostly given so."""
    with pytest.raises(ConfigurationError, match="None is not a database"):
        open_store(None)  # type: ignore[arg-type]
