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
    """Gives every call a scope of its own, so that what is reported from it, by whomever, says whose it is."""

    def __init__(self, ignore: tuple[type[BaseException], ...]) -> None:
        _veil_our_frames()
        self._ignore: tuple[type[BaseException], ...] = (Retry, *ignore)
        ignore_logger("standfast.handlers")  # What it tells of a call that failed, the report tells.

    def call(self, facts: CallFacts) -> CallScope:
        """Open the scope of a call."""
        return CallScope(facts, self._ignore)

    def heard(self, happening: Happening) -> None:
        """A loop that fails is reported, unless only the database is away: that is told by the log, again and again."""
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
        # Few values: they are what reports are searched and grouped by.
        for name in ("tenant", "definition", "step", "handler"):
            self._scope.set_tag(f"standfast.{name}", told[name])
        self._scope.set_context("standfast", told)
        self._scope.add_breadcrumb(
            category="standfast",
            message=f"{facts.handler} is called for {step or 'effect'} {facts.number} of {facts.definition}",
            data={"attempt": attempt, "waited": (facts.claimed_at - facts.created_at).total_seconds()},
        )

    def ended(self, error: BaseException | None) -> None:
        """Report what the handler raised, and close the scope."""
        with self._stack:
            if error is not None and not isinstance(error, self._ignore):
                self._scope.capture_exception(error)


@contextmanager
def _new_scope() -> Iterator[Scope]:
    """A scope with nothing in it but what is said of the whole program.

    Threads of the engine begin with the scope of whoever has started them: of the request that came first, perhaps, with its user.
    """
    with use_isolation_scope(Scope(ty=ScopeType.ISOLATION)) as scope, use_scope(Scope(ty=ScopeType.CURRENT)):
        yield scope


@cache
def _veil_our_frames() -> None:
    """Have no report of the program, by whomever, show the values in frames of the engine: what workflows work on, and secrets of services.

    Sentry hides what has a telling name, in frames of handlers as well; whatever hangs on an object of the engine it shows as a text.
    """
    sentry_sdk.get_global_scope().add_event_processor(veiled)


def veiled(event: Event, hint: Hint) -> Event:
    """A report without the values in frames of the engine."""
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
