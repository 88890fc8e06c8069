"""Finds the people whom other runs ask: a run, those that it has called or may call, and those that it was called by.

It reads in the transaction that decides. Whoever goes past a call is refused while somebody is still to be asked below it.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from standfast.calls.catalog.registry import Registry
from standfast.engine.commit.cache import CachedInstance, folded
from standfast.errors import NotFoundError
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.machine.machine import GraphMachine
from standfast.machine.model.state import RunState
from standfast.machine.recovery.human_decisions import Asked, asked_from, asked_in, asked_now, say_in
from standfast.machine.recovery.passed_steps import Called
from standfast.store.ports.facts import FactLook
from standfast.store.records.instances import Address


class PeopleBelow:
    """Looks for questions in the runs of one tenant. Each run and each definition is looked at once."""

    def __init__(self, registry: Registry, look: FactLook | None, tenant: str) -> None:
        self._registry = registry
        self._look = look
        self._tenant = tenant
        self._runs: set[str] = set()
        self._definitions: set[Called] = set()

    def of_run(self, run: str, *, is_open: bool) -> str | None:
        """Returns a question that is open in a run or below it, or one that may still come; empty if there is none, None if there is no such run."""
        found = self._folded(run)
        if found is None:
            return None
        return next(self._questions(found, run, is_open=is_open), "")

    def of_definition(self, called: Called) -> str:
        """Returns a question that runs of a definition may ask, themselves or below; empty if there is none."""
        return next(self._asks(called), "")

    def above(self, run: str) -> str:
        """Returns who has a say in a run, in those that it may call, or in those that it was called by; empty if nobody has."""
        while run and run not in self._runs:
            found = self._folded(run)
            if found is None:  # Nobody knows whom it asked, so it counts as if it had.
                return f"those of {run}, which is deleted"
            state, decider = found.state, found.program.decider
            if not isinstance(state, RunState) or not isinstance(decider, GraphMachine):
                return ""
            told = say_in(decider.routes_of(state).graph) or next(self._asked_by(found.program), "")
            if told:
                return told
            run = state.parent or state.above
        return ""

    def _questions(self, found: CachedInstance, run: str, *, is_open: bool) -> Iterator[str]:
        state, decider = found.state, found.program.decider
        if not isinstance(state, RunState) or not isinstance(decider, GraphMachine) or state.status == "completed":
            return
        routes = decider.routes_of(state)
        is_over = state.is_terminal or state.rollback is not None
        if is_open:
            asked = Asked() if is_over else asked_now(routes, state)
        else:
            asked = asked_in(routes.graph) if is_over else asked_from(routes, state)
        yield from (f"{name!r} of {found.header.definition!r} {run}" for name in asked.questions)
        for step in asked.started:
            yield from self._child(step.child, is_open=is_open)
        for called in asked.calls:
            yield from self._asks(called)

    def _child(self, run: str, *, is_open: bool) -> Iterator[str]:
        if run in self._runs:
            return
        found = self._folded(run)
        if found is not None:
            yield from self._questions(found, run, is_open=is_open)

    def _asks(self, called: Called) -> Iterator[str]:
        if called in self._definitions:
            return
        self._definitions.add(called)
        try:
            program = self._registry.get(self._tenant, called.definition, called.version)
        except NotFoundError:  # Nobody knows whom it would ask, so it counts as if it asked.
            yield f"whatever {called.definition!r} asks, which this process does not know"
            return
        yield from self._asked_by(program)

    def _asked_by(self, program: Program) -> Iterator[str]:
        if not isinstance(program.decider, GraphMachine):
            return
        graph = program.decider.graph
        asked = asked_in(graph)
        yield from (f"{name!r} of {graph.name!r}" for name in asked.questions)
        for each in asked.calls:
            yield from self._asks(each)

    def _folded(self, run: str) -> CachedInstance | None:
        assert self._look is not None, "definitions alone are looked at without a database"
        look = self._look
        self._runs.add(run)
        address = Address(tenant=self._tenant, instance=InstanceId(UUID(run)))
        loaded = look.instance(address)
        if loaded is None:
            return None
        header = loaded.header
        program = self._registry.get(header.tenant, header.definition, header.definition_version)
        return folded(loaded, program, lambda: look.instance(address, whole=True))
