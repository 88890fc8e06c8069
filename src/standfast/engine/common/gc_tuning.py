"""Tuning of Python's garbage collector, which looks for reference cycles.

The engine creates many short-lived objects and hardly any cycles, and the collector's default costs a tenth of its
time. The collector belongs to the whole process. It is changed only in the engine's own process or by a setting.
"""

from __future__ import annotations

import gc

OWN_PROCESS = 50_000
"""New objects between two collections in a process that only runs an engine. Python's default is 700."""


def collect_after(objects: int) -> None:
    """Set the number of new objects between two collections. A higher existing value is kept."""
    youngest, *older = gc.get_threshold()
    if 0 < youngest < objects:  # 0 means that the application has disabled the collector.
        gc.set_threshold(objects, *older)
