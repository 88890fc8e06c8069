"""Commands on their way into the inbox: those that wait while the committer is busy are accepted together, in one transaction."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import msgspec

from standfast.engine.common.clock import Clock
from standfast.engine.concurrency.replies import Reply
from standfast.errors import StandfastError, StoreError, StoreUnavailableError
from standfast.store.ports.store import Writer
from standfast.store.records.instances import StoredMessage

_log = logging.getLogger("standfast.committer")

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 2.0


class InboxSubmission(msgspec.Struct, kw_only=True, eq=False):
    """A message that is to be put into the inbox."""

    message: StoredMessage
    reply: Reply[int]
    """Is told the number of the message, or the error."""
    deadline: float
    """Monotonic time after which nobody waits any more."""
    is_uncertain: bool = False
    """Whether it was sent and no answer came."""


class InboxWriter:
    """What waits for the inbox of one committer, in order of arrival. Anybody adds; the committer alone writes."""

    def __init__(self, writer: Writer, clock: Clock, *, batch_limit: int, hint: Callable[[], None]) -> None:
        self._writer = writer
        self._clock = clock
        self._batch_limit = batch_limit
        self._hint = hint
        self.waiting: deque[InboxSubmission] = deque()
        self.again_at: float | None = None
        """Monotonic time at which to try again what the database did not take; None while it takes everything."""
        self._pause = _FIRST_PAUSE_SECONDS

    def add(self, acceptance: InboxSubmission) -> None:
        """Take a message; its reply comes when it is in the inbox, or will not be."""
        self.waiting.append(acceptance)

    def write(self, *, may_wait: bool) -> None:
        """Put what waits into the inbox. A database that is away is tried again later, as long as the callers are patient.

        `may_wait` says whether there is a later.
        """
        if may_wait and self.again_at is not None and time.monotonic() < self.again_at:
            return
        for _ in range(0, len(self.waiting), self._batch_limit):  # What comes meanwhile waits for the next time.
            batch = [self.waiting.popleft() for _ in range(min(self._batch_limit, len(self.waiting)))]
            try:
                self._accept(batch)
            except StoreUnavailableError as error:
                self.waiting.extendleft(reversed(batch))
                self.outlast(error, may_wait=may_wait)
                return
            except BaseException as error:
                self.waiting.extendleft(reversed(batch))
                self.refuse(error)
                raise
        self.again_at, self._pause = None, _FIRST_PAUSE_SECONDS

    def outlast(self, error: StoreUnavailableError, *, may_wait: bool) -> None:
        """The database is away: tell those who wait no longer, and those of whom nobody knows and who cannot be sent again."""
        now = time.monotonic()
        left = []
        for _ in range(len(self.waiting)):
            each = self.waiting.popleft()
            is_lost = each.is_uncertain and not each.message.command_id
            if is_lost or not may_wait or each.deadline <= now:
                each.reply.set_error(_unknown(error) if each.is_uncertain else error)
            else:
                left.append(each)
        self.waiting.extendleft(reversed(left))
        if not left:
            self.again_at = None
            return
        _log.warning("the database is away (%s); trying again in %.2f s", error, self._pause)
        self.again_at = min(now + self._pause, *(each.deadline for each in left))
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)

    def refuse(self, error: BaseException) -> None:
        """Answer whoever waits: nothing is accepted any more."""
        with suppress(IndexError):  # It may be the caller and the committer who do so.
            while True:
                self.waiting.popleft().reply.set_error(error)

    def _accept(self, batch: list[InboxSubmission]) -> None:
        """One transaction; where the database refuses it, one for each, so that the message that is to blame fails alone."""
        try:
            numbers = self._writer.accept([each.message for each in batch], self._clock.now())
        except StoreUnavailableError as error:
            for each in batch:
                each.is_uncertain = each.is_uncertain or error.may_be_done
            raise
        except Exception as error:  # noqa: BLE001 - it belongs to whoever waits
            if len(batch) == 1:
                batch[0].reply.set_error(error if isinstance(error, StandfastError) else _unexpected(error))
                return
            while batch:
                self._accept(batch[:1])
                del batch[0]  # What is left is what an outage leaves.
            return
        self._hint()
        for each, number in zip(batch, numbers, strict=True):
            each.reply.set_result(number)


def _unknown(error: StoreUnavailableError) -> StoreUnavailableError:
    told = StoreUnavailableError(
        f"{error}. Whether the command was accepted is unknown; give it a command id, and it may be sent again with that",
        may_be_done=True,
    )
    told.__cause__ = error
    return told


def _unexpected(error: Exception) -> StoreError:
    told = StoreError(f"the command was not accepted: {error!r}")
    told.__cause__ = error
    return told
