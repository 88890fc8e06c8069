"""An engine that cannot be opened: the error says why, and nothing is left behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from standfast import Engine, MessagePackCodec, StandfastError
from standfast.engine.common.clock import DatabaseClock
from standfast.testing import ManualEngine
from support.engines import Live

FILES = Path("/proc/self/fd")


class BrokenClock(DatabaseClock):
    """A clock that cannot be set."""

    def synchronise(self, *_: object) -> None:
        """Fail."""
        raise OSError("no time")


def left_by(opening: Callable[[], object], error: type[Exception]) -> list[str]:
    """The threads and open files, or connections, that an attempt leaves."""
    threads, files = set(threading.enumerate()), set(FILES.iterdir())
    with pytest.raises(error) as caught:
        opening()
    found = [thread.name for thread in threading.enumerate() if thread not in threads]
    found += [str(each.readlink()) for each in {*FILES.iterdir()} - files if each.is_symlink()]
    del caught  # Until now it has held on to everything that the attempt had made.
    return found


WRONG: dict[str, dict[str, Any]] = {
    "no tenant": {"tenant": ""},
    "a tenant that is none": {"tenant": "*"},
    "a tenant of another type": {"tenant": 5},
    "a tenant with half a character": {"tenant": "\ud800"},
    "settings of another type": {"settings": {"lease": 5}},
    "a clock that cannot be set": {"clock": BrokenClock()},
    "a clock that is none": {"clock": object()},
    "chance that is none": {"chance": object()},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_engine_that_cannot_be_opened_leaves_nothing_behind(live: Live, wrong: str) -> None:
    """No thread, no file and no connection, whichever argument is wrong; the database can be opened right afterwards."""
    live.engine().stop()
    for threads in (True, False):
        options = {"threads": threads, **WRONG[wrong]}
        assert left_by(lambda options=options: Engine(live.url, **options), Exception) == []  # type: ignore[misc]
    assert live.engine().health().is_healthy


@pytest.mark.parametrize("tenant", ["", "*", 5])
def test_a_wrong_tenant_is_found_before_anything_is_opened(tmp_path: Path, tenant: Any) -> None:
    """What can be judged without a database is judged first: the file is not even made."""
    path = tmp_path / "new.db"
    assert left_by(lambda: Engine(f"sqlite:///{path}", tenant=tenant), StandfastError) == []
    assert not path.exists()


def test_a_store_of_the_callers_own_stays_open(live: Live) -> None:
    """An engine closes what it opened, and nothing else."""
    engine = live.engine()
    store = engine.service.store
    with pytest.raises(StandfastError):
        Engine(store=store, tenant="*")
    with pytest.raises(OSError, match="no time"):
        Engine(store=store, clock=BrokenClock())
    assert engine.runs.list().items == []


def test_a_file_that_is_no_database_is_not_kept_open(tmp_path: Path) -> None:
    """Neither by an engine nor by one for tests; nor one that was written in another encoding."""
    path = tmp_path / "no.db"
    path.write_bytes(b"this is no database, however long one looks at it" * 100)
    for kind in (Engine, ManualEngine):
        assert left_by(lambda kind=kind: kind(f"sqlite:///{path}"), StandfastError) == []  # type: ignore[misc]
    other = f"sqlite:///{tmp_path / 'other.db'}"
    Engine(other, codec=MessagePackCodec()).stop()
    assert left_by(lambda: Engine(other), StandfastError) == []


def test_an_engine_for_tests_leaves_nothing_behind_either(tmp_path: Path) -> None:
    """It opens its store itself, and closes it if the engine cannot be made."""
    url = f"sqlite:///{tmp_path / 'manual.db'}"
    wrong: Any = {"lease": 5}
    assert left_by(lambda: ManualEngine(url, settings=wrong), StandfastError) == []
