"""The reports of calls and loops that failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

import sentry_sdk
from sentry_sdk.integrations.logging import ignore_logger
from sentry_sdk.scope import Scope, ScopeType, use_isolation_scope, use_scope
from sentry_sdk.types import Event, Hint

from standfast.app.logs import step_call
from standfast.engine.common.handlers import Retry
from standfast.engine.common.interceptors import CallFacts, Interceptor
from standfast.engine.common.telemetry import Happening, LoopFailed
from standfast.errors import StoreUnavailableError

_OURS = "standfast"


class Reports(Interceptor):
    """Gives every handler call a scope of its own, so that every report from it names tenant, run and step."""

    def __init__(self, ignore: tuple[type[BaseException], ...]) -> None:
        _veil_our_frames()
        self._ignore: tuple[type[BaseException], ...] = (Retry, *ignore)
        ignore_logger("standfast.handlers")  # The report covers the engine's own log line about a failed call.

    def call(self, facts: CallFacts) -> CallScope:
        """Open the scope of a call."""
        return CallScope(facts, self._ignore)

    def heard(self, happening: Happening) -> None:
        """Report a failed loop, unless only the database is unavailable, which the log reports repeatedly."""
        if not isinstance(happening, LoopFailed) or isinstance(happening.exception, StoreUnavailableError):
            return
        with _new_scope() as scope:
            scope.set_tag("standfast.loop", happening.loop)
            scope.set_context("standfast", {"loop": happening.loop, "failures": happening.failures})
            scope.capture_exception(happening.exception)


class CallScope:
    """The scope of one call."""

    trace = ""

    def __init__(self, facts: CallFacts, ignore: tuple[type[BaseException], ...]) -> None:
        self._ignore = ignore
        self._stack = ExitStack()
        self._scope = self._stack.enter_context(_new_scope())
        step, attempt = step_call(facts)
        told = {
            "tenant": facts.tenant,
            "definition": facts.definition,
            "run": str(facts.instance),
            "step": step,
            "handler": facts.handler,
            "attempt": attempt,
            "trace": facts.trace,
        }
        # Few values: reports are searched and grouped by them.
        for name in ("tenant", "definition", "step", "handler"):
            self._scope.set_tag(f"standfast.{name}", told[name])
        self._scope.set_context("standfast", told)
        self._scope.add_breadcrumb(
            category="standfast",
            message=f"{facts.handler} is called for {step or 'effect'} {facts.number} of {facts.definition}",
            data={"attempt": attempt, "waited": (facts.claimed_at - facts.created_at).total_seconds()},
        )

    def ended(self, error: BaseException | None) -> None:
        """Report the handler's exception, and close the scope."""
        with self._stack:
            if error is not None and not isinstance(error, self._ignore):
                self._scope.capture_exception(error)


@contextmanager
def _new_scope() -> Iterator[Scope]:
    """Return a scope with only the global values of the program.

    Engine threads inherit the scope of the code that started them, perhaps the first request, with its user.
    """
    with use_isolation_scope(Scope(ty=ScopeType.ISOLATION)) as scope, use_scope(Scope(ty=ScopeType.CURRENT)):
        yield scope


@cache
def _veil_our_frames() -> None:
    """Remove local variables of engine frames from all reports of the program: they hold workflow data and secrets.

    Sentry filters values with sensitive names. Values inside engine objects would appear as text.
    """
    sentry_sdk.get_global_scope().add_event_processor(veiled)


def veiled(event: Event, hint: Hint) -> Event:
    """Return a report without the variables of engine frames."""
    del hint
    for frame in _frames(event):
        if isinstance(frame, dict) and str(frame.get("module") or "").partition(".")[0] == _OURS:
            frame.pop("vars", None)
    return event


def _frames(event: Event) -> Iterator[object]:
    for part in ("exception", "threads"):
        found = event.get(part)
        values = found.get("values") if isinstance(found, dict) else found
        for each in values if isinstance(values, list) else ():
            stack = each.get("stacktrace") if isinstance(each, dict) else None
            frames = stack.get("frames") if isinstance(stack, dict) else None
            yield from frames if isinstance(frames, list) else ()
