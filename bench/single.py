"""One round in a process of its own, so that its memory is its own: `python -m bench.single <row> <url> <scale>`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec

from bench.cases import Case, case_named
from bench.figures import Figures, peak_memory_mb
from bench.rounds import Round

ROOT = Path(__file__).resolve().parent.parent
_PATIENCE_SECONDS = 600


class RoundError(Exception):
    """The process of a round failed; the message is what it said."""


def run_apart(case: Case, this: Round) -> Figures:
    """Measure in a new process."""
    command = [sys.executable, "-m", "bench.single", case.name, this.url, str(this.scale)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=_PATIENCE_SECONDS)
    if done.returncode != 0:
        raise RoundError(f"{case.name} failed:\n{done.stderr}")
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Figures)


def main(name: str, url: str, scale: str) -> None:
    """Measure here."""
    figures = case_named(name).measure(Round(url=url, scale=float(scale)))
    figures.rss_mb = peak_memory_mb()
    print(msgspec.json.encode(figures).decode())


if __name__ == "__main__":
    main(*sys.argv[1:])
