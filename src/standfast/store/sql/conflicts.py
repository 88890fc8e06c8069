"""Conflicts with concurrent writers: void claims and duplicate rows.

A duplicate row of a declared kind is a decision's own error, because no other process writes rows of its instance.
"""

from __future__ import annotations

from standfast.errors import CommandError
from standfast.kernel.rows import Record, RowKind, kinds


class VoidClaimError(Exception):
    """The cause of a command was withdrawn, cancelled or taken over meanwhile."""


def row_kind(table: str) -> RowKind[Record] | None:
    """Return the kind whose rows are in a table or one of its partitions."""
    return next((each for each in kinds() if table == each.table or table.startswith(f"{each.table}_")), None)


def opened_twice(kind: RowKind[Record]) -> CommandError:
    """Build the error for a decision that opens a row twice. A retry would fail too."""
    return CommandError(
        f"a decision opens a {kind.name} whose {' and '.join(kind.key)} another one has: give the record a key of its own",
        decider="",
    )
