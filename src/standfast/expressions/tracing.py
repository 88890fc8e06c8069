"""The audit record of one evaluation: what was asked, what was read, what came out."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import date, timedelta
from decimal import Decimal
from math import isfinite
from typing import Final, TypeAlias

import msgspec

from standfast.expressions.evaluation import ABSENT
from standfast.expressions.model.paths import read_path
from standfast.expressions.model.tree import And, Comparison, Node, Not, Or, variables
from standfast.expressions.model.types import KINDS

Path: TypeAlias = tuple[str, ...]

MASK: Final = "[masked]"
"""What a record shows in the place of a sensitive value."""

TOO_DEEP: Final = "[nested too deeply]"
"""What a record shows in the place of a value that no JSON writer would take."""


class EvaluationFailure(msgspec.Struct, frozen=True):
    """Why an evaluation had no result."""

    reason: str
    """The stable code."""
    message: str
    """A sentence for people; it names types, never values."""
    position: int | None
    """The character of the expression that it is about."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything needed to answer "why did it go that way?" later. All of it is plain JSON data."""

    expression: str
    """The source as it was written."""
    variables: Mapping[str, object]
    """The variables that were read, with their values; what a short circuit passed over is not among them."""
    result: object
    """What came out; null when `failure` says why nothing did."""
    absent: tuple[str, ...] = ()
    """The variables that were looked for and not there; their value is given as null."""
    failure: EvaluationFailure | None = None
    """Why there is no result; None when there is one."""

    def to_data(self) -> dict[str, object]:
        """The record as plain JSON, with `absent` and `failure` only where they have something to say."""
        data: dict[str, object] = msgspec.to_builtins(self)
        return {**data, "absent": [*self.absent]} if self.absent else data


def record(
    source: str,
    tree: Node,
    notebook: Mapping[str, object],
    *,
    result: object = None,
    failure: EvaluationFailure | None = None,
    sensitive: AbstractSet[str] = frozenset(),
) -> Explanation:
    """The record of an evaluation from what its notebook holds. `sensitive` are paths whose values are masked."""
    masked = frozenset(map(_path, sensitive))
    return Explanation(
        expression=source,
        variables={name: _shown(_path(name), value, masked) for name, value in notebook.items()},
        result=MASK if failure is None and _reveals(tree, masked) else plain(result),
        absent=tuple(name for name, value in notebook.items() if value is ABSENT),
        failure=failure,
    )


def plain(value: object, path: Path = (), sensitive: AbstractSet[Path] = frozenset()) -> object:
    """A copy of the value that any JSON writer takes, with a mask wherever its path is sensitive."""
    try:
        return _plain(value, path, sensitive)
    except RecursionError:
        return TOO_DEEP


def _path(text: str) -> Path:
    """The names of a path, however it is written; one that no expression could read is taken apart at its dots."""
    return read_path(text) or tuple(text.split("."))


def _shown(path: Path, value: object, sensitive: AbstractSet[Path]) -> object:
    if value is ABSENT:
        return None
    return MASK if _is_covered(path, sensitive) else plain(value, path, sensitive)


def _plain(value: object, path: Path, sensitive: AbstractSet[Path]) -> object:
    if path in sensitive:
        return MASK
    # As everywhere, only the exact types are plain: what another type says of itself is not asked.
    if type(value) not in KINDS:
        return f"[{type(value).__name__}]"
    match value:
        case list():
            return [_plain(each, path, sensitive) for each in value]
        case dict():
            return {_key(key): _plain(each, (*path, _key(key)), sensitive) for key, each in value.items()}
        case float() if not isfinite(value):
            return str(value)
        case Decimal():
            return str(value)
        case date() | timedelta():
            return msgspec.to_builtins(value)
        case _:
            return value


def _key(key: object) -> str:
    return key if type(key) is str else f"[{type(key).__name__}]"


def _is_covered(path: Path, sensitive: AbstractSet[Path]) -> bool:
    """Whether the path, or anything that it lies in, is sensitive."""
    return any(path[: len(each)] == each for each in sensitive)


def _reveals(tree: Node, sensitive: AbstractSet[Path]) -> bool:
    """Whether the result would show a sensitive value. A truth value about one is not the value."""
    if isinstance(tree, Comparison | Not | And | Or):
        return False
    return any(
        _is_covered(each.path, sensitive) or any(path[: len(each.path)] == each.path for path in sensitive)
        for each in variables(tree)
    )
