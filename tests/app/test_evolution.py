"""Code changes while instances live: what is safe, what fails loudly, and how old data finds its way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from standfast import (
    Codec,
    ConfigurationError,
    Decider,
    Decision,
    EffectContext,
    JsonCodec,
    Message,
    MessagePackCodec,
    Moment,
    ReplayError,
    RetryPolicy,
    Saga,
    Settings,
    message,
)
from support.databases import Databases
from support.engines import STORES, Live, Place
from support.samples import Act, Add, Added, Answer, Counter, Do, Doll, Ledger, Order, Puppet, Shop, act, done
from support.samples import Place as PlaceOrder
from support.waiting import eventually


@pytest.mark.row("D-084")
def test_a_new_type_on_an_old_database(place: Place) -> None:
    """A type that is added later finds the database ready, and the old one goes on."""
    place.engine().register(Counter()).deciders.execute(Counter, Add("c-1"))
    engine = place.engine().register(Counter()).register(Puppet())
    engine.deciders.execute(Puppet, Do("p-1", "new"))
    engine.deciders.execute(Counter, Add("c-1"))
    assert engine.deciders.state(Counter, "c-1") == 2


# -- One type in several versions of its code, as deployments would bring them.


@dataclass(frozen=True)
class Grow:
    workflow_id: str
    by: int = 1


@message(name="Grown")
@dataclass(frozen=True)
class GrownFirst:
    by: int


@message(name="Grown")
@dataclass(frozen=True)
class GrownWithReason:
    by: int
    reason: str = "unknown"


@dataclass(frozen=True)
class Shrunk:
    by: int


@message(name="Grown")
@dataclass(frozen=True)
class GrownDifferently:
    by: list[str]


@message(name="Grown", version=3)
@dataclass(frozen=True)
class GrownThird:
    metres: int
    centimetres: int


class PlantFirst(Decider[int, Grow, GrownFirst, None]):
    type = "plant"

    def initial(self) -> int:
        return 0

    def evolve(self, state: int, event: GrownFirst) -> int:
        return state + event.by

    def decide(self, state: int, command: Grow, moment: Moment) -> Answer:
        return Decision.event(GrownFirst(command.by))


class PlantExtended(Decider[str, Grow, GrownWithReason | Shrunk, Act]):
    """More events, more fields, an effect: all of it additive."""

    type = "plant"
    state_version = 2

    def initial(self) -> str:
        return ""

    def evolve(self, state: str, event: GrownWithReason | Shrunk) -> str:
        return f"{state}+{event.by} {event.reason};" if isinstance(event, GrownWithReason) else state

    def decide(self, state: str, command: Grow, moment: Moment) -> Answer:
        return Decision.event(GrownWithReason(command.by, "rain")).with_effect(Act("water"))


class PlantWithout(Decider[int, Grow, Shrunk, None]):
    """The event of old was removed."""

    type = "plant"

    def initial(self) -> int:
        return 0

    def evolve(self, state: int, event: Shrunk) -> int:
        return state

    def decide(self, state: int, command: Grow, moment: Moment) -> Answer:
        return Decision.event(Shrunk(command.by))


class PlantChanged(Decider[int, Grow, GrownDifferently, None]):
    """A field of the event changed its type."""

    type = "plant"

    def initial(self) -> int:
        return 0

    def evolve(self, state: int, event: GrownDifferently) -> int:
        return state

    def decide(self, state: int, command: Grow, moment: Moment) -> Answer:
        return Decision.event(GrownDifferently([str(command.by)]))


class PlantUpcast(Decider[int, Grow, GrownThird, None]):
    """The event in its third version, with the way there from the first."""

    type = "plant"
    upcasters = {  # noqa: RUF012 - as a user would write it
        ("Grown", 1): lambda plain: {"millimetres": plain["by"] * 10},  # type: ignore[operator]
        ("Grown", 2): lambda plain: {"metres": 0, "centimetres": plain["millimetres"] // 10},  # type: ignore[operator]
    }

    def initial(self) -> int:
        return 0

    def evolve(self, state: int, event: GrownThird) -> int:
        return state + event.metres * 100 + event.centimetres

    def decide(self, state: int, command: Grow, moment: Moment) -> Answer:
        return Decision.event(GrownThird(*divmod(command.by, 100)))


class PlantHalfway(PlantUpcast):
    """The first step of the way is missing."""

    upcasters = {("Grown", 2): lambda plain: plain}  # noqa: RUF012


def grown(place: Place) -> None:
    """A plant as the first version of the code left it."""
    place.engine().register(PlantFirst()).deciders.execute(PlantFirst, Grow("plant-1", 5))


@pytest.mark.row("D-085", "D-086")
def test_additive_changes_are_safe(place: Place) -> None:
    """New events, new effects and new fields with defaults: old streams replay, and new work goes on."""
    grown(place)
    ledger = Ledger()
    engine = place.engine().register(PlantExtended(), lambda context, effect: ledger.add(effect))
    assert engine.deciders.state(PlantExtended, "plant-1") == "+5 unknown;"
    engine.deciders.execute(PlantExtended, Grow("plant-1", 2))
    engine.drain()
    assert engine.deciders.state(PlantExtended, "plant-1") == "+5 unknown;+2 rain;"
    assert ledger.entries == [Act("water")]


@pytest.mark.row("D-086")
def test_old_code_reads_events_with_fields_that_it_does_not_know(place: Place) -> None:
    """In a rolling deployment the old code meets events of the new one, and passes over what it does not know."""
    engine = place.engine().register(PlantExtended())
    engine.deciders.execute(PlantExtended, Grow("plant-1", 5))
    old = place.engine().register(PlantFirst())
    assert old.deciders.state(PlantFirst, "plant-1") == 5
    place.must_fold = False  # The two versions have different states, which is the point.


@pytest.mark.row("D-087")
def test_a_policy_may_change_while_effects_wait(place: Place) -> None:
    """How often an effect is tried is read when it fails, not frozen when it was asked for."""
    calls = Ledger()

    def broken(context: EffectContext, effect: object) -> None:
        calls.add(context.attempt)
        raise ValueError("no")

    strict = RetryPolicy(max_attempts=2, delay=timedelta(minutes=1), jitter=0)
    first = place.engine().register(Puppet(act), broken, retry=strict)
    first.deciders.execute(Puppet, Do("p-1", "x"))
    first.drain()
    patient = RetryPolicy(max_attempts=5, delay=timedelta(minutes=1), jitter=0)
    second = place.engine().register(Puppet(act), broken, retry=patient)
    second.advance(hours=2)
    assert calls.entries == [1, 2, 3, 4, 5]


@pytest.mark.row("D-088")
@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [
        (PlantWithout, "unknown_event", "does not know event 'Grown' version 1"),
        (PlantChanged, "replay_failed", "cannot read event 1"),
        (PlantHalfway, "unknown_event", "does not know event 'Grown' version 1"),
    ],
)
def test_a_history_that_the_code_cannot_read_fails_loudly(
    place: Place, kind: type[PlantFirst], code: str, said: str
) -> None:
    """A removed event, a changed field or a missing upcaster is an error at every door, and nothing is written."""
    grown(place)
    place.must_fold = False
    engine = place.engine().register(kind())
    for call in (
        lambda: engine.futures.deciders.execute(kind, Grow("plant-1")),
        lambda: engine.futures.deciders.state(kind, "plant-1"),
        lambda: engine.futures.deciders.get(kind, "plant-1"),
    ):
        with pytest.raises(ReplayError, match=said) as caught:
            call().result()
        assert caught.value.code == code
    assert place.engine().register(PlantFirst()).deciders.state(PlantFirst, "plant-1") == 5
    (raw,) = engine.deciders.history(kind, "plant-1")
    assert (raw.type, raw.event, said in raw.error) == ("Grown", {"by": 5}, True)


@pytest.mark.row("D-089")
def test_an_engine_warns_of_work_that_it_does_not_know(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    """At the start pending timers and messages of unknown types are named; so are effects that no worker can run."""
    first = live.engine().register(Order()).register(Puppet())
    first.deciders.execute(Order, PlaceOrder("o-1", 5))
    first.deciders.submit(Puppet, Do("p-1", "x"))
    first.stop()
    with caplog.at_level(logging.WARNING):
        live.engine().register(Doll(), done).start_worker()
        eventually(lambda: "handler_missing handler='order' effects=1" in caplog.text)
    assert "orphaned_work count=1 kind=timers definition='order'" in caplog.text
    assert "orphaned_work count=1 kind=messages definition='puppet'" in caplog.text


@pytest.mark.row("D-089")
def test_an_engine_does_not_warn_of_its_own_timers(live: Live, caplog: pytest.LogCaptureFixture) -> None:
    """Events that are kept and schedules have timers of the engine's own: at a start nobody is told that they are not registered."""
    first = live.engine().register(Saga("nightly").step("tidy up", lambda: None).build())
    first.publish("payment.received", "o-1", {"amount": 5})
    first.schedules.put("nightly", "nightly", cron="0 3 * * *")
    first.start_worker()
    eventually(lambda: {each.name for each in first.admin.backlog()} == {"$event", "$schedule"})
    first.stop()
    with caplog.at_level(logging.WARNING):
        live.engine().start_worker()
    assert "orphaned_work" not in caplog.text


@pytest.mark.row("D-090")
def test_pending_work_is_counted_by_type(place: Place) -> None:
    """Before a type is removed an operator sees what is left of it, and that it is gone."""
    engine = place.engine().register(Order(), Shop())
    for number in range(3):
        engine.deciders.execute(Order, PlaceOrder(f"o-{number}", 5))
    engine.deciders.submit(Order, PlaceOrder("o-9", 5))
    counted = {(each.kind, each.name): each.count for each in engine.admin.backlog()}
    assert counted == {("effect", "order"): 3, ("timer", "order"): 3, ("inbox", "order"): 1}
    engine.drain()
    assert engine.admin.backlog() == []


@pytest.mark.row("D-117")
def test_old_events_are_upcast_before_they_are_folded(place: Place) -> None:
    """Versions follow one another by upcasters; stored bytes never change."""
    grown(place)
    engine = place.engine().register(PlantUpcast())
    engine.deciders.execute(PlantUpcast, Grow("plant-1", 120))
    assert engine.deciders.state(PlantUpcast, "plant-1") == 125
    assert [each.event for each in engine.deciders.history(PlantUpcast, "plant-1")] == [
        GrownThird(0, 5),
        GrownThird(1, 20),
    ]
    place.must_fold = False  # The engine of the first version cannot read what the third one wrote.


@pytest.fixture(params=STORES)
def blank(request: pytest.FixtureRequest, postgres_server: Databases, tmp_path: Path) -> Iterator[Live]:
    """A database that no engine has ever opened."""
    with ExitStack() as stack:
        is_file = request.param == "sqlite"
        url = f"sqlite:///{tmp_path / 'blank.db'}" if is_file else stack.enter_context(postgres_server.empty())
        live = Live(url)
        stack.callback(live.close)
        yield live


class Reversed:
    """A codec of one's own: JSON backwards."""

    name = "reversed"

    def __init__(self) -> None:
        self._json = JsonCodec()

    def encode(self, value: object) -> bytes:
        return self._json.encode(value)[::-1]

    def decode(self, data: bytes, as_type: type) -> object:
        return self._json.decode(data[::-1], as_type)


@pytest.mark.row("D-116")
@pytest.mark.parametrize("codec", [MessagePackCodec(), Reversed()], ids=["msgpack", "own"])
def test_the_codec_can_be_replaced(blank: Live, codec: Codec) -> None:
    """Events, effects, timers and messages all pass the codec, and a database remembers which one it is."""
    engine = blank.engine(codec=codec).register(Order(), Shop()).start_worker()
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    engine.deciders.submit(Order, PlaceOrder("o-2", 5))
    eventually(lambda: len(engine.instances.list(status=("completed",))) == 2)
    with pytest.raises(ConfigurationError, match=f"written with the '{codec.name}' codec"):
        blank.engine()


class Tally(Decider[str, Add, Added, None]):
    """The counter with a state of another shape, whose author forgot to raise `state_version`."""

    type = "counter"

    def initial(self) -> str:
        return ""

    def evolve(self, state: str, event: Added) -> str:
        return state + "I"

    def decide(self, state: str, command: Add, moment: Moment) -> Answer:
        return Decision.event(Added(command.by))


class Purse(Decider[dict[str, int], Add, Added, None]):
    """The counter with another state, of which older snapshots can be read and are not what its fold needs."""

    type = "counter"

    def initial(self) -> dict[str, int]:
        return {"sum": 0}

    def evolve(self, state: dict[str, int], event: Added) -> dict[str, int]:
        return {"sum": state["sum"] + event.by}

    def decide(self, state: dict[str, int], command: Add, moment: Moment) -> Answer:
        return Decision.event(Added(command.by))


class OldPurse(Purse):
    """The same under an older name."""

    def initial(self) -> dict[str, int]:
        return {"total": 0}

    def evolve(self, state: dict[str, int], event: Added) -> dict[str, int]:
        return {"total": state["total"] + event.by}


@pytest.mark.row("D-085")
def test_events_that_do_not_fit_on_a_snapshot_are_folded_anew(place: Place) -> None:
    """A snapshot on which the events cannot be folded is worth nothing, for questions and for commands: the events tell."""
    often = Settings(snapshot_events=2)
    engine = place.engine(often).register(OldPurse())
    for _ in range(5):
        engine.deciders.execute(OldPurse, Add("c-1"))
    newer = place.engine(often).register(Purse())
    assert newer.deciders.state(Purse, "c-1") == {"sum": 5}
    newer.deciders.execute(Purse, Add("c-1"))
    assert newer.deciders.state(Purse, "c-1") == {"sum": 6}
    place.must_fold = False  # The engine of the older code holds the older fold.


# -- Work that waits while its classes change.


@dataclass(frozen=True)
class Call:
    workflow_id: str
    what: str


@message(name="Call", version=2)
@dataclass(frozen=True)
class CallAgain:
    workflow_id: str
    words: list[str]


@dataclass(frozen=True)
class Ring:
    what: str


@message(name="Ring", version=3)
@dataclass(frozen=True)
class RingLoudly:
    words: list[str]
    volume: int


@dataclass(frozen=True)
class Called:
    what: str


class Bell(Decider[tuple[str, ...], Call, Called, Ring]):
    """Sets a timer, sends a message and asks for a ring, on the word `all`."""

    type = "bell"

    def initial(self) -> tuple[str, ...]:
        return ()

    def evolve(self, state: tuple[str, ...], event: Called) -> tuple[str, ...]:
        return (*state, event.what)

    def decide(self, state: tuple[str, ...], command: Call, moment: Moment) -> Answer:
        decision = Decision.event(Called(command.what))
        if command.what != "all":
            return decision
        later = Call(command.workflow_id, "by timer")
        told = Message(decider="bell", command=Call(command.workflow_id, "by message"))
        return decision.with_timer_after(timedelta(hours=1), later).with_message(told).with_effect(Ring("by effect"))


def split(old: dict[str, object]) -> dict[str, object]:
    """The text of the first version as words."""
    return {"words": str(old.pop("what")).split(), **old}


class LouderBell(Decider[tuple[str, ...], CallAgain, Called, RingLoudly]):
    """The next release: command and effect have other fields."""

    type = "bell"
    command_upcasters = {("Call", 1): split}  # noqa: RUF012 - as a user would write it
    effect_upcasters = {  # noqa: RUF012
        ("Ring", 1): split,
        ("Ring", 2): lambda old: {**old, "volume": 11},
    }

    def initial(self) -> tuple[str, ...]:
        return ()

    def evolve(self, state: tuple[str, ...], event: Called) -> tuple[str, ...]:
        return (*state, event.what)

    def decide(self, state: tuple[str, ...], command: CallAgain, moment: Moment) -> Answer:
        return Decision.event(Called("-".join(command.words)))


@pytest.mark.row("D-117")
def test_work_that_waits_is_upcast(place: Place) -> None:
    """Timers, messages and effects of an older version reach the newer code in its own classes."""
    place.engine().register(Bell()).deciders.execute(Bell, Call("b-1", "all"))
    rung: list[object] = []
    engine = place.engine().register(LouderBell(), lambda context, effect: rung.append(effect))
    engine.advance(hours=2)
    assert rung == [RingLoudly(["by", "effect"], 11)]
    assert engine.deciders.state(LouderBell, "b-1") == ("all", "by-message", "by-timer")
    assert engine.dead_letters.list() == []
    place.must_fold = False  # The first engine cannot run what the second one does.


class Versioned(Tally):
    """The same with a new version."""

    state_version = 2


@pytest.mark.row("D-085")
@pytest.mark.parametrize("kind", [Tally, Versioned])
def test_a_state_of_another_shape_is_folded_anew(place: Place, kind: type[Tally]) -> None:
    """A snapshot of another state version, or one that cannot be read, is ignored: the events tell."""
    often = Settings(snapshot_events=2)
    engine = place.engine(often).register(Counter())
    for _ in range(5):
        engine.deciders.execute(Counter, Add("c-1"))
    newer = place.engine(often).register(kind())
    assert newer.deciders.state(kind, "c-1") == "IIIII"
    for _ in range(2):
        newer.deciders.execute(kind, Add("c-1"))
    assert newer.deciders.state(kind, "c-1") == "IIIIIII"
    back = place.engine(often).register(Counter())
    back.deciders.execute(Counter, Add("c-1"))
    assert back.deciders.state(Counter, "c-1") == 8


# -- A fold that changes while nobody raises `state_version`.


@dataclass(frozen=True)
class Sum:
    count: int = 0


@dataclass(frozen=True)
class SumAndTotal:
    """The state of the next release: one field more, with a default, so that older snapshots can be read."""

    count: int = 0
    total: int = 0


def counting(state_type: type, initial: Callable[[], Any], fold: Callable[[Any, Added], Any]) -> type[Any]:
    """A decider of one type name, in one release of its code."""

    class Counting(Decider[state_type, Add, Added, None]):  # type: ignore[valid-type]
        type = "counter"

        def initial(self) -> Any:
            return initial()

        def evolve(self, state: Any, event: Added) -> Any:
            return fold(state, event)

        def decide(self, state: Any, command: Add, moment: Moment) -> Answer:
            return Decision.event(Added(command.by))

    return Counting


FORGOTTEN: dict[str, tuple[type[Any], type[Any], object]] = {
    "a field more": (
        counting(Sum, Sum, lambda state, event: Sum(state.count + event.by)),
        counting(
            SumAndTotal, SumAndTotal, lambda state, event: SumAndTotal(state.count + event.by, state.total + event.by)
        ),
        SumAndTotal(5, 5),
    ),
    "another fold": (
        counting(int, int, lambda state, event: state + event.by),
        counting(int, int, lambda state, event: state + event.by * 100),
        500,
    ),
    "another beginning": (
        counting(int, lambda: 0, lambda state, event: state + event.by),
        counting(int, lambda: 1000, lambda state, event: state + event.by),
        1005,
    ),
}


@pytest.mark.row("D-085")
@pytest.mark.parametrize("change", FORGOTTEN)
def test_a_snapshot_of_another_fold_is_ignored(place: Place, change: str) -> None:
    """A state is always the fold of its events by the present code, also if nobody raised `state_version`: for commands, questions and proofs."""
    before, after, wanted = FORGOTTEN[change]
    often = Settings(snapshot_events=2)
    older = place.engine(often).register(before())
    for _ in range(5):
        older.deciders.execute(before, Add("c-1"))
    newer = place.engine(often).register(after())
    assert newer.deciders.state(after, "c-1") == wanted
    assert newer.deciders.verify(after, "c-1").differences == []
    for _ in range(3):
        newer.deciders.execute(after, Add("c-1"))
    again = place.engine(often).register(after())
    assert again.deciders.state(after, "c-1") == newer.deciders.state(after, "c-1") != wanted
    back = place.engine(often).register(before())
    assert back.deciders.verify(before, "c-1").differences == []
    place.must_fold = False  # The engine of the older code holds the older fold.
