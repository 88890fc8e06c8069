"""What was buried goes back to work as the same work: once, under its id, and with the knowledge of its instance."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast import Decision, Ignored, Moment, NotFoundError, Settings
from holdfast.store.shapes import DeadLetter
from holdfast.testing import ManualEngine
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
        self.engine.execute(Puppet, Do("p-1", what)).result()

    def bury(self) -> DeadLetter:
        """Set a timer and let it give up; its letter."""
        self.do("set")
        self.engine.advance(2 * HOUR)
        (letter,) = self.engine.dead_letters().result()
        self.do("look")  # The instance is remembered as it is now: without a timer.
        return letter

    @property
    def notes(self) -> Notes:
        """What it has done."""
        return self.engine.load_state(Puppet, "p-1").result()

    @property
    def timers(self) -> list[str]:
        """The keys of the timers that are set."""
        return [each.key for each in self.engine.get(Puppet, "p-1").result().timers]


@pytest.fixture
def stage(place: Place) -> Stage:
    """One of these on each store."""
    return Stage(place)


@pytest.mark.row("D-060", "D-111")
def test_a_requeued_message_is_the_same_command(stage: Stage) -> None:
    """It keeps id, comment and actor: carried out meanwhile under its id, it is not carried out again."""
    engine = stage.engine
    engine.submit(Puppet, Do("p-1", "pay"), command_id="c-1", comment="why").result()
    engine.drain()
    stage.is_broken = False
    (letter,) = engine.dead_letters().result()
    assert (letter.command_id, letter.comment, letter.attempts) == ("c-1", "why", 3)
    engine.execute(Puppet, Do("p-1", "pay"), command_id="c-1").result()
    engine.requeue(letter.id).result()
    engine.drain()
    assert (stage.notes, engine.dead_letters().result(), engine.inbox_depth().result()) == (("pay",), [], 0)


@pytest.mark.row("D-060")
def test_a_requeued_message_says_what_it_said(stage: Stage) -> None:
    """What it leads to carries the comment and the actor of whoever sent it."""
    stage.engine.as_tenant("default", actor="ada").submit(Puppet, Do("p-1", "pay"), comment="why").result()
    stage.engine.drain()
    stage.is_broken = False
    stage.engine.requeue(stage.engine.dead_letters().result()[0].id).result()
    stage.engine.drain()
    (event,) = stage.engine.load_events(Puppet, "p-1").result()
    assert (event.actor, event.comment) == ("ada", "why")


@pytest.mark.row("D-060")
def test_a_requeued_timer_is_due_at_once(stage: Stage) -> None:
    """It fires under its key, with its attempts reset; the history tells who put it back."""
    letter = stage.bury()
    stage.engine.as_tenant("default", actor="ada").requeue(letter.id).result()
    assert (stage.timers, stage.engine.dead_letters().result()) == ([KEY], [])
    (_, event) = stage.engine.load_events(Puppet, "p-1").result()
    assert (event.type, event.event, event.actor) == ("$timer_requeued", {"key": KEY}, "ada")
    stage.engine.drain()
    (again,) = stage.engine.dead_letters().result()
    assert (again.name, again.number, again.attempts) == (KEY, letter.number, 3)
    stage.is_broken = False
    stage.engine.requeue(again.id).result()
    stage.engine.drain()
    assert (stage.notes, stage.timers) == (("set", "rang"), [])


@pytest.mark.row("D-060", "D-067")
def test_a_requeued_timer_is_known_to_its_instance(stage: Stage) -> None:
    """Whoever remembers the instance notices: it can cancel the timer, replace it, and end with it."""
    for what in ("cancel", "set", END):
        stage.is_broken = True
        letter = stage.bury()
        other = stage.another()
        other.requeue(letter.id).result()  # Behind the back of the first engine.
        stage.is_broken = False
        stage.do(what)
        assert stage.timers == ([KEY] if what == "set" else [])
        if what == "set":
            stage.engine.advance(2 * HOUR)
    assert stage.notes == ("set", "cancel", "set", "set", "rang", "set", END)
    assert stage.engine.dead_letters().result() == []


@pytest.mark.row("D-060", "D-067")
def test_a_newer_timer_stands(stage: Stage) -> None:
    """A dead timer whose key was set again does not come back beside it; its letter is gone."""
    letter = stage.bury()
    stage.is_broken = False
    stage.do("set")
    stage.another().requeue(letter.id).result()
    assert (stage.timers, stage.engine.dead_letters().result()) == ([KEY], [])
    stage.engine.advance(2 * HOUR)
    assert stage.notes == ("set", "set", "rang")


@pytest.mark.row("D-060")
def test_a_timer_of_an_instance_that_has_ended_stays_dead(stage: Stage) -> None:
    """There is nothing to wake: the letter goes and the history says nothing."""
    letter = stage.bury()
    stage.do(END)
    stage.another().requeue(letter.id).result()
    assert (stage.timers, stage.engine.dead_letters().result(), stage.notes) == ([], [], ("set", END))


@pytest.mark.row("D-060")
def test_a_dead_timer_is_requeued_once(stage: Stage) -> None:
    """Of two operators one puts it back, also when it has fired before the other comes; the other hears that it is gone."""
    letter = stage.bury()
    stage.is_broken = False
    late = stage.another()
    stage.engine.requeue(letter.id).result()
    stage.engine.drain()
    with pytest.raises(NotFoundError):
        late._restore_timer(letter)  # It had looked at the letter before.
    with pytest.raises(NotFoundError):
        late.requeue(letter.id).result()
    late.drain()
    assert stage.notes == ("set", "rang")


# -- messages that nobody can read


def test_a_message_that_nobody_can_read_can_be_buried_and_discarded(stage: Stage) -> None:
    """An operator finds it, moves it to the dead letters and forgets it; what waited behind it is carried out."""
    engine = stage.engine
    for what in ("unheard of", "behind"):
        engine.submit(Puppet, Do("p-1", what)).result()
    Desk(stage.place.store).run(
        "update {0}inbox set type = 'Misspelt', version = 7 where id = (select min(id) from {0}inbox)"
    )
    engine.advance(2 * HOUR)
    assert (engine.inbox_depth().result(), engine.dead_letters().result()) == (2, [])
    (found,) = engine.messages(type="Misspelt").result()
    assert (found.address.key, found.version, found.address.definition) == ("p-1", 7, "puppet")
    engine.bury_message(found.id).result()
    engine.drain()
    (letter,) = engine.dead_letters().result()
    assert (letter.source, letter.type, letter.version, letter.attempts) == ("inbox", "Misspelt", 7, 0)
    assert (letter.reason, letter.error) == ("given_up", "given up by an operator")
    assert (stage.notes, engine.inbox_depth().result()) == (("behind",), 0)
    engine.discard(letter).result()
    assert engine.dead_letters().result() == []


def test_a_message_that_was_buried_can_come_back(stage: Stage) -> None:
    """Once there is code that reads it, it is requeued as the command that it was."""
    engine = stage.engine
    stage.is_broken = False
    engine.submit(Puppet, Do("p-1", "pay"), command_id="c-1").result()
    (found,) = engine.messages().result()
    engine.bury_message(found).result()
    engine.drain()
    engine.requeue(engine.dead_letters().result()[0]).result()
    engine.drain()
    assert (stage.notes, engine.dead_letters().result()) == (("pay",), [])


def test_messages_are_listed_by_page_and_by_what_they_say(stage: Stage) -> None:
    """In the order of acceptance, of one tenant, of a definition or with a command; whoever is too late hears that it is gone."""
    engine = stage.engine.register(Counter())
    for number in range(3):
        engine.submit(Puppet, Do(f"p-{number}", "x")).result()
    engine.submit(Counter, Add("c-1")).result()
    whole = engine.messages().result()
    assert [each.address.key for each in whole] == ["p-0", "p-1", "p-2", "c-1"]
    assert engine.messages(limit=2).result() == whole[:2]
    assert engine.messages(after=whole[1].id).result() == whole[2:]
    assert engine.messages(definition="counter").result() == engine.messages(type="Add").result() == whole[3:]
    assert engine.as_tenant("other").messages().result() == []
    with pytest.raises(NotFoundError, match="message"):
        engine.as_tenant("other").bury_message(whole[0].id).result()
    engine.drain()
    with pytest.raises(NotFoundError, match="message"):
        engine.bury_message(whole[0]).result()
    with pytest.raises(NotFoundError, match="give the message, or its id"):
        engine.bury_message("first").result()  # type: ignore[arg-type]
    assert engine.dead_letters().result() == []


def test_letters_are_found_and_counted_by_business_key(place: Place) -> None:
    """Timers and messages of one key are found by it; those of others, and of other tenants, are not."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what != "set":
            raise ValueError("broken")
        return Decision.event(Noted("set")).with_timer_after(HOUR, Do(command.workflow_id, "rang"))

    engine = place.engine(Settings(command_retry=AT_ONCE)).register(Puppet(choose))
    for key in ("p-1", "p-2"):
        engine.execute(Puppet, Do(key, "set")).result()
    engine.submit(Puppet, Do("p-1", "pay")).result()
    engine.advance(2 * HOUR)
    found = engine.dead_letters(key="p-1").result()
    assert sorted(letter.source for letter in found) == ["inbox", "timer"]
    counts = [engine.count_dead_letters(key=key).result() for key in ("p-1", "p-2", "p-3", "")]
    assert counts == [2, 1, 0, 3]
    assert engine.count_dead_letters(source="timer", definition="puppet").result() == 2
    assert engine.as_tenant("other").count_dead_letters().result() == 0
