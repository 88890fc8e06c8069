"""The five phases of the specification of pause and resume, one after the other, each by what it had to leave."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.rules.test_resuming import ALLOW, BLOCK, CALL, PAID, approve, publish, rules
from app.rules.test_runs import begun
from app.sagas.acting import Stage
from standfast import Settings
from standfast.http.routes import ROUTES
from support.engines import Place
from support.inside import store_of
from support.repository import ROOT


@pytest.mark.row("R-134")
def test_every_phase_has_left_what_it_was_for(place: Place) -> None:
    """The data of a pause, the resumer, the API, waits with worker, timeouts and audit, and pages: each needs the one before it, and is used here."""
    stage = Stage()
    engine, run = begun(place, rules(BLOCK, PAID, CALL, ALLOW), stage=stage)
    reader = store_of(engine).reader("default")

    # The first: the status, and the columns that say since when, why, and what comes next.
    (row,) = reader.headers([run])
    assert (row.status, row.reason, row.next_step) == ("paused", "approval_required", "paid")
    assert row.paused_at == place.clock.now()
    assert engine.run(run).describe().paused_step == "ask"

    # The second: an approval resumes it, at the point where it was, and the next pause is detected.
    engine.advance(minutes=1)
    approve(engine, run)
    shown = engine.run(run).describe()
    assert (shown.status, shown.paused_step, shown.next_step, stage.calls) == ("paused", "paid", "ship", [])

    # The third: the addresses, and the lists behind them.
    addresses = {(each.method, each.path) for each in ROUTES}
    base = "/api/v1/executions"
    for method, path in (
        ("POST", "/{id}/pause"),
        ("POST", "/{id}/resume"),
        ("GET", "/{id}/status"),
        ("GET", "/{id}/resume-options"),
        ("GET", "/{id}/resume-requests"),
        ("GET", "/paused"),
        ("GET", "/resumable"),
    ):
        assert (method, f"{base}{path}") in addresses
    assert [each.id for each in engine.runs.paused()] == [run]

    # The fourth: an event resumes a wait; a worker ends pauses that last too long; every request is written down.
    engine.advance(minutes=1)
    publish(engine, run)
    assert stage.calls == ["ship"]
    requests = reader.resume_requests(run)
    assert [(each.triggered_by, each.outcome) for each in requests] == [("approval", "executed"), ("event", "executed")]
    assert Settings().resume_worker_interval == timedelta(minutes=5)
    late = engine.start("w", {"order": {"total": 1}})
    engine.drain()
    engine.advance(hours=24)
    assert late.describe().status == "failed"
    assert engine.runs.paused() == []

    # The fifth: tests of every kind (`tests/architecture/test_kinds_of_tests.py`), and pages whose examples are run.
    for page in ("pause-and-resume", "write-rules", "wait-for-events", "ask-people"):
        assert "```python" in (ROOT / f"docs/how-to/{page}.md").read_text(encoding="utf-8")
