"""What operators ask of a run that does not go on as it should. Each of them says why, and the history keeps who said it."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from standfast.kernel.codec.message_types import message
from standfast.machine.model.state import RunState

Data = dict[str, object]


class _Repair(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Something that an operator asks of a run."""

    reason: str
    """Why, in the operator's words; it must not be empty."""


@message(name="RetryStep")
class RetryStep(_Repair, frozen=True, kw_only=True):
    """Call the handler of a step now: of one that gave up, or of one that waits for its next call."""

    step: int
    input: Data | None = None
    """What a step that gave up works on now; None leaves it as it was."""


@message(name="ReenqueueStep")
class ReenqueueStep(_Repair, frozen=True, kw_only=True):
    """Have a step called by somebody else, because the worker that has it in hand is gone."""

    step: int


@message(name="SkipStep")
class SkipStep(_Repair, frozen=True, kw_only=True):
    """Go on behind a step that has not ended, without its work."""

    step: int
    outcome: str = ""
    """By which outcome to go on; empty means the one of a step that ended well."""


@message(name="CompleteByHand")
class CompleteByHand(_Repair, frozen=True, kw_only=True):
    """The work of a step was done by other means: go on with this answer."""

    step: int
    output: object = None


@message(name="ChangeData")
class ChangeData(_Repair, frozen=True, kw_only=True):
    """Lay a patch over the data of one token, or of all: a JSON merge patch, where null takes a name away."""

    patch: Data
    token: str = ""
    """Empty means all."""


@message(name="MoveBack")
class MoveBack(_Repair, frozen=True, kw_only=True):
    """Undo what was done behind a save point, and go on from there."""

    step: int
    """Number of the step by which the save point was passed; 0 if it never was."""
    data: Data = {}
    """The data as it was then, which only the history knows."""


@message(name="CancelBranch")
class CancelBranch(_Repair, frozen=True, kw_only=True):
    """End one of several branches; the others are waited for without it."""

    token: str


@message(name="ForceFailure")
class ForceFailure(_Repair, frozen=True, kw_only=True):
    """Turn back as if a step had failed for good."""


@message(name="ForkWorkflow")
class ForkWorkflow(_Repair, frozen=True, kw_only=True):
    """Begin where another run of the same definition was."""

    origin: str
    """Id of that run."""
    at: int
    """Number of its last event that counts."""
    input: Data = {}
    """What that run was started with."""
    state: RunState
    """Where it stood after that event."""
    patch: Data = {}
    """Laid over the data of all its tokens."""


Repair: TypeAlias = (
    RetryStep
    | ReenqueueStep
    | SkipStep
    | CompleteByHand
    | ChangeData
    | MoveBack
    | CancelBranch
    | ForceFailure
    | ForkWorkflow
)
