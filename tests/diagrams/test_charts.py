"""Pictures of workflows: every state and transition is in them, and no name can break their grammar."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.orders import Order
from standfast.graph.diagrams.state_charts import (
    StateInfo,
    StateMachineDefinition,
    StateMachineView,
    TransitionInfo,
    observed_machine,
)
from support.untimed import untimed

MACHINE = StateMachineDefinition(
    name="order",
    initial="open",
    states=(StateInfo(status="open"), StateInfo(status="paid"), StateInfo(status="gone", is_terminal=True)),
    transitions=(
        TransitionInfo(source="open", input="Pay", target="paid", effects=("ship",), timers=("reminder",)),
        TransitionInfo(source="open", input="Cancel", target="gone"),
        TransitionInfo(source="paid", input="Ship", target="gone", count=3),
    ),
)

MERMAID = """stateDiagram-v2
    state "open" as s0
    state "paid" as s1
    state "gone" as s2
    [*] --> s0
    s0 --> s1: Pay / +ship / after reminder
    s0 --> s2: Cancel
    s1 --> s2: Ship (3x)
    s2 --> [*]
"""

DOT = """digraph "order" {
    rankdir=LR;
    node [shape=box, style=rounded];
    s0 [label="open"];
    s1 [label="paid"];
    s2 [label="gone", peripheries=2];
    outside [shape=point];
    outside -> s0;
    s0 -> s1 [label="Pay / +ship / after reminder"];
    s0 -> s2 [label="Cancel"];
    s1 -> s2 [label="Ship (3x)"];
}
"""


@pytest.mark.row("D-096", "D-097", "D-098")
def test_a_machine_as_mermaid() -> None:
    """Every state, every transition with its effects and timers, the beginning and the end."""
    assert MACHINE.to_mermaid() == MERMAID


@pytest.mark.row("D-096", "D-097", "D-098")
def test_a_machine_as_dot() -> None:
    """The same picture in the language of Graphviz."""
    assert MACHINE.to_dot() == DOT


SHOWN = r"(?:[^\W_]|[ _-]|#\d+;)*"
MERMAID_LINE = re.compile(
    rf'stateDiagram-v2|    state "{SHOWN}" as s\d+|    (\[\*\]|s\d+) --> (\[\*\]|s\d+)(: (?:{SHOWN}|[/+])*( \(\d+x\))?)?'
)
QUOTED = r'"(?:[^"\\]|\\["\\])*"'
DOT_LINE = re.compile(
    rf"digraph {QUOTED} \{{|\}}|    rankdir=LR;|    node \[shape=box, style=rounded\];|    outside \[shape=point\];"
    rf"|    s\d+ \[label={QUOTED}(, peripheries=2)?\];|    (s\d+|outside) -> (s\d+|outside)( \[label={QUOTED}\])?;"
)

names = st.text(max_size=8) | st.sampled_from(
    ["start", "end", "node", "[*]", 'a"b', "a\nb", "a\\", "a: b; c", "a\r\u2028b"]
)
machines = st.builds(
    StateMachineDefinition,
    name=names,
    initial=names,
    states=st.lists(st.builds(StateInfo, status=names, is_terminal=st.booleans()), max_size=4).map(tuple),
    transitions=st.lists(
        st.builds(TransitionInfo, source=names, target=names, input=names, effects=st.tuples(names)), max_size=4
    ).map(tuple),
)


@pytest.mark.row("D-098")
@untimed
@given(machines)
def test_no_name_breaks_the_grammar(machine: StateMachineDefinition) -> None:
    """Whatever states and inputs are called, each line of the picture is a line of the language."""
    assert all(MERMAID_LINE.fullmatch(line) for line in machine.to_mermaid().splitlines())
    assert all(DOT_LINE.fullmatch(line) for line in machine.to_dot().splitlines())


@pytest.mark.row("D-098")
def test_hostile_names_are_only_labels() -> None:
    """Signs of the languages in a name are shown as they are, and names that differ in a sign are two states."""
    machine = StateMachineDefinition(
        name="m",
        states=(StateInfo(status='a"; [*] --> s9'), StateInfo(status="a'; [*] --> s9")),
        transitions=(TransitionInfo(source='a"; [*] --> s9', input="x: y\\", target="a'; [*] --> s9"),),
    )
    assert machine.to_mermaid().splitlines()[1:] == [
        '    state "a#34;#59; #91;#42;#93; #45;#45;#62; s9" as s0',
        '    state "a#39;#59; #91;#42;#93; #45;#45;#62; s9" as s1',
        "    s0 --> s1: x#58; y#92;",
    ]
    assert machine.to_dot().splitlines()[3:-1] == [
        r"""    s0 [label="a\"; [*] --> s9"];""",
        r"""    s1 [label="a'; [*] --> s9"];""",
        r"""    s0 -> s1 [label="x: y\\"];""",
    ]


@pytest.mark.row("D-098")
def test_states_that_only_a_transition_speaks_of_are_drawn() -> None:
    """Both pictures show a state that the author did not list; only what has no name is outside of the machine."""
    machine = StateMachineDefinition(
        name="m", initial="open", states=(), transitions=(TransitionInfo(input="Close", source="open", target="gone"),)
    )
    assert "s0 --> s1: Close" in machine.to_mermaid()
    assert 's0 -> s1 [label="Close"];' in machine.to_dot()


@pytest.mark.row("D-098")
def test_a_state_called_outside_is_not_the_beginning() -> None:
    """The point at which a machine begins cannot be mistaken for a state, whatever that is called."""
    machine = StateMachineDefinition(name="m", initial="outside", states=(), transitions=())
    assert 's0 [label="outside"];' in machine.to_dot()
    assert "outside -> s0;" in machine.to_dot()


@pytest.mark.row("D-099", "D-100", "D-102")
def test_an_observed_machine_shows_what_happened() -> None:
    """Observed moves become a graph with counts; it begins where instances began, and ends where none went on."""
    machine = observed_machine(
        "order", [("", "Place", "open", 5), ("open", "Pay", "open", 2), ("open", "Ship", "gone", 4)]
    )
    assert [(state.status, state.is_terminal) for state in machine.states] == [("open", False), ("gone", True)]
    assert "[*] --> s0: Place (5x)" in machine.to_mermaid()
    assert "s0 --> s0: Pay (2x)" in machine.to_mermaid()


class OrderView:
    """An author's own description of an order."""

    def state_info(self, state: Order) -> StateInfo:
        """What the order is."""
        word = "gone" if state.is_cancelled else "open"
        return StateInfo(status=word, fields={"paid": f"{state.paid}"}, is_terminal=state.is_cancelled)

    def transitions(self, state: Order) -> list[TransitionInfo]:
        """What can happen to it."""
        return [] if state.is_cancelled else [each for each in MACHINE.transitions if each.source == "open"]

    def machine(self) -> StateMachineDefinition | None:
        """The whole picture."""
        return MACHINE


@pytest.mark.row("D-094", "D-095", "D-096", "D-097")
def test_an_author_describes_a_workflow() -> None:
    """A view tells of a state its status, fields and end, what can happen in it, and the whole graph."""
    view: StateMachineView[Order] = OrderView()
    assert view.state_info(Order(paid=Decimal(5))) == StateInfo(status="open", fields={"paid": "5"})
    assert [each.input for each in view.transitions(Order())] == ["Pay", "Cancel"]
    assert view.state_info(Order(is_cancelled=True)).is_terminal
    assert view.machine() is MACHINE
