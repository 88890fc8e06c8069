"""Golden histories in a database: a whole engine of today finds them there, shows them, and goes on with them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from histories.deciders import Accounts, Annotate, told
from histories.golden import FILES, Golden, Life, read, stored
from standfast import RequestContext
from standfast.kernel.actor import SYSTEM
from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.store.ports.store import Store
from standfast.store.records.instances import InstanceChange, InstanceHeader, Snapshot, StoredDefinition
from standfast.testing import ManualEngine
from standfast.testing.manual import START
from support.engines import Place
from support.inside import registry_of

GOLDEN = sorted(FILES.glob("*.json"))


def change_of(life: Life, program: Program) -> InstanceChange:
    """The one commit that brings an instance into a database."""
    events, kept = [stored(each.row, StoredEvent) for each in life.events], life.snapshot
    commits = {"commits": len({each.cause for each in events})}  # Older files do not count them.
    return InstanceChange(
        header=stored({**commits, **life.header}, InstanceHeader),
        expected=0,
        events=events,
        records=program.rebuild(events)[1] or (),
        snapshot=None if kept is None else stored(msgspec.structs.asdict(kept), Snapshot),
    )


def take_in(store: Store, engine: ManualEngine, golden: Golden) -> list[InstanceId]:
    """Put the definitions and instances of a file into a database; the instances."""
    for kin in golden.definitions:
        store.definitions().publish(stored(kin.row, StoredDefinition), START)
    headers = [stored(life.header, InstanceHeader) for life in golden.lives]
    programs = [registry_of(engine).get(each.tenant, each.definition, each.definition_version) for each in headers]
    changes = [change_of(life, program) for life, program in zip(golden.lives, programs, strict=True)]
    store.writer().write(changes, now=START)
    return [each.id for each in headers]


@pytest.mark.row("EC-35")
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_an_engine_goes_on_with_what_was_written(place: Place, path: Path) -> None:
    """Instances are found and verified; runs show their history and their steps, and one that has not ended can be stopped."""
    place.clock.move(
        timedelta(days=1)
    )  # Whoever opens an engine later gives its commands other names than the files have.
    golden, engine = read(path), place.engine().register(Accounts(), told)
    for instance in take_in(place.store, engine, golden):
        assert engine.instances.verify(instance).differences == []
    for run in engine.runs.list().items:
        life = next(each for each in golden.lives if each.header["id"] == str(run.id))
        handle = engine.run(run.id)
        assert len(handle.history()) == len(life.events)
        assert len(handle.steps()) <= len(life.rows["step"])
        has_ended = life.header["ended_at"] is not None
        assert handle.describe().is_terminal == has_ended
        if not has_ended and life.header["kind"] != "envelope":  # A document ends by its lifecycle alone.
            engine.futures.run(run.id).abort("the test is over")
            assert handle.describe().status in {"aborted", "cancelled"}


def test_an_account_of_old_code_takes_commands(place: Place) -> None:
    """A decider goes on with an instance that older classes have written."""
    engine = place.engine().register(Accounts(), told)
    take_in(place.store, engine, read(FILES / "accounts.json"))
    calls = engine.acting(RequestContext(partition="north", actor=SYSTEM))  # Where it was opened.
    before = calls.deciders.state(Accounts, "a-1")
    calls.deciders.execute(Accounts, Annotate(workflow_id="a-1", text="still here"))
    assert calls.deciders.state(Accounts, "a-1").notes == (*before.notes, "still here")
    assert before.owner == "Ann"
