"""The reference of deciders names everything that the code has, and nothing else."""

from __future__ import annotations

import re

import pytest

from standfast import Decider, Decision, Effect, EffectContext, Failure, Message, Moment, Timer
from standfast.app.api.sync import Deciders
from standfast.testing.specification import Then
from support.repository import ROOT

PAGE = (ROOT / "docs" / "reference" / "deciders.md").read_text(encoding="utf-8")


def first_column(place: str) -> list[str]:
    """What the first table behind a place names in its first column."""
    rows = PAGE.split(place, 1)[1].split("\n|---", 1)[1].split("\n\n", 1)[0].splitlines()[1:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def public(cls: type) -> list[str]:
    """The names that a class itself offers."""
    return [name for name in vars(cls) if not name.startswith("_")]


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("\n`Failure`, ", Failure.__struct_fields__),
        ("\n### Effect\n", Effect.__struct_fields__),
        ("\n### Timer\n", Timer.__struct_fields__),
        ("\n### Message\n", Message.__struct_fields__),
        ("\n## Moment\n", (*Moment.__struct_fields__, "derive_id")),
    ],
)
def test_all_fields_are_listed(place: str, names: tuple[str, ...]) -> None:
    """A field of a value that authors make or get is on the page, in the order of the code."""
    assert first_column(place) == list(names)


def test_all_members_of_a_decider_are_listed() -> None:
    """What a subclass may say is on the page."""
    assert sorted(first_column("\n## The class\n")) == sorted({*public(Decider), "type"})


def test_all_ways_to_build_a_decision_are_listed() -> None:
    """A method that adds something to a decision is on the page."""
    built = [name for name in public(Decision) if name not in Decision.__struct_fields__]
    assert sorted(first_column("\n## Decision\n")) == sorted(built)


def test_all_that_a_handler_is_told_is_listed() -> None:
    """A member of the context is on the page, but for the one that only the engine calls."""
    assert sorted(first_column("\n`EffectContext`:")) == sorted({*public(EffectContext)} - {"cancel"})


def test_all_calls_are_listed() -> None:
    """A call for deciders is on the page."""
    assert sorted(first_column("\n## Calls\n")) == sorted(public(Deciders))


def test_all_checks_of_the_kit_are_listed() -> None:
    """A check of the test kit is on the page."""
    assert sorted(first_column("\n## The test kit\n")) == sorted(public(Then))
