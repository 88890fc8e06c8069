"""Where ids and chance come from."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest

from standfast.engine.common.randomness import SeededRandomness, SystemRandomness

NOW = datetime(2026, 3, 31, tzinfo=UTC)

FORKING = """
import os
from datetime import UTC, datetime
from standfast.engine.common.randomness import SystemRandomness
chance = SystemRandomness()
if child := os.fork():
    os.waitpid(child, 0)
print(chance.new_id(datetime(2026, 3, 31, tzinfo=UTC)), flush=True)
"""


@pytest.mark.row("P-022")
def test_processes_that_fork_make_ids_of_their_own() -> None:
    """A server that forks its workers after the engine was made would give two instances one id."""
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, check=True)
    assert len(set(done.stdout.split())) == 2


def test_a_seed_makes_chance_repeatable() -> None:
    """The same seed gives the same ids and numbers, and the system's own gives others each time."""
    seeded = [
        (chance.new_id(NOW), chance.share())
        for chance in (SeededRandomness(7), SeededRandomness(7), SeededRandomness(8))
    ]
    assert seeded[0] == seeded[1] != seeded[2]
    assert SystemRandomness().new_id(NOW) != SystemRandomness().new_id(NOW)
