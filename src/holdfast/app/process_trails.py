"""The trail of a process: its history, told by the events of its specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from holdfast.app.process_views import Category, ProcessEvent
from holdfast.kernel.actor import SYSTEM
from holdfast.kernel.history import StoredEvent
from holdfast.kernel.program import Program
from holdfast.machine.graphs.graph import Graph, Human
from holdfast.machine.runs import events as e
from holdfast.machine.runs.repair import AGAIN

_LIFECYCLE = (e.WorkflowStarted, e.WorkflowCompleted, e.WorkflowFailed, e.WorkflowPaused, e.WorkflowResumed)
_CALL = "step"
"""In the metadata of a node that is no step of its own: the step that it belongs to."""


def step_named(graph: Graph, node: str) -> str:
    """The step of the definition that a node is, or is a part of; empty for none."""
    own = graph.nodes[node].metadata.get(_CALL) if node else ""
    return own if isinstance(own, str) else node


class Trail:
    """Tells the events of one instance, one after the other."""

    def __init__(self, graph: Graph, begun: Mapping[int, str] | None = None) -> None:
        self._graph = graph
        self._is_whole = begun is None
        """Whether it begins with the first event; otherwise it is silent about steps of whose beginning nobody has told."""
        self._nodes: dict[int, str] = dict(begun or {})
        """The nodes of the steps that have begun."""
        self._last = ""
        """The step that it is at."""

    def told(self, program: Program, events: Sequence[StoredEvent]) -> list[ProcessEvent]:
        """The whole trail, what happens to the instance itself included."""
        return [entry for each in events if not each.is_system for entry in self._tell(each, program.decode(each))]

    def _tell(self, stored: StoredEvent, event: object) -> Iterator[ProcessEvent]:
        match event:
            case e.StepStarted(step=number, node=node):
                is_first, is_own = self._is_whole and not self._nodes, self._enter(number, node)
                if is_own:
                    yield self._entry(stored, "step_entered", actor=stored.actor if is_first else SYSTEM.id)
            case e.StepAnswered(step=number) if self._is_human(number):
                yield self._entry(stored, "step_completed")
                yield self._entry(stored, event.outcome, event.data, comment=event.comment, place=1)
            case e.StepCompleted(node=node) if node:
                self._enter(event.step, node)
            case e.StepCompleted(step=number) if not self._is_human(number) and self._is_step(number):
                yield self._entry(stored, "step_completed", actor=SYSTEM.id)
            case e.StepFailed(reason="") | e.StepPaused():
                yield self._entry(stored, "step_failed", {"error": event.error}, actor=SYSTEM.id)
            case e.StepRepaired(repair="retry" | "reenqueue"):
                yield self._entry(stored, AGAIN, actor=event.actor, comment=event.reason)
            case e.TimedOut():
                yield self._entry(stored, "timeout", actor=SYSTEM.id)
            case _:
                yield from self._tell_of_whole(stored, event)

    def _tell_of_whole(self, stored: StoredEvent, event: object) -> Iterator[ProcessEvent]:
        match event:
            case e.WorkflowCancelled() | e.WorkflowAborted():
                yield self._entry(stored, "cancelled", actor=event.requested_by, comment=event.reason)
            case event if isinstance(event, _LIFECYCLE):
                yield self._entry(stored, stored.type, msgspec.to_builtins(event), category="lifecycle")
            case _:
                pass

    def _enter(self, number: int, node: str) -> bool:
        """A step has begun; whether it is one that the definition names."""
        self._nodes[number] = node
        if not node.startswith("#"):
            self._last = step_named(self._graph, node)
        return _CALL not in self._graph.nodes[node].metadata

    def _is_human(self, number: int) -> bool:
        node = self._nodes.get(number)
        return node is not None and isinstance(self._graph.nodes[node].op, Human)

    def _is_step(self, number: int) -> bool:
        node = self._nodes.get(number)
        return node is not None and _CALL not in self._graph.nodes[node].metadata

    def _entry(
        self,
        stored: StoredEvent,
        event: str,
        data: object = None,
        *,
        actor: str = "",
        comment: str = "",
        place: int = 0,
        category: Category = "step",
    ) -> ProcessEvent:
        return ProcessEvent(
            id=f"{stored.instance}:{stored.sequence}.{place}" if place else f"{stored.instance}:{stored.sequence}",
            workflow_instance_id=stored.instance,
            step_id=self._last,
            event=event,
            actor_id=actor or stored.actor,
            data=data if isinstance(data, dict) else {} if data is None else {"data": data},
            comment=comment or stored.comment,
            timestamp=stored.at,
            category=category,
        )
