"""Whatever a run can be told, can remember or can consist of has its place in the tables that the machine works by."""

from __future__ import annotations

from typing import get_args

from standfast.machine import dispatch as deciding
from standfast.machine.model.commands.run_commands import Command
from standfast.machine.model.events import Event
from standfast.machine.model.folds import fold as evolving


def test_every_command_is_decided() -> None:
    """No command that a run can be sent is without its function."""
    assert set(deciding._TABLE) == set(get_args(Command))


def test_every_event_is_folded() -> None:
    """No event that a history can hold is without its function, also one that changes nothing."""
    assert set(evolving._TABLE) == set(get_args(Event))
