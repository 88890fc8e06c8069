"""Calls of what gave up: looking at it, putting it back to work, forgetting it."""

from __future__ import annotations

import builtins
from typing import Never

import msgspec

from standfast.calls.authorization import check_reader, check_repairer
from standfast.calls.context import (
    CallContext,
    checked_after,
    checked_key,
    checked_limit,
    checked_text,
    nothing,
)
from standfast.calls.handlers.step_handlers import plain_data
from standfast.calls.operator_views import DeadLetter, dead_letter
from standfast.calls.references import InstanceLike, LetterLike, checked_instance, checked_letter
from standfast.engine.commit.submission import CommandOutcome
from standfast.engine.common.work_errors import RECALLED
from standfast.engine.concurrency.replies import Reply
from standfast.errors import ConflictError, NotFoundError, PayloadError, RejectedError
from standfast.expressions.model.suggestions import suggestion
from standfast.features.deciders.masking import DOCUMENTS, Mask, mask_for
from standfast.features.operations.dead_letter_groups import LetterGroups, grouped
from standfast.kernel.row_kinds.changes import Change
from standfast.kernel.row_kinds.steps import DeadLetterSource
from standfast.machine.model.commands import run_commands as c
from standfast.store.ports.reading import TenantReader
from standfast.store.records import instances as shapes

_PAGE, _MOST = 1000, 10_000
"""Letters that are read at a time, and in all, to be put in groups."""


class FutureDeadLetters:
    """What operators ask of work that gave up.

    To look takes the capability `execution:read`, to put back or to forget `execution:repair`.
    """

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def list(
        self,
        *,
        instance: InstanceLike | None = None,
        definition: str = "",
        source: DeadLetterSource | None = None,
        key: str = "",
        after: int = 0,
        limit: int = 100,
    ) -> Reply[builtins.list[DeadLetter]]:
        """What gave up, oldest first; give the last id as `after` for the next page. `key` is the business key of the instance."""

        def read() -> builtins.list[shapes.DeadLetterRecord]:
            check_reader(self._desk)
            identity = None if instance is None else checked_instance(instance)
            _check_filters(definition, source, key)
            return self._desk.reader.dead_letters(
                instance=identity,
                definition=definition,
                source=source,
                key=key,
                after=checked_after(after),
                limit=checked_limit(limit),
            )

        return self._desk.read_for(
            read,
            lambda found, desk: [_shown(desk, each) for each in found],
            needs_roles=lambda found: any(_mask(self._desk, each) is not None for each in found),
        )

    def count(
        self,
        *,
        instance: InstanceLike | None = None,
        definition: str = "",
        source: DeadLetterSource | None = None,
        key: str = "",
    ) -> Reply[int]:
        """How much gave up."""

        def read() -> int:
            check_reader(self._desk)
            identity = None if instance is None else checked_instance(instance)
            _check_filters(definition, source, key)
            return self._desk.reader.count_letters(instance=identity, definition=definition, source=source, key=key)

        return self._desk.read(read)

    def groups(self, *, definition: str = "") -> Reply[LetterGroups]:
        """What gave up, in groups that have the same cause as far as their words tell, the largest first.

        `batches.begin` puts back, or discards, all of one `cause`. NotFoundError for a definition that nobody has heard of.
        """

        def read(reader: TenantReader) -> LetterGroups:
            check_reader(self._desk)
            _check_filters(definition, None, "")
            letters: list[shapes.DeadLetterRecord] = []
            page: list[shapes.DeadLetterRecord] | None = None
            while page is None or (len(page) == _PAGE and len(letters) < _MOST):
                last = letters[-1].id if letters else 0
                page = reader.dead_letters(definition=definition, after=last, limit=_PAGE)
                letters += page
            if definition and not letters:
                self._check_known(reader, definition)
            return LetterGroups(items=grouped(letters), is_complete=len(page) < _PAGE)

        return self._desk.look(read)

    def get(self, letter: LetterLike) -> Reply[DeadLetter]:
        """One dead letter."""

        def read() -> shapes.DeadLetterRecord:
            check_reader(self._desk)
            return self._letter(letter)

        return self._desk.read_for(
            read,
            lambda found, desk: _shown(desk, found),
            needs_roles=lambda found: _mask(self._desk, found) is not None,
        )

    def requeue(self, letter: LetterLike, input: object = None, *, reason: str = "") -> Reply[None]:  # noqa: A002 - the word that everybody uses for it
        """Put what gave up back to work, with its attempts reset. A step may be given another input to work on, also as JSON."""

        def put_back() -> None:
            check_repairer(self._desk)
            found = self._letter(letter)
            match found.source:
                case "step":
                    new = (
                        None
                        if input is None
                        else plain_data(_read_back(input), "input", limit=self._desk.payload_limit)
                    )
                    why = checked_text(reason, "reason")
                    self._repair(found, c.RequeueStep(step=found.number, input=new, reason=why))
                case "compensation":
                    raise ConflictError(
                        f"dead letter {found.id} is of a compensation, which is not requeued but tried again: use retry_compensation"
                    )
                case "timer":
                    self._restore_timer(found, reason)
                case "effect" if found.reason == RECALLED:
                    raise ConflictError(
                        f"dead letter {found.id} is of an effect that nobody wants any more: its instance took it back while it ran; "
                        "discard it"
                    )
                case "effect" | "inbox":
                    now = self._desk.service.shared.clock.now()
                    ageing = self._desk.service.shared.settings.ageing_rate
                    if not self._desk.record(
                        self._change(found, "requeue", reason),
                        lambda parts: parts.keeper().requeue(found, now=now, ageing=ageing),
                        check=check_repairer,
                    ):
                        _not_found(found.id)
                    self._desk.service.hint()

        return self._desk.act(put_back)

    def retry_compensation(self, letter: LetterLike, *, reason: str = "") -> Reply[None]:
        """Try again to undo a step that could not be undone, and go on with the rollback from there."""

        def retry() -> None:
            check_repairer(self._desk)
            found = self._letter(letter)
            if found.source != "compensation":
                raise ConflictError(
                    f"dead letter {found.id} is of a {found.source}, not of a compensation; use requeue"
                )
            self._repair(found, c.RetryCompensation(step=found.number, reason=checked_text(reason, "reason")))

        return self._desk.act(retry)

    def discard(self, letter: LetterLike, *, reason: str = "") -> Reply[None]:
        """Forget a dead letter. That of a step goes with its workflow: requeue it, or cancel or abort the workflow."""

        def forget() -> None:
            check_repairer(self._desk)
            found = self._letter(letter)
            if found.source == "step":
                raise ConflictError(
                    f"dead letter {found.id} is of a step that its workflow waits for: requeue it, or end the workflow; why() tells how"
                )
            if not self._desk.record(
                self._change(found, "discard", reason),
                lambda parts: parts.keeper().discard(found.id, tenant=self._desk.tenant),
                check=check_repairer,
            ):
                _not_found(found.id)

        return self._desk.act(forget)

    def _check_known(self, reader: TenantReader, definition: str) -> None:
        """NotFoundError for a name under which nothing is published, and nothing was ever there."""
        registry = self._desk.registry
        published = {each.name for each in registry.library.listed(self._desk.tenant)}
        if definition in published or registry.is_decider(definition):
            return
        if not reader.instances(shapes.InstanceQuery(definition=definition, limit=1)):
            told = f"nothing of this name is published{suggestion(definition, published)}"
            raise NotFoundError("workflow", definition, hint=told)

    def _letter(self, letter: LetterLike) -> shapes.DeadLetterRecord:
        number = checked_letter(letter)
        found = self._desk.reader.dead_letter(number)
        return found if found is not None else _not_found(number)

    def _change(self, found: shapes.DeadLetterRecord, action: str, reason: str) -> Change:
        """What is done to a letter that no history tells of, because it is of an effect or a message."""
        of = "" if found.instance is None else str(found.instance)
        before = {"letter": found.id, "source": found.source, "handler": found.name, "error": found.error}
        return self._desk.changed("letter", of or found.key, action, before=before, after={}, reason=reason)

    def _restore_timer(self, found: shapes.DeadLetterRecord, reason: str) -> None:
        """Put a timer back by a command, so that whoever remembers its instance notices; the letter goes in the same commit."""
        address = self._desk.address(instance=found.instance)
        told = self._desk.command(address, found, _is_found, comment=reason, claim=found.claim, may_create=False)
        if not told.result():  # Somebody else was faster.
            _not_found(found.id)
        self._desk.service.hint()

    def _repair(self, found: shapes.DeadLetterRecord, command: object) -> None:
        """Have the workflow of a dead letter try again; the letter goes in the same commit."""
        address = self._desk.address(instance=found.instance)
        try:
            self._desk.command(address, command, nothing, may_create=False).result()
        except RejectedError as error:
            if error.reason == "not_dead":  # Somebody else was faster.
                raise NotFoundError("dead letter", found.id) from error
            raise


def _is_found(outcome: CommandOutcome) -> bool:
    return outcome.instance is not None


def _read_back(input: object) -> object:  # noqa: A002 - as in `requeue`
    """An input as it stands in a letter: JSON is what it says."""
    if not isinstance(input, bytes):
        return input
    try:
        return msgspec.json.decode(input)
    except msgspec.DecodeError as error:
        raise PayloadError(f"the input is bytes that are no JSON: {error}") from error


def _not_found(letter: object) -> Never:
    raise NotFoundError("dead letter", letter)


def _check_filters(definition: object, source: object, key: object) -> None:
    checked_key(definition, "definition", may_be_empty=True)
    checked_key("" if source is None else source, "source", may_be_empty=True)
    checked_key(key, "key", may_be_empty=True)


def _mask(desk: CallContext, letter: shapes.DeadLetterRecord) -> Mask | None:
    return mask_for(desk, DOCUMENTS, letter.definition, letter.definition_version)


def _shown(desk: CallContext, letter: shapes.DeadLetterRecord) -> DeadLetter:
    """A dead letter; of a document only what is visible to the actor of the desk."""
    shown, mask = dead_letter(letter, desk.registry.codec), _mask(desk, letter)
    if mask is None:
        return shown
    is_step = letter.source in {"step", "compensation"}
    return msgspec.structs.replace(shown, payload=mask.data(shown.payload) if is_step else mask.whole(shown.payload))
