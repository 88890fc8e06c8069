"""A fork under construction: what its branches hold, where they end, and which forks inside of them have not met."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from standfast.errors import Diagnostic
from standfast.features.sagas.builder_state import Loose
from standfast.features.sagas.definition import CONDITION_ENTRY, IMPLICIT_JOIN
from standfast.graph.model import ConditionOp, Node


class Grown(NamedTuple):
    """A branch that its author has built."""

    steps: frozenset[str]
    lasts: tuple[str, ...]
    """The steps that it ends with."""
    conditions: frozenset[str]
    """The virtual entries of its conditions, which stand for whatever it ends with."""


class OpenFork:
    """A fork, `parallel` or `for_each` that has no join yet."""

    def __init__(self, name: str, *, is_parallel: bool) -> None:
        self.name = name
        self.is_parallel = is_parallel
        """Whether it meets by itself, unless a join of its own follows."""
        self.unjoined: list[str] = []
        """Forks inside of its branches that have no join."""
        self._branches: list[Grown] = []

    def add(self, nodes: Sequence[Node], ends: Sequence[Loose], unjoined: Sequence[str]) -> None:
        """One more branch."""
        conditions = frozenset(f"{CONDITION_ENTRY}{node.id}" for node in nodes if isinstance(node.op, ConditionOp))
        lasts = tuple(dict.fromkeys(str(source).removesuffix(IMPLICIT_JOIN) for source, _ in ends))
        self._branches.append(Grown(frozenset(node.id for node in nodes), lasts, conditions))
        self.unjoined += unjoined

    def check_join(self, join: str) -> Iterator[Diagnostic]:
        """A branch can meet the others only when the forks inside of it have met."""
        for inner in self.unjoined:
            message = f"{inner!r} is a fork in a branch of {self.name!r}, which meets at {join!r}; put a join behind {inner!r}"
            yield Diagnostic("fork_without_join", message, inner)

    def check_names(self, join: str, names: Sequence[str]) -> Iterator[Diagnostic]:
        """A join waits for every branch, and for the whole of it: names that say otherwise are findings."""
        for name in names:
            if any(name in branch.lasts or name in branch.conditions for branch in self._branches):
                continue
            lasts = next((branch.lasts for branch in self._branches if name in branch.steps), ())
            if lasts:
                said = (
                    f"waits for {name!r}, but its branch goes on, and a join waits for all of it; name {_listed(lasts)}"
                )
            else:
                said = f"waits for a branch, but {name!r} is in no branch of {self.name!r}; leave it out"
            yield Diagnostic("not_last", f"{join!r} {said}, or use join", join)
        for branch in self._branches:
            if not {*branch.steps, *branch.conditions} & {*names}:
                message = f"{join!r} names no step of the branch with {_listed(sorted(branch.steps))}, but a join waits for every branch; use join"
                yield Diagnostic("unnamed_branch", message, join)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
