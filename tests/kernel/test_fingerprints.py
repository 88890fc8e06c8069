"""The fingerprint of a fold: the same in every process, and another one whenever the fold could come to something else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from standfast.features.events.model import PublicationDecider
from standfast.kernel.codec.codecs import JsonCodec
from standfast.kernel.program import Program
from support.samples import Counter

SOURCE = """
import enum
import functools
from dataclasses import dataclass, field
from standfast import Decider, Decision

RATES = {"eur": 1, "usd": 2}
ZONES = frozenset({"a", "b", "c", "d"})
LIMIT = 7

class Kind(enum.Enum):
    NEW = 1
    OLD = 2

@dataclass
class Line:
    sku: str
    count: int = 1

@dataclass
class State:
    lines: list[Line] = field(default_factory=list)
    total: int = 0

    def grown(self, by: int) -> "State":
        return State(self.lines, self.total + by)

@dataclass
class Add:
    workflow_id: str
    by: int

@dataclass
class Added:
    by: int

def helper(by, *, times=1):
    return by * times if by in (1, 2, 3) or str(by) in ZONES else min(by, LIMIT)

class Counting(Decider[State, Add, Added, None]):
    type = "counting"
    step = 3

    def initial(self):
        return State()

    def evolve(self, state, event):
        return state.grown(self._rated(helper(event.by)))

    def _rated(self, by):
        return by * RATES["eur"] + (Kind.NEW.value if by else 0)

    def decide(self, state, command, moment):
        return Decision.event(Added(command.by))
"""

PRINT = """
from standfast.kernel.codec.codecs import JsonCodec
from standfast.kernel.program import Program
print(Program(Counting(), JsonCodec()).fingerprint)
"""


def printed(folder: Path, source: str, *, seed: str = "0", module: str = "") -> str:
    """The fingerprint of a release of the code, told by another process; of a module that it imports, or of the program itself."""
    program = folder / "program.py"
    if module:
        (folder / f"{module}.py").write_text(source)
        program.write_text(f"from {module} import Counting{PRINT}")
    else:
        program.write_text(source + PRINT)
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    ran = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def test_it_is_the_same_in_every_process(tmp_path: Path) -> None:
    """Neither the seed of hashes, nor whether the module was compiled before, nor what it is called shows."""
    told = [
        printed(tmp_path, SOURCE),
        printed(tmp_path, SOURCE, seed="1"),
        printed(tmp_path, SOURCE, module="release"),
        printed(tmp_path, SOURCE, module="release", seed="4242"),
        printed(tmp_path, SOURCE, module="another"),
        printed(tmp_path, SOURCE.replace("Decision.event(Added(command.by))", "Decision.event(Added(command.by + 1))")),
        printed(tmp_path, "\n\n# A comment.\n" + SOURCE),
    ]
    assert len(set(told)) == 1
    assert told[0]


CHANGES = {
    "a field more": ("    total: int = 0\n", "    total: int = 0\n    more: int = 0\n"),
    "another default": ("    count: int = 1\n", "    count: int = 2\n"),
    "another type": ("    sku: str\n", "    sku: int\n"),
    "a method of the state": ("self.total + by", "self.total - by"),
    "the fold": ("state.grown(", "State().grown("),
    "the beginning": ("return State()\n", "return State(total=1)\n"),
    "a method of the decider": ("by * RATES", "by + RATES"),
    "a constant of the module": ("LIMIT = 7", "LIMIT = 8"),
    "a table of the module": ('"eur": 1', '"eur": 3'),
    "a set of the module": ('"c", "d"', '"c", "e"'),
    "a function of the module": ("min(by", "max(by"),
    "a default of a function": ("times=1", "times=2"),
    "a literal": ("in (1, 2, 3)", "in (1, 2, 4)"),
    "a word of the module": ("    NEW = 1", "    NEW = 3"),
}


def test_whatever_changes_the_fold_changes_it(tmp_path: Path) -> None:
    """Fields, defaults, types, and the code of the fold with all that it uses of its own module."""
    seen = {printed(tmp_path, SOURCE): "nothing changed"}
    for name, (old, new) in CHANGES.items():
        assert SOURCE.count(old) == 1, name
        told = printed(tmp_path, SOURCE.replace(old, new))
        assert told not in seen, f"{name} gives the fingerprint of: {seen[told]}"
        seen[told] = name


def test_only_deciders_of_the_user_have_one() -> None:
    """The engine's own raise their state version with care, so that a release of the engine leaves all snapshots valid."""
    assert Program(Counter(), JsonCodec()).fingerprint
    assert not Program(PublicationDecider(), JsonCodec(), is_own=True).fingerprint


def test_a_snapshot_is_taken_from_the_same_fold() -> None:
    """Version and fingerprint both count."""
    program = Program(Counter(), JsonCodec())
    assert program.takes_snapshot(1, program.fingerprint)
    assert not program.takes_snapshot(2, program.fingerprint)
    assert not program.takes_snapshot(1, "")
