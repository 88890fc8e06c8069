"""Whatever a run can be told, can remember or can consist of has its place in the tables that the machine works by."""

from __future__ import annotations

from typing import get_args

from holdfast.authoring.saga import definition
from holdfast.machine import deciding, evolving, nodes
from holdfast.machine.commands import Command
from holdfast.machine.events import Event
from holdfast.machine.graph import Op


def test_every_command_is_decided() -> None:
    """No command that a run can be sent is without its function."""
    assert set(deciding._TABLE) == set(get_args(Command))


def test_every_event_is_folded() -> None:
    """No event that a history can hold is without its function, also one that changes nothing."""
    assert set(evolving._TABLE) == set(get_args(Event))


def test_every_kind_of_node_does_something() -> None:
    """No kind of node that a graph can have is without its behaviour."""
    assert set(nodes._KINDS) == set(get_args(Op))


def test_every_kind_of_node_has_a_word_in_sagas() -> None:
    """A definition can show each of its steps."""
    assert set(definition._TYPES) == set(get_args(Op))
