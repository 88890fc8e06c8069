"""Where a run stands: the fold of its events. The fold changes it in place; nobody else ever does."""

from __future__ import annotations

from typing import Literal

import msgspec

Data = dict[str, object]

ROOT = "0"
"""The token that a run begins with."""


class Token(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One thread of control."""

    id: str
    node: str = ""
    """Where it is, or was last."""
    data: Data = {}
    """The run's input and all that its steps on the way here have answered."""
    scope: int | None = None
    """The split it came from."""
    last_output: object = None
    visits: dict[str, int] = {}


class Step(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A step that has not ended."""

    number: int
    node: str
    token: str
    visit: int = 1
    attempt: int = 1
    """Number of the present call."""
    effect: int | None = None
    input: Data | None = None
    """What it works on, when that is not the token's data."""
    of: int | None = None
    """For a compensation: the executed step that it undoes."""
    child: str = ""


class Executed(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A step that ended and that a rollback may have to undo."""

    number: int
    node: str
    token: str
    input: Data | None = None
    """Kept only where a compensation will need it."""
    output: object = None
    error: str = ""
    status: Literal["completed", "failed", "skipped"] = "completed"
    was_called: bool = True
    """False for a step that was stopped before anybody began it: nothing has to be undone."""


class Scope(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A split whose branches are under way."""

    step: int
    node: str
    parent: str
    """The token that waits for the branches."""
    live: list[str] = []
    arrived: list[str] = []
    """Branches that reached the join, in order."""
    items: list[object] = []
    """Items of a list that have not begun yet."""
    begun: int = 0
    failed: list[str] = []


class Rollback(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A run on its way back."""

    cause: Literal["failure", "cancel"]
    failed_step: int | None = None
    error: str = ""
    chain: list[int] | None = None
    """Numbers of the executed steps that are still to be undone, the next one last; None until nothing runs any more."""
    requested_by: str = ""
    reason: str = ""
    stuck: int | None = None
    """The executed step that could not be undone."""


class Held(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A step that ended while the run waits for an operator: where its token goes from there."""

    token: str
    node: str
    outcome: str


class State(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A whole run."""

    status: Literal["new", "running", "paused", "completed", "failed", "cancelled", "aborted"] = "new"
    reason: str = ""
    input: Data = {}
    parent: str = ""
    parent_definition: str = ""
    parent_step: int = 0
    next_step: int = 1
    tokens: dict[str, Token] = {}
    parked: dict[str, Token] = {}
    """Tokens that wait for the branches of their split."""
    open: dict[int, Step] = {}
    executed: dict[int, Executed] = {}
    """Steps that ended, by number, in the order in which they ended."""
    scopes: dict[int, Scope] = {}
    rollback: Rollback | None = None
    stopping: list[int] = []
    """Steps that were stopped and whose handlers have not come back yet."""
    held: list[Held] = []
    dead: dict[int, Step] = {}
    """Steps that gave up and wait for an operator."""
    frozen: dict[int, Step] = {}
    """Steps whose work was taken back when the run began to wait for an operator."""
    signals: dict[str, list[object]] = {}
    """Signals that nobody has waited for yet."""
    result: object = None
    chain: int = 0
    """Automatic steps since the last input from outside."""

    @property
    def is_terminal(self) -> bool:
        """Whether the run has ended."""
        return self.status in {"completed", "failed", "cancelled", "aborted"}

    @property
    def is_waiting_for_operator(self) -> bool:
        """Whether nothing new may begin until somebody steps in."""
        return self.status == "paused"
