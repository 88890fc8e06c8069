"""How much somebody may ask for in a while: token buckets, and the one for what is asked of workflows."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Final, get_args

from standfast.errors import RejectedError
from standfast.machine.model.commands.document_commands import RequestTransition
from standfast.machine.model.commands.repair_commands import ForkWorkflow, Repair
from standfast.machine.model.commands.run_commands import AdvanceProcess, AnswerStep
from standfast.machine.model.rejections import Refusal

_MOST_BUCKETS: Final = 10_000
"""Clients that are remembered; the one that was away for longest is forgotten first."""

_LIMITED: Final = frozenset({AnswerStep, AdvanceProcess, RequestTransition, *get_args(Repair)} - {ForkWorkflow})
"""What moves a workflow on and changes no content of a document: decisions, advances, transitions, repairs."""


class Rate:
    """A token bucket for each client: so many requests at once, and so many in the long run."""

    def __init__(self, per_second: float, burst: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> float:
        """One more request; 0 if it is taken, else the seconds until it would be."""
        left, now = self._left(client)
        if left < 1.0:
            self._keep(client, left, now)
            return (1.0 - left) / self._per_second
        self._keep(client, left - 1.0, now)
        return 0.0

    def wait(self, client: str) -> float:
        """The seconds until a request would be taken; nothing is used up."""
        left, _ = self._left(client)
        return 0.0 if left >= 1.0 else (1.0 - left) / self._per_second

    def _left(self, client: str) -> tuple[float, float]:
        now = self._clock()
        left, at = self._buckets.get(client, (self._burst, now))
        return min(self._burst, left + (now - at) * self._per_second), now

    def _keep(self, client: str, left: float, now: float) -> None:
        self._buckets[client] = (left, now)
        self._buckets.move_to_end(client)
        if len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)


class WorkflowRate:
    """How much each tenant may ask of workflows, whichever threads ask."""

    def __init__(self, per_second: float, now: Callable[[], datetime]) -> None:
        self._rate = Rate(per_second, max(1, round(per_second)), clock=lambda: now().timestamp())
        self._lock = threading.Lock()

    def refusal(self, tenant: str, command: object) -> RejectedError | None:
        """Why a command comes too early; edits and other commands are not counted."""
        if type(command) not in _LIMITED:
            return None
        with self._lock:
            seconds = self._rate.take(tenant)
        if not seconds:
            return None
        told = f"the tenant asks too much of its workflows at once; try again in {seconds:.1f} s, or have workflow_rate raised"
        return RejectedError(reason=Refusal.WORKFLOW_RATE_LIMITED.value, message=told)
