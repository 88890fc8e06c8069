"""Audit record of an evaluation: the expression, the values read and the result."""

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
"""Replaces a sensitive value in a record."""

TOO_DEEP: Final = "[nested too deeply]"
"""Replaces a value that is nested too deeply for JSON."""


class EvaluationFailure(msgspec.Struct, frozen=True):
    """The failure of an evaluation."""

    reason: str
    """The stable code."""
    message: str
    """Message for people. It names types and never values."""
    position: int | None
    """Source position of the failure."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A record that explains an evaluation later, as plain JSON data."""

    expression: str
    """The source text."""
    variables: Mapping[str, object]
    """The variables that were read, with their values. Those skipped by a short circuit are omitted."""
    result: object
    """The result. Null after a failure."""
    absent: tuple[str, ...] = ()
    """The missing variables. Their value is recorded as null."""
    failure: EvaluationFailure | None = None
    """The failure, or None."""

    def to_data(self) -> dict[str, object]:
        """Return the record as plain JSON. `absent` and `failure` are omitted if they are empty."""
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
    """Build the record of an evaluation from its notebook. Values of `sensitive` paths are masked."""
    masked = frozenset(map(_path, sensitive))
    return Explanation(
        expression=source,
        variables={name: _shown(_path(name), value, masked) for name, value in notebook.items()},
        result=MASK if failure is None and _reveals(tree, masked) else plain(result),
        absent=tuple(name for name, value in notebook.items() if value is ABSENT),
        failure=failure,
    )


def plain(value: object, path: Path = (), sensitive: AbstractSet[Path] = frozenset()) -> object:
    """Return a JSON-compatible copy of the value, masked where its path is sensitive."""
    try:
        return _plain(value, path, sensitive)
    except RecursionError:
        return TOO_DEEP


def _path(text: str) -> Path:
    """Return the names of a path. One that no expression could read is split at its dots."""
    return read_path(text) or tuple(text.split("."))


def _shown(path: Path, value: object, sensitive: AbstractSet[Path]) -> object:
    if value is ABSENT:
        return None
    return MASK if _is_covered(path, sensitive) else plain(value, path, sensitive)


def _plain(value: object, path: Path, sensitive: AbstractSet[Path]) -> object:
    if path in sensitive:
        return MASK
    # Only exact types are plain: no method of another type is called.
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
    """Return whether the path or a prefix of it is sensitive."""
    return any(path[: len(each)] == each for each in sensitive)


def _reveals(tree: Node, sensitive: AbstractSet[Path]) -> bool:
    """Return whether the result would show a sensitive value. A boolean about one does not."""
    if isinstance(tree, Comparison | Not | And | Or):
        return False
    return any(
        _is_covered(each.path, sensitive) or any(path[: len(each.path)] == each.path for path in sensitive)
        for each in variables(tree)
    )
