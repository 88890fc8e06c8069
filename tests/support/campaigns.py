"""Random campaigns: how long they are, and the seed that makes one happen again."""

from __future__ import annotations

import os

SEED = os.environ.get("STANDFAST_SEED", "1")
GRAPHS = int(os.environ.get("STANDFAST_GRAPHS", "1000"))
RACES = int(os.environ.get("STANDFAST_RACES", "50"))
"""How often a race is run: two processes meet in most of them, not in all. `dev.py test --long` runs each of them 200 times."""
