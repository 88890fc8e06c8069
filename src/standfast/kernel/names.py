"""Names of published things. They become part of URLs, file paths and logs, so path traversal must be excluded."""

from __future__ import annotations

import re
from typing import Final

_STEPS: Final = frozenset({"", ".", ".."})
_PARTING: Final = re.compile(r"[/\\]")
MISLEADING: Final = (
    "has a part that leads elsewhere in an address or a folder; leave out `.`, `..` and slashes without a word between"
)


def is_misleading(name: str) -> bool:
    """Return whether a name, read as a path, points elsewhere: `..`, `a/../b`, `/x`, `a//b`."""
    return not _STEPS.isdisjoint(_PARTING.split(name))


def joined(*names: str) -> str:
    """Join names unambiguously, because a tenant's name may equal that of another tenant and its partition."""
    return ":".join(each.replace("%", "%25").replace(":", "%3A") for each in names)
