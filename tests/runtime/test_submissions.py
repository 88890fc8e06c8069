"""Commands on their way: what tells two of them with one id apart."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from standfast import message
from standfast.engine.commit.submission import digest_of, is_same
from standfast.store.records.instances import Address

HERE = Address(tenant="default", definition="order", key="o-1")
THERE = Address(tenant="default", definition="order", key="o-2")


@dataclass(frozen=True)
class Pay:
    amount: int


@message(name="Pay", version=2)
@dataclass(frozen=True)
class PayCents:
    cents: int


@dataclass(frozen=True)
class Refund:
    amount: int


@pytest.mark.parametrize(
    ("where", "command", "same"),
    [
        (HERE, Pay(5), True),
        (HERE, Pay(6), False),
        (THERE, Pay(5), False),
        (HERE, PayCents(500), True),
        (THERE, PayCents(500), False),
        (HERE, Refund(5), False),
    ],
)
def test_commands_are_told_apart_as_far_as_they_can_be(where: Address, command: object, *, same: bool) -> None:
    """By name and business key always, by what they say where both are of one version; versions cannot be compared."""
    assert is_same(digest_of(HERE, Pay(5)), digest_of(where, command)) is same


class Strange:
    """Nothing that any codec of the engine's can read."""


def test_a_command_that_cannot_be_compared_is_known_by_its_name() -> None:
    """A codec of the user's own may store what others cannot: then the same id and name stand for the same command."""
    assert is_same(digest_of(HERE, Strange()), digest_of(HERE, Strange()))
    assert not is_same(digest_of(HERE, Strange()), digest_of(THERE, Strange()))
