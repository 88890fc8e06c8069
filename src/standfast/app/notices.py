"""The channels that an engine brings along, and how they reach what they need."""

from __future__ import annotations

from typing import cast

from standfast.calls.catalog.registry import Registry
from standfast.engine.common.settings import Settings
from standfast.engine.dispatcher import Dispatcher
from standfast.notifications.delivery import EMAIL, Deliveries
from standfast.notifications.in_app import InApp
from standfast.notifications.log import Log
from standfast.notifications.mail import Mail, Tls
from standfast.notifications.mail_addresses import addresses_in, principals_in, roles_in
from standfast.outbound.http import Outbound
from standfast.outbound.secrets import secret_of
from standfast.people.approver_service import ApproverService
from standfast.store.ports.notifications import NewNotification


def deliveries_of(service: Dispatcher, office: ApproverService, outbound: Outbound, registry: Registry) -> Deliveries:
    """All channels that need nothing but the settings; where people are reached, the directory tells."""
    clock, settings, directory = service.shared.clock, service.shared.settings, office.directory

    def write(told: NewNotification) -> bool:
        now = clock.now()
        return service.operate(lambda parts: parts.notifications().add(told, now), may_repeat=True)

    deliveries = Deliveries(
        InApp(write), clock=clock.now, addresses=addresses_in(directory, clock.now), outbound=outbound
    )
    deliveries.people, deliveries.manners = principals_in(directory, clock.now), registry.charters.manners
    deliveries.roles = roles_in(directory, clock.now)
    deliveries.add("log", Log())
    if settings.mail_host:
        deliveries.add(EMAIL, _mail(settings))
    return deliveries


def _mail(settings: Settings) -> Mail:
    return Mail(
        settings.mail_host,
        sender=settings.mail_from,
        port=settings.mail_port,
        user=settings.mail_user,
        password=lambda: secret_of(settings.mail_password_from, "mail_password_from"),
        tls=cast("Tls", settings.mail_tls),
    )
