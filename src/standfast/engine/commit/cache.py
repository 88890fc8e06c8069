"""Cache of instances: rows and folded states that the next command can be decided on."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable

from standfast.errors import PayloadError, ReplayError
from standfast.kernel.history import check_sequence
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.store.records.instances import Address, InstanceHeader, Loaded, PendingTimerRecord

_MOST_FOLDS, _LARGEST_FOLD = 1_000, 16_384
"""How many instances are kept for readers, and how many bytes of history one of them has at most."""
NO_SNAPSHOTS = -1
"""Size of the last snapshot of a state that cannot be stored."""


class CachedInstance:
    """An instance as of its last known commit."""

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
        """Pending timers by key."""
        self.events_since = 0
        """Events since the last snapshot."""
        self.bytes_since = 0
        self.snapshot_bytes = 0
        self.is_fresh = True
        """Whether the instance was read for the current batch. False means that it comes from the cache and may be
        stale."""
        self.free: list[None] = []
        """The ownership token of the state: empty while a thread owns the state and may change it. Its creator is
        the first owner. The thread whose `pop` succeeds owns the state and appends the token once when it is done.
        Without ownership only the row is reliable."""

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
        """Return the same instance with a freshly read row and timers. The history must be unchanged."""
        tracked = CachedInstance(loaded.header, self.program, self.state, loaded.timers)
        tracked.events_since, tracked.bytes_since = self.events_since, self.bytes_since
        tracked.snapshot_bytes = self.snapshot_bytes
        return tracked


def folded(loaded: Loaded, program: Program, load_whole: Callable[[], Loaded | None]) -> CachedInstance | None:
    """Fold a stored instance from its snapshot and later events, or from its whole history if the snapshot is unusable.

    Returns None if the instance was deleted meanwhile.
    """
    snapshot = loaded.snapshot
    if snapshot is None:
        return CachedInstance.of(loaded, program)
    if program.takes_snapshot(snapshot.state_version, snapshot.fingerprint):
        try:
            return CachedInstance.of(loaded, program)
        except (PayloadError, ReplayError):
            pass  # The snapshot cannot be read or does not match the events: replay the events alone.
    whole = load_whole()
    return None if whole is None else CachedInstance.of(whole, program)


class FoldCache:
    """Small instances that readers have folded, for the next reader. Their states are read by several threads, and changed by none.

    An instance is found as long as its row says that nothing has happened since.
    """

    def __init__(self) -> None:
        self._by_id: OrderedDict[int, CachedInstance] = OrderedDict()
        self._guard = threading.Lock()

    def find(self, header: InstanceHeader, program: Program) -> CachedInstance | None:
        """The instance of a row that was just read, if it is remembered as it is now."""
        number = header.id.int
        with self._guard:
            found = self._by_id.get(number)
            if found is None:
                return None
            was = found.header
            if found.program is not program or was.version != header.version or was.updated_at != header.updated_at:
                del self._by_id[number]
                return None
            self._by_id.move_to_end(number)
            return found

    def keep(self, found: CachedInstance) -> None:
        """Remember an instance that was just folded, and forget the one that was not used for the longest time."""
        size = found.bytes_since + max(0, found.snapshot_bytes)
        if size > _LARGEST_FOLD:
            return
        with self._guard:
            self._by_id[found.header.id.int] = found
            if len(self._by_id) > _MOST_FOLDS:
                self._by_id.popitem(last=False)


class InstanceCache:
    """Least recently used instances are evicted first. A stale entry is harmless, because each commit checks the version.

    Keys are the integer forms of ids, because Python compares and hashes UUID objects much more slowly.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._by_id: OrderedDict[int, CachedInstance] = OrderedDict()
        self._ids: dict[tuple[str, str, str, str], int] = {}
        self.outdated: deque[InstanceId] = deque()
        """Instances changed by commits that did not go through the owner of this cache. Any thread may append."""

    def find(self, address: Address) -> CachedInstance | None:
        """Return the cached instance at an address, or None."""
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
        """Return whether the instance at an address is cached. Safe from any thread."""
        if address.instance is not None:
            return address.instance.int in self._by_id
        return (address.tenant, address.partition, address.definition, address.key) in self._ids

    def is_running(self, identity: InstanceId, partition: str = "") -> bool:
        """Return whether an instance is cached and has not ended, in the partition if one is given.

        Safe from any thread.
        """
        tracked = self._by_id.get(identity.int)
        if tracked is None or partition not in {"", tracked.header.partition}:
            return False
        return tracked.header.ended_at is None and identity not in self.outdated

    def is_at(self, identity: InstanceId, version: int) -> bool:
        """Return whether an instance is cached at this version and not marked as outdated. Safe from any thread."""
        tracked = self._by_id.get(identity.int)
        return tracked is not None and tracked.header.version == version and identity not in self.outdated

    def header(self, identity: InstanceId) -> InstanceHeader | None:
        """Return the cached row of an instance. Safe from any thread."""
        tracked = self._by_id.get(identity.int)
        return None if tracked is None else tracked.header

    def take(self, identity: InstanceId) -> CachedInstance | None:
        """Return a cached instance and transfer its ownership to the caller, or None if another thread owns it.

        The instance may be stale. Safe from any thread.
        """
        tracked = self._by_id.get(identity.int)
        try:
            if tracked is not None:
                tracked.free.pop()
        except IndexError:
            return None
        return tracked

    def keep(self, tracked: CachedInstance) -> None:
        """Cache an instance, and evict the least recently used one if the cache is full."""
        header = tracked.header
        number = header.id.int
        self._by_id[number] = tracked
        self._by_id.move_to_end(number)
        if header.key:
            self._ids[header.tenant, header.partition, header.definition, header.key] = number
        while len(self._by_id) > self._size:
            self._drop(next(iter(self._by_id)))

    def forget(self, identity: InstanceId) -> None:
        """Remove an instance from the cache."""
        self._drop(identity.int)

    def forget_timers(self) -> None:
        """Evict the instances that have timers, because a pause has moved them or may have."""
        for number in [number for number, tracked in self._by_id.items() if tracked.timers]:
            self._drop(number)

    def forget_outdated(self) -> None:
        """Evict the instances that other committers have changed."""
        while self.outdated:
            self._drop(self.outdated.popleft().int)

    def _drop(self, number: int) -> None:
        tracked = self._by_id.pop(number, None)
        if tracked is not None and tracked.header.key:
            header = tracked.header
            self._ids.pop((header.tenant, header.partition, header.definition, header.key), None)
