"""The machine against the reference: random graphs, random schedules, compared after every command.

STANDFAST_SEED=7 STANDFAST_GRAPHS=100000 .venv/bin/pytest tests/machine/test_random_graphs.py -k agree runs another campaign.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from random import Random

import pytest

from machine.generating import random_graph, random_limit
from machine.playing import Act, DisagreementError, Play, play_at_random, shortened
from standfast.graph import model as g
from support.campaigns import GRAPHS, SEED
from support.repository import PYTHONPATH

SHARES = 8
"""Tests that the graphs are shared out to, so that a parallel run can use all cores."""

HASHED = 60
"""Graphs whose histories are compared between processes."""


@pytest.mark.row("ED-05")
@pytest.mark.timeout(max(120, GRAPHS))
@pytest.mark.parametrize("share", range(SHARES))
def test_the_machine_and_the_reference_agree(share: int) -> None:
    """After every command of every schedule, both show the same run; its history folds to its state and gives its rows."""
    for number in range(share, GRAPHS, SHARES):
        check(f"{SEED}/{number}")


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("share", range(10))
def test_a_campaign_of_random_graphs(share: int) -> None:
    """The same for a hundred thousand graphs."""
    for number in range(share, 100_000, 10):
        check(f"long {SEED}/{number}")


def test_decisions_do_not_depend_on_the_process() -> None:
    """The same commands lead to the same events in every process, in the same order."""
    code = f"from machine.test_random_graphs import digest; print(digest({HASHED}))"
    digests = set()
    for hash_seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": PYTHONPATH}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        digests.add(done.stdout)
    assert len(digests) == 1, f"seed {SEED}: the events depend on the order of sets"


def digest(count: int) -> str:
    """A hash over the histories of some random graphs."""
    found = hashlib.sha256()
    for number in range(count):
        play = begun(f"{SEED}/{number}")[0]
        found.update(repr(play.host.history).encode())
    return found.hexdigest()


def check(seed: str) -> None:
    """Play one graph; a failure tells all that is needed to play it again."""
    play, told = begun(seed)
    if told:
        acts, shorter = shortened(play.graph, play.acts, play.limit)
        pytest.fail(describe(seed, play, acts or play.acts, shorter or told), pytrace=False)


def begun(seed: str) -> tuple[Play, str]:
    """The play of a seed, up to its end or to the first disagreement, and what that was."""
    rng = Random(seed)
    graph = random_graph(rng)
    play = Play(graph, random_limit(rng, graph))
    try:
        play_at_random(play, rng)
    except DisagreementError as error:
        return play, str(error)
    return play, ""


def describe(seed: str, play: Play, acts: list[Act], told: str) -> str:
    """What failed, and a program that fails in the same way."""
    graph = play.graph
    lines = [
        told,
        "",
        f"# seed {seed}",
        "from random import Random",
        "from standfast.machine.model.commands.run_commands import *",
        "from machine.generating import random_graph",
        "from machine.playing import *",
        "",
        *(f"# {node.id}: {_brief(node)}" for node in graph.nodes.values()),
        *(f"# {edge.id} priority {edge.priority}{_condition(edge)}" for edge in graph.edges),
        f"# {graph.policies}",
        f"play = Play(random_graph(Random({seed!r})), {play.limit})",
        *(f"play.act({act})" for act in acts),
    ]
    return "\n".join(lines)


def _brief(node: g.Node) -> str:
    op = str(node.op) if not isinstance(node.op, g.TaskOp) else f"Task(max_calls={node.op.work.retry.max_calls})"
    undo = "" if node.compensation is None else f", undone with max_calls={node.compensation.retry.max_calls}"
    return f"{op}{undo}{'' if node.timeout_ms is None else ', timeout'}"


def _condition(edge: g.Edge) -> str:
    return "" if edge.when is None else f" when {edge.when['source']}"
