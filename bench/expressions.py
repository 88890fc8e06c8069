"""How many evaluations a second of one compiled condition, beside two CEL libraries.

    python bench/expressions.py [seconds per measurement, default 0.5]

The peers are not dependencies of Standfast. To have them in the table, install them into the environment that runs this:

    python -m pip install cel-python common-expression-language

Each engine evaluates `a.b > 10 && c == 'x'` over a plain dictionary, which is what a workflow has at hand. "prepared"
is the same with the data turned into the engine's own form beforehand, which no workflow can do for data that changes.
"""

from __future__ import annotations

import importlib
import importlib.util
import platform
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from standfast.expressions import parse

CONDITION = "a.b > 10 && c == 'x'"
DATA: dict[str, object] = {"a": {"b": 25}, "c": "x"}
TARGET = 300_000
ROUNDS = 5
CHUNK = 1000


class Candidate(NamedTuple):
    """One way to evaluate the condition."""

    engine: str
    how: str
    evaluate: Callable[[], object]


def rate(evaluate: Callable[[], object], seconds: float) -> float:
    """Evaluations a second: the best of some rounds, since other programs can only slow one down."""
    return max(one_round(evaluate, seconds / ROUNDS) for _ in range(ROUNDS))


def one_round(evaluate: Callable[[], object], seconds: float) -> float:
    """Evaluations a second in one round of about this many seconds."""
    count = 0
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds:
        for _ in range(CHUNK):
            evaluate()
        count += CHUNK
    return count / elapsed


def standfast_candidates() -> Iterator[Candidate]:
    """Standfast itself: the bare answer, and the answer with its audit record."""
    expression = parse(CONDITION)
    yield Candidate("standfast", "evaluate", lambda: expression.evaluate(DATA))
    yield Candidate("standfast", "explain (audit record)", lambda: expression.explain(DATA))


def cel_python_candidates() -> Iterator[Candidate]:
    """cel-python: CEL in Python."""
    celpy = importlib.import_module("celpy")
    environment = celpy.Environment()
    program = environment.program(environment.compile(CONDITION))
    prepared = celpy.json_to_cel(DATA)
    yield Candidate("cel-python", "evaluate", lambda: program.evaluate(celpy.json_to_cel(DATA)))
    yield Candidate("cel-python", "evaluate, prepared", lambda: program.evaluate(prepared))


def common_expression_language_candidates() -> Iterator[Candidate]:
    """common-expression-language: CEL in Rust."""
    cel = importlib.import_module("cel")
    program = cel.compile(CONDITION)
    prepared = cel.Context(DATA)
    yield Candidate("common-expression-language", "evaluate", lambda: program.execute(DATA))
    yield Candidate("common-expression-language", "evaluate, prepared", lambda: program.execute(prepared))


PEERS: dict[str, tuple[str, Callable[[], Iterator[Candidate]]]] = {
    "cel-python": ("celpy", cel_python_candidates),
    "common-expression-language": ("cel", common_expression_language_candidates),
}


def main(arguments: list[str]) -> int:
    """Print the table; the exit code says whether Standfast met its target."""
    seconds = float(arguments[0]) if arguments else 0.5
    print(f"{CONDITION}   ({platform.python_implementation()} {platform.python_version()}, one core)\n")
    rates: dict[str, float] = {}
    for candidate in candidates():
        assert candidate.evaluate()
        figure = rates[f"{candidate.engine} {candidate.how}"] = rate(candidate.evaluate, seconds)
        print(f"{candidate.engine:28}{candidate.how:26}{figure:14,.0f} /s")
    return 0 if rates["standfast evaluate"] >= TARGET else 1


def candidates() -> Iterator[Candidate]:
    """Standfast and the peers that are installed; how to get the others."""
    yield from standfast_candidates()
    for name, (module, make) in PEERS.items():
        if importlib.util.find_spec(module) is None:
            print(f"{name:28}not installed: python -m pip install {name}")
        else:
            yield from make()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
