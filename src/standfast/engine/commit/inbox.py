"""Writes commands to the inbox. Commands that arrive while the committer is busy are accepted in one transaction."""

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
    """A message to be written to the inbox."""

    message: StoredMessage
    reply: Reply[int]
    """Receives the number of the message, or the error."""
    deadline: float
    """Monotonic time after which the caller no longer waits."""
    is_uncertain: bool = False
    """Whether the message was sent without an answer."""


class InboxWriter:
    """Writes the queued messages of one committer in order of arrival.

    Any thread may add, and only the committer writes.
    """

    def __init__(self, writer: Writer, clock: Clock, *, batch_limit: int, hint: Callable[[], None]) -> None:
        self._writer = writer
        self._clock = clock
        self._batch_limit = batch_limit
        self._hint = hint
        self.waiting: deque[InboxSubmission] = deque()
        self.again_at: float | None = None
        """Monotonic time of the next retry after an outage. None while the database accepts writes."""
        self._pause = _FIRST_PAUSE_SECONDS

    def add(self, acceptance: InboxSubmission) -> None:
        """Queue a message. Its reply is set when the message is stored or has failed."""
        self.waiting.append(acceptance)

    def write(self, *, may_wait: bool) -> None:
        """Write the queued messages. During an outage they are retried until their callers' deadlines.

        `may_wait` is False if there will be no retry.
        """
        if may_wait and self.again_at is not None and time.monotonic() < self.again_at:
            return
        # Messages that arrive meanwhile wait for the next round.
        for _ in range(0, len(self.waiting), self._batch_limit):
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
        """Handle an outage: answer callers whose deadline has passed, and messages whose outcome is unknown and that cannot be sent again."""
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
        _log.warning("database_unavailable retry_in=%.2f: %s", self._pause, error)
        self.again_at = min(now + self._pause, *(each.deadline for each in left))
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_SECONDS)

    def refuse(self, error: BaseException) -> None:
        """Answer all waiting callers with this error."""
        with suppress(IndexError):  # The caller and the committer may both do this.
            while True:
                self.waiting.popleft().reply.set_error(error)

    def _accept(self, batch: list[InboxSubmission]) -> None:
        """Write a batch in one transaction.

        If the database refuses it, write each message alone, so that only the faulty one fails.
        """
        try:
            numbers = self._writer.accept([each.message for each in batch], self._clock.now())
        except StoreUnavailableError as error:
            for each in batch:
                each.is_uncertain = each.is_uncertain or error.may_be_done
            raise
        except Exception as error:  # noqa: BLE001 - the error goes to the caller
            if len(batch) == 1:
                batch[0].reply.set_error(error if isinstance(error, StandfastError) else _unexpected(error))
                return
            while batch:
                self._accept(batch[:1])
                del batch[0]  # After an outage only the remaining messages are retried.
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
