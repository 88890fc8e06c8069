"""What must be so for a request to count: `If-Match`, as RFC 9110 has it, where a version can be made sure of.

The engine makes sure of one version as part of the commit. So tags that name several are refused, and are not looked at one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from standfast.http.wire.problems import EdgeCode, EdgeError

_TAG: Final = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
_TAGS: Final = re.compile(rf"[ \t,]*{_TAG}(?:[ \t]*,(?:[ \t]*{_TAG})?)*[ \t,]*")
_EACH: Final = re.compile(_TAG)
_VERSION: Final = re.compile(r'"v?([0-9]{1,9})(?:\.[^"]*)?"')
"""A tag of a version, with or without what it tells besides. A weak one, `W/"v3"`, matches nothing here."""
_LONGEST: Final = 2000


class Precondition(NamedTuple):
    """What `If-Match` demands."""

    version: int | None = None
    """That this is the version; None for any."""
    is_any: bool = False
    """That there is one (`*`)."""


def condition_of(given: Sequence[str]) -> Precondition:
    """What the lines of `If-Match` demand, which may be none."""
    if not given:
        return Precondition()
    text = ",".join(given).strip()
    if text == "*":
        return Precondition(is_any=True)
    if len(text) > _LONGEST or not _TAGS.fullmatch(text):
        raise EdgeError(EdgeCode.BAD_HEADER, 'If-Match is the tag of what was seen, in quotes, such as "v3", or *')
    versions = {int(found[1]) for each in _EACH.findall(text) if (found := _VERSION.fullmatch(each))}
    if not versions:
        raise EdgeError(EdgeCode.CHANGED_MEANWHILE, "If-Match names a version that there is not")
    if len(versions) > 1:
        raise EdgeError(EdgeCode.BAD_HEADER, "If-Match names several versions; name the one that you have seen")
    return Precondition(version=versions.pop())
