"""What batches have the engine do: each item is tried on behalf of whoever wants the batch, and looked at until it is what was wanted.

Whether an item is done is asked of the world, and not of whoever did it: one that was tried before a crash, or that somebody else was
faster with, is done if it is as it should be.
"""

from __future__ import annotations

from uuid import UUID

import msgspec

from standfast.calls.context import CallContext, nothing
from standfast.calls.handlers.builtin import BuiltinHandlers
from standfast.engine.common.handlers import EffectContext
from standfast.errors import ForbiddenError, NotFoundError, RejectedError, StandfastError
from standfast.features.batches.model.messages import (
    BATCH,
    Item,
    ItemOutcome,
    LookAtItems,
    NoteOutcomes,
    Order,
    TryItems,
)
from standfast.features.batches.requeue import GONE, STILL, put_back
from standfast.features.operations.dead_letters import FutureDeadLetters
from standfast.features.runs.reads import workflow_row
from standfast.features.runs.start import ParentLink, start_run
from standfast.kernel.actor import later
from standfast.kernel.decider import TERMINAL
from standfast.kernel.ids import InstanceId
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.engine_tasks import PEOPLE_HANDLER
from standfast.machine.model.rejections import Refusal
from standfast.machine.recovery.pause import HELD
from standfast.machine.status import WAITING
from standfast.store.records.instances import InstanceHeader

_WANTED = {"cancel": "cancelled", "abort": "aborted"}
_CERTAIN = ("step", "compensation", "timer")
"""Dead letters that are gone of which the world tells whether they were put back; others may have been discarded."""
_OF_WORKFLOWS = ("step", "compensation")
"""Dead letters that a workflow has, and no other instance."""


class Batching:
    """Does the errands of batches."""

    def __init__(self, desk: CallContext, errands: BuiltinHandlers) -> None:
        self._desk = desk
        errands.add(TryItems, self.try_items)
        errands.add(LookAtItems, self.look_at_items)

    def try_items(self, context: EffectContext, asked: TryItems) -> NoteOutcomes:
        """Do it to some items, and look at once what became of each."""
        desk = self._acting(context, asked)
        outcomes = [self._tried(desk, context, asked, each) for each in asked.items]
        return NoteOutcomes(id=asked.id, outcomes=outcomes, last=asked.items[-1].number)

    def look_at_items(self, context: EffectContext, asked: LookAtItems) -> NoteOutcomes:
        """Look what became of some items."""
        desk = self._acting(context, asked)
        outcomes = [_looked(desk, asked.order, each) for each in asked.items]
        return NoteOutcomes(id=asked.id, outcomes=outcomes, last=asked.items[-1].number, is_look=True)

    def _acting(self, context: EffectContext, asked: TryItems | LookAtItems) -> CallContext:
        place = {"tenant": context.tenant, "partition": context.partition, "trace": context.trace}
        request = later(asked.owner, asked.terms, **place)
        return self._desk.acting(msgspec.structs.replace(request, reason=asked.order.reason))

    def _tried(self, desk: CallContext, context: EffectContext, asked: TryItems, item: Item) -> ItemOutcome:
        try:
            if asked.order.verb == "start":
                self._start(desk, context, asked.order, item)
                return ItemOutcome(number=item.number, status="accepted")
            self._do(desk, asked, item)
        except StandfastError as error:
            if error.retryable:
                raise
            is_first = context.attempt == 1  # Only what a former attempt did counts as done without the right to do it.
            if asked.order.verb == "start" or (is_first and isinstance(error, ForbiddenError)):
                return ItemOutcome(number=item.number, status="refused", detail=str(error))
            found = _looked(desk, asked.order, item)
            is_gone = asked.order.verb == "requeue" and isinstance(error, NotFoundError)
            is_ours = is_gone and (item.source in _CERTAIN or context.attempt > 1)
            is_so = found.status == "done" and asked.order.verb != "resume"  # Nobody else's pause was ended by that.
            if is_ours or (is_so and not is_gone):
                return found
            return ItemOutcome(number=item.number, status="refused", detail=str(error))
        return _looked(desk, asked.order, item)

    def _start(self, desk: CallContext, context: EffectContext, order: Order, item: Item) -> None:
        try:
            start_run(
                desk,
                order.definition,
                item.input,
                version=order.version,
                key="",
                idempotency_key="",
                delay=0,
                comment=order.reason,
                birth=ParentLink(InstanceId(UUID(item.run)), context.instance, BATCH, item.number),
            ).result()
        except RejectedError as error:
            if error.reason != Refusal.ALREADY_STARTED.value:
                raise

    def _do(self, desk: CallContext, asked: TryItems, item: Item) -> None:
        if asked.order.verb == "requeue":
            _requeue(desk, item)
            return
        if asked.order.verb == "discard":
            FutureDeadLetters(desk).discard(item.letter).result()
            return
        run, reason = InstanceId(UUID(item.run)), asked.order.reason
        _check_workflow(desk, run)
        command: object = {
            "cancel": c.CancelWorkflow(reason=reason),
            "abort": c.AbortWorkflow(reason=reason),
            "pause": c.PauseWorkflow(reason=reason),
            "resume": c.ResumeWorkflow(reason=reason, trigger_id=f"{asked.id}/{item.number}", past_wait=False),
        }[asked.order.verb]
        desk.command(desk.address(instance=run), command, nothing, comment=reason, may_create=False).result()


def _requeue(desk: CallContext, item: Item) -> None:
    letters = FutureDeadLetters(desk)
    if item.source in _OF_WORKFLOWS:
        _check_workflow(desk, InstanceId(UUID(item.run)))
    (letters.retry_compensation if item.source == "compensation" else letters.requeue)(item.letter).result()


def _check_workflow(desk: CallContext, run: InstanceId) -> None:
    with desk.reader.look() as reader:
        workflow_row(reader, run)


def _looked(desk: CallContext, order: Order, item: Item) -> ItemOutcome:
    """What became of an item, by how things stand now."""
    if order.verb == "requeue":
        return put_back(desk, item)
    if order.verb == "discard":
        return _forgotten(desk, item)
    run = InstanceId(UUID(item.run))
    is_looking = order.verb == "resume" and _is_looking(
        desk, run
    )  # Asked first: what the look came to is in the row that is read then.
    found = desk.reader.headers([run])
    if not found:
        return ItemOutcome(number=item.number, status="failed", detail=GONE)
    outcome = _standing(order, found[0], item.number)
    if is_looking and outcome.status == "done":
        return ItemOutcome(number=item.number, status="accepted", detail="people are looked for still")
    return outcome


def _is_looking(desk: CallContext, run: InstanceId) -> bool:
    """Whether people are being looked for who can decide a question of a run: if nobody is found, it waits for an operator again."""
    return any(each.handler == PEOPLE_HANDLER for each in desk.reader.work(run)[0])


def _forgotten(desk: CallContext, item: Item) -> ItemOutcome:
    """Whether a dead letter is gone."""
    is_there = desk.reader.dead_letter(item.letter) is not None
    return ItemOutcome(number=item.number, status="accepted" if is_there else "done", detail=STILL if is_there else "")


def _standing(order: Order, header: InstanceHeader, number: int) -> ItemOutcome:
    """Whether a run is as the order wants it."""
    status, has_ended = header.status, header.status in TERMINAL
    wanted = _WANTED.get(order.verb)
    if wanted is not None:
        is_done = status == wanted
    else:
        is_done = (status == "paused" and header.reason in HELD) == (order.verb == "pause")
    if order.verb == "resume" and status == "paused" and header.reason not in {*HELD, *WAITING}:
        return ItemOutcome(number=number, status="failed", detail=f"it waits for an operator: {header.reason}")
    if is_done:
        return ItemOutcome(number=number, status="done")
    if has_ended:
        return ItemOutcome(number=number, status="failed", detail=f"it ended as {status}")
    return ItemOutcome(number=number, status="accepted", detail=f"it is {status} still")
