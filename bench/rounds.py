"""What a workload is given: a fresh database and how large to be."""

from __future__ import annotations

import msgspec


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of one workload."""

    url: str
    """A database that only this round uses."""
    scale: float
    """1 for the real thing; less for a quick look whose figures mean nothing."""

    @property
    def is_postgres(self) -> bool:
        """Whether the database is a Postgres; else it is an SQLite file."""
        return not self.url.startswith("sqlite:")

    @property
    def path(self) -> str:
        """The file of an SQLite database."""
        return self.url.removeprefix("sqlite:///")

    def sized(self, full: int, *, least: int = 10) -> int:
        """How many, where the real thing takes `full`."""
        return max(least, round(full * self.scale))
