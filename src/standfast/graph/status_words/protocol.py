"""Protocol for the display names of statuses and events in one front end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol


class StepFacts(NamedTuple):
    """The facts about a step at an event, from the event and earlier ones."""

    outcome: str = ""
    reason: str = ""
    is_human: bool = False
    is_waiting: bool = False
    """Whether its node waits for a person or an event."""
    is_paused: bool = False
    """Whether the instance waits for an operator."""
    is_dead: bool = False
    """Whether it does so because of this step."""
    is_undoing: bool = False
    """Whether the event concerns the step's compensation."""
    is_delayed: bool = False
    """Whether the first call is delayed."""
    calls: int = 0
    """Number of calls that have returned."""


class StatusWords(Protocol):
    """The display names of one kind of workflow. A module can implement it."""

    @property
    def ACTIVE(self) -> Sequence[str]:  # noqa: N802 - a constant of a module
        """Statuses of active instances."""
        ...

    @property
    def TERMINAL(self) -> Sequence[str]:  # noqa: N802 - a constant of a module
        """Statuses of ended instances."""
        ...

    @property
    def ENDED_FOR(self) -> Mapping[str, Sequence[str]]:  # noqa: N802 - as above
        """Statuses of ended instances that share a stored status, each with the reasons that distinguish it."""
        ...

    def instance_status(self, status: str, reason: str, *, has_begun: bool) -> str:
        """Return the status of an instance by its stored status and reason, and whether work on it has begun."""
        ...

    def stored_statuses(self, wanted: Sequence[str]) -> list[tuple[tuple[str, ...], bool | None]]:
        """Return the stored statuses for these names, each with whether work has begun."""
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
        """Return the status of a step."""
        ...

    def event_name(self, type_: str, data: Mapping[str, object]) -> str:
        """Return the name of an event in a history."""
        ...

    def event_status(self, type_: str, known: StepFacts) -> str:
        """Return the status that an event sets for its step, or for the instance if it has no step.

        Empty if it sets none.
        """
        ...
