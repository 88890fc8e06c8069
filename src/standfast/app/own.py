"""The engine's own deciders, and what they have the engine do: published events, schedules, batches, alerts."""

from __future__ import annotations

from standfast.app.alerting import Alerting
from standfast.app.batching import Batching
from standfast.app.desk import CallContext
from standfast.app.elsewhere import DocumentActions
from standfast.app.errands import BuiltinHandlers
from standfast.app.handling import NamedHandlers
from standfast.app.publications import EventRouter
from standfast.app.rates import WorkflowRate
from standfast.app.registry import Registry
from standfast.app.scheduling import Scheduling
from standfast.app.webhooks import Webhooks
from standfast.machine.alerts import AlertDecider
from standfast.machine.batches.decider import BatchDecider
from standfast.machine.graphs.kinds.action import ELSEWHERE
from standfast.machine.graphs.kinds.task import WEBHOOK
from standfast.machine.publications import PublicationDecider
from standfast.machine.runs.errands import Post
from standfast.machine.schedules.decider import ScheduleDecider
from standfast.people.notices.deliveries import Deliveries
from standfast.runtime.loops.incidents import IncidentLook


def register_builtin_deciders(registry: Registry) -> None:
    """Make them known."""
    registry.add(PublicationDecider(), is_own=True)
    registry.add(ScheduleDecider(), is_own=True)
    registry.add(BatchDecider(), is_own=True)
    registry.add(AlertDecider(), is_own=True)


def serve_builtin_deciders(
    desk: CallContext, errands: BuiltinHandlers, deliveries: Deliveries, incidents: IncidentLook
) -> None:
    """Have done what they ask for, and operators told of what is found."""
    settings, clock = desk.service.shared.settings, desk.service.shared.clock
    desk.registry.rate = None if settings.workflow_rate is None else WorkflowRate(settings.workflow_rate, clock.now)
    incidents.alert = Alerting(desk, errands, deliveries).tell
    for kind in (EventRouter, Scheduling, Batching):
        kind(desk, errands)
    desk.service.shared.handlers.register(ELSEWHERE.handler, DocumentActions(desk).run, joins=True)


def serve_webhooks(webhooks: Webhooks, errands: BuiltinHandlers, named: NamedHandlers) -> None:
    """Have the requests made that steps ask for."""
    errands.add(Post, webhooks.run)
    named.add(WEBHOOK, webhooks.call)
