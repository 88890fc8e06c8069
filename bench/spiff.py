"""How many user tasks of a BPMN process SpiffWorkflow completes a second, beside advances of processes.

    python bench/spiff.py [seconds per measurement, default 2]

SpiffWorkflow is no dependency of Standfast. Run this with an environment that has it (`python -m pip install SpiffWorkflow`), or name the
Python of one in STANDFAST_SPIFF_PYTHON. It keeps nothing by itself: "in memory" completes tasks and forgets them; "kept" also turns the whole
process into JSON after each, which is what an application has to store, and writes it nowhere.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import itertools
import os
import subprocess
import sys
import time
from typing import Any

TASKS = 10
PYTHON = "STANDFAST_SPIFF_PYTHON"
_MODEL = "http://www.omg.org/spec/BPMN/20100524/MODEL"


def document() -> str:
    """Ten user tasks in a row."""
    ids = ["start", *(f"task{number}" for number in range(TASKS)), "end"]
    tasks = "".join(f'<userTask id="{each}" name="{each}"/>' for each in ids[1:-1])
    flows = "".join(
        f'<sequenceFlow id="f{place}" sourceRef="{one}" targetRef="{other}"/>'
        for place, (one, other) in enumerate(itertools.pairwise(ids))
    )
    inner = f'<startEvent id="start"/>{tasks}<endEvent id="end"/>{flows}'
    return f'<definitions xmlns="{_MODEL}" id="d" targetNamespace="t"><process id="p" isExecutable="true">{inner}</process></definitions>'


def completions(seconds: float, *, is_kept: bool) -> float:
    """Tasks completed a second."""
    parser: Any = importlib.import_module("SpiffWorkflow.bpmn.parser.BpmnParser").BpmnParser()
    workflow_type: Any = importlib.import_module("SpiffWorkflow.bpmn.workflow").BpmnWorkflow
    serializer: Any = importlib.import_module("SpiffWorkflow.bpmn.serializer.workflow").BpmnWorkflowSerializer()
    ready: Any = importlib.import_module("SpiffWorkflow.util.task").TaskState.READY
    parser.add_bpmn_io(io.BytesIO(document().encode()), filename="p.bpmn")
    spec = parser.get_spec("p")
    done, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        workflow = workflow_type(spec)
        workflow.do_engine_steps()
        while not workflow.completed:
            (task,) = [each for each in workflow.get_tasks(state=ready) if each.task_spec.manual]
            task.data["n"] = done
            task.run()
            workflow.do_engine_steps()
            done += 1
            if is_kept:
                serializer.serialize_json(workflow)
    return done / (time.perf_counter() - begun)


def main(arguments: list[str]) -> int:
    """Measure here, or in the environment that is named."""
    if importlib.util.find_spec("SpiffWorkflow") is None:
        python = os.environ.get(PYTHON)
        if not python:
            print(f"SpiffWorkflow is not installed; name the Python of an environment that has it in {PYTHON}")
            return 2
        return subprocess.run([python, __file__, *arguments], check=False).returncode
    seconds = float(arguments[0]) if arguments else 2.0
    for how, is_kept in (("in memory", False), ("kept", True)):
        print(f"SpiffWorkflow, user tasks completed, {how}: {completions(seconds, is_kept=is_kept):,.0f}/s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
