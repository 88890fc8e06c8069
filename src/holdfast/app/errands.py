"""The engine's own handler: what runs have the engine itself do. Every worker has it, so no run waits for a process that knows how."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from holdfast.machine.runs.errands import OWN_HANDLER
from holdfast.runtime.handlers import EffectContext, Fail, Handlers

T = TypeVar("T")
Run = Callable[[EffectContext, T], object]
"""Does an errand; what it returns is a command for the run, or None."""


class Errands:
    """Who does which errand, by its type."""

    def __init__(self, handlers: Handlers) -> None:
        self._runs: dict[type, Run[object]] = {}
        handlers.register(OWN_HANDLER, self._run)

    def add(self, kind: type[T], run: Run[T]) -> None:
        """Have errands of a type done."""
        self._runs[kind] = cast("Run[object]", run)

    def _run(self, context: EffectContext, errand: object) -> object:
        run = self._runs.get(type(errand))
        if run is None:
            raise Fail(f"nobody does {type(errand).__name__}")
        return run(context, errand)
