"""Registers the engine's built-in deciders, effect handlers and notification channels: events, schedules, batches and alerts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from standfast.calls.catalog.registry import Registry
from standfast.calls.context import CallContext
from standfast.calls.handlers.builtin import BuiltinHandlers
from standfast.calls.handlers.registration import NamedHandlers
from standfast.engine.common.handlers import EffectContext
from standfast.engine.common.settings import Settings
from standfast.engine.dispatcher import Dispatcher
from standfast.features.batches.executor import Batching
from standfast.features.batches.model.decider import BatchDecider
from standfast.features.documents.webhooks import Webhooks
from standfast.features.events.model import PublicationDecider
from standfast.features.events.routing import EventRouter
from standfast.features.operations.alert_model import AlertDecider
from standfast.features.schedules.model.decider import ScheduleDecider
from standfast.features.schedules.starter import Scheduling
from standfast.graph.nodes.action import ELSEWHERE
from standfast.graph.nodes.task import WEBHOOK
from standfast.machine.model.engine_tasks import Post
from standfast.notifications.delivery import EMAIL, Deliveries
from standfast.notifications.in_app import InApp
from standfast.notifications.log import Log
from standfast.notifications.mail_addresses import addresses_in, principals_in, roles_in
from standfast.outbound.http import Outbound
from standfast.outbound.secrets import secret_of
from standfast.people.approver_service import ApproverService
from standfast.store.ports.notifications import NewNotification

if TYPE_CHECKING:
    from standfast.notifications.mail import Mail, Tls


def register_builtin_deciders(registry: Registry) -> None:
    """Register the built-in deciders."""
    registry.add(PublicationDecider(), is_own=True)
    registry.add(ScheduleDecider(), is_own=True)
    registry.add(BatchDecider(), is_own=True)
    registry.add(AlertDecider(), is_own=True)


def serve_builtin_deciders(desk: CallContext, errands: BuiltinHandlers) -> None:
    """Register the handlers of the built-in deciders' effects."""
    for kind in (EventRouter, Scheduling, Batching):
        kind(desk, errands)
    desk.service.shared.handlers.register(ELSEWHERE.handler, _document_action(desk), joins=True)


def _document_action(desk: CallContext) -> Callable[[EffectContext, object], object]:
    """Handle steps that act on other documents. The code of documents is imported with the first such step."""

    def run(context: EffectContext, body: object) -> object:
        from standfast.features.documents.actions import DocumentActions

        return DocumentActions(desk).run(context, body)

    return run


def serve_webhooks(webhooks: Webhooks, errands: BuiltinHandlers, named: NamedHandlers) -> None:
    """Register the handler of webhook steps."""
    errands.add(Post, webhooks.run)
    named.add(WEBHOOK, webhooks.call)


def deliveries_of(service: Dispatcher, office: ApproverService, outbound: Outbound, registry: Registry) -> Deliveries:
    """Return all channels that need only the settings. The directory supplies the recipients' addresses."""
    clock, settings, directory = service.shared.clock, service.shared.settings, office.directory

    def write(told: NewNotification) -> bool:
        now = clock.now()
        return service.operate(lambda parts: parts.notifications().add(told, now), may_repeat=True)

    deliveries = Deliveries(
        InApp(write),
        clock=clock.now,
        addresses=addresses_in(directory, clock.now),
        people=principals_in(directory, clock.now),
        roles=roles_in(directory, clock.now),
        templates=registry.charters.manners,
        outbound=outbound,
    )
    deliveries.add("log", Log())
    if settings.mail_host:
        deliveries.add(EMAIL, _mail(settings))
    return deliveries


def _mail(settings: Settings) -> Mail:
    from standfast.notifications.mail import Mail  # Imported only where a mail server is set.

    return Mail(
        settings.mail_host,
        sender=settings.mail_from,
        port=settings.mail_port,
        user=settings.mail_user,
        password=lambda: secret_of(settings.mail_password_from, "mail_password_from"),
        tls=cast("Tls", settings.mail_tls),
    )
