"""How operations of steps reach their invoker: each is a handler under the invoker's name and its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, cast

from standfast.calls.handlers.registration import NamedHandlers
from standfast.calls.handlers.step_handlers import StepContext
from standfast.engine.common.settings import Settings
from standfast.errors import ConfigurationError
from standfast.features.process_files.operations import ARGUMENTS, OWN_INVOKERS, RESPONSE_HEADERS, operation_handler
from standfast.kernel.codec.message_types import name_flaw
from standfast.outbound.addresses import AddressAllowance
from standfast.outbound.http import Outbound
from standfast.outbound.invokers import Invocation, Invoker, checked_invoker, installed_invoker
from standfast.outbound.secrets import Lent

Handler = Callable[[StepContext, dict[str, object]], object]

_RESERVED: Final = "$"


class Invocations:
    """The invokers of one engine, by name: those that it is given, and those of installed distributions that the settings name."""

    def __init__(
        self,
        settings: Settings,
        now: Callable[[], datetime],
        handlers: NamedHandlers,
        given: Mapping[str, Invoker] | None,
    ) -> None:
        self.outbound = Outbound(AddressAllowance.of(settings.outbound_allow))
        """The engine's way to other systems."""
        self.lent = Lent.of(settings.webhook_secrets)
        """What requests of workflows may be signed with."""
        self._now = now
        self._handlers = handlers
        self._invokers: dict[str, Invoker] = {}
        for name, invoker in (given or {}).items():
            self.add(name, invoker)
        for name in settings.invokers:
            self.add(name, installed_invoker(name))

    def add(self, name: str, given: Invoker) -> None:
        """Know an invoker: its operations become handlers, by the names that steps have for them."""
        invoker = checked_invoker(given, f"the invoker {name!r}")
        if flaw := name_flaw(name):
            raise ConfigurationError(f"the invoker's name {name!r} {flaw}; definitions find it by that")
        if name in OWN_INVOKERS or name.startswith(_RESERVED) or ":" in name:
            told = "its handlers are registered with `engine.handle`" if name in OWN_INVOKERS else "take another name"
            raise ConfigurationError(f"{name!r} is the engine's own invoker, or cannot be the name of one; {told}")
        if name in self._invokers:
            raise ConfigurationError(f"there is already an invoker {name!r}; give this one another name")
        invoker.attach(self.outbound)  # First, because a worker may have something for it to do at once.
        for each in invoker.operations():
            self._handlers.add(operation_handler(name, each), self._handler(invoker, each))
        self._invokers[name] = invoker

    def _handler(self, invoker: Invoker, operation: str) -> Handler:
        def invoke(context: StepContext, data: dict[str, object]) -> object:
            said = context.metadata
            headers = said.get(RESPONSE_HEADERS, ())
            return invoker.invoke(
                Invocation(
                    operation=operation,
                    input=data,
                    arguments=cast("Mapping[str, object]", said.get(ARGUMENTS, {})),
                    response_headers=tuple(cast("list[str]", headers)),
                    idempotency_key=context.idempotency_key,
                    time_limit=self._left(context.deadline),
                    tenant=context.tenant,
                    instance=context.instance,
                    workflow=context.workflow,
                    step=context.step,
                    attempt=context.attempt,
                    actor=context.actor,
                    trace=context.trace,
                )
            )

        return invoke

    def _left(self, deadline: datetime | None) -> float | None:
        return None if deadline is None else (deadline - self._now()).total_seconds()
