"""Calls of workflows: starting them, finding them."""

from __future__ import annotations

import builtins
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, cast

import msgspec

from standfast.calls.authorization import check_reader
from standfast.calls.context import (
    CallContext,
    checked_at,
    checked_flag,
    checked_instant,
    checked_key,
    checked_last,
    checked_limit,
    failed,
)
from standfast.calls.references import DefinitionLike, InstanceLike, checked_definition, checked_instance
from standfast.engine.concurrency.replies import Reply
from standfast.errors import PayloadError, StandfastError
from standfast.features.runs import views
from standfast.features.runs.history import PastState, state_at
from standfast.features.runs.reads import (
    LARGEST_PAGE,
    begun,
    check_readable,
    described,
    look_at_run,
    workflow_row,
)
from standfast.features.runs.resume import RESUMPTION
from standfast.graph.model import KINDS
from standfast.graph.status_words.by_kind import spoken, words_of
from standfast.graph.status_words.protocol import StatusWords
from standfast.store.ports.maintenance import PausedQuery
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import InstanceHeader, InstanceQuery
from standfast.store.sql.paging import page_of


class FutureRuns:
    """What can be asked of workflows; of a single one, its `run` is asked."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def get(self, run: InstanceLike) -> Reply[views.WorkflowInstance]:
        """A run with its status, its input and its data."""
        try:
            identity = checked_instance(run)
        except StandfastError as error:
            return failed(error)

        def read(desk: CallContext, reader: TenantReader) -> views.WorkflowInstance:
            check_readable(desk, reader, identity)
            return described(desk, reader, identity)

        return look_at_run(self._desk, identity, read)

    def list(  # noqa: PLR0913 - filters, all by name
        self,
        *,
        definition: DefinitionLike = "",
        version: str | int = "",
        status: str | Sequence[str] = (),
        is_active: bool | None = None,
        key: str = "",
        parent: InstanceLike | None = None,
        partition: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        oldest_first: bool = False,
        cursor: InstanceLike | None = None,
        limit: int = 100,
    ) -> Reply[views.Page]:
        """Runs, newest first unless `oldest_first` says otherwise, a page at a time; `status` is one or several words of any kind of workflow, such as `dlq` of sagas, `blocked` of rules.

        `is_active` asks for those that have not ended, or only for those that have. `partition` asks for one part of the tenant.
        """

        def read(reader: TenantReader) -> views.Page:
            check_reader(self._desk)
            wanted = _wanted(status, is_active)
            size = min(checked_limit(limit), LARGEST_PAGE)
            if version != "" and not definition:
                raise PayloadError(
                    f"version {version!r} is that of no definition: give the definition too, or leave the version out"
                )
            name, pinned = checked_definition(definition, version) if definition else ("", "")
            query = InstanceQuery(
                definition=name,
                definition_version=pinned,
                kinds=KINDS,
                key=checked_key(key, "key", may_be_empty=True),
                partition=None if partition is None else checked_key(partition, "partition"),
                parent=None if parent is None else checked_instance(parent),
                created_after=checked_instant(created_after, "created_after"),
                created_before=checked_instant(created_before, "created_before"),
                before=None if cursor is None else checked_instance(cursor),
                oldest_first=checked_flag(oldest_first, "`oldest_first`"),
                limit=size + 1,
            )
            found = _found(reader, query, wanted)
            headers = page_of(found, query, size)
            further = headers[-1].id if len(found) > size else None
            worked_on = begun(reader, headers)
            items = [views.summary(header, has_begun=header.id in worked_on) for header in headers]
            return views.Page(items=items, next=further)

        return self._desk.look(read)

    def state_at(self, run: InstanceLike, at: int) -> Reply[PastState]:
        """A run as it was after the event with this sequence: how it stood, its data, its steps.

        The history is folded anew: from the newest snapshot where that is no later, else from the beginning up to that event.
        """

        def read(reader: TenantReader) -> PastState:
            identity = checked_instance(run)
            check_readable(self._desk, reader, identity)
            return state_at(self._desk, reader, identity, checked_at(at))

        return self._desk.look(read)

    def partition_of(self, run: InstanceLike) -> Reply[str]:
        """The part of the tenant that a run belongs to; empty if it belongs to none."""
        return self._desk.look(lambda reader: workflow_row(reader, checked_instance(run)).partition)

    def stuck(self, *, cursor: InstanceLike | None = None, limit: int = 100) -> Reply[views.Page]:
        """Runs that have not ended and that nothing can ever wake, newest first; there should never be any.

        Each of them is an incident: `run.why()` says so, and what could be done.
        """

        def read(reader: TenantReader) -> views.Page:
            check_reader(self._desk)
            size = min(checked_limit(limit), LARGEST_PAGE)
            before = None if cursor is None else checked_instance(cursor)
            found = reader.stuck(KINDS, before=before, limit=size + 1)
            items = [views.summary(header, has_begun=header.begun) for header in found[:size]]
            return views.Page(items=items, next=items[-1].id if len(found) > size else None)

        return self._desk.look(read)

    def paused(
        self,
        *,
        definition: DefinitionLike = "",
        reason: str = "",
        next_step: str = "",
        since: datetime | None = None,
        before: datetime | None = None,
        after: views.InstanceSummary | None = None,
        limit: int = 100,
    ) -> Reply[builtins.list[views.InstanceSummary]]:
        """Runs that are paused or wait for an operator, those that were paused last first; give the last one as `after` for the next page.

        `reason` is the word that tells why: `requested` if somebody paused it. `next_step` asks for those that go on with one step.
        `since` and `before` are about when they were paused.
        """
        return self._paused(
            definition=definition,
            reason=reason,
            next_step=next_step,
            since=since,
            before=before,
            after=after,
            limit=limit,
        )

    def resumable(
        self, *, definition: DefinitionLike = "", after: views.InstanceSummary | None = None, limit: int = 100
    ) -> Reply[builtins.list[views.InstanceSummary]]:
        """Paused runs that are about to go on: a request was written down, what they waited for is decided and nobody has resumed them, or they have been paused for too long."""
        return self._paused(definition=definition, after=after, limit=limit, is_resumable=True)

    def _paused(
        self,
        *,
        definition: DefinitionLike,
        reason: str = "",
        next_step: str = "",
        since: datetime | None = None,
        before: datetime | None = None,
        after: views.InstanceSummary | None,
        limit: int,
        is_resumable: bool = False,
    ) -> Reply[builtins.list[views.InstanceSummary]]:
        def read(reader: TenantReader) -> list[views.InstanceSummary]:
            check_reader(self._desk)
            last = checked_last(after, views.InstanceSummary, "`after`")
            place = None if last is None or last.paused_at is None else (last.paused_at, last.id)
            settings = self._desk.service.shared.settings
            query = PausedQuery(
                definition=checked_definition(definition)[0] if definition else "",
                kinds=KINDS,
                reason=checked_key(reason, "reason", may_be_empty=True),
                next_step=checked_key(next_step, "next step", may_be_empty=True),
                since=checked_instant(since, "since"),
                before=checked_instant(before, "before"),
                resumable=is_resumable,
                late=(RESUMPTION.expiring, self._desk.service.shared.clock.now() - settings.resume_timeout),
                after=place,
                limit=min(checked_limit(limit), LARGEST_PAGE),
            )
            page = reader.paused(query)
            found = {header.id: header for header in reader.headers(page)}
            headers = [found[each] for each in page]
            worked_on = begun(reader, headers)
            return [views.summary(header, has_begun=header.id in worked_on) for header in headers]

        return self._desk.look(read)


def _found(reader: TenantReader, query: InstanceQuery, wanted: tuple[str, ...]) -> list[InstanceHeader]:
    """A page of instances whose status is one of these words, each in the words of its kind; all of them for no word."""
    if not wanted:
        return reader.instances(query)
    found: list[InstanceHeader] = []
    for kinds, statuses, has_begun, reasons in stored_as(wanted):
        ended_for = () if query.key or query.parent is not None else reasons  # Those are fewer.
        part = msgspec.structs.replace(query, kinds=kinds, statuses=statuses, begun=has_begun, ended_for=ended_for)
        found += _listed(reader, part, wanted)
    return found


class StoredStatuses(NamedTuple):
    """What is stored of instances that words stand for."""

    kinds: tuple[str, ...]
    statuses: tuple[str, ...]
    has_begun: bool | None
    """None where that does not matter."""
    ended_for: tuple[str, ...] = ()
    """The reasons that tell them from others; empty where none does."""


def stored_as(wanted: tuple[str, ...]) -> Iterator[StoredStatuses]:
    """What words are stored as. Kinds that store a word alike are asked for together: whoever looks through one for nothing looks through all of it."""
    kinds_of = defaultdict[tuple[str, bool | None], list[str]](list)
    for words, kinds in spoken(KINDS):
        own = [word for word in wanted if word in {*words.ACTIVE, *words.TERMINAL}]
        plain = [word for word in own if word not in words.ENDED_FOR]
        stored = {(status, has_begun) for statuses, has_begun in _stored(words, plain) for status in statuses}
        for word in words.ENDED_FOR.keys() & own:
            for statuses, has_begun in _stored(words, [word]):
                if any((status, has_begun) not in stored for status in statuses):
                    yield StoredStatuses(kinds, statuses, has_begun, tuple(words.ENDED_FOR[word]))
        for status, has_begun in sorted(stored, key=str):
            kinds_of[status, has_begun].extend(kinds)
    alike = defaultdict[tuple[tuple[str, ...], bool | None], list[str]](list)
    for (status, has_begun), several in kinds_of.items():
        alike[tuple(several), has_begun].append(status)
    for (together, has_begun), words_stored in alike.items():
        yield StoredStatuses(together, tuple(words_stored), has_begun)


def _stored(words: StatusWords, wanted: Sequence[str]) -> list[tuple[tuple[str, ...], bool | None]]:
    return words.stored_statuses(wanted) if wanted else []


def _listed(reader: TenantReader, query: InstanceQuery, wanted: tuple[str, ...]) -> list[InstanceHeader]:
    """A page of instances. What is stored as one status may have several words, by the reason, which is not what they are found by."""
    found: list[InstanceHeader] = []
    size = query.limit
    while True:
        page = reader.instances(query)
        found += [each for each in page if _is_wanted(each, words_of(each.kind), wanted)]
        if len(page) < query.limit or len(found) >= size:
            return found[:size]
        query = msgspec.structs.replace(query, before=page[-1].id, limit=LARGEST_PAGE)


def _is_wanted(header: InstanceHeader, words: StatusWords, wanted: tuple[str, ...]) -> bool:
    """Whether anybody has worked on it is what it was found by."""
    told = {words.instance_status(header.status, header.reason, has_begun=each) for each in (True, False)}
    return not told.isdisjoint(wanted)


def _wanted(status: object, is_active: object) -> tuple[str, ...]:
    """The words that a list is to show; none means all."""
    given = _several(status)
    active, terminal = (_all(each) for each in ("ACTIVE", "TERMINAL"))
    unknown = [word for word in given if word not in {*active, *terminal}]
    if unknown:
        known = ", ".join((*active, *terminal))
        raise PayloadError(f"there is no status {unknown[0]!r}; there are {known}")
    if is_active is None:
        return given
    group = active if is_active else terminal
    if not given:
        return group
    if strangers := [word for word in given if word not in group]:
        told = "has not ended" if is_active else "has ended"
        raise PayloadError(f"nothing that {told} is {strangers[0]!r}; leave out `status` or `is_active`")
    return given


def _all(group: str) -> tuple[str, ...]:
    """The words of a group, of all kinds of workflows, each once."""
    return tuple(dict.fromkeys(word for words, _ in spoken(KINDS) for word in getattr(words, group)))


def _several(status: object) -> tuple[str, ...]:
    """One word or several, as they were given: whether there are such words is seen later."""
    if isinstance(status, Iterable) and not isinstance(status, str):
        return tuple(status)
    return cast("tuple[str, ...]", () if status == "" else (status,))
