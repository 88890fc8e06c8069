"""Alerts operators about runs that somebody should look at, at most once per run and day across all processes."""

from __future__ import annotations

from uuid import UUID

from standfast.calls.context import CallContext
from standfast.calls.handlers.builtin import BuiltinHandlers
from standfast.engine.commit.submission import CommandOutcome
from standfast.engine.common.handlers import EffectContext
from standfast.features.operations.alert_model import ALERT, RaiseAlert, SendAlert, Standstill
from standfast.kernel.actor import SYSTEM, RequestContext
from standfast.kernel.ids import InstanceId
from standfast.notifications.delivery import Deliveries
from standfast.notifications.notification import Notice
from standfast.store.ports.maintenance import Incident

_ROLE = "role:"
_STILL = "it stands still, and nothing can ever wake it"


class Alerting:
    """Raises alerts, and sends them by the channels of notices."""

    def __init__(self, desk: CallContext, errands: BuiltinHandlers, deliveries: Deliveries) -> None:
        self._desk = desk
        self._deliveries = deliveries
        self._day = ""
        self._raised: set[InstanceId] = set()
        """The runs that operators are told of today, as far as this process knows: the database is not asked about them again."""
        errands.add(SendAlert, self.send)

    def tell(self, found: Incident, what: str) -> None:
        """Raise an alert about a run, unless that was done today."""
        shared = self._desk.service.shared
        day = shared.clock.now().date().isoformat()
        if day != self._day:
            self._day, self._raised = day, set()
        if not shared.settings.alerts or found.instance in self._raised:
            return

        def told(_outcome: CommandOutcome) -> None:
            self._raised.add(found.instance)

        desk = self._desk.acting(RequestContext(tenant=found.tenant, actor=SYSTEM))
        since = found.since.isoformat()
        about = Standstill(run=str(found.instance), definition=found.definition, since=since, what=what)
        command = RaiseAlert(id=f"{found.instance}/{day}", about=about, to=list(shared.settings.alerts))
        desk.command(
            desk.address(ALERT, command.id), command, told, is_unasked=True
        )  # What fails is raised in the next round.

    def send(self, context: EffectContext, alert: SendAlert) -> None:
        """Tell one of those who are told."""
        channel, _, to = alert.to.partition(":")
        about = alert.about
        notice = Notice(
            key=f"{context.instance}/{alert.to}",
            occasion=str(context.instance),
            tenant=context.tenant,
            kind="role" if to.startswith(_ROLE) else "user",
            to=to.removeprefix(_ROLE),
            subject=f"a run of {about.definition!r} stands still",
            body=f"{about.definition!r} {about.run} of the tenant {context.tenant!r} has not ended: {about.what or _STILL}. "
            f"Nothing has happened to it since {about.since}. `standfast why {about.run}` says what could be done.",
            instance=InstanceId(UUID(about.run)),
            definition=about.definition,
            step=0,
            node="",
            at=self._desk.service.shared.clock.now(),
        )
        self._deliveries.deliver(channel, notice)
