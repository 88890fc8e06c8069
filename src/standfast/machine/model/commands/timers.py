"""The timers of a run: what each of them brings when it is due, by the first part of its key.

A pause takes timers away and sets them again, so what a timer brings has to follow from its key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

from standfast.kernel.durations import later
from standfast.machine.model.commands.run_commands import (
    BeginWorkflow,
    Command,
    EndGrace,
    EscalateTask,
    PassDeadline,
    RemindTask,
    TimeOut,
)

START: Final = "start"
GRACE: Final = "grace"
DEADLINE: Final = "deadline"
STEP: Final = "step"
TASK: Final = "task"
_REMIND, _ESCALATE = "remind", "escalate"
RESUME: Final = "resume"
"""The timer that ends a pause. A pause holds neither this one nor the next."""
CLOCK: Final = "clock"
"""The timer that a pause with running clocks sets far ahead. Pauses of wider scopes move it, so that it tells how long they had clocks stand still."""
FAR: Final = timedelta(days=36_525)


def _of_task(step: str, what: str) -> Command:
    return RemindTask(step=int(step)) if what == _REMIND else EscalateTask(step=int(step))


_BRINGS: Final[dict[str, Callable[[str], Command]]] = {
    START: lambda _rest: BeginWorkflow(),
    GRACE: lambda _rest: EndGrace(),
    DEADLINE: lambda _rest: PassDeadline(),
    STEP: lambda number: TimeOut(step=int(number)),
    TASK: lambda rest: _of_task(*rest.split(":")),
}
"""By the part of a key before its first colon; the function gets what follows it. Whoever has timers of another kind adds a line."""


def step_timer(step: int) -> str:
    """The key of the timer of a step."""
    return f"{STEP}:{step}"


def reminder_timer(step: int) -> str:
    """The key of the timer of the next reminder of a question."""
    return f"{TASK}:{step}:{_REMIND}"


def escalation_timer(step: int) -> str:
    """The key of the timer of the next rung of a question's ladder."""
    return f"{TASK}:{step}:{_ESCALATE}"


def timed_step(key: str) -> int | None:
    """The step that a timer belongs to; None if it belongs to the whole run."""
    kind, _, rest = key.partition(":")
    return int(rest.partition(":")[0]) if kind in {STEP, TASK} else None


def stood_still(since: datetime, pending: Mapping[str, datetime]) -> timedelta:
    """How long pauses of wider scopes had clocks stand still since a pause began that lets them run."""
    ticking = pending.get(CLOCK)
    return timedelta(0) if ticking is None else ticking - later(since, FAR)


def command_of(key: str) -> Command:
    """What a timer brings; KeyError if the table lacks timers of this kind."""
    kind, _, rest = key.partition(":")
    return _BRINGS[kind](rest)
