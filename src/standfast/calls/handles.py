"""What stands for one run of a workflow in the hands of a caller."""

from __future__ import annotations

from standfast.kernel.ids import InstanceId


class Handle:
    """Names a run. It asks nothing of the database by itself, and two with the same id are equal, of whichever face they are."""

    __slots__ = ("id",)

    id: InstanceId

    def __init__(self, id: InstanceId) -> None:  # noqa: A002 - the word that everybody uses for it
        self.id = id

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Handle) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"
