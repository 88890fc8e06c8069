"""What operators do to a run that does not go on as it should. Each event says who did it, and why."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from standfast.kernel.codec.message_types import message
from standfast.machine.model.events.base import Data, Happening
from standfast.machine.model.state import RunState

Repairing = Literal["retry", "reenqueue", "skip", "complete"]
"""What an operator does to a step."""


@message(name="step_repaired")
class StepRepaired(Happening, frozen=True, kw_only=True):
    """An operator took a step in hand; what follows from it has events of its own."""

    step: int
    repair: Repairing
    actor: str
    reason: str


@message(name="step_skipped")
class StepSkipped(Happening, frozen=True, kw_only=True):
    """The run goes on behind a step without its work. Nothing of it is undone, now or later. For one that gave up another one is skipped."""

    step: int
    outcome: str
    """By which it goes on."""
    to: str = ""
    """Where the token went; empty if no way led on."""
    edge: str = ""
    """Id of the edge that it went by."""
    node: str = ""
    token: str = ""
    visit: int = 1
    retry_of: int | None = None
    """Of a step that stands for one that gave up, these say where that was."""
    by: str = ""
    """The operator who skipped it."""
    on_behalf_of: str = ""


@message(name="branch_cancelled")
class BranchCancelled(Happening, frozen=True, kw_only=True):
    """An operator ends one of several branches; what follows from it has events of its own."""

    token: str
    actor: str
    reason: str
    on_behalf_of: str = ""
    decided: list[str] = []  # noqa: RUF012 - every struct gets one of its own
    """The questions that were open on it: whoever ends one has decided it. Kept only where somebody may not decide another one because of it."""


@message(name="data_changed")
class DataChanged(Happening, frozen=True, kw_only=True):
    """An operator changed the data of tokens."""

    patch: Data
    """Laid over it; null takes a name away."""
    hashes: dict[str, list[str]]
    """For each token the SHA-256 of its data before and after, as JSON with sorted names."""
    actor: str
    reason: str


@message(name="move_back_started")
class MoveBackStarted(Happening, frozen=True, kw_only=True):
    """The run turns back to a save point, by the will of an operator."""

    step: int
    """The step by which the save point was passed."""
    data: Data
    """What the data was then, and will be again."""
    actor: str
    reason: str


@message(name="moved_back")
class MovedBack(Happening, frozen=True, kw_only=True):
    """What was done behind the save point is undone; the run goes on from there."""

    step: int


@message(name="act_noted")
class ActNoted(Happening, frozen=True, kw_only=True):
    """Somebody did something to a document that changes neither its content nor its status; its audit tells it by this alone."""

    action: str
    """What, in a word or two: `pause`, `reassign`."""
    actor: str
    on_behalf_of: str = ""
    reason: str = ""
    step: int = 0
    """The step that it was done to; 0 if it was done to the whole."""
    at_node: str = ""
    """The node of that step."""
    before: Data = {}  # noqa: RUF012 - every struct gets one of its own
    """What was so before, as far as it is something else now."""
    after: Data = {}  # noqa: RUF012 - every struct gets one of its own
    at: datetime | None = None
    """When another system has told of a change; None for everything else."""


@message(name="people_involved")
class PeopleInvolved(Happening, frozen=True, kw_only=True):
    """More people have brought about what others decide on, here or in a run that this one is a part of, or has started."""

    names: list[str]
    decided: dict[str, list[str]] = {}  # noqa: RUF012 - every struct gets one of its own
    """Who has kept the answer to a question for other data, by the name of its step: they have decided it too. Kept only where somebody may not decide
    another one because of it."""


@message(name="workflow_forked")
class WorkflowForked(Happening, frozen=True, kw_only=True):
    """The run began where another one was."""

    origin: str
    """Id of that run."""
    at: int
    """Number of its last event that counts."""
    input: Data
    """What that run was started with."""
    state: RunState
    """Where this one begins: nothing is under way, and what was is asked for again."""
    actor: str
    reason: str
