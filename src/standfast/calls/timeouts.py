"""Telling of steps whose time is over: to the log, and to whoever measures."""

from __future__ import annotations

import logging
from typing import cast, get_args

from standfast.engine.commit.draft import InstanceDraft
from standfast.engine.common.telemetry import StepTimedOut
from standfast.engine.dispatcher import Dispatcher
from standfast.graph.model import Kind
from standfast.machine.model.events import TimedOut

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
