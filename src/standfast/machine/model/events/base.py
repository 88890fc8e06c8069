"""What all events of a run have in common."""

from __future__ import annotations

import msgspec

Data = dict[str, object]


class Happening(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Something that happened."""
