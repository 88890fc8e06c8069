"""The two sides of an engine: what the command side needs of the worker of its process, if there is one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from standfast.engine.commit.batch import CommandBatch
from standfast.engine.worker.call import Key
from standfast.store.records.instances import EffectClaim


class WorkerListener(Protocol):
    """The worker of this process with its loops, as the command side knows it; see docs/internals/lost-answers.md."""

    def written(self, batch: CommandBatch) -> None:
        """The committer has written a batch: run what it handed over, stop what it withdrew, mind its timers."""
        ...

    def look(self) -> None:
        """There may be work that nobody was told of."""
        ...

    def held(self) -> Sequence[EffectClaim]:
        """What the worker has in hand, calls whose failure is not dealt with included."""
        ...

    def holds(self, key: Key) -> bool:
        """Whether the worker has an effect in hand."""
        ...

    def claiming(self) -> AbstractContextManager[object]:
        """Inside it no effect is on its way from the database into the worker's hands."""
        ...


class NoWorkerListener:
    """The working side of an engine that only takes commands."""

    def written(self, batch: CommandBatch) -> None:
        """Workers of other processes find what was written."""

    def look(self) -> None:
        """Workers of other processes look by themselves."""

    def held(self) -> Sequence[EffectClaim]:
        """Nothing."""
        return ()

    def holds(self, key: Key) -> bool:  # noqa: ARG002 - the same for all
        """No."""
        return False

    def claiming(self) -> AbstractContextManager[object]:
        """Nothing is ever on its way."""
        return nullcontext()
