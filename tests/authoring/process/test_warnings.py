"""What is odd and can be run: a definition tells it, with a place, and nothing is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from authoring.process.examples import changed, load, templates
from standfast import load_processes

BACK = {"from": "notify", "event": "completed", "to": "process"}


@pytest.mark.row("P-020")
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"transitions__7": None}, ["no_completed", "unreachable"]),
        ({"transitions__6": None}, ["unreachable", "no_completed", "unreachable"]),
        ({"steps__7": {"id": "lost", "type": "terminal"}}, ["unreachable"]),
        ({"transitions__2__event": "declined"}, ["no_decision"]),
        ({"transitions__8": {"from": "review", "event": "rejected", "to": "expired"}}, ["shadowed"]),
        ({"transitions__3__to": "notify", "transitions__7": BACK}, ["system_cycle", "unreachable", "unreachable"]),
        ({"transitions__4__to": "process"}, ["system_cycle"]),
    ],
)
def test_oddities_are_told(changes: dict[str, Any], expected: list[str]) -> None:
    """In the order of the file."""
    assert [each.code for each in load(changed(**changes)).warnings] == expected


@pytest.mark.row("P-020")
def test_a_circle_that_waits_for_somebody_is_not_odd() -> None:
    """Rework is what processes are for; only steps that run by themselves must not lead back to themselves, and `retry` does not count."""
    again = {"from": "review", "event": "again", "to": "review"}
    assert load(changed(transitions__8=again)).warnings == ()


def test_a_step_without_a_way_to_it_is_left_out() -> None:
    """It cannot be entered, so that the graph need not have it."""
    definition = load(changed(steps__7={"id": "lost", "type": "terminal"}))
    assert "lost" not in definition.graph.nodes


@pytest.mark.parametrize("name", sorted(templates()))
def test_templates_are_sound(name: str) -> None:
    """Each one is loaded without a word."""
    (definition,) = load_processes(templates()[name], name=name)
    assert definition.warnings == ()
    assert definition.media_type == "application/yaml"


def test_the_five_processes_are_there() -> None:
    """Order approval, dispute resolution, onboarding, settlement, and expenses with two reviewers."""
    assert sorted(templates()) == [
        "dispute_resolution.yaml",
        "expense_approval.yaml",
        "order_approval.yaml",
        "settlement.yaml",
        "user_onboarding.yaml",
    ]


@pytest.mark.parametrize(
    ("asks", "expected"),
    [
        ({}, ["open_approval"]),
        ({"assignee": {"role": "boss"}}, []),
        ({"assignees": [{"user": "bob"}]}, []),
        ({"chain": "c"}, []),
        ({"capability": "orders:approve"}, []),
    ],
)
def test_an_approval_that_anybody_gives_is_odd(asks: dict[str, Any], expected: list[str]) -> None:
    """One that names neither people nor a capability can be given by every stranger, which its author hardly meant."""
    steps = [
        {"id": "review", "type": "approval", **asks},
        {"id": "yes", "type": "terminal"},
        {"id": "no", "type": "terminal"},
    ]
    ways = [{"from": "review", "event": each, "to": to} for each, to in (("approved", "yes"), ("rejected", "no"))]
    (found,) = load_processes(
        json.dumps({"domain": "d", "workflows": [{"id": "w", "steps": steps, "transitions": ways}]})
    )
    assert [each.code for each in found.warnings] == expected
