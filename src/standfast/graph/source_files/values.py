"""Value types that several file formats share: names, texts, durations, expressions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Final, TypeAlias

from msgspec import Meta, Struct, inspect

from standfast.kernel.durations import duration_of

_NUMBER: Final = r"[0-9]{1,7}(\.[0-9]{1,6})?"
DURATION: Final = "^(?=.)" + "".join(f"({_NUMBER}{unit})?" for unit in ("w", "d", "h", "m", "s", "ms")) + "$"
"""Durations as in `kernel.durations`: from large to small units, each once."""

WORD: Final = r"^[A-Za-z][A-Za-z0-9_]{0,63}$"
"""Names that become parts of ids and expressions."""
SLOT: Final = r"^slot:[A-Za-z][A-Za-z0-9_]{0,58}$"
VERB: Final = r"^[A-Za-z][A-Za-z0-9_]{0,63}\.[A-Za-z][A-Za-z0-9_]{0,63}$"

REMEDIES: Final = {
    WORD: "use letters, digits and _, beginning with a letter, at most 64",
    SLOT: "write slot: and a name, such as slot:draft_to_submit",
    VERB: "write a type and a verb, such as invoice.post",
}
"""Remedies for invalid texts, by pattern."""

Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"\S")]
Duration = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=50,
        pattern=DURATION,
        description="A number with its unit (w, d, h, m, s or ms), such as 24h, 5m or 1h30m.",
    ),
]
Capability = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        pattern=r"\S",
        description="What the caller must be allowed to do, as a capability string.",
    ),
]
Text = Annotated[str, Meta(max_length=10_000)]
Formula: TypeAlias = str | int | float | bool | None
"""A text is an expression, with quoted texts: `'draft'`. Other values are literals."""
Plain: TypeAlias = object
"""Any JSON value."""
Condition: TypeAlias = str | dict[str, Plain]
"""An expression, or an object with field, operator and value."""


EMPTY: Final = "empty"
"""Metadata key of a list: the consequence of an empty one."""


def some(description: str, *, empty: str) -> Meta:
    """Describe a list of people, roles or parts that must be omitted or have an item, because an empty list never means all.

    `empty` completes the finding: "`approvers` of … is empty, so <empty>".
    """
    return Meta(description=description, extra={EMPTY: empty})


def empties(part: Struct) -> Iterator[tuple[str, str]]:
    """Yield the written empty lists of a part, each with its consequence."""
    for attribute, name, then in _some_of(type(part)):
        if getattr(part, attribute) == []:
            yield name, then


@cache
def _some_of(kind: type[Struct]) -> tuple[tuple[str, str, str], ...]:
    """Return the lists of a struct that `some` describes."""
    found = []
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    for each in info.fields:
        held = each.type
        while isinstance(held, inspect.Metadata):
            if held.extra and EMPTY in held.extra:
                found.append((each.name, each.encode_name, held.extra[EMPTY]))
            held = held.type
    return tuple(found)


def milliseconds(duration: str | None) -> int | None:
    """Return a valid duration in milliseconds, or None."""
    if duration is None:
        return None
    found = duration_of(duration)
    assert found is not None
    return round(found.total_seconds() * 1000)
