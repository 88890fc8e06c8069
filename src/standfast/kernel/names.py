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


def joined(*names: str) -> str:
    """Several names as one that no other names come to: a tenant may be called like another one and a part of it."""
    return ":".join(each.replace("%", "%25").replace(":", "%3A") for each in names)
