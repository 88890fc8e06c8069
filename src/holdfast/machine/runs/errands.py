"""What a run has the engine itself do, where a step has a handler do it: errands. They go to one handler, which every worker has.

An errand asks the world something that a decision cannot: who has a role, which events came early. Its answer comes back as a command.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from holdfast.machine.graphs.asks import Ask, Stage

__all__ = ["OWN_HANDLER", "Ask", "Data", "Errand", "FindPeople", "Person", "Stage"]

Data = dict[str, object]

OWN_HANDLER = "$engine"
"""The handler of all errands; no definition can name it."""


class Person(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Somebody who is asked: one user, or whoever has a role."""

    kind: Literal["user", "role"] = "user"
    name: str
    weight: int = 1
    via: str = ""
    """Why it is them, in words: `role finance`, `manager of ann`, `added by bob`."""
    for_: str = msgspec.field(default="", name="for")
    """Whom they stand in for; empty if they are asked themselves."""


class _Errand(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Something for the engine itself to do."""


class FindPeople(_Errand, frozen=True, kw_only=True):
    """Find out who is to be asked; the answer is PeopleFound."""

    step: int
    node: str
    asks: list[Ask]
    requester: str = ""
    """Who started the run; empty if the engine did."""
    data: Data = {}
    """What resolvers of the application may look at: the data of the token."""


Errand: TypeAlias = FindPeople
