"""Places in lists as texts: what servers hand out as cursors, and the command line hands in."""

from __future__ import annotations

import base64

import msgspec


def written(place: object) -> str:
    """A place as a cursor."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def unwritten(cursor: str) -> bytes:
    """The JSON of the place that a cursor stands for; ValueError if it stands for none."""
    return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
