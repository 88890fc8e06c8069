"""Work that no code can read: an incident within a bound, then a dead letter; what waits behind it goes on, and nothing says that it moves."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from app.test_rolling import Newer, Warn
from standfast import Saga, SagaDefinition, Settings
from standfast.engine.common.telemetry import Happening, WorkBuried
from standfast.kernel.ids import InstanceId
from standfast.store.records.instances import Address, StoredMessage
from standfast.testing import ManualEngine
from support.engines import Place
from support.ruining import Ruin
from support.samples import Puppet

SAGA = Saga("s").wait_for("w", signal="go").build()
TIMED = Saga("timed").wait("rest", timedelta(seconds=10)).build()
CALLING = Saga("calling").step("work", "work").build()


def sent(place: Place, to: Address, word: str, data: bytes = b"{}") -> None:
    """A command as somebody sends it by SQL: `language type`."""
    language, type_ = word.split()
    message = StoredMessage(address=to, language=language, type=type_, data=data, actor="system")
    place.store.writer().accept([message], place.clock.now())


def misspelt(place: Place, instance: InstanceId, type_: str = "Signal") -> None:
    """A signal whose command may not be called so."""
    to = Address(tenant="default", definition="s", instance=instance)
    sent(place, to, f"$graph {type_}", b'{"name": "go"}')


def waiting(place: Place, settings: Settings | None = None) -> tuple[ManualEngine, InstanceId]:
    """A run that waits for a signal."""
    engine = place.engine(settings).register(SAGA)
    instance = engine.start("s").id
    engine.drain()
    return engine, instance


def test_a_misspelt_command_blocks_nothing(place: Place) -> None:
    """After a minute it is a dead letter that says what was meant, and the valid messages behind it are delivered."""
    engine, instance = waiting(place)
    heard: list[Happening] = []
    engine.listen(heard.append)
    misspelt(place, instance)
    misspelt(place, instance, "SendSignal")
    engine.drain()
    why = engine.run(instance).why()
    assert (why.is_moving, [each.kind for each in why.reasons]) == (False, ["signal", "unreadable", "message"])
    assert "'Signal' version 1 cannot be read" in why.words
    engine.advance(minutes=2)
    assert engine.run(instance).describe().status == "completed"
    (letter,) = engine.dead_letters.list()
    assert (letter.source, letter.reason, letter.type, letter.attempts) == ("inbox", "unreadable", "Signal", 0)
    assert "no code can read 'Signal' version 1 of '$graph'" in letter.error
    (buried,) = [each for each in heard if isinstance(each, WorkBuried)]
    assert (buried.source, buried.reason, buried.instance) == ("inbox", "unreadable", instance)


def test_the_bound_is_a_setting(place: Place) -> None:
    """It waits for as long as `unreadable_after` says, and `why` tells that."""
    engine, instance = waiting(place, Settings(unreadable_after=timedelta(hours=1)))
    misspelt(place, instance)
    engine.advance(minutes=30)
    assert engine.dead_letters.list() == []
    (told,) = [each for each in engine.run(instance).why().reasons if each.kind == "unreadable"]
    assert "a worker does so after 1:00:00" in told.remedy
    engine.advance(minutes=40)
    assert [each.reason for each in engine.dead_letters.list()] == ["unreadable"]


def test_an_operator_gives_it_up_at_once(place: Place) -> None:
    """What `why` recommends for such a message is accepted."""
    engine, instance = waiting(place)
    misspelt(place, instance)
    (message,) = engine.inbox.list()
    (told,) = [each for each in engine.run(instance).why().reasons if each.kind == "unreadable"]
    assert told.remedy.startswith(f"inbox.bury({message.id}) gives it up")
    engine.inbox.bury(message.id)
    assert [each.kind for each in engine.run(instance).why().reasons] == ["dead_letter", "signal"]


def test_what_gave_up_as_unreadable_is_put_back(place: Place) -> None:
    """Once there is code that reads it, its dead letter is requeued like any other."""
    place.must_fold = False
    old = place.engine().register(Puppet())
    to = Address(tenant="default", definition="puppet", key="p-1")
    sent(place, to, "puppet Warn", b'{"workflow_id": "p-1"}')
    old.advance(minutes=3)
    (letter,) = old.dead_letters.list()
    assert letter.reason == "unreadable"
    new = place.engine().register(Newer())
    new.dead_letters.requeue(letter)
    new.drain()
    assert new.deciders.state(Newer, "p-1") == ("warned",)


@pytest.mark.parametrize(("kind", "saga"), [("timer", TIMED), ("effect", CALLING)])
def test_timers_and_effects_are_no_exception(place: Place, kind: str, saga: SagaDefinition) -> None:
    """What was written with a word that no code has ever read is a dead letter after a minute, and its run says so."""
    place.must_fold = False
    engine = place.engine().register(saga).handle("work", dict)
    instance = engine.start(saga.name).id
    if kind == "timer":
        engine.drain()
    Ruin(place.store).run(f"update {{}}{kind}s set type = 'Nothing'")
    other = place.engine().register(saga).handle("work", dict)
    other.advance(minutes=2)
    (letter,) = other.dead_letters.list()
    assert (letter.source, letter.reason, letter.attempts) == (kind, "unreadable", 0)
    told = other.run(instance).why().reasons[0]
    assert (told.kind, "no code can read 'Nothing'" in told.words) == ("dead_letter", True)


def test_a_misspelt_command_from_sql_is_found(postgres_dsn: str) -> None:
    """`standfast.submit` takes any name; one that nobody knows does not hold up the next one."""
    engine = ManualEngine(postgres_dsn).register(SAGA)
    instance = engine.start("s").id
    engine.drain()
    with psycopg.connect(postgres_dsn) as connection:
        for name in ("Signal", "SendSignal"):
            connection.execute(
                "select standfast.submit('s', %s, '{\"name\": \"go\"}', instance => %s)", [name, instance]
            )
    engine.advance(minutes=2)
    assert engine.run(instance).describe().status == "completed"
    assert [each.reason for each in engine.dead_letters.list()] == ["unreadable"]
    engine.stop()


@pytest.mark.row("D-080", "D-085")
def test_what_other_code_can_read_waits_for_it(place: Place) -> None:
    """It is an incident all the same, until a day after that code was last here; then it is a dead letter."""
    place.must_fold = False
    new, old = place.engine().register(Newer()), place.engine().register(Puppet())
    new.deciders.submit(Newer, Warn("p-1"))
    old.advance(hours=20)
    assert old.dead_letters.list() == []
    (told,) = old.health().incidents
    assert "'Warn' version 1 for 'puppet'" in told
    assert "which was here within a day" in told
    assert old.incident_counts()["unreadable"] == 1
    (shown,) = old.admin.incidents()
    assert (shown.kind, "'Warn'" in shown.told) == ("unreadable", True)
    old.advance(days=3)
    assert [each.reason for each in old.dead_letters.list()] == ["unreadable"]
    assert old.health().incidents == []


def test_what_is_for_another_service_is_left_to_it(place: Place) -> None:
    """A decider whose code is elsewhere may come for the first time next week; who looks is told that nobody has it."""
    engine = place.engine().register(Puppet())
    sent(place, Address(tenant="default", definition="counter", key="c-1"), "counter Add")
    engine.advance(days=7)
    assert engine.dead_letters.list() == []
    (told,) = engine.health().incidents
    assert "start a process that has the decider 'counter'" in told


@pytest.mark.row("D-088")
def test_an_instance_that_no_code_reads_is_an_incident(place: Place) -> None:
    """`why` says so instead of failing, and what waits for it moves to the dead letters once no code is known that could read it."""
    place.must_fold = False
    engine, instance = waiting(place)
    spoil(place, instance)
    why = place.engine().run(instance).why()
    assert (why.is_incident, [each.kind for each in why.reasons]) == (True, ["unreadable"])
    assert "does not know event 'from_nowhere' version 1" in why.words
    other = place.engine()
    misspelt(place, instance, "SendSignal")
    other.advance(seconds=30)
    assert other.dead_letters.list() == []
    other.advance(minutes=2)
    (letter,) = other.dead_letters.list()
    assert (letter.reason, letter.type) == ("unreadable", "SendSignal")
    assert engine.health().is_healthy


def spoil(place: Place, instance: InstanceId) -> None:
    """Put an event into a history that nobody knows."""
    Ruin(place.store).run(
        "update {}events set type = 'from_nowhere' where instance = ? and sequence = 2",
        instance if place.url.startswith("postgresql") else str(instance),
    )
