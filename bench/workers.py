"""How the processes that are measured are set up: as `engine.serve` has them, because they do nothing else either."""

from __future__ import annotations

from standfast import Settings
from standfast.engine.common.gc_tuning import OWN_PROCESS

WORKER = Settings(collect_after=OWN_PROCESS)
