"""What a decider has without writing it: an end, a status, a key, and its four types."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from kernel.orders import Cancel, Cancelled, Charge, Order, Orders, Paid, Pay, Place, Placed, Remind
from standfast.errors import PayloadError
from standfast.kernel.decider import COMPLETED, RUNNING, Decider, Failure, Status, declared_types
from standfast.kernel.decision import Answer, Decision
from standfast.kernel.moment import Moment


class Endless(Decider[int, Pay, Paid, None]):
    """A decider that says only what it must."""

    type = "endless"

    def initial(self) -> int:
        """Nothing yet."""
        return 0

    def evolve(self, state: int, event: Paid) -> int:
        """Count."""
        return state + 1

    def decide(self, state: int, command: Pay, moment: Moment) -> Answer:
        """Always yes."""
        return Decision.event(Paid(command.amount))


@pytest.mark.row("D-011")
def test_by_default_nothing_ends() -> None:
    """A decider that does not speak of an end has none."""
    assert not Endless().is_terminal(10**6)
    assert Endless().status(10**6) == RUNNING


@pytest.mark.row("D-011")
def test_the_end_is_a_status() -> None:
    """A terminal state reads as completed, unless the decider finds a better word."""
    assert Orders().status(Order(is_cancelled=True)) == COMPLETED
    assert Orders().status(Order()) == RUNNING


@pytest.mark.parametrize(
    ("word", "is_terminal"),
    [
        ("running", False),
        ("paused", False),
        ("completed", True),
        ("failed", True),
        ("cancelled", True),
        ("aborted", True),
    ],
)
def test_four_words_are_final(word: str, *, is_terminal: bool) -> None:
    """An instance never leaves completed, failed, cancelled and aborted."""
    make: type = Status
    assert make(word).is_terminal == is_terminal


@dataclass(frozen=True)
class Called:
    name: object

    def workflow_id(self) -> object:
        """The key, told by a method."""
        return self.name


def key_of(command: Any) -> str:
    """The key that a decider finds in anything at all."""
    return Endless().key_of(command)


@pytest.mark.row("D-010")
def test_a_command_tells_its_instance() -> None:
    """The key is the command's `workflow_id`, whether it is a field or a method."""
    assert Orders().key_of(Pay("o-1", Decimal(1))) == "o-1"
    assert key_of(Called("o-2")) == "o-2"


@pytest.mark.row("D-010")
@pytest.mark.parametrize("command", [Called(""), Called(7), Called(None), object()])
def test_a_command_without_a_key_is_refused(command: object) -> None:
    """No key, an empty one, or one that is not text: refused with what to do, before anything is written."""
    with pytest.raises(PayloadError, match=r"`workflow_id`, or override key_of in Endless"):
        key_of(command)


class Special(Orders):
    """A subclass that adds nothing to the types."""


@pytest.mark.row("D-001")
def test_the_four_types_are_declared_once() -> None:
    """State, commands, events and effects are read from the class that names them, also through subclasses."""
    expected = (Order, Place | Pay | Cancel | Remind, Placed | Paid | Cancelled, Charge)
    assert declared_types(Orders) == declared_types(Special) == expected


def test_a_failed_effect_tells_nobody_by_default() -> None:
    """Giving up is left to the dead letters unless the decider wants to hear of it."""
    assert Orders().effect_failed(Charge(Decimal(1)), Failure(error="no money")) is None
