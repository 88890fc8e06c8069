"""The engine's own handlers: what runs have the engine itself do. Every worker has them, so no run waits for a process that knows how.

Those that call what the engine does not know, such as channels and resolvers, have a limit, and a quarter of the threads at most: however
many of them hang, steps find threads, and so do errands of other kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar, cast

from standfast.engine.common.handlers import EffectContext, Fail, Handlers
from standfast.engine.common.settings import Settings
from standfast.kernel.codec.message_types import stored_name
from standfast.kernel.retry import lasting
from standfast.machine.model.engine_tasks import NOTICE_HANDLER, OWN_HANDLER, PEOPLE_HANDLER

T = TypeVar("T")
_SOON, _SELDOM = timedelta(seconds=1), timedelta(minutes=15)
"""The shortest and the longest wait before a notice is sent again."""
Run = Callable[[EffectContext, T], object]
"""Does an errand; what it returns is a command for the run, or None."""


class BuiltinHandlers:
    """Who does which errand, by its type."""

    def __init__(self, handlers: Handlers, settings: Settings) -> None:
        self._runs: dict[type, Run[object]] = {}
        handlers.register(OWN_HANDLER, self._run)
        few = max(1, settings.threads // 4)
        again = lasting(settings.notice_retry_for, delay=_SOON, cap=_SELDOM)
        for name, retry in ((PEOPLE_HANDLER, None), (NOTICE_HANDLER, again)):
            handlers.register(name, self._run, concurrency=few, timeout=settings.people_timeout, retry=retry)

    def add(self, kind: type[T], run: Run[T]) -> None:
        """Have errands of a type done."""
        self._runs[kind] = cast("Run[object]", run)

    def _run(self, context: EffectContext, errand: object) -> object:
        run = self._runs.get(type(errand))
        if run is None:
            raise Fail(f"nobody does {stored_name(errand)}")
        return run(context, errand)
