"""What can happen to tokens and branches."""

from __future__ import annotations

from typing import Literal

from standfast.kernel.codec.message_types import message
from standfast.machine.model.events.base import Data, Happening


@message(name="data_assigned")
class DataAssigned(Happening, frozen=True, kw_only=True):
    """A token's data got values from an edge, or from the failure of a step."""

    token: str
    data: Data


@message(name="token_held")
class TokenHeld(Happening, frozen=True, kw_only=True):
    """A token may not go on until the run does: it would enter `target`, or no edge led on from `node`."""

    token: str
    target: str = ""
    node: str = ""
    outcome: str = ""


@message(name="token_ended")
class TokenEnded(Happening, frozen=True, kw_only=True):
    """A token's way is over."""

    token: str
    reason: Literal["finished", "failed", "cancelled"] = "finished"
    outcome: str = ""
    """What the run came to, where the definition has a word for it."""
    why: str = ""
    """Why it came to that, where the definition has a word for that too."""


@message(name="branches_opened")
class BranchesOpened(Happening, frozen=True, kw_only=True):
    """A split parked its token: for fixed branches, which begin at once, or for the items of a list."""

    step: int
    """Number of the split's step; names the scope."""
    branches: int = 0
    items: list[object] | None = None
    taken: list[int] = []  # noqa: RUF012 - every struct gets one of its own
    """The places of the branches whose conditions held, counted from 1 over all of them; empty if every one begins."""


@message(name="items_begun")
class ItemsBegun(Happening, frozen=True, kw_only=True):
    """Branches for the next items of a list began."""

    step: int
    count: int


@message(name="join_arrived")
class JoinArrived(Happening, frozen=True, kw_only=True):
    """A branch reached the join of its split."""

    token: str


@message(name="branches_met")
class BranchesMet(Happening, frozen=True, kw_only=True):
    """Enough branches have arrived: their tokens end, and the one that was split goes on."""

    step: int
    completed: list[str]
    """The last steps of the branches that have arrived, in the order of their arrival."""
    failed: list[str]
    """The last steps of those that failed before."""


@message(name="branches_dropped")
class BranchesDropped(Happening, frozen=True, kw_only=True):
    """Branches have ended that the join can do without: what they did is undone. Or a rejection has left slots that undo what they did."""

    tokens: list[str]
    error: str
    """Why."""
    steps: list[int] = []  # noqa: RUF012 - every struct gets one of its own
    """Steps that are undone besides those of the branches: what slots did that a rejection has left."""


@message(name="branches_undone")
class BranchesUndone(Happening, frozen=True, kw_only=True):
    """All that dropped branches did is undone."""


@message(name="branches_closed")
class BranchesClosed(Happening, frozen=True, kw_only=True):
    """All branches of a split have ended without meeting, or were ended with the branch that the split lies in."""

    step: int
