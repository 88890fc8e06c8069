"""The fixtures of tests that call other systems."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from outbound.serving import Server, serving
from support.engines import live, place

__all__ = ["live", "place", "server"]


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that answers as the test says."""
    with serving() as made:
        yield made
