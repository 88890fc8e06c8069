"""Several committers side by side: while one of them waits for the database, another decides.

An instance stays in one lane for as long as it is remembered there, so that its commands keep their order and its state in memory stays
good. Should it ever be in two lanes, the version gate of the commit sorts that out.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from standfast.engine.commit.cache import CachedInstance, InstanceCache
from standfast.engine.commit.inbox import InboxSubmission
from standfast.engine.commit.queue import CommitQueue
from standfast.engine.commit.submission import Submission
from standfast.kernel.ids import InstanceId
from standfast.store.records.instances import Address, Claim, InstanceHeader


class Lane:
    """A committer and what it remembers."""

    def __init__(self, committer: CommitQueue, cache: InstanceCache) -> None:
        self.committer = committer
        self.cache = cache


class CommitQueues:
    """Commits commands in groups, several groups at a time."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self.lanes = lanes
        self._recovering = threading.Lock()

    def submit(self, submission: Submission, *, may_wait: bool = False) -> None:
        """Take a command; its `settled` is called when it is committed or has failed. See `CommitQueue.submit`."""
        self._lane_of(submission.address).submit(submission, may_wait=may_wait)

    def accept(self, acceptance: InboxSubmission) -> None:
        """Take a message for the inbox. One lane has them all, so that each target keeps the order of its callers."""
        self.lanes[0].committer.accept(acceptance)

    def is_running(self, instance: InstanceId, partition: str = "") -> bool:
        """Whether an instance is known here, in the partition if one is named, and has not ended: whoever ends it here will tell."""
        return any(lane.cache.is_running(instance, partition) for lane in self.lanes)

    def is_at(self, instance: InstanceId, version: int) -> bool:
        """Whether an instance is known here to have so many events: whoever adds more here will tell."""
        return any(lane.cache.is_at(instance, version) for lane in self.lanes)

    def header(self, instance: InstanceId) -> InstanceHeader | None:
        """The row of an instance as it is known here."""
        return next((found for lane in self.lanes if (found := lane.cache.header(instance)) is not None), None)

    def take(self, instance: InstanceId) -> CachedInstance | None:
        """An instance as a lane remembers it, unless somebody has it in hand: the caller has it from then on, and may change it."""
        return next((found for lane in self.lanes if (found := lane.cache.take(instance)) is not None), None)

    def outdate(self, instance: InstanceId) -> None:
        """No lane made the last commit of the instance: what one remembers is old, and a decision on it would lose its race."""
        for lane in self.lanes:
            if lane.cache.header(instance) is not None:
                lane.cache.outdated.append(instance)

    def finish(self, claim: Claim) -> None:
        """Work ended without a command: use it up with the next commit."""
        self.lanes[0].committer.finish(claim)

    def claims(self) -> list[Claim]:
        """Work that nobody has in hand any more, because its end is waiting here."""
        return [claim for lane in self.lanes for claim in lane.committer.claims()]

    def owe_recovery(self, when_recovered: Callable[[], None]) -> None:
        """Somebody does not know what became of a statement: free what is owned without anybody knowing, as soon as possible."""
        self.lanes[0].committer.owe_recovery(when_recovered)

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Inside it no lane hands anything over."""
        with self._recovering, ExitStack() as stack:
            for lane in self.lanes:
                stack.enter_context(lane.committer.handing_over)
            yield

    def start(self) -> None:
        """Work on threads from now on."""
        for lane in self.lanes:
            lane.committer.start()

    def stop(self, timeout: float) -> None:
        """Commit what is waiting, then end."""
        deadline = time.monotonic() + timeout
        for lane in self.lanes:
            lane.committer.stop(max(0.0, deadline - time.monotonic()))

    def is_here(self) -> bool:
        """Whether the present thread is that of a lane."""
        return any(lane.committer.is_here() for lane in self.lanes)

    def _lane_of(self, address: Address) -> CommitQueue:
        if len(self.lanes) == 1:
            return self.lanes[0].committer
        for lane in self.lanes:
            if lane.cache.knows(address):
                return lane.committer
        name = address.instance.int if address.instance is not None else hash((address.definition, address.key))
        return self.lanes[name % len(self.lanes)].committer
