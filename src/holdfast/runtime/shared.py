"""What the parts of one engine share."""

from __future__ import annotations

from collections.abc import Callable, Collection

from holdfast.kernel.program import Programs
from holdfast.runtime.clock import Clock
from holdfast.runtime.handlers import Handlers
from holdfast.runtime.identity import Chance
from holdfast.runtime.settings import Settings
from holdfast.runtime.submissions import Submission
from holdfast.runtime.telemetry import Telemetry


class Shared:
    """The surroundings of one engine. Nothing here is shared between engines."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock,
        chance: Chance,
        programs: Programs,
        definitions: Callable[[], Collection[str]],
        submit: Callable[[Submission], None],
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.chance = chance
        self.programs = programs
        """The program of a definition; NotFoundError if nobody registered it."""
        self.definitions = definitions
        """The definitions that this process can run; timers and messages of others are left to others."""
        self.submit = submit
        """Hands a command to the committer."""
        self.telemetry = Telemetry()
        self.handlers = Handlers()
