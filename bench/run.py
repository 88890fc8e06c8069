"""The benchmark's entry: `python3 dev.py bench`, or this file with the environment's Python. See README.md beside it."""

from __future__ import annotations

import sys
from pathlib import Path


def enter() -> int:
    """Make the repository importable in place of this folder, then do what the command line says."""
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from bench.command import main

    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(enter())
