"""How soon a run is held and goes on: what another process does is heard of, and no interval of the settings is waited for.

How many milliseconds that takes is measured by the benchmark, which judges it (`bench/verdicts.py`); here every poll is an hour away, so that what
waited for one would never come.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.rules.test_resuming import ALLOW, BLOCK, CALL, rules
from app.rules.test_runs import MANAGER
from app.sagas.acting import Gate, Stage, step
from standfast import Engine, Saga, Settings, load_rules
from standfast.engine import worker_process as workplace
from support.engines import Live
from support.waiting import eventually

HOUR = timedelta(hours=1)
UNPOLLED = Settings(
    poll_interval=HOUR,
    timer_poll_interval=HOUR,
    resume_worker_interval=HOUR,
    beat_interval=HOUR,
    lease=3 * HOUR,
)
"""Nothing is looked for in time, so that everything has to be heard of."""


@pytest.mark.row("R-123", "R-124", "R-125")
def test_pausing_resuming_and_approving_wait_for_no_poll(live: Live) -> None:
    """One process pauses, resumes and decides, and another one works: it holds the next step, and calls it once the first has let it go on."""
    stage, gate = Stage(), Gate({"done": True})
    busy = (
        Saga("busy")
        .step("one", stage.does("one", gate))
        .step("two", stage.does("two"))
        .human("ask")
        .step("three", stage.does("three"))
        .build()
    )
    asking = load_rules(rules(BLOCK, CALL, ALLOW))
    here, there = (_engine(live, stage).register(busy).register(asking) for _ in range(2))
    there.start_worker()
    run = here.start("busy")
    gate.entered()
    run.pause("month end")
    gate.open()
    eventually(lambda: step(here, run.id, "one").status == "completed")
    assert (run.describe().status, run.describe().next_step, stage.calls) == ("paused", "two", ["one"])
    run.resume()
    eventually(lambda: stage.calls == ["one", "two"])
    (task,) = eventually(run.tasks)
    here.tasks.approve(task)
    eventually(lambda: stage.calls == ["one", "two", "three"])

    held = here.start("w", {"order": {"total": 5}})
    (question,) = eventually(held.tasks)
    here.acting(MANAGER).tasks.approve(question)
    eventually(lambda: stage.calls == ["one", "two", "three", "ship"])
    eventually(lambda: held.describe().status == "completed")


@pytest.mark.row("R-124", "R-125")
def test_what_a_file_tells_of_others_is_looked_at_often_enough() -> None:
    """SQLite calls nobody: what others commit is seen when the file's count of commits is looked at, at most half of the time that a resume may take."""
    assert workplace._LISTEN_SECONDS <= 0.5 / 2


def _engine(live: Live, stage: Stage) -> Engine:
    engine = live.engine(UNPOLLED)
    engine.handle("ship", stage.does("ship"))
    return engine
