"""A database with runs of several kinds for the command line to look at; the engine beside it does work when it is told to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cli.calling import Standfast
from cli.flows import ORDERS
from standfast import Fail, Saga, load_processes
from standfast.testing import ManualEngine


class Stage:
    """The command, and an engine on the same database that works when it is driven."""

    def __init__(self, standfast: Standfast) -> None:
        self.standfast = standfast
        self.engine = ManualEngine(standfast.url, is_alone=False)
        self.is_bank_open = False
        self.engine.register(
            Saga("order")
            .step("charge", self._charge, undo=self._refund)
            .wait_for("paid", "payment")
            .step("ship", self._ship)
            .build()
        )
        self.engine.register(Saga("import", dlq=True).step("row", self._row).step("report", self._ship).build())
        self.engine.register(
            Saga("ask")
            .human("approve", subject="May {who}?", ask=["role:boss", "user:ann"], agree="any")
            .step("done", self._ship)
            .build()
        )
        for definition in load_processes(ORDERS):
            self.engine.register(definition)
        self.engine.handle("orders.confirm", self._ship)

    def _charge(self, amount: int = 0) -> dict[str, object]:
        return {"charge": f"ch-{amount}"}

    def _refund(self, charge: str = "") -> None:
        if not self.is_bank_open:
            raise ConnectionError(f"the bank does not answer about {charge}")

    def _ship(self) -> dict[str, object]:
        return {"parcel": 7}

    def _row(self, row: object = None) -> dict[str, object]:
        if not isinstance(row, int):
            raise Fail("this row is no number")
        return {"imported": row}

    def fail(self) -> None:
        """A handler that never succeeds."""
        raise Fail("never")

    def begun(self, name: str, **given: object) -> str:
        """The id of a run that has gone as far as it can."""
        run = self.engine.start(name, given)
        self.engine.drain()
        return str(run.id)

    def status(self, run: str) -> str:
        """How a run stands."""
        return self.engine.run(run).describe().status


@pytest.fixture
def stage(based: Standfast) -> Iterator[Stage]:
    """Both stores."""
    made = Stage(based)
    yield made
    made.engine.stop()
