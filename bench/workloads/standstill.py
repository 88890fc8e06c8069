"""A thousand runs are paused, and a hundred of them go on at the same moment; nothing may get lost, and no data change.

The unit of work is a pause: sixty-four callers pause all of them. Then somebody decides what they ask, which has no consequences yet.
Then a hundred callers, one for each of a hundred runs, resume them together. Latency: from that moment to the handler of each. It
is checked that those hundred get to their ends, each handler called once, that the others stay where they are, and that the input, the
data and the rows of all of them are what they were, byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bench.callers import Arrivals, call_all
from bench.figures import Figures, percentiles
from bench.rounds import Round
from bench.watching import Commits
from bench.workloads.waiting import IN_FLIGHT, opened, question, settle, start, started
from standfast import Engine, Run, WorkflowInstance

PAUSED = 1_000
RESUMED = 100
DATA: dict[str, object] = {
    "text": 'Grüße, 世界 \U0001f980 "quoted" \\ \x01 end',
    "numbers": [0, -1, 2**53 + 1, 0.1, 1e-300, -0.0],
    "nested": {"list": [[], {}, None, True, ""], "long": "x" * 2_000},
}


def prepare(this: Round) -> None:
    """Make runs that ask somebody, with data that is easily spoilt."""
    with opened(this) as engine:
        start(engine, this.sized(PAUSED, least=2 * RESUMED), **DATA)


def measure(this: Round) -> Figures:
    """Pause all, resume some, look at all."""
    arrivals = Arrivals()
    with opened(this, arrivals) as engine:
        runs = started(engine)
        before = _looks(engine, runs)
        engine.start_worker()
        commits = Commits(engine)
        pauses = call_all(lambda run: run.pause(), runs)
        settle([engine.futures.tasks.approve(question(run)) for run in runs])
        resumes = call_all(lambda run: run.resume(), runs[:RESUMED], callers=RESUMED)
        arrivals.wait_for(RESUMED)
        assert sorted(arrivals.at) == list(range(RESUMED)), "a run went on that nobody resumed"
        for run in runs[:RESUMED]:
            run.result()
        _check(engine, runs, before)
    _, paused_p99 = percentiles(pauses.waits)
    p50, p99 = percentiles([arrived - min(resumes.begun) for arrived in arrivals.at.values()])
    return Figures(
        per_second=pauses.per_second,
        p50_ms=p50,
        p99_ms=p99,
        commits_per_step=commits.count / len(runs),
        extra={"paused_p99_ms": paused_p99},
    )


def _check(engine: Engine, runs: Sequence[Run[Any]], before: Sequence[bytes]) -> None:
    """That everybody is where they should be, with what they had."""
    for first in range(0, len(runs), IN_FLIGHT):
        some = runs[first : first + IN_FLIGHT]
        shown = settle([engine.futures.run(run.id).describe() for run in some])
        proofs = settle([engine.futures.run(run.id).verify() for run in some])
        for number, (each, proof) in enumerate(zip(shown, proofs, strict=True), first):
            status = "completed" if number < RESUMED else "paused"
            assert each.status == status, f"run {number} is {each.status}, not {status}"
            assert proof.is_sound, f"the rows of run {number} differ from its history: {proof}"
            assert _bytes(each) == before[number], f"the data of run {number} has changed"


def _looks(engine: Engine, runs: Sequence[Run[Any]]) -> list[bytes]:
    return [_bytes(each) for each in settle([engine.futures.run(run.id).describe() for run in runs])]


def _bytes(shown: WorkflowInstance) -> bytes:
    """The input of a run, and what has become of it in its data; what its steps answer lies beside that."""
    return msgspec.json.encode([shown.input, {name: shown.context[name] for name in shown.input}])
