"""What operators do: dead letters, retries, messages that nobody reads, deletions."""

from __future__ import annotations

from typing import Never

import msgspec

from holdfast.app.desk import Desk, checked_after, checked_key, checked_limit
from holdfast.app.references import (
    InstanceLike,
    LetterLike,
    MessageLike,
    checked_instance,
    checked_letter,
    checked_message,
    described,
)
from holdfast.app.step_handlers import plain_data
from holdfast.errors import ConflictError, NotFoundError, PayloadError, RejectedError
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.records import DeadLetterSource
from holdfast.machine.runs import commands as c
from holdfast.runtime.mishaps import RECALLED, GivenUpError
from holdfast.runtime.replies import Reply
from holdfast.runtime.work.failures import dead_message
from holdfast.store.findings import Remains
from holdfast.store.port import NeededError, Parts
from holdfast.store.shapes import Address, DeadLetter, Header, InstanceQuery, StoredMessage


class Repairs(Desk):
    """What operators ask for."""

    def dead_letters(
        self,
        *,
        instance: InstanceLike | None = None,
        definition: str = "",
        source: DeadLetterSource | None = None,
        key: str = "",
        after: int = 0,
        limit: int = 100,
    ) -> Reply[list[DeadLetter]]:
        """What gave up, oldest first; give the last id as `after` for the next page. `key` is the business key of the instance."""

        def read() -> list[DeadLetter]:
            identity = None if instance is None else checked_instance(instance)
            _check_filters(definition, source, key)
            return self._reader.dead_letters(
                instance=identity,
                definition=definition,
                source=source,
                key=key,
                after=checked_after(after),
                limit=checked_limit(limit),
            )

        return self._read(read)

    def count_dead_letters(
        self,
        *,
        instance: InstanceLike | None = None,
        definition: str = "",
        source: DeadLetterSource | None = None,
        key: str = "",
    ) -> Reply[int]:
        """How much gave up."""

        def read() -> int:
            identity = None if instance is None else checked_instance(instance)
            _check_filters(definition, source, key)
            return self._reader.count_letters(instance=identity, definition=definition, source=source, key=key)

        return self._read(read)

    def dead_letter(self, letter: LetterLike) -> Reply[DeadLetter]:
        """One dead letter."""
        return self._read(lambda: self._letter(letter))

    def requeue(self, letter: LetterLike, input: object = None) -> Reply[None]:  # noqa: A002 - the word that everybody uses for it
        """Put what gave up back to work, with its attempts reset. A step may be given another input to work on, also as JSON."""

        def put_back() -> None:
            found = self._letter(letter)
            match found.source:
                case "step":
                    new = None if input is None else plain_data(_read_back(input), "input", limit=self._payload_limit)
                    self._repair(found, c.RequeueStep(step=found.number, input=new))
                case "compensation":
                    raise ConflictError(
                        f"dead letter {found.id} is of a compensation, which is not requeued but tried again: use retry_compensation"
                    )
                case "timer":
                    self._restore_timer(found)
                case "effect" if found.reason == RECALLED:
                    raise ConflictError(
                        f"dead letter {found.id} is of an effect that nobody wants any more: its instance took it back while it ran; "
                        "discard it"
                    )
                case "effect" | "inbox":
                    now = self._service.shared.clock.now()
                    ageing = self._service.shared.settings.ageing_rate
                    if not self._keep(lambda keeper: keeper.requeue(found, now=now, ageing=ageing)):
                        _not_found(found.id)
                    self._service.hint()

        return self._read(put_back)

    def retry_compensation(self, letter: LetterLike) -> Reply[None]:
        """Try again to undo a step that could not be undone, and go on with the rollback from there."""

        def retry() -> None:
            found = self._letter(letter)
            if found.source != "compensation":
                raise ConflictError(
                    f"dead letter {found.id} is of a {found.source}, not of a compensation; use requeue"
                )
            self._repair(found, c.RetryCompensation(step=found.number))

        return self._read(retry)

    def discard(self, letter: LetterLike) -> Reply[None]:
        """Forget a dead letter. That of a step goes with its workflow: requeue it, or cancel or abort the workflow."""

        def forget() -> None:
            found = self._letter(letter)
            if found.source == "step":
                raise ConflictError(
                    f"dead letter {found.id} is of a step that its workflow waits for: requeue it, or cancel or abort the workflow"
                )
            if not self._keep(lambda keeper: keeper.discard(found.id, tenant=self.tenant)):
                _not_found(found.id)

        return self._read(forget)

    def messages(
        self,
        *,
        definition: str = "",
        type: str = "",  # noqa: A002 - as messages and letters call it
        after: int = 0,
        limit: int = 100,
    ) -> Reply[list[StoredMessage]]:
        """Commands that were accepted and wait, in order; give the last id as `after` for the next page. `type` is the name of a command."""

        def read() -> list[StoredMessage]:
            return self._service.operate(
                lambda parts: parts.inbox().waiting(
                    self.tenant,
                    definition=definition,
                    type_=type,
                    after=checked_after(after),
                    limit=checked_limit(limit),
                ),
                may_repeat=True,
            )

        return self._read(read)

    def bury_message(self, message: MessageLike) -> Reply[None]:
        """Move a command that waits, for example because no code can read it, to the dead letters: it can be discarded or requeued there."""

        def bury() -> None:
            number = checked_message(message)
            now = self._service.shared.clock.now()

            def move(parts: Parts) -> bool:
                inbox = parts.inbox()
                found = inbox.waiting(self.tenant, after=number - 1, limit=1)
                if not found or found[0].id != number:
                    return False
                return inbox.bury(found[0].claim, dead_message(found[0], error=GivenUpError(), now=now))

            if not self._service.operate(move):
                raise NotFoundError("message", number)
            self._service.hint()  # Those behind it need not wait any more.

        return self._read(bury)

    def delete(self, instance: InstanceLike, *, force: bool = False) -> Reply[None]:
        """Delete a finished instance, whole. The only deletion there is; its command ids are remembered all the same.

        ConflictError if it is still needed: work that it asked for is not done, something of it gave up, a message for it waits, or a
        projection has not read its events. `force` deletes it with all that.
        """

        def remove() -> None:
            identity = checked_instance(instance)
            try:
                is_gone = self._keep(lambda keeper: keeper.delete(identity, tenant=self.tenant, force=force))
            except NeededError as error:
                raise ConflictError(_needed(identity, error.remains)) from error
            if not is_gone:
                raise NotFoundError("finished instance", identity)

        return self._read(remove)

    def instances(self, query: InstanceQuery | None = None) -> Reply[list[Header]]:
        """A page of instances of any kind, newest first; give the last id as `before` for the next page."""
        return self._read(lambda: self._reader.instances(_checked_query(query)))

    def _letter(self, letter: LetterLike) -> DeadLetter:
        number = checked_letter(letter)
        found = self._reader.dead_letter(number)
        return found if found is not None else _not_found(number)

    def _restore_timer(self, found: DeadLetter) -> None:
        """Put a timer back by a command, so that whoever remembers its instance notices; the letter goes in the same commit."""
        address = Address(tenant=self.tenant, instance=found.instance)
        outcome = self._command(address, found, claim=found.claim, may_create=False).result()
        if outcome.instance is None:  # Somebody else was faster.
            _not_found(found.id)
        self._service.hint()

    def _repair(self, found: DeadLetter, command: object) -> None:
        """Have the workflow of a dead letter try again; the letter goes in the same commit."""
        address = Address(tenant=self.tenant, instance=found.instance)
        try:
            self._command(address, command, may_create=False).result()
        except RejectedError as error:
            if error.reason == "not_dead":  # Somebody else was faster.
                raise NotFoundError("dead letter", found.id) from error
            raise


def _read_back(input: object) -> object:  # noqa: A002 - as in `requeue`
    """An input as it stands in a letter: JSON is what it says."""
    if not isinstance(input, bytes):
        return input
    try:
        return msgspec.json.decode(input)
    except msgspec.DecodeError as error:
        raise PayloadError(f"the input is bytes that are no JSON: {error}") from error


def _needed(identity: InstanceId, remains: Remains) -> str:
    """Why an instance is not deleted, and what to do about it."""
    effects, letters, messages, readers = remains
    reasons = [
        f"{effects} effect{' has' if effects == 1 else 's have'} still to be done" if effects else "",
        f"{letters} dead letter{' waits' if letters == 1 else 's wait'} for an operator" if letters else "",
        f"{messages} message{' waits' if messages == 1 else 's wait'} for it" if messages else "",
        *(f"the projection {name!r} has not read its events" for name in readers),
    ]
    return (
        f"instance {identity} is still needed: {', '.join(filter(None, reasons))}; wait until that is done, requeue or discard its "
        "letters, drop a projection that nobody feeds any more, or delete it with all that by force=True"
    )


def _not_found(letter: object) -> Never:
    raise NotFoundError("dead letter", letter)


def _check_filters(definition: object, source: object, key: object) -> None:
    checked_key(definition, "definition", may_be_empty=True)
    checked_key("" if source is None else source, "source", may_be_empty=True)
    checked_key(key, "key", may_be_empty=True)


def _checked_query(given: InstanceQuery | None) -> InstanceQuery:
    """A query with values that every database takes; nobody looks at them when it is made."""
    if given is None:
        return InstanceQuery()
    if not isinstance(given, InstanceQuery):
        raise PayloadError(f"give an InstanceQuery, not {described(given)}")
    checked_limit(given.limit)
    try:
        return msgspec.convert(msgspec.structs.asdict(given), InstanceQuery)
    except msgspec.ValidationError as error:
        raise PayloadError(f"the query asks for what cannot be: {error}") from error
