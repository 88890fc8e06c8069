"""Names that people publish things under. They end up in addresses, in files and in logs, so none may lead elsewhere."""

from __future__ import annotations

import re
from typing import Final

_STEPS: Final = frozenset({"", ".", ".."})
_PARTING: Final = re.compile(r"[/\\]")
MISLEADING: Final = (
    "has a part that leads elsewhere in an address or a folder; leave out `.`, `..` and slashes without a word between"
)


def is_misleading(name: str) -> bool:
    """Whether a name, read as a path, means another place: `..`, `a/../b`, `/x`, `a//b`."""
    return not _STEPS.isdisjoint(_PARTING.split(name))
