"""Values that more than one format of files has: names, texts, times, expressions."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from holdfast.kernel.durations import duration_of

_NUMBER: Final = r"[0-9]{1,7}(\.[0-9]{1,6})?"
DURATION: Final = "^(?=.)" + "".join(f"({_NUMBER}{unit})?" for unit in ("w", "d", "h", "m", "s", "ms")) + "$"
"""Times as `kernel.durations` reads them: parts from large to small, each unit once."""

WORD: Final = r"^[A-Za-z][A-Za-z0-9_]{0,63}$"
"""Names that become parts of ids and of expressions."""
SLOT: Final = r"^slot:[A-Za-z][A-Za-z0-9_]{0,58}$"
VERB: Final = r"^[A-Za-z][A-Za-z0-9_]{0,63}\.[A-Za-z][A-Za-z0-9_]{0,63}$"

REMEDIES: Final = {
    WORD: "use letters, digits and _, beginning with a letter, at most 64",
    SLOT: "write slot: and a name, such as slot:draft_to_submit",
    VERB: "write a type and a verb, such as invoice.post",
}
"""What to do about a text that does not look as it should, by the pattern that says how."""

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
"""A text is an expression, in which a text is quoted: `'draft'`. Anything else stands for itself."""
Plain: TypeAlias = object
"""Anything that JSON can say."""
Condition: TypeAlias = str | dict[str, Plain]
"""An expression, or the same as an object with field, operator and value."""


def milliseconds(duration: str | None) -> int | None:
    """A time that was found to be one, as graphs have it."""
    if duration is None:
        return None
    found = duration_of(duration)
    assert found is not None
    return round(found.total_seconds() * 1000)
