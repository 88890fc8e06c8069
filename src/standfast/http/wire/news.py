"""What those who look at lists are told of what was written: written down once, however many listen."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

import msgspec

from standfast.features.access.views import Written

_encode = msgspec.json.Encoder(enc_hook=str).encode


FLOOD: Final = 100
"""So many events at once are told one by one."""


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """Told to those who look at a list: this run has an event more; of many events at once, the newest of each run."""

    id: str
    definition: str
    sequence: int
    type: str


class News:
    """What was written of one tenant since it was last looked; everybody who listens to the tenant has the same."""

    def __init__(self, items: Sequence[Written]) -> None:
        self.items = items

    @functools.cached_property
    def told(self) -> bytes:
        """As it goes over the wire."""
        return changes(self.items)

    def behind(self, position: int) -> News:
        """What of it was written behind a position: nearly always all of it."""
        if not self.items or self.items[0].position > position:
            return self
        return News([each for each in self.items if each.position > position])


def changes(items: Sequence[Written]) -> bytes:
    """That runs have changed, each with its position as id. Nobody can look at a flood: of that each run is told once, as it has come to stand."""
    newest = {each.instance.int: each for each in items} if len(items) > FLOOD else {}
    shown = sorted(newest.values(), key=lambda each: each.position) if newest else items
    return b"".join(
        event(
            "changed",
            Changed(id=str(each.instance), definition=each.definition, sequence=each.sequence, type=each.type),
            each.position,
        )
        for each in shown
    )


def event(name: str, data: object, identity: int) -> bytes:
    """One server-sent event."""
    return b"".join((f"id: {identity}\nevent: {name}\ndata: ".encode(), _encode(data), b"\n\n"))
