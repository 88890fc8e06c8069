"""What a caller may decide about parsing: leniency, where bare names live, and the limits.

All of it is settled before there is a tree; evaluation knows none of it.
"""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

import msgspec

from standfast.errors import ConfigurationError
from standfast.expressions.model.limits import ExpressionLimits
from standfast.expressions.model.paths import NAME_PATTERN

Spelling: TypeAlias = Literal["native", "go", "json", "mapping", "template"]

LENIENT_SPELLINGS: Final[frozenset[Spelling]] = frozenset({"go"})
"""The spellings that tolerate absent values when the caller does not say."""

NAMESPACES: Final = frozenset({"entity", "actor", "org", "now", "context", "input", "steps", "event", "workflow"})
"""The names under which the engine offers data."""


class ExpressionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to read a source. Equal options make equal trees of the same condition in every spelling."""

    lenient: bool | None = None
    """Whether every variable is read as if it carried the mark `?`; None takes the custom of the spelling."""
    root: str = ""
    """The namespace that a name outside `namespaces` belongs to, e.g. `input`; empty leaves bare names alone."""
    namespaces: frozenset[str] = NAMESPACES
    """The names that stand at the top of the data and do not count as a dereference."""
    templates: bool = True
    """Whether a quoted text in a mapping may have `{path}` holes."""
    limits: ExpressionLimits = ExpressionLimits()
    """The bounds on size."""

    @property
    def tops(self) -> frozenset[str]:
        """Every name that can stand at the top of the data."""
        return self.namespaces | {self.root} if self.root else self.namespaces

    def __post_init__(self) -> None:
        for name in (self.root or "unused", *self.namespaces):
            if re.fullmatch(NAME_PATTERN, name) is None:
                raise ConfigurationError(f"{name!r} cannot be a namespace: it is not a name of letters, digits and _")


STORED: Final = ExpressionOptions(namespaces=NAMESPACES | {"approval", "related", "resume"})
"""For expressions that were read with the namespaces of their place, and are read back: whatever any place offers is free."""
DEFAULT: Final = ExpressionOptions()
