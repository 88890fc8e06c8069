"""What drafts need to know besides their instance."""

from __future__ import annotations

from holdfast.kernel.program import Programs
from holdfast.runtime.issuing import Leasing


class Surroundings:
    """The same for all drafts of a committer."""

    def __init__(self, programs: Programs, *, ageing: float, snapshot_events: int, observe: bool) -> None:
        self.programs = programs
        self.ageing = ageing
        self.snapshot_events = snapshot_events
        self.observe = observe
        self.leasing: Leasing | None = None
        """Set while this process has a worker."""

    def without_leasing(self) -> Surroundings:
        """The same for commits that hand nothing over, because nobody learns for certain what became of them."""
        return Surroundings(
            self.programs, ageing=self.ageing, snapshot_events=self.snapshot_events, observe=self.observe
        )
