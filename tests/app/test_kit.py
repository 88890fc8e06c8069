"""The test kit that users get: given, when, then, and the real engine in memory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from standfast import (
    CommandError,
    Decider,
    Decision,
    Effect,
    Ignored,
    Message,
    Moment,
    NotFoundError,
    PayloadError,
    Saga,
    StandfastError,
    Timer,
    UnknownEventError,
    message,
)
from standfast.kernel.decision import Recall
from standfast.testing import ManualEngine, StoredState, given
from support.samples import (
    END,
    PATIENCE,
    PAYMENT,
    Add,
    Added,
    Cancel,
    Cancelled,
    Charge,
    Counter,
    Do,
    Doll,
    Noted,
    Order,
    Pay,
    Placed,
    Puppet,
    Receive,
    Send,
    Sender,
    Sent,
    Shop,
    TimeOut,
    act,
)
from support.samples import Place as PlaceOrder


@pytest.mark.row("D-115")
@pytest.mark.row("G-32")
def test_given_when_then_shows_events_effects_timers_and_messages() -> None:
    """A decider is tested without a database: which events, effects, timers and messages come of a command."""
    given(Order()).when(PlaceOrder("o-1", 5)).then(
        Placed(5), effects=[Charge("o-1", 5)], timers=[Timer(command=TimeOut("o-1"), after=PATIENCE, key=PAYMENT)]
    )
    given(Order(), Placed(5)).when(Cancel("o-1")).then(Cancelled("Cancel"), effects=[], timers=[])
    given(Sender()).when(Send("s-1", "r-1", 5)).then(
        Sent("r-1", 5), messages=[Message(decider="receiver", command=Receive("r-1", "s-1", 5))]
    )
    given(Order()).when(PlaceOrder("o-1", 5)).then(Placed(5), effects=[Effect(body=Charge("o-1", 5))])


@pytest.mark.row("D-115")
@pytest.mark.parametrize(
    "wrong",
    [
        lambda: given(Order()).when(PlaceOrder("o-1", 5)).then(Placed(6)),
        lambda: given(Order()).when(PlaceOrder("o-1", 5)).then(Placed(5), effects=[]),
        lambda: given(Order()).when(PlaceOrder("o-1", 5)).then(Placed(5), timers=[]),
        lambda: given(Order()).when(Pay("o-1")).then(Placed(5)),
        lambda: given(Order()).when(PlaceOrder("o-1", 5)).then_nothing(),
        lambda: given(Order()).when(PlaceOrder("o-1", 5)).then_rejected("out_of_turn"),
    ],
)
def test_a_wrong_expectation_fails(wrong: object) -> None:
    """The kit can fail: each kind of difference is an AssertionError."""
    with pytest.raises(AssertionError):
        wrong()  # type: ignore[operator]


@pytest.mark.row("D-115")
def test_refusals_and_silence_can_be_expected() -> None:
    """A rejection is expected by its code, and nothing at all as nothing."""
    given(Order()).when(Pay("o-1")).then_rejected("out_of_turn")
    given(Puppet(), Noted(END)).when(Do("p-1", "late")).then_nothing()


@dataclass
class Basket:
    items: list[str] = field(default_factory=list)


@dataclass
class Put:
    workflow_id: str
    item: str


@dataclass
class WasPut:
    item: str


class Baskets(Decider[Basket, Put, WasPut, None]):
    """Evolves in place, as it may. Some of its commands spoil it, as they must not."""

    type = "basket"

    def initial(self) -> Basket:
        return Basket()

    def evolve(self, state: Basket, event: WasPut) -> Basket:
        state.items.append(event.item)
        return state

    def decide(self, state: Basket, command: Put, moment: Moment) -> Decision | Ignored:
        decision = Decision.event(WasPut(command.item))
        match command.item:
            case "dirt":
                state.items.append("dirt")
            case "dust":
                state.items.append("dust")
                return Ignored()
            case "carried":  # As only a decider may that evolves while it decides.
                state.items.append("carried")
                return msgspec.structs.replace(decision, state=state)
            case "number":
                return Decision.event(WasPut(7))  # type: ignore[arg-type]
            case _:
                pass
        return decision


@pytest.mark.row("D-115")
@pytest.mark.parametrize("item", ["dirt", "dust"])
def test_a_decision_that_changes_the_state_is_told(item: str) -> None:
    """`decide` that writes into its state leaves dirt in the engine's memory, so the kit says where it did."""
    with pytest.raises(AssertionError, match=r"`decide` must not change the state.*restart items\[1\] would be lost"):
        given(Baskets(), WasPut("a")).when(Put("b-1", item))


class Opaque(Puppet):
    """A puppet with a part in its state that cannot be compared."""

    def initial(self) -> Any:
        return (object(),)


def test_a_state_that_cannot_be_compared_is_believed() -> None:
    """Where nobody can tell whether the state has changed, nothing is said."""
    given(Opaque()).when(Do("p-1", "x")).then(Noted("x"))


class Carrying(Baskets):
    """A basket that evolves while it decides, and says so."""

    carries_state = True


@pytest.mark.row("D-115")
def test_a_state_that_is_carried_is_not_folded_again() -> None:
    """A decider that evolves while it decides gives its state, and its events are not applied a second time."""
    given(Carrying(), WasPut("a")).when(Put("b-1", "carried")).then(WasPut("carried")).then_state(
        Basket(["a", "carried"])
    )


@pytest.mark.row("D-115")
def test_a_state_that_nobody_announced_is_refused() -> None:
    """The state is the fold of the events: a decision that brings another one fails in the kit as in the engine."""
    given(Baskets(), WasPut("a")).when(Put("b-1", "carried")).then_error(CommandError).then_state(Basket(["a"]))


@pytest.mark.row("D-115")
def test_one_past_serves_many_commands() -> None:
    """What one command leads to is not in the past of the next one."""
    past = given(Baskets(), WasPut("a"))
    for item in ("b", "c"):
        past.when(Put("b-1", item)).then_state(Basket(["a", item]))


@pytest.mark.row("D-115")
def test_what_an_engine_would_refuse_the_kit_refuses() -> None:
    """Events and commands of the wrong types fail in the test, and not only in production."""
    given(Baskets()).when(Put("b-1", "number")).then_error(PayloadError).then_state(Basket())
    given(Baskets()).when(Put("b-1", 7)).then_error(PayloadError)  # type: ignore[arg-type]
    given(
        Puppet(lambda state, command, moment: Decision.event(Noted("x")).with_timer_after(timedelta.max, command))
    ).when(Do("p-1")).then_error(CommandError)
    with pytest.raises(PayloadError, match=r"^WasPut\.item must be str, got int$"):
        given(Baskets(), WasPut(7))  # type: ignore[arg-type]


def writing(**fields: Any) -> Puppet:
    """A puppet that sends a message."""
    letter = {"decider": "doll", "command": Do("d-1", "x"), **fields}
    return Puppet(lambda *_: Decision.event(Noted("x")).with_message(Message(**letter)))


@pytest.mark.row("D-115")
def test_a_command_without_its_key_is_refused() -> None:
    """`execute` could not find its instance; what comes from a timer or an effect needs no key, and may say so."""
    refused = given(Puppet()).when(Do("")).then_error(PayloadError)
    assert "which instance it is for" in str(refused.answer)
    assert "by_key=False" in str(refused.answer)
    given(Puppet()).when(Do("", "x"), by_key=False).then(Noted("x"))


@pytest.mark.row("D-115")
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"command": Do("")}, PayloadError),
        ({"command": Do("d-1", 7)}, PayloadError),  # type: ignore[arg-type]
        ({"elsewhere": True}, CommandError),
        ({"decider": "puppet", "command": Add("c-1")}, CommandError),
        ({"key": "\ud800"}, PayloadError),
    ],
)
def test_a_message_that_would_reach_nobody_is_refused(fields: dict[str, Any], error: type[StandfastError]) -> None:
    """As far as the kit knows the target: a key that is empty, a value that cannot be stored, no target for code elsewhere."""
    given(writing(**fields)).when(Do("p-1")).then_error(error).then_state(())
    given(writing(**fields)).beside(Doll()).when(Do("p-1")).then_error(error)


class Book(Decider[int, Added, Added, None]):
    """Has a key of its own making."""

    type = "book"

    def initial(self) -> int:
        return 0

    def evolve(self, state: int, event: Added) -> int:
        return state + event.by

    def decide(self, state: int, command: Added, moment: Moment) -> Decision:
        return Decision.event(command)

    def key_of(self, command: Added) -> str:
        return "main"


@pytest.mark.row("D-115")
def test_with_the_deciders_it_writes_to_messages_are_checked_as_in_an_engine() -> None:
    """Who is registered beside it is known: whom a message reaches, which commands he has, and how he finds the instance."""
    given(writing()).when(Do("p-1")).then(Noted("x"))
    given(writing()).beside(Doll()).when(Do("p-1")).then(Noted("x"))
    given(writing(decider="odll")).beside(Doll()).when(Do("p-1")).then_error(NotFoundError)
    given(writing(command=Add("c-1"))).beside(Doll()).when(Do("p-1")).then_error(CommandError)
    noted = writing(decider="book", command=Added(1))
    given(noted).when(Do("p-1")).then(Noted("x"))
    given(noted).beside(Book()).when(Do("p-1")).then(Noted("x"))


class Vague(Puppet):
    """Has no status to speak of."""

    def status(self, state: Any) -> Any:
        return "fine"


@pytest.mark.row("D-115")
def test_the_rest_of_a_decision_is_checked_too() -> None:
    """Recalls and the status afterwards are looked at as an engine does."""
    recalling = Puppet(lambda *_: Decision((Noted("x"),), recalls=(Recall(effect=0, command=Added(1)),)))
    given(recalling).when(Do("p-1")).then_error(CommandError)
    given(Vague()).when(Do("p-1")).then_error(CommandError)


@message(name="Weighed", version=2)
@dataclass(frozen=True)
class Weighed:
    grams: int


@message(name="Weigh", version=2)
@dataclass(frozen=True)
class Weigh:
    workflow_id: str
    grams: int


@message(name="Print", version=2)
@dataclass(frozen=True)
class Print:
    grams: int


def in_grams(old: dict[str, Any]) -> dict[str, object]:
    """What was counted in kilograms once."""
    return {"workflow_id": "s-1", "grams": old["kilograms"] * 1000}


class Scales(Decider[int, Weigh, Weighed, Print]):
    """Weighs, and has a label printed."""

    type = "scales"
    upcasters = MappingProxyType({("Weighed", 1): in_grams})
    command_upcasters = MappingProxyType({("Weigh", 1): in_grams})
    effect_upcasters = MappingProxyType({("Print", 1): in_grams})

    def initial(self) -> int:
        return 0

    def evolve(self, state: int, event: Weighed) -> int:
        return state + event.grams

    def decide(self, state: int, command: Weigh, moment: Moment) -> Decision:
        return Decision.event(Weighed(command.grams)).with_effect(Print(command.grams))


@pytest.mark.row("D-115", "D-117")
def test_upcasters_are_tested_with_what_is_stored() -> None:
    """Events, commands and effects in an old shape are given as they are stored, and come out as the engine would read them."""
    past = given(
        Scales(), StoredState("Weighed", {"kilograms": 2}), Weighed(5), StoredState("Weighed", {"grams": 1}, version=2)
    )
    assert past.state == 2006
    past.when(StoredState("Weigh", {"kilograms": 1})).then(Weighed(1000)).then_state(3006)
    assert past.read_effect(StoredState("Print", {"kilograms": 3})) == Print(3000)
    with pytest.raises(UnknownEventError, match="'Weighed' version 3"):
        given(Scales(), StoredState("Weighed", {}, version=3))
    with pytest.raises(PayloadError, match=r"the upcaster of 'Weighed' version 1 .*KeyError"):
        given(Scales(), StoredState("Weighed", {"pounds": 2}))


@pytest.mark.row("D-114")
def test_the_engine_in_memory_is_the_real_one() -> None:
    """Without a URL an engine for tests runs on SQLite in memory, with a clock of the test's own."""
    with ManualEngine().register(Order(), Shop()) as engine:
        begun = engine.clock.now()
        engine.deciders.execute(Order, PlaceOrder("o-1", 5))
        engine.advance(hours=72)
        assert engine.deciders.state(Order, "o-1").status == "shipped"
        assert (engine.clock.now() - begun).total_seconds() == 72 * 3600


@pytest.mark.row("D-114")
def test_a_stopped_engine_for_tests_is_no_live_worker(tmp_path: Path) -> None:
    """The next engine on its database does not wait for it: what needs a handler that only it had is missing at once."""
    url = f"sqlite:///{tmp_path / 'stopped.db'}"
    first = ManualEngine(url).register(Saga("s").step("a", lambda: 1).build())
    first.start("s")
    first.drain()
    first.stop()
    other = ManualEngine(url)
    assert other.admin.workers() == []
    other.stop()


def test_engines_in_memory_share_nothing() -> None:
    """Each has a database of its own."""
    with ManualEngine().register(Counter()) as first, ManualEngine().register(Counter()) as second:
        first.deciders.execute(Counter, Add("c-1"))
        assert second.instances.list() == []


def test_an_engine_for_tests_serves_the_tenant_that_the_application_has() -> None:
    """As an engine does, so that what the application asks for is found."""
    with ManualEngine(tenant="acme").register(Counter()) as engine:
        engine.deciders.execute(Counter, Add("c-1"))
        assert [each.tenant for each in engine.as_tenant("acme").instances.list()] == ["acme"]


def test_time_only_goes_forward() -> None:
    """A test's clock refuses to be set back."""
    with ManualEngine() as engine, pytest.raises(ValueError, match="backwards"):
        engine.advance(hours=-1)


def test_handlers_may_be_coroutines_in_tests_too() -> None:
    """The engine without threads runs a coroutine handler to its end, also inside of a running event loop."""

    async def handle(context: object, effect: object) -> Do:
        await asyncio.sleep(0)
        return Do("p-1", "done")

    def play() -> tuple[str, ...]:
        with ManualEngine().register(Puppet(act), handle) as engine:
            engine.deciders.execute(Puppet, Do("p-1", "x"))
            engine.drain()
            return engine.deciders.state(Puppet, "p-1")

    async def inside() -> tuple[str, ...]:
        return play()

    assert play() == asyncio.run(inside()) == ("x", "done")
