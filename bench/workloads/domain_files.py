"""Files of processes: how long a large one takes to be loaded and compiled, and the worst ones of the largest size that is read at all.

The unit of work is a file. `cpu_ms` is the time of the processor, of the slowest file in the second row.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import Any

from bench.figures import Figures, percentiles
from bench.rounds import Round
from standfast import DefinitionError, load_processes
from standfast.graph.source_files.parsing import LARGEST

WORKFLOWS, STEPS = 200, 20
TIMES = 5


def measure_compiling(this: Round) -> Figures:
    """Two hundred workflows of twenty steps, again and again; no two of them have the same expressions."""
    text = json.dumps(_domain(this.sized(WORKFLOWS)), indent=1)
    walls, cpu = [], []
    for _ in range(TIMES):
        begun, burnt = time.perf_counter(), time.process_time()
        load_processes(text)
        walls.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - burnt)
    p50, p99 = percentiles(walls)
    return Figures(per_second=TIMES / sum(walls), p50_ms=p50, p99_ms=p99, extra={"cpu_ms": max(cpu) * 1000})


def measure_limits(this: Round) -> Figures:
    """Files of the largest size: each is refused, or read."""
    walls, cpu = [], []
    for text in _worst(this.sized(LARGEST, least=10_000)):
        begun, burnt = time.perf_counter(), time.process_time()
        with suppress(DefinitionError):
            load_processes(text)
        walls.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - burnt)
    p50, p99 = percentiles(walls)
    return Figures(per_second=len(walls) / sum(walls), p50_ms=p50, p99_ms=p99, extra={"cpu_ms": max(cpu) * 1000})


def _domain(workflows: int) -> dict[str, Any]:
    return {"domain": "large", "workflows": [_workflow(number) for number in range(workflows)]}


def _workflow(number: int) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    ways: list[dict[str, Any]] = []
    for place in range(STEPS - 1):
        name, following = f"s{place}", f"s{place + 1}" if place < STEPS - 2 else "end"
        if place % 2:
            steps.append(
                {"id": name, "type": "system", "operation": "do", "input": {"a": f"workflow.a{number}_{place}"}}
            )
            ways.append({"from": name, "event": "completed", "to": following})
        else:
            steps.append(
                {"id": name, "type": "approval", "assignee": {"role": f"r{place}"}, "capability": f"c:{place}"}
            )
            ways.append(
                {"from": name, "event": "approved", "to": following, "condition": f"workflow.n{number} > {place}"}
            )
            ways.append({"from": name, "event": "rejected", "to": "end"})
    return {"id": f"w{number}", "steps": [*steps, {"id": "end", "type": "terminal"}], "transitions": ways}


def _worst(size: int) -> list[str]:
    """What could take long: deep, wide, full of aliases, of findings, of one long text, of expressions, and a sound one."""
    names = "".join(f"- {{from: s{number}, event: completed, to: nowhere}}\n  " for number in range(size // 60))
    nested = "((" * (size // 8) + "workflow.n > 1" + "))" * (size // 8)
    wide = " && ".join(["workflow.n > 1"] * (size // 20))
    alone = "domain: d\nworkflows:\n- id: w\n  steps:\n  - {id: s0, type: terminal}\n  transitions:\n  "
    way = "- {from: s0, event: completed, to: s0, condition: '%s'}\n"
    laughs = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, size // 30))
    sound = _domain(1)
    room = size // len(json.dumps(sound))
    files = [
        "[" * size,
        "a: " * (size // 3),
        "x" * size,
        "a: '" + "y" * (size - 10) + "'",
        "{" + ",".join(f"k{number}: 1" for number in range(size // 12)) + "}",
        "- 7\n" * (size // 4),
        laughs,
        alone + names,
        alone + way % nested,
        alone + way % wide,
        json.dumps(_domain(max(1, room))),
    ]
    return [each[:size] for each in files]
