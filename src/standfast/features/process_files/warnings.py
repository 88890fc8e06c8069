"""What is odd about a workflow that can be run all the same, and will most likely not do what its author meant."""

from __future__ import annotations

from collections.abc import Iterator

from standfast.errors import Diagnostic
from standfast.features.process_files.format import (
    ApprovalStep,
    NotificationStep,
    Step,
    SystemStep,
    WaitStep,
)
from standfast.features.process_files.outline import AGAIN, COMPLETED, FAILED, Outline
from standfast.graph.model import Edge
from standfast.graph.scopes import circles
from standfast.graph.source_files.parsing import shown
from standfast.graph.source_files.reading import StructReader


def warnings_of(outline: Outline, reader: StructReader) -> tuple[Diagnostic, ...]:
    """What is odd, in the order of the file."""
    found = [*_unreached(outline, reader), *_unfinished(outline, reader), *_shadowed(outline, reader)]
    found += _circles(outline, reader)
    return tuple(sorted(found, key=lambda each: [int(part) for part in each.position.split(":")]))


def _unreached(outline: Outline, reader: StructReader) -> Iterator[Diagnostic]:
    reached = outline.reached()
    for step in outline.workflow.steps:
        if step.id not in reached:
            message = f"no way leads to {shown(step.id)}, so it is left out; add a transition to it, or remove it"
            yield _warning("unreachable", message, reader, step)


def _unfinished(outline: Outline, reader: StructReader) -> Iterator[Diagnostic]:
    """Steps that end well and then lead nowhere."""
    for step in outline.workflow.steps:
        events = {way.event for way in outline.ways(step.id)}
        match step:
            case SystemStep() | NotificationStep() | WaitStep(event=None) if COMPLETED not in events:
                yield _no_completed(step, reader)
            case WaitStep(event=str(event)) if not events & {COMPLETED, event}:
                yield _no_completed(step, reader)
            case ApprovalStep():
                for event in ("approved", "rejected"):
                    if event not in events:
                        message = f"{shown(step.id)} is an approval that cannot be {event}; add a transition by `{event}`, or make it an action"
                        yield _warning("no_decision", message, reader, step)
                if not (step.assignee or step.assignees or step.chain or step.capability):
                    yield _warning("open_approval", _open(step), reader, step)
            case _:
                pass


def _open(step: Step) -> str:
    told = f"{shown(step.id)} is an approval that names neither people nor a capability, so that anybody can approve"
    return f"{told}; add `assignee`, `assignees`, `chain` or `capability`"


def _no_completed(step: Step, reader: StructReader) -> Diagnostic:
    message = (
        f"nothing follows once {shown(step.id)} is done, so the workflow fails there; add a transition by `{COMPLETED}`"
    )
    return _warning("no_completed", message, reader, step)


def _shadowed(outline: Outline, reader: StructReader) -> Iterator[Diagnostic]:
    """Transitions behind one that is always open."""
    is_closed: set[tuple[str, str]] = set()
    for way in outline.workflow.transitions:
        place = (way.source, way.event)
        if place in is_closed:
            message = f"a transition by {shown(way.event)} that is always open stands before this one; put it last"
            yield _warning("shadowed", message, reader, way)
        elif way.condition is None and way.guard is None:
            is_closed.add(place)


def _circles(outline: Outline, reader: StructReader) -> Iterator[Diagnostic]:
    """Automatic steps that lead back to themselves: only the limit of steps in a row ends them."""
    automatic = {step.id for step in outline.workflow.steps if isinstance(step, SystemStep | NotificationStep)}
    edges = [
        Edge(source=way.source, target=way.to)
        for way in outline.workflow.transitions
        if way.event in {COMPLETED, FAILED} and way.event != AGAIN and {way.source, way.to} <= automatic
    ]
    for circle in circles(edges):
        told = " → ".join(map(shown, circle))
        message = f"{told} goes in a circle without waiting for anybody; it is suspended after {outline.workflow.chain_limit} steps"
        yield _warning("system_cycle", message, reader, outline.steps[circle[0]])


def _warning(code: str, message: str, reader: StructReader, part: object) -> Diagnostic:
    return Diagnostic(code, message, str(reader.at(part)))
