"""What companions are told of calls, in the words of workflows."""

from __future__ import annotations

from typing import NamedTuple

from standfast.engine.common.interceptors import CallFacts
from standfast.machine.model.commands.run_commands import RunStep


class StepCall(NamedTuple):
    """For what a handler is called."""

    step: str
    """Its name; empty if it is the effect of a decider, or cannot be read."""
    attempt: int
    """1 for the first call."""


def step_call(facts: CallFacts) -> StepCall:
    """The step of a call. A step that is tried again is another effect, so that its attempts are its own."""
    try:
        body = facts.body()
    except Exception:  # noqa: BLE001 - the call itself fails by it, and tells why
        return StepCall("", facts.attempt)
    return StepCall(body.node, body.attempt) if isinstance(body, RunStep) else StepCall("", facts.attempt)
