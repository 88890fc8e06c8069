"""What can be asked of a run, and the effect by which it calls a handler."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal, TypeAlias

import msgspec

Data = dict[str, object]


class _Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something asked of a run."""


class StartWorkflow(_Command, frozen=True, kw_only=True):
    """Begin."""

    input: Data = {}
    parent: str = ""
    """Id of the run that starts this one."""
    parent_definition: str = ""
    parent_step: int = 0


class CompleteStep(_Command, frozen=True, kw_only=True):
    """A handler came back."""

    step: int
    output: object = None


class FailStep(_Command, frozen=True, kw_only=True):
    """A handler failed, was too slow, or never came back."""

    step: int
    error: str
    is_final: bool = False
    """Trying again cannot help."""
    after: timedelta | None = None
    """When the handler wants to be tried again; None leaves it to the policy."""
    was_called: bool = True
    """Whether the handler may have begun its work."""


class WithdrawnStep(_Command, frozen=True, kw_only=True):
    """The work of a step was taken back before anybody began it."""

    step: int


class TimeOut(_Command, frozen=True, kw_only=True):
    """A node has waited as long as it may, or as long as it should."""

    step: int


class PassDeadline(_Command, frozen=True, kw_only=True):
    """The run has taken as long as it may."""


class DecideStep(_Command, frozen=True, kw_only=True):
    """A person answers."""

    step: int
    decision: Literal["confirmed", "rejected"]
    comment: str = ""


class SendSignal(_Command, frozen=True, kw_only=True):
    """Something that a run may wait for has happened."""

    name: str
    payload: object = None


class CancelWorkflow(_Command, frozen=True, kw_only=True):
    """Stop, and undo what was done."""

    reason: str = ""


class AbortWorkflow(_Command, frozen=True, kw_only=True):
    """Stop at once."""

    reason: str = ""


class RequeueStep(_Command, frozen=True, kw_only=True):
    """Try a step again that gave up."""

    step: int
    input: Data | None = None


class RetryCompensation(_Command, frozen=True, kw_only=True):
    """Try to undo a step again, and go on with the rollback."""

    step: int
    """Number of the compensation that gave up."""


class ChildEnded(_Command, frozen=True, kw_only=True):
    """A workflow that a step started has ended."""

    step: int
    status: str
    result: object = None
    error: str = ""


class NoteMissingHandler(_Command, frozen=True, kw_only=True):
    """Nobody alive has the handler of a step."""

    step: int
    handler: str


Command: TypeAlias = (
    StartWorkflow
    | CompleteStep
    | FailStep
    | WithdrawnStep
    | TimeOut
    | PassDeadline
    | DecideStep
    | SendSignal
    | CancelWorkflow
    | AbortWorkflow
    | RequeueStep
    | RetryCompensation
    | ChildEnded
    | NoteMissingHandler
)


class RunStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The effect by which a step calls its handler."""

    step: int
    node: str
    input: Data
    attempt: int = 1
    is_compensation: bool = False
    output: object = None
    """What the step to undo had answered."""
    error: str = ""
    """Why it is undone."""
    failed_step: str = ""
    """Name of the step whose failure led to the rollback."""
    metadata: Data = {}
