"""Workflows of documents that are taken out of use: new documents begin with the one before, and those that are under way are paused."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Final
from uuid import UUID

from msgspec.structs import replace

from standfast.calls.context import CallContext
from standfast.calls.named_instances import NamedInstances
from standfast.errors import NotFoundError
from standfast.features.batches.model import messages as w
from standfast.features.documents.publishing.rejections import BlueprintRefusal, refused
from standfast.features.documents.publishing.views import WorkflowSuspension
from standfast.kernel.decider import BATCH_KIND
from standfast.kernel.ids import InstanceId
from standfast.store.ports.documents import Suspension
from standfast.store.records.instances import InstanceQuery

_MOST: Final = 10_000
"""Documents of one batch."""
_FOLLOW_MS: Final = 3_600_000
"""How long it is looked whether they are as they should be."""


_PAGE: Final = 500
_TAKEN: Final = frozenset({"accepted", "done"})


class SuspensionService:
    """Takes workflows of one tenant out of use, and puts them back."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk
        self._batches = NamedInstances(
            desk, "batch", w.BatchState, InstanceQuery(definition=w.BATCH, kinds=(BATCH_KIND,))
        )

    def suspend(self, type_: str, workflow: str, why: str) -> WorkflowSuspension:
        """Take one out of use first, so that no document begins with it any more; then pause those that have. Once more is once more for those that run."""
        self._check_published(type_, workflow)
        last = self._last(type_, workflow)
        if last is None or not last.is_suspended:
            last = self._write(type_, workflow, why, is_suspended=True)
        known = len(list(self._known(last.batch)))
        reason = f"{type_} {workflow} is taken out of use: {last.why}"
        made = self._begin(
            "pause", reason, self._running(type_, workflow), names=(f"{last.batch}-{n}" for n in count(known + 1))
        )
        return _shown(last, made)

    def lift(self, type_: str, workflow: str, why: str) -> WorkflowSuspension:
        """Put one back, and have those go on that were paused with it; what was paused before stays so."""
        last = self._last(type_, workflow)
        if last is None or not last.is_suspended:
            told = f"the workflow {workflow!r} of {type_!r} is in use; there is nothing to put back"
            raise refused(BlueprintRefusal.NOT_SUSPENDED, told)
        lifted = self._write(type_, workflow, why, is_suspended=False)
        paused: list[InstanceId] = []
        for name, state in self._known(last.batch):
            if not state.is_over:
                self._batches.send(name, w.CancelBatch(id=name, reason=why))
            paused += [InstanceId(UUID(each.run)) for each in state.items if each.status in _TAKEN]
        reason = f"{type_} {workflow} is in use again: {why}"
        made = self._begin("resume", reason, paused, names=(f"{lifted.batch}-{n}" for n in count(1)))
        return _shown(lifted, made)

    def listed(self, type_: str) -> list[WorkflowSuspension]:
        """What was taken out of use and put back, oldest first."""
        return [_shown(each, [name for name, _ in self._known(each.batch)]) for each in self._rows(type_)]

    # -- how

    def _check_published(self, type_: str, workflow: str) -> None:
        tenant = self._desk.tenant
        known = self._desk.service.survey(
            lambda parts: parts.blueprints().listed(tenant, kind="effective", type_=type_)
        )
        if not any(each.workflow == workflow for each in known):
            told = "`bodies.versions` tells the workflow of each version; one that code registers is paused with `pauses.pause`"
            raise NotFoundError("published workflow", f"{type_} {workflow}", hint=told)

    def _rows(self, type_: str) -> list[Suspension]:
        return self._desk.service.survey(lambda parts: parts.blueprints().suspensions(self._desk.tenant, type_))

    def _last(self, type_: str, workflow: str) -> Suspension | None:
        return next((each for each in reversed(self._rows(type_)) if each.workflow == workflow), None)

    def _write(self, type_: str, workflow: str, why: str, *, is_suspended: bool) -> Suspension:
        shared = self._desk.service.shared
        now = shared.clock.now()
        row = Suspension(
            tenant=self._desk.tenant,
            type=type_,
            workflow=workflow,
            is_suspended=is_suspended,
            set_by=self._desk.request.actor.id,
            set_at=now,
            why=why,
            batch=f"suspension-{shared.chance.new_id(now)}",
        )
        before, after = {"is_suspended": not is_suspended}, {"is_suspended": is_suspended}
        action = "suspend" if is_suspended else "lift"
        change = self._desk.changed("workflow", f"{type_}/{workflow}", action, before=before, after=after, reason=why)
        if self._desk.record(change, lambda parts: parts.blueprints().suspend(row)):
            return row
        last = self._last(type_, workflow)  # Somebody else was faster.
        assert last is not None
        return last

    def _running(self, type_: str, workflow: str) -> list[InstanceId]:
        query = InstanceQuery(definition=type_, definition_version=workflow, statuses=("running",), limit=_PAGE)
        found: list[InstanceId] = []
        while True:
            page = self._desk.reader.instances(query)
            found += [each.id for each in page]
            if len(page) < _PAGE:
                return found
            query = replace(query, before=page[-1].id)

    def _begin(self, verb: w.Verb, reason: str, runs: list[InstanceId], *, names: Iterator[str]) -> list[str]:
        """A batch for so many at a time; what they are called."""
        made: list[str] = []
        order = w.Order(verb=verb, reason=reason, follow_ms=_FOLLOW_MS)
        for first in range(0, len(runs), _MOST):
            name = next(names)
            items = [w.Item(number=n, run=str(each)) for n, each in enumerate(runs[first : first + _MOST], start=1)]
            self._batches.send(name, w.BeginBatch(id=name, order=order, items=items), name, may_create=True)
            made.append(name)
        return made

    def _known(self, batch: str) -> Iterator[tuple[str, w.BatchState]]:
        for number in count(1):
            name = f"{batch}-{number}"
            try:
                yield name, self._batches.found(name)[1]
            except NotFoundError:
                return


def _shown(row: Suspension, batches: list[str]) -> WorkflowSuspension:
    return WorkflowSuspension(
        type=row.type,
        workflow_version=row.workflow,
        is_suspended=row.is_suspended,
        set_by=row.set_by,
        set_at=row.set_at,
        why=row.why,
        batches=batches,
    )
