"""How property tests run here: a busy machine is no failure, so no example has a time limit."""

from __future__ import annotations

from hypothesis import settings

untimed = settings(deadline=None, max_examples=60)
