"""Edit windows in their order: a window can be made stricter, never looser."""

from __future__ import annotations

from typing import Final

from standfast.features.documents.contract.format import Window

_RANK: Final[dict[Window, int]] = {"editable": 0, "amend_only": 1, "locked": 2}


def is_stricter(one: Window, other: Window) -> bool:
    """Whether one window allows less than another."""
    return _RANK[one] > _RANK[other]


def strictest(first: Window, *others: Window) -> Window:
    """The one of several that allows least."""
    return max((first, *others), key=_RANK.__getitem__)
