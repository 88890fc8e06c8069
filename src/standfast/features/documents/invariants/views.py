"""What whoever asks for the invariants is shown."""

from __future__ import annotations

import builtins

import msgspec

from standfast.kernel.ids import InstanceId


class Invariant(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that always holds."""

    code: str
    says: str
    remedy: str
    """What to do where it does not hold."""
    is_repairable: bool
    """Whether `repair` sets it right, unless the history itself was changed."""


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A place where a rule does not hold."""

    rule: str
    told: str
    """What is stored, and what should be."""
    remedy: str
    is_repairable: bool
    """Whether `repair` of the document sets it right."""
    document: str = ""
    """Type and id of the document; empty if it is about a workflow."""
    instance: InstanceId | None = None
    """Its run."""
    definition: str = ""
    """Name and version of the workflow."""


class InvariantPage(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of documents that was looked at."""

    items: builtins.list[Violation]
    checked: int
    """How many documents there were in it."""
    next: str | None
    """Where to go on; None if these were the last."""


class Mended(msgspec.Struct, frozen=True, kw_only=True):
    """What a repair has done."""

    instance: InstanceId
    tables: builtins.list[str]
    """Whose rows were made again from the history."""
    withdrawn: builtins.list[int]
    """Calls that nobody had asked for, by the numbers of their effects."""
    called: builtins.list[int]
    """Steps that are called again."""
    left: builtins.list[Violation]
    """What no repair sets right."""

    @property
    def is_whole(self) -> bool:
        """Whether every rule holds now."""
        return not self.left
