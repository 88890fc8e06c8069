"""Python's garbage collector, which looks for circles of objects.

The engine makes many objects that live for a moment and hardly any circles, so that most looks find nothing: they are a tenth of its
work. The collector belongs to the whole process, so it is changed only in one that is the engine's own, or where a setting says so.
"""

from __future__ import annotations

import gc

OWN_PROCESS = 50_000
"""New objects between two looks in a process that does nothing but work for an engine. Python's own choice is 700."""


def collect_after(objects: int) -> None:
    """Let the collector look after so many new objects; never more often than it does."""
    youngest, *older = gc.get_threshold()
    if 0 < youngest < objects:  # 0 means that the application has switched it off.
        gc.set_threshold(objects, *older)
