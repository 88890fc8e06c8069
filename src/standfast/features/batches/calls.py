"""Calls of batches: one thing done to many runs."""

from __future__ import annotations

import builtins
import hashlib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import get_args

import msgspec

from standfast.calls.context import (
    CallContext,
    checked_after,
    checked_id,
    checked_key,
    checked_last,
    checked_limit,
    checked_some,
    checked_text,
)
from standfast.calls.handlers.step_handlers import plain, plain_data
from standfast.calls.named_instances import NamedInstances
from standfast.calls.references import (
    DefinitionLike,
    InstanceLike,
    LetterLike,
    checked_definition,
    checked_instance,
    checked_letter,
)
from standfast.engine.common.work_errors import RECALLED
from standfast.engine.concurrency.replies import Reply
from standfast.errors import NotFoundError, PayloadError, ReusedIdError, brief
from standfast.features.batches.model import messages as w
from standfast.features.batches.requeue import mark_of, newest_letter
from standfast.features.batches.views import Batch, BatchItem, BatchVerb, ItemStatus, batch_of, items_of
from standfast.features.operations.dead_letter_groups import fingerprint
from standfast.features.runs.calls import FutureRuns
from standfast.features.runs.reads import LARGEST_PAGE
from standfast.features.runs.start import check_right
from standfast.kernel.decider import BATCH_KIND
from standfast.kernel.durations import milliseconds
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import STEPS
from standfast.store.ports.reading import TenantReader
from standfast.store.records import instances as shapes
from standfast.store.records.instances import InstanceQuery

READ_BATCHES, MANAGE_BATCHES = "batch:read", "batch:manage"
"""What it takes to look at batches, and to begin and cancel them; what is done to each item takes what it always does."""
MOST_ITEMS = 10_000
_FASTEST = 10_000
_OF_LETTERS = ("requeue", "discard")


class FutureBatches:
    """What can be asked of batches. To look takes the capability `batch:read`, to begin or cancel one `batch:manage`.

    What a batch does it does on behalf of whoever began it: each item takes the capability that it takes alone.
    """

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk
        query = InstanceQuery(definition=w.BATCH, kinds=(BATCH_KIND,))
        self._kept = NamedInstances(desk, "batch", w.BatchState, query, managers=(MANAGE_BATCHES,))

    def begin(  # noqa: PLR0913 - all that can be said of a batch, by name
        self,
        verb: BatchVerb,
        runs: Sequence[InstanceLike] | None = None,
        *,
        letters: Sequence[LetterLike] | None = None,
        inputs: Sequence[object] | None = None,
        definition: DefinitionLike = "",
        version: str | int = "",
        status: str | Sequence[str] | None = None,
        cause: str = "",
        reason: str = "",
        per_second: float = 0,
        follow: timedelta | float = 3600,
        batch_id: str = "",
    ) -> Reply[Batch]:
        """Do something to many runs; the answer is there when it is stored, and the batch goes on by itself.

        `cancel`, `abort`, `pause` and `resume` are done to these `runs`, or to those of a `definition` that are in a `status`; `retry`
        requeues all that gave up of them; `requeue` and `discard` are for these dead `letters`, all of a `definition`, or all of one
        `cause`, which is the fingerprint that `dead_letters.groups` tells; `start` starts the `definition` once for each of the
        `inputs`. At most 10,000 items; `per_second` bounds how fast they are tried. For the time
        of `follow` after the last one was tried it is looked what became of those that were taken: an item is done when it is as it was
        wanted, and not before. A list that is given is not empty: nothing named never means all. `batch_id` makes the call safe to repeat.
        """

        def act() -> Batch:
            self._kept.check(MANAGE_BATCHES, "begin batches")
            if verb not in get_args(BatchVerb):
                raise PayloadError(f"a batch does one of {', '.join(get_args(BatchVerb))}, not {brief(verb)}")
            named = _named(runs=runs, letters=letters, inputs=inputs, status=status)
            asked = _Asked(
                self._desk.looked_up(), verb, definition=definition, version=version, status=status or (), cause=cause
            )
            order = w.Order(
                verb="requeue" if verb == "retry" else verb,
                reason=checked_text(reason, "reason") or self._desk.request.reason,
                definition=asked.name if verb == "start" else "",
                version=asked.version if verb == "start" else "",
                cause=asked.cause,
                per_second=_rate(per_second),
                follow_ms=milliseconds(follow, "`follow`"),
            )
            made = checked_id(batch_id, "batch id", may_be_empty=True)
            if made:
                order = msgspec.structs.replace(order, said=asked.said(*named))
                if (known := self._begun(made, order)) is not None:
                    return known  # What it was about may be at work by now, so that it cannot be chosen again.
            items = asked.items(*named)
            shared = self._desk.service.shared
            name = made or str(shared.chance.new_id(shared.clock.now()))
            self._kept.send(
                name, w.BeginBatch(id=name, order=order, items=items), made, may_create=True, comment=order.reason
            )
            return batch_of(*self._kept.found(name))

        return self._desk.read(act)

    def _begun(self, name: str, order: w.Order) -> Batch | None:
        """The batch that was begun by the same words under this id; None if there is none, ReusedIdError if they were others."""
        try:
            header, state = self._kept.found(name)
        except NotFoundError:
            return None
        if state.order != order:
            raise ReusedIdError(name)
        return batch_of(header, state)

    def get(self, batch: str) -> Reply[Batch]:
        """One batch: how far it is, and how many items have come to what."""

        def read(reader: TenantReader) -> Batch:
            self._kept.check(READ_BATCHES, "look at batches")
            return batch_of(*self._kept.read(reader, self._kept.named(batch)))

        return self._desk.look(read)

    def list(self, *, after: Batch | None = None, limit: int = 100) -> Reply[builtins.list[Batch]]:
        """The batches, the newest first; give the last one as `after` for the next page."""

        def read(reader: TenantReader) -> list[Batch]:
            self._kept.check(READ_BATCHES, "look at batches")
            last = checked_last(after, Batch, "`after`")
            before = None if last is None else last.instance
            return self._kept.listed(reader, batch_of, before=before, limit=checked_limit(limit))

        return self._desk.look(read)

    def items(
        self, batch: str, *, status: ItemStatus | None = None, after: int = 0, limit: int = 100
    ) -> Reply[builtins.list[BatchItem]]:
        """What became of each item, or of those with one `status`, in order; give the last number as `after` for the next page."""

        def read(reader: TenantReader) -> list[BatchItem]:
            self._kept.check(READ_BATCHES, "look at batches")
            if status is not None and status not in get_args(ItemStatus):
                raise PayloadError(
                    f"the status of an item is one of {', '.join(get_args(ItemStatus))}, not {brief(status)}"
                )
            name, behind, most = self._kept.named(batch), checked_after(after), checked_limit(limit)
            found = self._kept.read(reader, name)[1].items[behind:]
            return items_of(list(islice((each for each in found if status in {None, each.status}), most)))

        return self._desk.look(read)

    def cancel(self, batch: str, reason: str = "") -> Reply[Batch]:
        """Try no more of the items, and look no longer at those that were taken; what was done stays done."""

        def act() -> Batch:
            self._kept.check(MANAGE_BATCHES, "cancel batches")
            name, why = self._kept.named(batch), checked_text(reason, "reason")
            self._kept.found(name)
            self._kept.send(name, w.CancelBatch(id=name, reason=why))
            return batch_of(*self._kept.found(name))

        return self._desk.read(act)


class _Asked:
    """What a batch is to be about."""

    def __init__(
        self,
        desk: CallContext,
        verb: BatchVerb,
        *,
        definition: DefinitionLike,
        version: str | int,
        status: str | Sequence[str],
        cause: str,
    ) -> None:
        self._desk = desk
        self._verb = verb
        self._status = status
        self.cause = checked_key(cause, "cause", may_be_empty=True)
        self.name, self.version = checked_definition(definition, version) if definition else ("", "")

    def said(self, runs: Sequence[InstanceLike], letters: Sequence[LetterLike], inputs: Sequence[object]) -> str:
        """A hash of what a batch is to be about in the words of the caller: what it finds may be something else when it is begun again."""
        self._check(runs, letters, inputs)
        whole = (
            self._verb,
            self.name,
            self.version,
            [self._status] if isinstance(self._status, str) else list(self._status),
            [str(checked_instance(each)) for each in islice(runs, MOST_ITEMS + 1)],
            [checked_letter(each) for each in islice(letters, MOST_ITEMS + 1)],
            plain(list(islice(inputs, MOST_ITEMS + 1)), what="list of inputs", limit=self._desk.payload_limit),
        )
        return hashlib.sha256(msgspec.json.encode(whole, order="sorted")).hexdigest()

    def items(
        self, runs: Sequence[InstanceLike], letters: Sequence[LetterLike], inputs: Sequence[object]
    ) -> list[w.Item]:
        """The items, each with its number."""
        self._check(runs, letters, inputs)
        if self._verb == "start":
            found = self._starts(inputs)
        elif self._verb in _OF_LETTERS:
            found = self._letters(letters)
        else:
            chosen = self._runs(runs)
            found = (
                self._given_up(chosen)
                if self._verb == "retry"
                else [w.Item(number=0, run=str(each)) for each in chosen]
            )
        if len(found) > MOST_ITEMS:
            told = "; name some of them by `letters`" if self.cause else "; begin several"
            raise PayloadError(f"a batch has at most {MOST_ITEMS} items, and these are more{told}")
        return [msgspec.structs.replace(each, number=number) for number, each in enumerate(found, start=1)]

    def _check(self, runs: Sequence[InstanceLike], letters: Sequence[LetterLike], inputs: Sequence[object]) -> None:
        """One thing is named, and it is what the verb is about."""
        named = {"runs": runs, "letters": letters, "inputs": inputs}
        for what, given in named.items():
            if isinstance(given, str | bytes) or not isinstance(given, Sequence):
                raise PayloadError(f"`{what}` is a list, not {brief(given)}")
        wanted = {"start": "inputs", "requeue": "letters", "discard": "letters"}.get(self._verb, "runs")
        strangers = [what for what, given in named.items() if len(given) and what != wanted]
        if strangers:
            raise PayloadError(f"{self._verb!r} is about `{wanted}`, not about `{strangers[0]}`; leave those out")
        if self._verb == "start" and not (self.name and len(inputs)):
            raise PayloadError("a start needs a `definition`, and `inputs` of which each is one run")
        if self.cause and wanted != "letters":
            raise PayloadError(
                f"a `cause` is one of dead letters, and {self._verb!r} is about `{wanted}`; leave it out"
            )
        if self._verb != "start" and sum(map(bool, (self.name, len(named[wanted]), self.cause))) != 1:
            told = ", or a `cause`" if wanted == "letters" else ""
            raise PayloadError(f"say what it is about: either `{wanted}`, or a `definition`{told}")

    def _starts(self, inputs: Sequence[object]) -> list[w.Item]:
        desk = self._desk
        self.name, self.version = desk.registry.library.find_open(desk.tenant, self.name, self.version)
        check_right(desk, self.name, self.version)
        plain(list(inputs), what="list of inputs", limit=desk.payload_limit)
        return [w.Item(number=0, input=plain_data(each, "input", limit=desk.payload_limit)) for each in inputs]

    def _runs(self, runs: Sequence[InstanceLike]) -> list[InstanceId]:
        if len(runs):
            return list(dict.fromkeys(checked_instance(each) for each in islice(runs, MOST_ITEMS + 1)))
        found: list[InstanceId] = []
        cursor: InstanceId | None = None
        calls = FutureRuns(self._desk)
        while True:
            page = calls.list(
                definition=self.name,
                version=self.version,
                status=self._status,
                is_active=None if self._status else True,
                cursor=cursor,
                limit=LARGEST_PAGE,
            ).result()
            found += [each.id for each in page.items]
            cursor = page.next
            if cursor is None or len(found) > MOST_ITEMS:
                return found

    def _letters(self, letters: Sequence[LetterLike]) -> list[w.Item]:
        reader = self._desk.reader
        if self.cause:
            return [self._item(each) for each in self._of_one_cause()]
        if not len(letters):
            return [self._item(each) for each in self._pages(self.name)]
        found: list[w.Item] = []
        for each in dict.fromkeys(checked_letter(one) for one in islice(letters, MOST_ITEMS + 1)):
            letter = reader.dead_letter(each)
            gone = w.Item(number=0, letter=each, status="refused", detail=f"no dead letter '{each}'")
            found.append(gone if letter is None else self._item(letter))
        return found

    def _of_one_cause(self) -> list[shapes.DeadLetterRecord]:
        """Letters that say the same; NotFoundError if none says so."""
        alike = (each for each in self._pages("") if fingerprint(each) == self.cause)
        found = list(islice(alike, MOST_ITEMS + 1))
        if not found:
            told = "no dead letter has it; `dead_letters.groups` tells those that there are"
            raise NotFoundError("cause", self.cause, hint=told)
        return found

    def _pages(self, definition: str) -> Iterator[shapes.DeadLetterRecord]:
        last = 0
        while True:
            page = self._desk.reader.dead_letters(definition=definition, after=last, limit=LARGEST_PAGE)
            yield from page
            if len(page) < LARGEST_PAGE:
                return
            last = page[-1].id

    def _given_up(self, runs: Sequence[InstanceId]) -> list[w.Item]:
        """What gave up of runs, one item for each; a run of which nothing did is an item that is refused."""
        found: list[w.Item] = []
        for run in runs:
            letters = self._desk.reader.dead_letters(instance=run, limit=LARGEST_PAGE)
            idle = w.Item(number=0, run=str(run), status="refused", detail="nothing of it gave up")
            found += [self._item(each) for each in letters] or [idle]
        return found

    def _item(self, letter: shapes.DeadLetterRecord) -> w.Item:
        """An item with what tells later whether it is done."""
        made = w.Item(
            number=0,
            run="" if letter.instance is None else str(letter.instance),
            letter=letter.id,
            source=letter.source,
            name=letter.name,
            number_of=letter.number,
        )
        barred = self._barred(letter)
        if barred or self._verb == "discard":
            return msgspec.structs.replace(made, status="refused" if barred else "waiting", detail=barred)
        reader = self._desk.reader
        if letter.source == "inbox":
            told = {"definition": letter.definition, "key": letter.key, "mark": mark_of(letter)}
            return msgspec.structs.replace(made, behind=newest_letter(reader, letter), **told)
        assert letter.instance is not None, "only messages go to what is not there yet"
        if letter.source == "timer":
            found = reader.headers([letter.instance])
            return msgspec.structs.replace(made, behind=found[0].version if found else 0)
        rows = reader.rows(STEPS, letter.instance) if letter.source == "step" else []
        token = next((each.token for each in rows if each.number == letter.number), "")
        return msgspec.structs.replace(made, token=token)

    def _barred(self, letter: shapes.DeadLetterRecord) -> str:
        """Why this can never be done to a letter; empty if it can."""
        if self._verb == "discard":
            return (
                "its workflow waits for this step: requeue it, or cancel or abort the workflow"
                if letter.source == "step"
                else ""
            )
        is_unwanted = letter.source == "effect" and letter.reason == RECALLED
        return "nobody wants it any more: its instance took it back while it ran; discard it" if is_unwanted else ""


def _named(
    *,
    runs: Sequence[InstanceLike] | None,
    letters: Sequence[LetterLike] | None,
    inputs: Sequence[object] | None,
    status: str | Sequence[str] | None,
) -> tuple[Sequence[InstanceLike], Sequence[LetterLike], Sequence[object]]:
    """The lists of a batch. Whoever gives an empty one means nothing, and not all: PayloadError."""
    then = "the batch would do nothing"
    checked_some(status, "status", then=then)
    return (
        checked_some(runs, "runs", then=then),
        checked_some(letters, "letters", then=then),
        checked_some(inputs, "inputs", then=then),
    )


def _rate(given: object) -> float:
    try:
        found = msgspec.convert(given, float)
    except msgspec.ValidationError:
        found = -1.0
    if 0 <= found <= _FASTEST and not isinstance(given, bool):
        return found
    raise PayloadError(f"`per_second` is a number from 0, which means no bound, to {_FASTEST}, not {brief(given)}")
