"""Instances as last known: their rows and folded states, kept in memory for the next command."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable

from standfast.errors import PayloadError, ReplayError
from standfast.kernel.history import check_sequence
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.store.records.instances import Address, InstanceHeader, Loaded, PendingTimerRecord

NO_SNAPSHOTS = -1
"""Size of the last snapshot, for a state that cannot be stored."""


class CachedInstance:
    """An instance as it was at its last known commit."""

    __slots__ = (
        "bytes_since",
        "events_since",
        "free",
        "header",
        "is_fresh",
        "program",
        "snapshot_bytes",
        "state",
        "timers",
    )

    def __init__(
        self, header: InstanceHeader, program: Program, state: object, timers: dict[str, PendingTimerRecord]
    ) -> None:
        self.header = header
        self.program = program
        self.state = state
        self.timers = timers
        """Those that have not fired, by key."""
        self.events_since = 0
        """Events since the last snapshot."""
        self.bytes_since = 0
        self.snapshot_bytes = 0
        self.is_fresh = True
        """Whether it was read for this very batch; otherwise it comes from memory and may be old."""
        self.free: list[None] = []
        """Empty while somebody has the state in hand, and may change it: at first whoever made it. Of two threads that pop what is there
        one gets it; whoever has it appends it again, once. While it is gone only the row can be relied on."""

    @classmethod
    def of(cls, loaded: Loaded, program: Program) -> CachedInstance:
        """Fold a stored instance."""
        snapshot = loaded.snapshot
        if snapshot is not None and program.takes_snapshot(snapshot.state_version, snapshot.fingerprint):
            check_sequence(loaded.events, after=snapshot.version)
            state = program.restore(snapshot.data)
        else:
            check_sequence(loaded.events, after=0)
            state, snapshot = program.initial(), None
        tracked = cls(loaded.header, program, program.replay(state, loaded.events), loaded.timers)
        tracked.events_since = len(loaded.events)
        for event in loaded.events:
            tracked.bytes_since += len(event.data)
        tracked.snapshot_bytes = len(snapshot.data) if snapshot else 0
        return tracked

    def renewed(self, loaded: Loaded) -> CachedInstance:
        """The same instance with its row and its timers as they were just read; it has no other events."""
        tracked = CachedInstance(loaded.header, self.program, self.state, loaded.timers)
        tracked.events_since, tracked.bytes_since = self.events_since, self.bytes_since
        tracked.snapshot_bytes = self.snapshot_bytes
        return tracked


def folded(loaded: Loaded, program: Program, load_whole: Callable[[], Loaded | None]) -> CachedInstance | None:
    """A stored instance: from its snapshot and what came after it, or from its whole history where the snapshot is worth nothing.

    None if it was deleted meanwhile.
    """
    snapshot = loaded.snapshot
    if snapshot is None:
        return CachedInstance.of(loaded, program)
    if program.takes_snapshot(snapshot.state_version, snapshot.fingerprint):
        try:
            return CachedInstance.of(loaded, program)
        except (PayloadError, ReplayError):
            pass  # It cannot be read, or the events do not fit on it: the events alone tell.
    whole = load_whole()
    return None if whole is None else CachedInstance.of(whole, program)


class InstanceCache:
    """The instances that were used last. The version gate of a commit makes a stale one harmless.

    They are kept by the number that an id is: Python compares and hashes ids themselves much more slowly.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._by_id: OrderedDict[int, CachedInstance] = OrderedDict()
        self._ids: dict[tuple[str, str, str, str], int] = {}
        self.outdated: deque[InstanceId] = deque()
        """Instances that a commit has moved which whoever uses the memory did not make; any thread may tell of one."""

    def find(self, address: Address) -> CachedInstance | None:
        """The instance at an address, if it is remembered."""
        if address.instance is not None:
            number: int | None = address.instance.int
        else:
            number = self._ids.get((address.tenant, address.partition, address.definition, address.key))
        tracked = None if number is None else self._by_id.get(number)
        if number is None or tracked is None or tracked.header.tenant != address.tenant:
            return None
        if address.partition and tracked.header.partition != address.partition:
            return None
        self._by_id.move_to_end(number)
        return tracked

    def knows(self, address: Address) -> bool:
        """Whether the instance at an address is remembered; any thread may ask."""
        if address.instance is not None:
            return address.instance.int in self._by_id
        return (address.tenant, address.partition, address.definition, address.key) in self._ids

    def is_running(self, identity: InstanceId, partition: str = "") -> bool:
        """Whether an instance is remembered, in the partition if one is named, and had not ended; any thread may ask."""
        tracked = self._by_id.get(identity.int)
        if tracked is None or partition not in {"", tracked.header.partition}:
            return False
        return tracked.header.ended_at is None and identity not in self.outdated

    def is_at(self, identity: InstanceId, version: int) -> bool:
        """Whether an instance is remembered with so many events, and nobody has told of more; any thread may ask."""
        tracked = self._by_id.get(identity.int)
        return tracked is not None and tracked.header.version == version and identity not in self.outdated

    def header(self, identity: InstanceId) -> InstanceHeader | None:
        """The row of an instance as it is remembered; any thread may ask."""
        tracked = self._by_id.get(identity.int)
        return None if tracked is None else tracked.header

    def take(self, identity: InstanceId) -> CachedInstance | None:
        """An instance that is remembered and that nobody has in hand; any thread may ask, and has it from then on. It may be old."""
        tracked = self._by_id.get(identity.int)
        try:
            if tracked is not None:
                tracked.free.pop()
        except IndexError:
            return None
        return tracked

    def keep(self, tracked: CachedInstance) -> None:
        """Remember an instance, and forget the one that was not used for the longest time."""
        header = tracked.header
        number = header.id.int
        self._by_id[number] = tracked
        self._by_id.move_to_end(number)
        if header.key:
            self._ids[header.tenant, header.partition, header.definition, header.key] = number
        while len(self._by_id) > self._size:
            self._drop(next(iter(self._by_id)))

    def forget(self, identity: InstanceId) -> None:
        """Do not trust what is remembered of an instance."""
        self._drop(identity.int)

    def forget_timers(self) -> None:
        """Forget the instances that have timers: these were moved, or may have been."""
        for number in [number for number, tracked in self._by_id.items() if tracked.timers]:
            self._drop(number)

    def forget_outdated(self) -> None:
        """Forget what others have moved."""
        while self.outdated:
            self._drop(self.outdated.popleft().int)

    def _drop(self, number: int) -> None:
        tracked = self._by_id.pop(number, None)
        if tracked is not None and tracked.header.key:
            header = tracked.header
            self._ids.pop((header.tenant, header.partition, header.definition, header.key), None)
