"""External data that expressions read besides a document: organisation settings and referenced documents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from standfast.expressions import Expression
from standfast.expressions.model.tree import variables

ORG: Final = "org"
RELATED: Final = "related"


class Reads(NamedTuple):
    """Data to be read before expressions can be evaluated."""

    org: bool = False
    """Whether they read settings of the organisation."""
    refs: tuple[str, ...] = ()
    """The reference fields whose documents they read."""


READS_ORG: Final = Reads(org=True)


def reads_of(expressions: Iterable[Expression], *, org: bool = False) -> Reads | None:
    """Return what expressions read from outside, or None."""
    refs = set()
    for each in expressions:
        for variable in variables(each.tree):
            org = org or variable.path[0] == ORG
            if variable.path[0] == RELATED and len(variable.path) > 1:
                refs.add(variable.path[1])
    return Reads(org, tuple(sorted(refs))) if org or refs else None
