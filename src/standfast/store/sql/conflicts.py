"""Where others were first: claims that are void, and rows that are there already.

Mostly another process has written those; but a row of a declared kind comes with its instance, which nobody else moves.
"""

from __future__ import annotations

from standfast.errors import CommandError
from standfast.kernel.rows import Record, RowKind, kinds


class VoidClaimError(Exception):
    """What a command comes from was withdrawn, cancelled or taken over meanwhile."""


def row_kind(table: str) -> RowKind[Record] | None:
    """The kind whose rows are in a table, or in a partition of it."""
    return next((each for each in kinds() if table == each.table or table.startswith(f"{each.table}_")), None)


def opened_twice(kind: RowKind[Record]) -> CommandError:
    """What is said of a decision that opens a row again. Another try would come to the same."""
    return CommandError(
        f"a decision opens a {kind.name} whose {' and '.join(kind.key)} another one has: give the record a key of its own",
        decider="",
    )
