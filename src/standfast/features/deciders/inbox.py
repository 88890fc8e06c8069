"""Calls of commands that were accepted and wait."""

from __future__ import annotations

import builtins

import msgspec

from standfast.calls.authorization import check_reader, check_repairer
from standfast.calls.context import CallContext, checked_after, checked_key, checked_limit
from standfast.calls.operator_views import InboxMessage, inbox_message
from standfast.calls.references import MessageLike, checked_message
from standfast.engine.common.work_errors import GivenUpError
from standfast.engine.concurrency.replies import Reply
from standfast.engine.worker.failures import dead_message
from standfast.errors import NotFoundError
from standfast.features.deciders.masking import DOCUMENTS, mask_for
from standfast.kernel.row_kinds.changes import Change
from standfast.store.ports.store import StoreParts
from standfast.store.records.instances import StoredMessage


class FutureInbox:
    """What operators ask of commands that wait for their turn. To look takes the capability `execution:read`, to bury one `execution:repair`."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def list(
        self,
        *,
        definition: str = "",
        type: str = "",  # noqa: A002 - as messages and letters call it
        after: int = 0,
        limit: int = 100,
    ) -> Reply[builtins.list[InboxMessage]]:
        """Commands that were accepted and wait, in order; give the last id as `after` for the next page. `type` is the name of a command."""

        def read() -> builtins.list[InboxMessage]:
            check_reader(self._desk, what="look at commands that wait")
            found = self._desk.service.survey(
                lambda parts: parts.inbox().waiting(
                    self._desk.tenant,
                    partition=self._desk.request.partition,
                    definition=checked_key(definition, "definition", may_be_empty=True),
                    type_=checked_key(type, "type", may_be_empty=True),
                    after=checked_after(after),
                    limit=checked_limit(limit),
                )
            )
            return [inbox_message(each, self._desk.registry.codec) for each in found]

        return self._desk.read_for(
            read,
            lambda found, desk: [_shown(desk, each) for each in found],
            needs_roles=lambda found: any(mask_for(self._desk, DOCUMENTS, each.definition) for each in found),
        )

    def bury(self, message: MessageLike, *, reason: str = "") -> Reply[None]:
        """Move a command that waits, for example because no code can read it, to the dead letters: it can be discarded or requeued there."""

        def move() -> None:
            check_repairer(self._desk)
            number = checked_message(message)
            now, partition = self._desk.service.shared.clock.now(), self._desk.request.partition

            def bury(parts: StoreParts) -> StoredMessage | None:
                inbox = parts.inbox()
                found = inbox.waiting(self._desk.tenant, partition=partition, after=number - 1, limit=1)
                if not found or found[0].id != number:
                    return None
                gone = inbox.bury(found[0].claim, dead_message(found[0], error=GivenUpError(), now=now))
                return found[0] if gone else None

            def told(message: StoredMessage | None) -> Change | None:
                if message is None:
                    return None
                before = {"command": message.type, "definition": message.address.definition, "key": message.address.key}
                return self._desk.changed("message", str(number), "bury", before=before, reason=reason)

            if self._desk.record(told, bury, check=check_repairer) is None:
                raise NotFoundError("message", number)
            self._desk.service.hint()  # Those behind it need not wait any more.

        return self._desk.act(move)


def _shown(desk: CallContext, message: InboxMessage) -> InboxMessage:
    """A command that waits; of one for a document only what is visible to the actor of the desk."""
    mask = mask_for(desk, DOCUMENTS, message.definition)
    return message if mask is None else msgspec.structs.replace(message, payload=mask.whole(message.payload))
