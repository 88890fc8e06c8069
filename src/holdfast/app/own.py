"""The engine's own deciders, and what they have the engine do: published events, schedules, batches, alerts."""

from __future__ import annotations

from holdfast.app.alerting import Alerting
from holdfast.app.batching import Batching
from holdfast.app.desk import Desk
from holdfast.app.elsewhere import Elsewhere
from holdfast.app.errands import Errands
from holdfast.app.handling import NamedHandlers
from holdfast.app.publications import Publications
from holdfast.app.rates import WorkflowRate
from holdfast.app.registry import Registry
from holdfast.app.scheduling import Scheduling
from holdfast.app.webhooks import Webhooks
from holdfast.machine.alerts import AlertDecider
from holdfast.machine.batches.decider import BatchDecider
from holdfast.machine.graphs.kinds.action import ELSEWHERE
from holdfast.machine.graphs.kinds.task import WEBHOOK
from holdfast.machine.publications import PublicationDecider
from holdfast.machine.runs.errands import Post
from holdfast.machine.schedules.decider import ScheduleDecider
from holdfast.people.notices.deliveries import Deliveries
from holdfast.runtime.loops.incidents import IncidentLook


def add_own(registry: Registry) -> None:
    """Make them known."""
    registry.add(PublicationDecider(), is_own=True)
    registry.add(ScheduleDecider(), is_own=True)
    registry.add(BatchDecider(), is_own=True)
    registry.add(AlertDecider(), is_own=True)


def serve_own(desk: Desk, errands: Errands, deliveries: Deliveries, incidents: IncidentLook) -> None:
    """Have done what they ask for, and operators told of what is found."""
    settings, clock = desk.service.shared.settings, desk.service.shared.clock
    desk.registry.rate = None if settings.workflow_rate is None else WorkflowRate(settings.workflow_rate, clock.now)
    incidents.alert = Alerting(desk, errands, deliveries).tell
    for kind in (Publications, Scheduling, Batching):
        kind(desk, errands)
    desk.service.shared.handlers.register(ELSEWHERE.handler, Elsewhere(desk).run, joins=True)


def serve_webhooks(webhooks: Webhooks, errands: Errands, named: NamedHandlers) -> None:
    """Have the requests made that steps ask for."""
    errands.add(Post, webhooks.run)
    named.add(WEBHOOK, webhooks.call)
