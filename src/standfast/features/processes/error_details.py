"""What callers of processes learn of a failure: operators all of it, others that there is one.

The text of an error comes from handlers and services. It may name hosts, ports and files that are nobody else's business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from standfast.calls.context import CallContext
from standfast.calls.reply_chaining import and_then
from standfast.engine.concurrency.replies import Reply
from standfast.features.processes.views import ProcessDescriptor, ProcessEvent, ProcessInstance
from standfast.machine.model.queries.authorization import READ
from standfast.machine.model.queries.outputs import LAST_ERROR

STEP_FAILED: Final = "STEP_FAILED"
_TOLD: Final = "This step could not be completed. Operators can see the reason and try it again."

Shown = TypeVar("Shown")


def for_caller(desk: CallContext, reply: Reply[Shown], neutral_of: Callable[[Shown], Shown]) -> Reply[Shown]:
    """Gives the caller what a reply brings: without the texts of errors, unless the caller may look at runs."""

    def show(found: Shown) -> Reply[Shown]:
        if desk.request.actor.may(READ):
            return Reply.of(found)
        neutral = neutral_of(found)
        if neutral is found or not desk.may_hold_more:
            return Reply.of(neutral)
        return desk.consult(lambda: found if desk.looked_up().request.actor.may(READ) else neutral)

    return and_then(reply, show, desk.reply())


def tells_of_error(found: ProcessInstance) -> bool:
    """Whether the state of an instance tells of a failure."""
    return LAST_ERROR in found.state


def neutral_descriptor(found: ProcessDescriptor) -> ProcessDescriptor:
    """The same without the texts of errors; the very same if there are none."""
    instance, history = neutral_instance(found.instance), neutral_trail(found.history)
    if instance is found.instance and history is found.history:
        return found
    return msgspec.structs.replace(found, instance=instance, history=history)


def neutral_instance(found: ProcessInstance) -> ProcessInstance:
    """The same without the text of an error; the very same if there is none."""
    error = found.state.get(LAST_ERROR)
    if not isinstance(error, dict) or "code" in error:  # The engine's own errors name nothing that is not the caller's.
        return found
    return msgspec.structs.replace(found, state={**found.state, LAST_ERROR: _told(error)})


def neutral_trail(found: list[ProcessEvent]) -> list[ProcessEvent]:
    """The same without the texts of errors; the very same if there are none."""
    if not any(map(_tells_error, found)):
        return found
    return [
        msgspec.structs.replace(each, data={**each.data, "error": _TOLD, "code": STEP_FAILED})
        if _tells_error(each)
        else each
        for each in found
    ]


def _tells_error(entry: ProcessEvent) -> bool:
    """Whether an entry of the engine itself tells the text of an error; people may give a field of that name."""
    return bool(entry.data.get("error")) and (entry.event == "step_failed" or entry.category == "lifecycle")


def _told(error: dict[str, object]) -> dict[str, object]:
    step = {"step": error["step"]} if "step" in error else {}
    return {**step, "code": STEP_FAILED, "message": _TOLD}
