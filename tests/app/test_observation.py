"""Looking at workflows: observed inputs and moves, snapshots of instances, pictures of state machines."""

from __future__ import annotations

import re
import threading
from datetime import timedelta

import pytest

from standfast import Decision, Moment, Settings, Status
from standfast.graph.diagrams.state_charts import (
    StateInfo,
    StateMachineDefinition,
    StateMachineView,
    TransitionInfo,
)
from support.engines import Live, Place
from support.inside import identity_of
from support.samples import (
    PATIENCE,
    Act,
    Answer,
    Cancel,
    Do,
    Noted,
    Notes,
    Order,
    OrderState,
    Pay,
    Puppet,
    Shop,
    act,
)
from support.samples import Place as PlaceOrder
from support.waiting import arrives, eventually

WATCHING = Settings(observe_inputs=True)


class Watched(Order):
    """An order that shows its business status."""

    type = "watched"

    def status(self, state: OrderState) -> Status:
        word = "completed" if self.is_terminal(state) else "running"
        return Status(word, state.status)  # type: ignore[arg-type]


@pytest.mark.row("D-092")
def test_observed_inputs_leave_one_row_each(place: Place) -> None:
    """With observation on, every input leaves its type and time, skipped ones too, whichever way it came."""
    engine = place.engine(WATCHING).register(Order(), Shop())
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    engine.drain()
    engine.deciders.execute(Order, Cancel("o-1"))
    seen = engine.deciders.observations("order")
    assert [(each.input, each.skipped) for each in seen] == [
        ("Place", False),
        ("Pay", False),
        ("Ship", False),
        ("Cancel", True),
    ]
    assert {each.at for each in seen} == {place.clock.now()}
    assert engine.deciders.observations(instance=seen[0].instance) == seen
    assert engine.deciders.observations("puppet") == []


@pytest.mark.row("D-092", "D-103")
def test_observation_changes_nothing_else(place: Place) -> None:
    """Without observation there is no row, and the histories are the same."""
    histories = []
    for number, settings in enumerate((Settings(), WATCHING)):
        engine = place.engine(settings).register(Order(), Shop())
        engine.deciders.execute(Order, PlaceOrder(f"o-{number}", 5))
        engine.drain()
        histories.append([each.event for each in engine.deciders.history(Order, f"o-{number}")])
    assert histories[0] == histories[1]
    assert len({each.instance for each in engine.deciders.observations()}) == 1


@pytest.mark.row("D-092")
def test_the_results_of_transactional_effects_are_observed_too(place: Place) -> None:
    """A command that comes out of a handler's own transaction is an input like any other."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        return decision if command.what == "done" else decision.with_effect(Act("x"), transactional=True)

    engine = place.engine(WATCHING).register(Puppet(choose), lambda context, effect: Do("p-1", "done"))
    engine.deciders.execute(Puppet, Do("p-1", "go"))
    engine.drain()
    assert len(engine.deciders.observations("puppet")) == 2


@pytest.mark.row("D-099", "D-100", "D-102")
def test_observed_moves_are_counted(place: Place) -> None:
    """Each triple of state, input and next state is counted, in the words of the decider; what never happened does not show."""
    engine = place.engine(WATCHING).register(Watched(), Shop())
    for number in range(3):
        engine.deciders.execute(Watched, PlaceOrder(f"o-{number}", 5))
    engine.deciders.execute(Watched, Cancel("o-2"))
    engine.drain()
    moves = {
        (move.from_status, move.input, move.to_status): move.count for move in engine.deciders.transitions("watched")
    }
    assert moves[("", "Place", "placed")] == 3
    assert moves[("placed", "Pay", "paid")] == 2
    assert moves[("paid", "Ship", "shipped")] == 2
    assert moves[("placed", "Cancel", "cancelled")] == 1
    assert not [move for move in moves if "TimeOut" in move]


@pytest.mark.row("D-098", "D-100", "D-102")
def test_what_was_observed_can_be_drawn(place: Place) -> None:
    """The machine of observed moves shows the paths that were taken, with their counts."""
    engine = place.engine(WATCHING).register(Order(), Shop())
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    engine.drain()
    machine = engine.deciders.observed_machine("order")
    assert [(each.input, each.target, each.count) for each in machine.transitions] == [
        ("Place", "running", 1),
        ("Pay", "running", 1),
        ("Ship", "completed", 1),
    ]
    assert "Ship (1x)" in machine.to_mermaid()
    assert 's0 -> s1 [label="Ship (1x)"];' in machine.to_dot()


@pytest.mark.row("D-101")
def test_an_instance_shows_its_history_and_its_pending_work(place: Place) -> None:
    """One call gives status, state, events, effects and timers of an instance."""
    engine = place.engine().register(Order())
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    found = engine.deciders.get(Order, "o-1")
    assert (found.definition, found.key, found.tenant, found.status) == ("order", "o-1", "default", "running")
    assert (found.version, found.created_at, found.completed_at) == (1, place.clock.now(), None)
    assert [each.type for each in found.history] == ["Placed"]
    assert [(each.type, each.key) for each in found.effects] == [("Charge", f"{found.id}:0")]
    assert [(each.key, each.due_at) for each in found.timers] == [("payment", place.clock.now() + PATIENCE)]


@pytest.mark.row("D-101")
def test_an_instance_shows_who_works_for_it(live: Live) -> None:
    """While a handler runs, its effect names the worker."""
    gate = threading.Event()
    engine = live.engine().register(Puppet(act), lambda context, effect: arrives(gate)).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    (effect,) = eventually(lambda: [each for each in engine.deciders.get(Puppet, "p-1").effects if each.worker])
    assert (effect.worker, effect.attempts) == (identity_of(engine), 1)
    gate.set()


class OrderView:
    """An author's description of an order."""

    def state_info(self, state: OrderState) -> StateInfo:
        return StateInfo(
            status=state.status, fields={"amount": str(state.amount)}, is_terminal=Order().is_terminal(state)
        )

    def transitions(self, state: OrderState) -> list[TransitionInfo]:
        graph = self.machine()
        assert graph is not None
        return [each for each in graph.transitions if each.source == state.status]

    def machine(self) -> StateMachineDefinition | None:
        return StateMachineDefinition(
            name="order",
            initial="new",
            states=(
                StateInfo(status="new"),
                StateInfo(status="placed"),
                StateInfo(status="paid"),
                StateInfo(status="shipped", is_terminal=True),
            ),
            transitions=(
                TransitionInfo(source="new", input="Place", target="placed", effects=("Charge",), timers=("payment",)),
                TransitionInfo(source="placed", input="Pay", target="paid", effects=("Deliver",)),
                TransitionInfo(source="paid", input="Ship", target="shipped"),
            ),
        )


@pytest.mark.row("D-094", "D-095", "D-096", "D-097")
def test_an_author_can_describe_a_workflow(place: Place) -> None:
    """A view says what a state is, where it can go, with which effects and timers, and what the whole looks like."""
    view: StateMachineView[OrderState] = OrderView()
    engine = place.engine().register(Order())
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    state = engine.deciders.state(Order, "o-1")
    assert view.state_info(state) == StateInfo(status="placed", fields={"amount": "5"})
    (move,) = view.transitions(state)
    assert (move.input, move.target, move.effects, move.timers) == ("Pay", "paid", ("Deliver",), ())
    engine.deciders.execute(Order, Pay("o-1"))
    assert view.state_info(OrderState("shipped", 5)).is_terminal
    graph = view.machine()
    assert graph is not None
    assert [each.status for each in graph.states] == ["new", "placed", "paid", "shipped"]


@pytest.mark.row("D-098")
@pytest.mark.row("G-31")
def test_a_description_can_be_drawn_as_mermaid_and_dot() -> None:
    """Both exports hold every state and every move, and are well formed."""
    graph = OrderView().machine()
    assert graph is not None
    mermaid, dot = graph.to_mermaid(), graph.to_dot()
    assert mermaid.startswith("stateDiagram-v2\n")
    assert all(
        re.fullmatch(r'    (state ".*" as s\d+|(\[\*\]|s\d+) --> (\[\*\]|s\d+)(: .+)?)', line)
        for line in mermaid.splitlines()[1:]
    )
    assert "s0 --> s1: Place / +Charge / after payment" in mermaid
    assert dot.startswith('digraph "order" {')
    assert dot.count("{") == dot.count("}") == 1
    assert 's1 -> s2 [label="Pay / +Deliver"];' in dot


@pytest.mark.row("D-099")
def test_a_timeout_is_an_observed_move(place: Place) -> None:
    """Timers are inputs too."""
    engine = place.engine(WATCHING).register(Watched())
    engine.deciders.execute(Watched, PlaceOrder("o-1", 5))
    engine.advance(PATIENCE + timedelta(seconds=1))
    assert ("placed", "TimeOut", "cancelled", 1) in [
        (move.from_status, move.input, move.to_status, move.count) for move in engine.deciders.transitions("watched")
    ]


@pytest.mark.row("D-098", "D-102")
def test_the_drawing_has_the_words_of_the_decider(place: Place) -> None:
    """A decider that says more than its status, as the reason of it, is drawn with the states of its own."""
    engine = place.engine(WATCHING).register(Watched(), Shop())
    engine.deciders.execute(Watched, PlaceOrder("o-1", 5))
    engine.drain()
    machine = engine.deciders.observed_machine("watched")
    assert [(each.status, each.is_terminal) for each in machine.states] == [
        ("placed", False),
        ("paid", False),
        ("shipped", True),
    ]
