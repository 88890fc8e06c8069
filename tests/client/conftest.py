"""A real server with something to ask for, for tests of the client."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

import pytest

from api.serving import served
from api.world import registered
from standfast import Engine
from standfast.client import Client, Retries
from standfast.http import HttpOptions

OPTIONS = HttpOptions(
    stream_interval=timedelta(milliseconds=20), stream_lifetime=timedelta(milliseconds=200), heartbeat=timedelta(milliseconds=50), longest_wait=timedelta(seconds=2)
)  # fmt: skip
"""Streams end after a moment, so that whoever listens has to come back."""
HASTY = Retries(attempts=3, delay=0.001)


class Scene(NamedTuple):
    """A served engine, and the secret of somebody who may do everything."""

    engine: Engine
    address: str
    secret: str

    def client(self, retries: Retries = HASTY) -> Client:
        """A client of this server."""
        return Client(self.address, self.secret, retries=retries)


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """One server for all tests of a module; which store it is on makes no difference to a client."""
    engine = Engine("sqlite://")
    registered(engine)
    with engine, served(engine, OPTIONS) as address:
        made = engine.keys.create("test", actor="ann", roles=["approver"], capabilities=["*"])
        yield Scene(engine, address, made.secret)
