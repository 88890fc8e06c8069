"""Results of runs that another process has ended."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from standfast import Saga
from support.engines import QUICK, Live
from support.waiting import LONG_SECONDS, eventually

SELDOM = msgspec.structs.replace(QUICK, poll_interval=timedelta(hours=1))


def test_a_result_is_there_although_another_process_ended_the_run(live: Live) -> None:
    """A process that still takes the run for running looks it up soon, and not only when it looks at all that it waits for."""
    saga = Saga("s").step("a", lambda: {"a": 1}).build()
    front, worker = live.engine(SELDOM).register(saga), live.engine().register(saga)
    worker.start_worker()
    for _ in range(2):  # The first look is at all that is waited for.
        run = front.start("s")
        eventually(lambda identity=run.id: worker.run(identity).describe().status == "completed")  # type: ignore[misc]
        assert run.result(timeout=LONG_SECONDS) == {"a": 1}
