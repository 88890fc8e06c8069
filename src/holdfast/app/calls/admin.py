"""Calls of those who run the engine: maintenance, what waits, who works. They concern all tenants and all processes."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from holdfast.app.desk import Desk
from holdfast.app.operator_views import Backlog, MissingHandler, WorkerInfo, shown
from holdfast.kernel.vocabulary import SYSTEM_PREFIX
from holdfast.runtime.replies import Reply
from holdfast.store.shapes import Maintenance


class FutureAdmin:
    """What is asked of the engine as a whole."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def pause_processing(self) -> Reply[None]:
        """Maintenance for all processes: commands are taken, but no work is begun until `resume_processing`."""
        return self._maintain("pause")

    def refuse_commands(self) -> Reply[None]:
        """Maintenance for all processes: no work is begun, and commands are refused too, until `resume_processing`."""
        return self._maintain("refuse")

    def resume_processing(self) -> Reply[None]:
        """End maintenance, in all processes."""
        return self._maintain("")

    def backlog(self) -> Reply[list[Backlog]]:
        """How much work waits, by handler and by definition."""

        def read() -> list[Backlog]:
            found = self._desk.service.survey(lambda parts: parts.keeper().backlog())
            return [shown(each, Backlog) for each in found]

        return self._desk.read(read)

    def missing_handlers(self) -> Reply[list[MissingHandler]]:
        """Handlers that work waits for and no live worker has: how many effects wait for each, and since when."""
        service = self._desk.service
        moment = service.shared.clock.judge()

        def read() -> list[MissingHandler]:
            found = service.survey(lambda parts: parts.keeper().unhandled(waited=timedelta(0), now=moment))
            return [shown(each, MissingHandler) for each in found]

        return self._desk.read(read)

    def inbox_depth(self) -> Reply[int]:
        """How many accepted commands wait for their turn."""
        service = self._desk.service
        return self._desk.read(lambda: service.survey(lambda parts: parts.inbox().depth()))

    def workers(self) -> Reply[list[WorkerInfo]]:
        """The workers that are alive, in all processes."""
        service = self._desk.service
        moment = service.shared.clock.judge()

        def read() -> list[WorkerInfo]:
            found = service.survey(lambda parts: parts.workers().live(moment))
            return [_without_own(shown(each, WorkerInfo)) for each in found]

        return self._desk.read(read)

    def _maintain(self, mode: Maintenance) -> Reply[None]:
        return self._desk.read(lambda: self._desk.service.maintain(mode))


def _without_own(worker: WorkerInfo) -> WorkerInfo:
    """Every worker has the engine's own handlers, so that they tell nobody anything."""
    handlers = [each for each in worker.handlers if not each.startswith(SYSTEM_PREFIX)]
    return msgspec.structs.replace(worker, handlers=handlers)
