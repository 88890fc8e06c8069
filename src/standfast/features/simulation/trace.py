"""What a rehearsal tells of: the nodes that it comes through, the events that it waits for, and that it does not come to an end."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class TraceEntry(msgspec.Struct, kw_only=True):
    """A node that the run came through."""

    node: str
    """As the author names it; system nodes have their whole id."""
    slot: str = ""
    """The slot that it belongs to; empty for nodes of the envelope."""
    outcome: str = ""
    """What it was left by; empty as long as it was not."""
    note: str = ""
    """What there is to say about it: who is asked, what is called, what failed."""
    is_assumed: bool = False
    """Whether the outcome is a guess: nobody was really asked, and nothing really happened."""
    is_undoing: bool = False
    """Whether what the node did is undone here."""
    after: float = 0.0
    """Seconds since the beginning, as far as time goes by by itself: answers come at once."""


class AwaitedEvent(NamedTuple):
    """A published event that a step waits for."""

    step: int
    name: str
    """What the step calls it."""
    event: str
    key: str


class EndlessError(Exception):
    """A rehearsal does not come to an end, or not in time."""

    def __init__(self, reason: str = "something goes round in circles") -> None:
        super().__init__(reason)
