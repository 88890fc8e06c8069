"""After a restore: receivers know of effects that the database has forgotten, and their keys tell which."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest

from cli.calling import Standfast
from standfast import Decision, Fail, ForbiddenError, PayloadError, RequestContext, Saga, SagaDefinition, StepContext
from standfast.kernel.actor import Actor
from standfast.testing import ManualEngine
from support.engines import Place
from support.samples import Act, Do, Noted, Puppet

GHOST = UUID("0193a2b4-0000-7000-8000-00000000dead")


class Receiver:
    """Another system, which keeps the keys of what it was sent."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.is_full = False

    def take(self, context: StepContext) -> None:
        """Take something."""
        self.keys.append(context.idempotency_key)
        if self.is_full:
            raise Fail("there is no room")


def saga(receiver: Receiver) -> SagaDefinition:
    """Two parcels, and no way back of the first that leaves no trace."""
    return Saga("order").step("one", receiver.take, undo=receiver.take).step("two", receiver.take).build()


@pytest.mark.row("EO-39")
def test_a_database_tells_what_it_knows_of_effects(place: Place) -> None:
    """Those that are done, those that will be sent again, those whose run or step is not there; and what is no key."""

    def work(_context: object, _effect: object) -> None:
        """Do nothing."""

    receiver = Receiver()
    engine = (
        place.engine()
        .register(saga(receiver))
        .register(Puppet(lambda *_: Decision.event(Noted("x")).with_effect(Act("work"))), work)
    )
    run = engine.start("order", key="o-1")
    engine.deciders.execute("puppet", Do("p-1", "begin"))
    puppet = next(each.id for each in engine.instances.list() if each.definition == "puppet")
    asked = [
        f"{run.id}:1",
        f"{run.id}:2",
        f"{run.id}:1!",
        f"{GHOST}:1",
        f"{puppet}:0",
        f"{puppet}:9",
        "order 7",
        "",
        f"{run.id}:1",
    ]
    told = engine.instances.sent(asked)
    assert [each.state for each in told] == [
        "again",
        "lost",
        "lost",
        "lost",
        "again",
        "lost",
        "unknown",
        "unknown",
        "again",
    ]
    assert [each.key for each in told] == asked
    assert (told[0].definition, told[0].business_key, told[0].step) == ("order", "o-1", "one")
    receiver.is_full = True
    engine.drain()
    assert [each.state for each in engine.instances.sent([*receiver.keys, f"{puppet}:0"])] == ["known"] * (
        len(receiver.keys) + 1
    )
    for keys in ("x", [1], ["x"] * 10_001, 7):
        with pytest.raises(PayloadError):
            engine.instances.sent(keys)  # type: ignore[arg-type]
    with pytest.raises(ForbiddenError):
        engine.acting(RequestContext(actor=Actor(id="eve"))).instances.sent(asked)
    assert {each.state for each in engine.as_tenant("rival").instances.sent(asked[:6])} == {"lost"}


@pytest.mark.row("EO-39")
def test_doctor_lists_what_was_sent_after_the_restore_point(tmp_path: Path) -> None:
    """A file is copied while it is in use, work goes on, and the copy takes its place: what the receiver has seen since is told, each with what to do."""
    receiver, database, copy = Receiver(), tmp_path / "live.db", tmp_path / "copy.db"
    engine = ManualEngine(f"sqlite:///{database}").register(saga(receiver))
    early = engine.start("order")
    engine.drain()
    begun = engine.start("order")
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    late = engine.start("order")
    engine.drain()
    engine.stop()
    (tmp_path / "keys.txt").write_text("\n".join([*receiver.keys, "", "something else"]))
    restored = Standfast(f"sqlite:///{copy}")
    done = restored("doctor", "--after-restore", str(tmp_path / "keys.txt"), code=1)
    assert "2 known, 1 again, 3 lost, 1 unknown" in done.stdout
    lost = {f"{begun.id}:2", f"{late.id}:1", f"{late.id}:2"}
    assert all(f"{key} lost" in done.stdout for key in lost)
    assert f"{begun.id}:1 again order one" in done.stdout
    assert str(early.id) not in done.stdout
