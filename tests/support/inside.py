"""Where tests reach inside an engine: its parts are named here and nowhere else in the tests, so that renaming one is cheap.

Most tests need none of this: they do what users do. Those that do provoke a fault, take one step of a loop, or look at what
no call of an engine shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from standfast import Engine
from standfast.app.api.sync import Calls
from standfast.calls.catalog.registry import Registry
from standfast.calls.context import CallContext
from standfast.engine.commit.queue import Lane
from standfast.engine.dispatcher import Dispatcher
from standfast.engine.loops.due_work import DueWork
from standfast.engine.loops.housekeeping import Housekeeping
from standfast.engine.worker.claimer import Claimer
from standfast.engine.worker.worker import Worker
from standfast.kernel.ids import WorkerId
from standfast.store.ports.store import Store
from standfast.store.records.instances import EffectClaim, StoredEffect, Wanted


def desk_of(calls: Calls) -> CallContext:
    """Where calls are made, for commands that no call makes."""
    return calls.futures._desk


def store_of(engine: Engine) -> Store:
    """The database of an engine."""
    return engine.service.store


def connections_of(store: Store) -> int:
    """How many connections a store has made and not closed, but for Postgres's readers, which are a pool of four."""
    inside: Any = store
    if store.url.startswith("sqlite"):
        return len(inside._database._readers)
    return sum(line._connection is not None for line in inside._lines)


def registry_of(engine: Engine) -> Registry:
    """The deciders and workflows that an engine knows."""
    return engine.registry


def service_of(engine: Engine) -> Dispatcher:
    """What takes commands and commits them."""
    return engine.service


def lanes_of(engine: Engine) -> Sequence[Lane]:
    """The committers of an engine, each with the instances that it remembers."""
    return engine.service.committer.lanes


def worker_of(engine: Engine) -> Worker:
    """What calls handlers."""
    return engine.runtime.worker


def fetching_of(engine: Engine) -> Claimer:
    """What claims effects and deals with failed ones."""
    return engine.runtime.intake


def clockwork_of(engine: Engine) -> DueWork:
    """What fires timers and delivers messages."""
    return engine.runtime.due_work


def housekeeping_of(engine: Engine) -> Housekeeping:
    """What tidies up and looks for missing handlers."""
    return engine.runtime.housekeeping


def identity_of(engine: Engine) -> WorkerId:
    """The id under which the worker of an engine owns effects."""
    return engine.runtime.identity


def beat(engine: Engine) -> None:
    """Have the worker of an engine say that it lives, and hear what it has lost."""
    engine.runtime.heartbeat.step()


def held_by(engine: Engine) -> list[EffectClaim]:
    """The effects that the worker of an engine has in hand."""
    return engine.runtime.worker.held()


def claim_one(engine: Engine, handler: str) -> list[StoredEffect]:
    """The most urgent effect of a handler, which the worker of an engine owns from now on; no handler is called."""
    return engine.runtime.intake.claim([Wanted(handler, 1)], 1)
