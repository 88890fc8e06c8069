"""Options of a parse: leniency, namespaces and limits. They affect the tree only; evaluation has no options."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

import msgspec

from standfast.errors import ConfigurationError
from standfast.expressions.model.limits import ExpressionLimits
from standfast.expressions.model.paths import NAME_PATTERN

Spelling: TypeAlias = Literal["native", "go", "json", "mapping", "template"]

LENIENT_SPELLINGS: Final[frozenset[Spelling]] = frozenset({"go"})
"""Syntaxes that tolerate absent values by default."""

NAMESPACES: Final = frozenset({"entity", "actor", "org", "now", "context", "input", "steps", "event", "workflow"})
"""Names under which the engine provides data."""


class ExpressionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a parse. With equal options a condition has the same tree in every syntax."""

    lenient: bool | None = None
    """Whether every variable is read as if marked with `?`. None means the default of the syntax."""
    root: str = ""
    """Namespace of names outside `namespaces`, such as `input`. Empty leaves bare names unchanged."""
    namespaces: frozenset[str] = NAMESPACES
    """Names at the top of the data, which do not count as dereferences."""
    templates: bool = True
    """Whether a quoted text in a mapping may contain `{path}` placeholders."""
    limits: ExpressionLimits = ExpressionLimits()
    """The size limits."""

    @property
    def tops(self) -> frozenset[str]:
        """All names at the top of the data."""
        return self.namespaces | {self.root} if self.root else self.namespaces

    def __post_init__(self) -> None:
        for name in (self.root or "unused", *self.namespaces):
            if re.fullmatch(NAME_PATTERN, name) is None:
                raise ConfigurationError(f"{name!r} cannot be a namespace: it is not a name of letters, digits and _")


STORED: Final = ExpressionOptions(namespaces=NAMESPACES | {"approval", "related", "resume"})
"""For stored expressions, which were parsed with the namespaces of their place: the namespaces of all places are
allowed."""
DEFAULT: Final = ExpressionOptions()
