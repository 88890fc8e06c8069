"""A workflow to look things up in: its steps by id, and the ways that lead on from each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TypeAlias

from standfast.features.process_files.format import (
    ActionStep,
    ApprovalStep,
    NotificationStep,
    Step,
    SystemStep,
    TransitionSpec,
    WaitStep,
    Workflow,
)

COMPLETED, FAILED, EXPIRED, AGAIN = "completed", "error", "timeout", "retry"
"""Events that the engine itself brings about, and the one by which a person has a call made again."""

Asking: TypeAlias = ActionStep | ApprovalStep
Calling: TypeAlias = SystemStep | NotificationStep


class Outline:
    """What is asked of a workflow while it is checked and compiled."""

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self.steps: dict[str, Step] = {}
        for step in workflow.steps:
            self.steps.setdefault(step.id, step)
        self._ways: defaultdict[str, list[TransitionSpec]] = defaultdict(list)
        for transition in workflow.transitions:
            self._ways[transition.source].append(transition)

    @property
    def entry(self) -> str:
        """Where it begins."""
        return self.workflow.initial_step or next(iter(self.steps), "")

    def ways(self, step: str) -> list[TransitionSpec]:
        """The transitions from a step, in the order of the file."""
        return self._ways[step]

    def events(self, step: Calling | WaitStep) -> tuple[str, ...]:
        """What a step can be left by that asks nobody."""
        match step:
            case SystemStep():
                return (COMPLETED, FAILED, AGAIN)
            case WaitStep(event=str(event)):
                return (COMPLETED, event, EXPIRED)
            case WaitStep(events=[_, *_]):
                return (COMPLETED, EXPIRED)
            case WaitStep(until=str()):
                return (COMPLETED, FAILED)
            case _:
                return (COMPLETED,)

    def has_timeout(self, step: Step) -> bool:
        """Whether time can be over at a step: its own, or that of the whole."""
        own = step.timeout if isinstance(step, Asking | WaitStep) else None
        return own is not None or self.workflow.timeout is not None

    def targets(self, step: Step) -> Iterator[str]:
        """Where one can get to from a step."""
        for way in self.ways(step.id):
            yield way.to
        if not isinstance(step, Asking | WaitStep):
            return
        if step.on_timeout is not None:
            yield step.on_timeout
        elif step.timeout is not None and self.workflow.on_timeout is not None:
            yield self.workflow.on_timeout

    def reached(self) -> set[str]:
        """The steps that one can get to at all."""
        whole = [self.workflow.on_timeout] if self.workflow.timeout and self.workflow.on_timeout else []
        pending = [name for name in (self.entry, *whole) if name in self.steps]
        seen = set(pending)
        while pending:
            following = {name for name in self.targets(self.steps[pending.pop()]) if name in self.steps} - seen
            seen |= following
            pending += following
        return seen
