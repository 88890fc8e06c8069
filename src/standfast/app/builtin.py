"""The engine's own deciders, and what they have the engine do: published events, schedules, batches, alerts."""

from __future__ import annotations

from standfast.calls.catalog.rate_limits import WorkflowRate
from standfast.calls.catalog.registry import Registry
from standfast.calls.context import CallContext
from standfast.calls.handlers.builtin import BuiltinHandlers
from standfast.calls.handlers.registration import NamedHandlers
from standfast.engine.loops.stuck_instances import IncidentLook
from standfast.features.batches.executor import Batching
from standfast.features.batches.model.decider import BatchDecider
from standfast.features.documents.actions import DocumentActions
from standfast.features.documents.webhooks import Webhooks
from standfast.features.events.model import PublicationDecider
from standfast.features.events.routing import EventRouter
from standfast.features.operations.alert_model import AlertDecider
from standfast.features.operations.alerts import Alerting
from standfast.features.schedules.model.decider import ScheduleDecider
from standfast.features.schedules.starter import Scheduling
from standfast.graph.nodes.action import ELSEWHERE
from standfast.graph.nodes.task import WEBHOOK
from standfast.machine.model.engine_tasks import Post
from standfast.notifications.delivery import Deliveries


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
