"""Figures for Prometheus: what a scenario leaves in them, as a scrape sees it."""

from __future__ import annotations

import re

import httpx
import pytest

from standfast import ConfigurationError, Saga
from standfast.contrib.prometheus import serve_metrics
from support.engines import Place
from support.samples import Do, Puppet, act


@pytest.mark.row("E-813", "E-964", "E-474", "EH-18", "E-427", "E-781", "G-15")
def test_a_scrape_tells_of_a_scenario(place: Place) -> None:
    """Queue time, time of calls by handler and by kind of work, retries, dead letters and lives; of two sagas and a decider."""
    calls: list[int] = []

    def flaky() -> dict[str, object]:
        calls.append(1)
        if len(calls) < 3:
            raise ConnectionError
        return {}

    def broken() -> None:
        raise LookupError

    def fails(context: object, effect: object) -> None:
        raise LookupError

    engine = place.engine().register(Puppet(act), fails)
    engine.register(Saga("order").step("ship", flaky, attempts=3, delay=1).build())
    engine.register(Saga("letters", dlq=True).step("fail", broken, attempts=1).build())
    with serve_metrics(engine, port=0) as server:
        engine.start("order", {})
        engine.start("letters", {})
        engine.deciders.execute(Puppet, Do("p-1", "x"))
        engine.advance(minutes=30)
        answer = httpx.get(f"http://127.0.0.1:{server.port}/metrics")
        assert httpx.get(f"http://127.0.0.1:{server.port}/").status_code == 404
        for port in (server.port, -1, 70_000, range(server.port, server.port + 1), range(0)):
            with pytest.raises(ConfigurationError, match="another host or port"):
                serve_metrics(engine, port=port)
    text = answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    for line in (
        'standfast_instances_started_total{definition="order"} 1',
        'standfast_instances_ended_total{definition="order",status="completed"} 1',
        'standfast_instance_seconds_count{definition="order"} 1',
        'standfast_handler_calls_total{handler="flaky",outcome="failed"} 2',
        'standfast_handler_calls_total{handler="flaky",outcome="ok"} 1',
        'standfast_handler_seconds_count{handler="flaky"} 3',
        'standfast_queue_seconds_count{handler="flaky"} 3',
        'standfast_retries_total{definition="order"} 2',
        'standfast_dead_letters_total{source="step",definition="letters"} 1',
        'standfast_dead_letters_total{source="effect",definition="puppet"} 1',
        "standfast_healthy 1",
    ):
        assert line in text.splitlines()
    commits = re.findall(r"standfast_commit(?:s_total|_seconds_count) (\d+)", text)
    assert len(commits) == 2
    assert commits[0] == commits[1] != "0"
    works = re.findall(r'standfast_work_seconds_count{work="([^"]+)"} (\d+)', text)
    assert ("RunStep", "4") in works
    assert str(engine.instances.list()[0].id) not in text


def test_each_of_several_processes_has_figures_of_its_own(place: Place) -> None:
    """Code that all of them run names several ports, and each takes one that is free."""
    with serve_metrics(place.engine(), port=0) as first:
        ports = range(first.port, min(first.port + 20, 65_536))
        with serve_metrics(place.engine(), port=ports) as second:
            assert second.port in ports[1:]
            for each in (first, second):
                assert "standfast_healthy 1" in httpx.get(f"http://127.0.0.1:{each.port}/metrics").text
