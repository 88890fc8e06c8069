"""Golden histories in a copy: whatever was ever written is the same in another database, and an engine goes on with it there."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from histories.deciders import Accounts, told
from histories.golden import FILES, read
from histories.test_going_on import GOLDEN, take_in
from standfast import copy_database
from standfast.engine.common.clock import ManualClock
from standfast.store.opening import open_store
from standfast.testing import ManualEngine
from standfast.testing.manual import START
from support.databases import Databases
from support.folding import assert_folded


@pytest.mark.long
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_histories_are_the_same_in_a_copy(path: Path, tmp_path: Path, postgres_server: Databases) -> None:
    """From a file to a server and back: every history is verified on both, and runs that have not ended can be stopped in the end."""
    urls = [f"sqlite:///{tmp_path / name}.db" for name in ("first", "last")]
    store = open_store(urls[0])
    engine = ManualEngine(store=store).register(Accounts(), told)
    instances = take_in(store, engine, read(FILES / path.name))
    engine.stop()
    store.close()
    with postgres_server.prepared() as server:
        for source, target in ((urls[0], server), (server, urls[1])):
            copied = copy_database(source, target, deciders=[Accounts()])
            assert (copied.verified, copied.differences, copied.unread) == (len(instances), [], {})
    later = ManualClock(START + timedelta(days=1))  # So that its commands have other names than those in the files.
    engine = ManualEngine(urls[1], clock=later, is_alone=False).register(Accounts(), told)
    documents = {each.id for each in engine.instances.list(kind="envelope")}
    for run in engine.runs.list(is_active=True):
        if run.id not in documents:  # One of those ends by its lifecycle alone.
            engine.futures.run(run.id).abort("the test is over")
            assert engine.run(run.id).describe().is_terminal
    assert_folded(engine)
    engine.stop()
