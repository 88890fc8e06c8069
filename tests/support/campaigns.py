"""Random campaigns: how long they are, and the seed that makes one happen again."""

from __future__ import annotations

import os

SEED = os.environ.get("HOLDFAST_SEED", "1")
GRAPHS = int(os.environ.get("HOLDFAST_GRAPHS", "2000"))
