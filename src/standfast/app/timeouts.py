"""Telling of steps whose time is over: to the log, and to whoever measures."""

from __future__ import annotations

import logging
from typing import cast, get_args

from standfast.machine.graphs.graph import Kind
from standfast.machine.runs.events import TimedOut
from standfast.runtime.commit.draft import InstanceDraft
from standfast.runtime.service import Dispatcher
from standfast.runtime.telemetry import StepTimedOut

_log = logging.getLogger("standfast.timeouts")

_KINDS = frozenset(get_args(Kind))
_TYPE = "timeout"
"""By which name the event is stored."""


def tell_of_timeouts(service: Dispatcher) -> None:
    """Have every timeout told, once it is committed."""
    service.hear_timer = lambda draft: _look_at(service, draft)


def _look_at(service: Dispatcher, draft: InstanceDraft) -> None:
    header = draft.header
    for stored in draft.change.events:
        if stored.type != _TYPE or stored.is_system or header.kind not in _KINDS:
            continue
        step = cast("TimedOut", draft.program.decode(stored)).node
        told = StepTimedOut(
            definition=header.definition, tenant=header.tenant, instance=header.id, kind=header.kind, step=step
        )
        _log.info(
            "the time of step %r is over: %s %s of %r, tenant %r",
            told.step,
            told.kind,
            told.instance,
            told.definition,
            told.tenant,
        )
        service.shared.telemetry.tell(told)
