"""Requests to other systems that nobody waits for."""

from __future__ import annotations

from typing import Final

from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.engine_tasks import Post
from standfast.machine.model.json_values import plain
from standfast.machine.model.state import Data

PAYLOAD: Final = "payload."
"""What the names of what is sent begin with."""


def post(turn: DecisionBuilder, place: tuple[int, str], given: Data, *, occasion: str = "step") -> None:
    """Have a request sent. The place is a step, by number and node."""
    number, node = place
    turn.send_out(
        Post(
            step=number,
            node=node,
            key=f"{number}/{occasion}/webhook",
            url=str(given.get("url", "")),
            secret=str(given.get("secret", "")),
            payload=payload_of(given),
        )
    )


def payload_of(given: Data) -> Data:
    """What is sent, by name."""
    return {name.removeprefix(PAYLOAD): plain(each) for name, each in given.items() if name.startswith(PAYLOAD)}
