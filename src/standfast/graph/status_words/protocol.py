"""What a front end calls the things that the machine stores: statuses of instances and steps, and the names of events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class StepFacts(NamedTuple):
    """What an event says about its step, and what those before it have said."""

    outcome: str = ""
    reason: str = ""
    is_human: bool = False
    is_waiting: bool = False
    """Whether its node waits for somebody or something."""
    is_paused: bool = False
    """Whether the instance waits for an operator until then."""
    is_dead: bool = False
    """Whether that is because of this step."""
    is_undoing: bool = False
    """Whether it is the step's compensation that the event happened to."""
    is_delayed: bool = False
    """Whether the first call waits."""
    calls: int = 0
    """How many have come back."""


class StatusWords(Protocol):
    """The words of one kind of workflow. A module can be them."""

    @property
    def ACTIVE(self) -> Sequence[str]:  # noqa: N802 - a constant of a module
        """Statuses of instances that have not ended."""
        ...

    @property
    def TERMINAL(self) -> Sequence[str]:  # noqa: N802 - a constant of a module
        """Statuses of instances that have."""
        ...

    @property
    def ENDED_FOR(self) -> Mapping[str, Sequence[str]]:  # noqa: N802 - as above
        """Statuses of instances that have ended, each with the reasons that tell it from another one that is stored alike."""
        ...

    def instance_status(self, status: str, reason: str, *, has_begun: bool) -> str:
        """The status of an instance, by what is stored of it and why, and whether anybody has worked on it."""
        ...

    def stored_statuses(self, wanted: Sequence[str]) -> list[tuple[tuple[str, ...], bool | None]]:
        """What is stored of the instances that these words stand for: statuses, and whether anybody has worked on them."""
        ...

    def step_status(
        self,
        status: str,
        *,
        wait_kind: str,
        outcome: str,
        undoing: str | None,
        is_called: bool,
        is_paused: bool,
        is_dead: bool,
    ) -> str:
        """The status of a step."""
        ...

    def event_name(self, type_: str, data: Mapping[str, object]) -> str:
        """What an event is called in a history."""
        ...

    def event_status(self, type_: str, known: StepFacts) -> str:
        """The status that an event leaves its step in, or the instance if it concerns no step; empty if it changes none."""
        ...
