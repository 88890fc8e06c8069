"""What is put in the place of what events said."""

from __future__ import annotations

from typing import NamedTuple


class Rewritten(NamedTuple):
    """An event as it is after a redaction."""

    sequence: int
    data: bytes
    comment: str
