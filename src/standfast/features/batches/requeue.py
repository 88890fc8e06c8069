"""What became of a dead letter that was put back to work, by how things stand now."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from uuid import UUID

import msgspec

from standfast.calls.context import CallContext
from standfast.features.batches.model.messages import Item, ItemOutcome
from standfast.kernel.decider import TERMINAL
from standfast.kernel.history import TIMER_REQUEUED
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import STEPS, StoredStep
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import DeadLetterRecord, InstanceHeader, StoredMessage

GONE = "it is not there any more"
STILL = "it waits for an operator still"
_PAGE = 1000


def mark_of(message: StoredMessage | DeadLetterRecord) -> str:
    """What tells a message from others to the same target."""
    told = f"{message.type}\0{message.version}\0{message.command_id}\0".encode()
    return hashlib.sha256(told + message.data).hexdigest()


def newest_letter(reader: TenantReader, letter: DeadLetterRecord) -> int:
    """The newest letter of a message to where this one goes: what gives up again comes behind it."""
    found = _letters(reader, letter.instance, letter.definition, letter.key, after=letter.id)
    return max((each.id for each in found), default=letter.id)


def put_back(desk: CallContext, item: Item) -> ItemOutcome:
    """Whether what gave up was done since, or gave up again."""
    if item.source == "inbox":
        return _told(item, *_message(desk, item))
    with desk.reader.look() as reader:
        found = reader.headers([InstanceId(UUID(item.run))])
        if not found:
            return _told(item, "failed", GONE)
        letters = reader.dead_letters(instance=found[0].id, limit=_PAGE)
        if any(each.id == item.letter for each in letters):
            return _told(item, "accepted", STILL)
        judge = _timer if item.source == "timer" else _work
        return _told(item, *judge(reader, found[0], item, letters))


def _told(item: Item, status: str, detail: str = "") -> ItemOutcome:
    return ItemOutcome(number=item.number, status=status, detail=detail)  # type: ignore[arg-type]


# -- steps and effects


def _work(reader: TenantReader, header: InstanceHeader, item: Item, letters: list[DeadLetterRecord]) -> tuple[str, str]:
    calls = {each.number for each in _calls(reader, header, item)} if item.source == "step" else {item.number_of}
    again = [each for each in letters if (each.source, each.name) == (item.source, item.name) and each.number in calls]
    if again:
        return "failed", f"it gave up again: {again[-1].error}"
    if _is_finished(reader, header, item):
        return "done", ""
    # A run that halted on its way back has ended already, and undoes all the same what is put back to work.
    is_over = item.source == "step" or (item.source == "compensation" and not reader.work(header.id)[0])
    if header.status in TERMINAL and is_over:
        return "failed", f"its run ended as {header.status}"
    return "accepted", "it was put back to work and is not done yet"


def _is_finished(reader: TenantReader, header: InstanceHeader, item: Item) -> bool:
    if item.source == "step":
        return any(each.status == "completed" for each in _calls(reader, header, item))
    if item.source == "compensation":
        undone = [each for each in reader.rows(STEPS, header.id) if each.compensates == item.number_of]
        return any(each.status == "completed" for each in undone)
    effects, _ = reader.work(header.id)
    return all(each.number != item.number_of for each in effects)


def _calls(reader: TenantReader, header: InstanceHeader, item: Item) -> list[StoredStep]:
    """What became of a step that was called again: it is another one of the same node and token, behind the one that gave up."""
    rows = reader.rows(STEPS, header.id)
    behind = [each for each in rows if each.number > item.number_of]
    return [each for each in behind if (each.node, each.token) == (item.name, item.token)]


# -- timers


def _timer(
    reader: TenantReader, header: InstanceHeader, item: Item, letters: list[DeadLetterRecord]
) -> tuple[str, str]:
    """A timer keeps its key and number, and the history says that it was put back: one that its instance had no use for never was."""
    _, waiting = reader.work(header.id)
    if any((each.key, each.number) == (item.name, item.number_of) for each in waiting):
        return "accepted", "it was put back and has not fired yet"
    again = [each for each in letters if (each.source, each.name, each.number) == ("timer", item.name, item.number_of)]
    if again:
        return "failed", f"it gave up again: {again[-1].error}"
    if not _was_put_back(reader, header, item):
        return "failed", "it was not put back: a newer timer has its key, its instance has ended, or it was discarded"
    return "done", ""


def _was_put_back(reader: TenantReader, header: InstanceHeader, item: Item) -> bool:
    after, told = item.behind, {"key": item.name}
    while True:
        page = reader.events(header.id, after=after, limit=_PAGE)
        if any(each.type == TIMER_REQUEUED and msgspec.json.decode(each.data) == told for each in page):
            return True
        if len(page) < _PAGE:
            return False
        after = page[-1].sequence


# -- messages


def _message(desk: CallContext, item: Item) -> tuple[str, str]:
    """A message that is neither waiting nor among the dead letters was decided: what is refused gives up.

    What waits is looked at first, and the letters by another question: it goes from the one to the other.
    """
    run = InstanceId(UUID(item.run)) if item.run else None
    waits = any(mark_of(each) == item.mark for each in _waiting(desk, item, run))
    letters = list(_letters(desk.reader, run, item.definition, item.key, after=item.letter - 1))
    if any(each.id == item.letter for each in letters):
        return "accepted", STILL
    if waits:
        return "accepted", "it was put back and waits for its turn"
    again = [each for each in letters if each.id > item.behind and mark_of(each) == item.mark]
    return ("failed", f"it gave up again: {again[-1].error}") if again else ("done", "")


def _letters(
    reader: TenantReader, run: InstanceId | None, definition: str, key: str, *, after: int
) -> Iterator[DeadLetterRecord]:
    """The dead letters of messages to one target, behind a letter."""
    while True:
        page = reader.dead_letters(
            instance=run, definition=definition, source="inbox", key=key, after=after, limit=_PAGE
        )
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].id


def _waiting(desk: CallContext, item: Item, run: InstanceId | None) -> list[StoredMessage]:
    """What waits for the target of a message, which may be one that it is to begin."""
    if run is None:
        loaded = desk.reader.load(desk.address(item.definition, item.key))
        run = None if loaded is None else loaded.header.id
    if run is not None:
        return desk.reader.messages(run, limit=_PAGE)
    partition = desk.request.partition
    found = desk.service.survey(
        lambda parts: parts.inbox().waiting(desk.tenant, partition=partition, definition=item.definition, limit=_PAGE)
    )
    return [each for each in found if each.address.key == item.key]
