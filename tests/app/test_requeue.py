"""What was buried goes back to work as the same work: once, under its id, and with the knowledge of its instance."""

from __future__ import annotations

from datetime import timedelta

import pytest

from standfast import Actor, DeadLetter, Decision, Ignored, Moment, NotFoundError, Settings
from standfast.testing import ManualEngine
from support.desks import Desk
from support.engines import AT_ONCE, Place
from support.samples import END, Add, Answer, Counter, Do, Noted, Notes, Puppet

HOUR = timedelta(hours=1)
KEY = "alarm"


class Stage:
    """A puppet that fails on some commands while it is told to, and works with a timer."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.is_broken = True
        self.engine = self.another()

    def another(self) -> ManualEngine:
        """Another engine, which remembers nothing."""
        return self.place.engine(Settings(command_retry=AT_ONCE)).register(Puppet(self.choose))

    def choose(self, state: Notes, command: Do, moment: Moment) -> Answer:
        """What the puppet does."""
        decision = Decision.event(Noted(command.what))
        match command.what:
            case "look":
                return Ignored()
            case "set":
                return decision.with_timer_after(HOUR, Do(command.workflow_id, "rang"), key=KEY)
            case "cancel":
                return decision.cancel_timer(KEY)
            case "rang" | "pay" if self.is_broken:
                raise ValueError("broken")
            case _:
                return decision

    def do(self, what: str) -> None:
        """Have it do something."""
        self.engine.deciders.execute(Puppet, Do("p-1", what))

    def bury(self) -> DeadLetter:
        """Set a timer and let it give up; its letter."""
        self.do("set")
        self.engine.advance(2 * HOUR)
        (letter,) = self.engine.dead_letters.list()
        self.do("look")  # The instance is remembered as it is now: without a timer.
        return letter

    @property
    def notes(self) -> Notes:
        """What it has done."""
        return self.engine.deciders.state(Puppet, "p-1")

    @property
    def timers(self) -> list[str]:
        """The keys of the timers that are set."""
        return [each.key for each in self.engine.deciders.get(Puppet, "p-1").timers]


@pytest.fixture
def stage(place: Place) -> Stage:
    """One of these on each store."""
    return Stage(place)


@pytest.mark.row("D-060", "D-111")
def test_a_requeued_message_is_the_same_command(stage: Stage) -> None:
    """It keeps id, comment and actor: carried out meanwhile under its id, it is not carried out again."""
    engine = stage.engine
    engine.deciders.submit(Puppet, Do("p-1", "pay"), command_id="c-1", comment="why")
    engine.drain()
    stage.is_broken = False
    (letter,) = engine.dead_letters.list()
    assert (letter.command_id, letter.comment, letter.attempts) == ("c-1", "why", 3)
    engine.deciders.execute(Puppet, Do("p-1", "pay"), command_id="c-1")
    engine.dead_letters.requeue(letter.id)
    engine.drain()
    assert (stage.notes, engine.dead_letters.list(), engine.admin.inbox_depth()) == (("pay",), [], 0)


@pytest.mark.row("D-060")
def test_a_requeued_message_says_what_it_said(stage: Stage) -> None:
    """What it leads to carries the comment and the actor of whoever sent it."""
    stage.engine.as_tenant("default", actor="ada").deciders.submit(Puppet, Do("p-1", "pay"), comment="why")
    stage.engine.drain()
    stage.is_broken = False
    stage.engine.dead_letters.requeue(stage.engine.dead_letters.list()[0].id)
    stage.engine.drain()
    (event,) = stage.engine.deciders.history(Puppet, "p-1")
    assert (event.actor, event.comment) == ("ada", "why")


@pytest.mark.row("D-060")
def test_a_requeued_timer_is_due_at_once(stage: Stage) -> None:
    """It fires under its key, with its attempts reset; the history tells who put it back."""
    letter = stage.bury()
    ada = Actor(id="ada", capabilities=frozenset({"execution:repair"}))
    stage.engine.as_tenant("default", actor=ada).dead_letters.requeue(letter.id)
    assert (stage.timers, stage.engine.dead_letters.list()) == ([KEY], [])
    (_, event) = stage.engine.deciders.history(Puppet, "p-1")
    assert (event.type, event.event, event.actor) == ("$timer_requeued", {"key": KEY}, "ada")
    stage.engine.drain()
    (again,) = stage.engine.dead_letters.list()
    assert (again.name, again.number, again.attempts) == (KEY, letter.number, 3)
    stage.is_broken = False
    stage.engine.dead_letters.requeue(again.id)
    stage.engine.drain()
    assert (stage.notes, stage.timers) == (("set", "rang"), [])


@pytest.mark.row("D-060", "D-067")
def test_a_requeued_timer_is_known_to_its_instance(stage: Stage) -> None:
    """Whoever remembers the instance notices: it can cancel the timer, replace it, and end with it."""
    for what in ("cancel", "set", END):
        stage.is_broken = True
        letter = stage.bury()
        other = stage.another()
        other.dead_letters.requeue(letter.id)  # Behind the back of the first engine.
        stage.is_broken = False
        stage.do(what)
        assert stage.timers == ([KEY] if what == "set" else [])
        if what == "set":
            stage.engine.advance(2 * HOUR)
    assert stage.notes == ("set", "cancel", "set", "set", "rang", "set", END)
    assert stage.engine.dead_letters.list() == []


@pytest.mark.row("D-060", "D-067")
def test_a_newer_timer_stands(stage: Stage) -> None:
    """A dead timer whose key was set again does not come back beside it; its letter is gone."""
    letter = stage.bury()
    stage.is_broken = False
    stage.do("set")
    stage.another().dead_letters.requeue(letter.id)
    assert (stage.timers, stage.engine.dead_letters.list()) == ([KEY], [])
    stage.engine.advance(2 * HOUR)
    assert stage.notes == ("set", "set", "rang")


@pytest.mark.row("D-060")
def test_a_timer_of_an_instance_that_has_ended_stays_dead(stage: Stage) -> None:
    """There is nothing to wake: the letter goes and the history says nothing."""
    letter = stage.bury()
    stage.do(END)
    stage.another().dead_letters.requeue(letter.id)
    assert (stage.timers, stage.engine.dead_letters.list(), stage.notes) == ([], [], ("set", END))


@pytest.mark.row("D-060")
def test_a_dead_timer_is_requeued_once(stage: Stage) -> None:
    """Of two operators one puts it back, also when it has fired before the other comes; the other hears that it is gone."""
    letter = stage.bury()
    stage.is_broken = False
    late = stage.another()
    before = late.futures.dead_letters._letter(letter)
    stage.engine.dead_letters.requeue(letter.id)
    stage.engine.drain()
    with pytest.raises(NotFoundError):
        late.futures.dead_letters._restore_timer(before, "")  # It had looked at the letter before.
    with pytest.raises(NotFoundError):
        late.dead_letters.requeue(letter.id)
    late.drain()
    assert stage.notes == ("set", "rang")


# -- messages that nobody can read


def test_a_message_that_nobody_can_read_can_be_buried_and_discarded(stage: Stage) -> None:
    """An operator finds it, moves it to the dead letters and forgets it; what waited behind it is carried out."""
    engine = stage.engine
    for what in ("unheard of", "behind"):
        engine.deciders.submit(Puppet, Do("p-1", what))
    Desk(stage.place.store).run(
        "update {0}inbox set type = 'Misspelt', version = 7 where id = (select min(id) from {0}inbox)"
    )
    engine.drain()
    assert (engine.admin.inbox_depth(), engine.dead_letters.list()) == (2, [])
    (found,) = engine.inbox.list(type="Misspelt")
    assert (found.key, found.version, found.definition) == ("p-1", 7, "puppet")
    engine.inbox.bury(found.id)
    engine.drain()
    (letter,) = engine.dead_letters.list()
    assert (letter.source, letter.type, letter.version, letter.attempts) == ("inbox", "Misspelt", 7, 0)
    assert (letter.reason, letter.error) == ("given_up", "given up by an operator")
    assert (stage.notes, engine.admin.inbox_depth()) == (("behind",), 0)
    engine.dead_letters.discard(letter)
    assert engine.dead_letters.list() == []


def test_a_message_that_was_buried_can_come_back(stage: Stage) -> None:
    """Once there is code that reads it, it is requeued as the command that it was."""
    engine = stage.engine
    stage.is_broken = False
    engine.deciders.submit(Puppet, Do("p-1", "pay"), command_id="c-1")
    (found,) = engine.inbox.list()
    engine.inbox.bury(found)
    engine.drain()
    engine.dead_letters.requeue(engine.dead_letters.list()[0])
    engine.drain()
    assert (stage.notes, engine.dead_letters.list()) == (("pay",), [])


def test_messages_are_listed_by_page_and_by_what_they_say(stage: Stage) -> None:
    """In the order of acceptance, of one tenant, of a definition or with a command; whoever is too late hears that it is gone."""
    engine = stage.engine.register(Counter())
    for number in range(3):
        engine.deciders.submit(Puppet, Do(f"p-{number}", "x"))
    engine.deciders.submit(Counter, Add("c-1"))
    whole = engine.inbox.list()
    assert [each.key for each in whole] == ["p-0", "p-1", "p-2", "c-1"]
    assert engine.inbox.list(limit=2) == whole[:2]
    assert engine.inbox.list(after=whole[1].id) == whole[2:]
    assert engine.inbox.list(definition="counter") == engine.inbox.list(type="Add") == whole[3:]
    assert engine.as_tenant("other").inbox.list() == []
    with pytest.raises(NotFoundError, match="message"):
        engine.as_tenant("other").inbox.bury(whole[0].id)
    engine.drain()
    with pytest.raises(NotFoundError, match="message"):
        engine.inbox.bury(whole[0])
    with pytest.raises(NotFoundError, match="give the message, or its id"):
        engine.inbox.bury("first")  # type: ignore[arg-type]
    assert engine.dead_letters.list() == []


def test_letters_are_found_and_counted_by_business_key(place: Place) -> None:
    """Timers and messages of one key are found by it; those of others, and of other tenants, are not."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what != "set":
            raise ValueError("broken")
        return Decision.event(Noted("set")).with_timer_after(HOUR, Do(command.workflow_id, "rang"))

    engine = place.engine(Settings(command_retry=AT_ONCE)).register(Puppet(choose))
    for key in ("p-1", "p-2"):
        engine.deciders.execute(Puppet, Do(key, "set"))
    engine.deciders.submit(Puppet, Do("p-1", "pay"))
    engine.advance(2 * HOUR)
    found = engine.dead_letters.list(key="p-1")
    assert sorted(letter.source for letter in found) == ["inbox", "timer"]
    counts = [engine.dead_letters.count(key=key) for key in ("p-1", "p-2", "p-3", "")]
    assert counts == [2, 1, 0, 3]
    assert engine.dead_letters.count(source="timer", definition="puppet") == 2
    assert engine.as_tenant("other").dead_letters.count() == 0
