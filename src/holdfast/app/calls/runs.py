"""Calls of workflows: starting them, finding them."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import cast

import msgspec

from holdfast.app import workflow_views as views
from holdfast.app.desk import Desk, checked_key, checked_limit
from holdfast.app.references import DefinitionLike, InstanceLike, checked_definition, checked_instance
from holdfast.app.words import words_of
from holdfast.app.workflow_reads import KINDS, LARGEST_PAGE, begun, described
from holdfast.authoring.words import Words
from holdfast.errors import PayloadError
from holdfast.runtime.replies import Reply
from holdfast.store.paging import newest
from holdfast.store.reading import Reader
from holdfast.store.resuming import PausedQuery
from holdfast.store.shapes import Header, InstanceQuery


class FutureRuns:
    """What can be asked of workflows; of a single one, its `run` is asked."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def get(self, run: InstanceLike) -> Reply[views.WorkflowInstance]:
        """A run with its status, its input and its data."""

        def read(reader: Reader) -> views.WorkflowInstance:
            return described(self._desk, reader, checked_instance(run))

        return self._desk.look(read)

    def list(  # noqa: PLR0913 - filters, all by name
        self,
        *,
        definition: DefinitionLike = "",
        version: str | int = "",
        status: str | Sequence[str] = (),
        is_active: bool | None = None,
        key: str = "",
        parent: InstanceLike | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        cursor: InstanceLike | None = None,
        limit: int = 100,
    ) -> Reply[views.Page]:
        """Runs, newest first, a page at a time; `status` is one or several words of any kind of workflow, for those of its own kind.

        `is_active` asks for those that have not ended, or only for those that have.
        """

        def read(reader: Reader) -> views.Page:
            asked = _asked(status, is_active)
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
                parent=None if parent is None else checked_instance(parent),
                created_after=created_after,
                created_before=created_before,
                before=None if cursor is None else checked_instance(cursor),
                limit=size + 1,
            )
            found = [
                header
                for words, kinds, wanted in asked
                for statuses, has_begun in words.stored_statuses(wanted)
                for header in _listed(
                    reader,
                    msgspec.structs.replace(query, kinds=kinds, statuses=statuses, begun=has_begun),
                    words,
                    wanted,
                )
            ]
            headers = newest(found, size)
            worked_on = begun(reader, headers)
            items = [views.summary(header, has_begun=header.id in worked_on) for header in headers]
            return views.Page(items=items, next=headers[-1].id if len(found) > size else None)

        return self._desk.look(read)

    def stuck(self, *, cursor: InstanceLike | None = None, limit: int = 100) -> Reply[views.Page]:
        """Runs that have not ended and that nothing can ever wake, newest first; there should never be any.

        Each of them is an incident: `run.why()` says so, and what could be done.
        """

        def read(reader: Reader) -> views.Page:
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
        since: datetime | None = None,
        before: datetime | None = None,
        after: views.InstanceSummary | None = None,
        limit: int = 100,
    ) -> Reply[builtins.list[views.InstanceSummary]]:
        """Runs that are paused or wait for an operator, those that were paused last first; give the last one as `after` for the next page.

        `reason` is the word that tells why: `requested` if somebody paused it. `since` and `before` are about when that was.
        """
        return self._paused(definition=definition, reason=reason, since=since, before=before, after=after, limit=limit)

    def resumable(
        self, *, definition: DefinitionLike = "", after: views.InstanceSummary | None = None, limit: int = 100
    ) -> Reply[builtins.list[views.InstanceSummary]]:
        """Paused runs that are about to go on: a request was written down, or what they waited for is decided and nobody has resumed them."""
        return self._paused(definition=definition, after=after, limit=limit, is_resumable=True)

    def _paused(
        self,
        *,
        definition: DefinitionLike,
        reason: str = "",
        since: datetime | None = None,
        before: datetime | None = None,
        after: views.InstanceSummary | None,
        limit: int,
        is_resumable: bool = False,
    ) -> Reply[builtins.list[views.InstanceSummary]]:
        def read(reader: Reader) -> list[views.InstanceSummary]:
            place = None if after is None or after.paused_at is None else (after.paused_at, after.id)
            query = PausedQuery(
                definition=checked_definition(definition)[0] if definition else "",
                kinds=KINDS,
                reason=checked_key(reason, "reason", may_be_empty=True),
                since=since,
                before=before,
                resumable=is_resumable,
                after=place,
                limit=min(checked_limit(limit), LARGEST_PAGE),
            )
            page = reader.paused(query)
            found = {header.id: header for header in reader.headers(page)}
            headers = [found[each] for each in page]
            worked_on = begun(reader, headers)
            return [views.summary(header, has_begun=header.id in worked_on) for header in headers]

        return self._desk.look(read)


def _listed(reader: Reader, query: InstanceQuery, words: Words, wanted: tuple[str, ...]) -> list[Header]:
    """A page of instances. Some words share what is stored, and are told apart by the reason, which is not what they are found by."""
    if not wanted:
        return reader.instances(query)
    found: list[Header] = []
    while True:
        page = reader.instances(query)
        found += [each for each in page if _is_wanted(each, words, wanted)]
        if len(page) < query.limit or len(found) >= query.limit:
            return found[: query.limit]
        query = msgspec.structs.replace(query, before=page[-1].id)


def _is_wanted(header: Header, words: Words, wanted: tuple[str, ...]) -> bool:
    """Whether an instance is called so; whether anybody has worked on it was asked already."""
    return words.instance_status(header.status, header.reason, has_begun=True) in {*wanted, "running"}


def _asked(status: object, is_active: object) -> list[tuple[Words, tuple[str, ...], tuple[str, ...]]]:
    """What a list is to show: for each kind of words, the kinds of workflows that have them, and which of them are wanted; none means all."""
    given = _several(status)
    if not given and is_active is None:
        return [(words_of(KINDS[0]), KINDS, ())]
    known = {kind: (*words_of(kind).ACTIVE, *words_of(kind).TERMINAL) for kind in KINDS}
    every = dict.fromkeys(word for words in known.values() for word in words)
    unknown = next((word for word in given if word not in every), None)
    if unknown is not None:
        raise PayloadError(f"there is no status {unknown!r}; there are {', '.join(every)}")
    asked = []
    for words in dict.fromkeys(map(words_of, KINDS)):
        kinds = tuple(kind for kind in KINDS if words_of(kind) is words)
        own = tuple(word for word in given if word in known[kinds[0]])
        if own or not given:
            asked.append((words, kinds, _wanted(words, own, is_active)))
    return asked


def _wanted(words: Words, given: tuple[str, ...], is_active: object) -> tuple[str, ...]:
    """The words of a kind that a list is to show; none means all."""
    if is_active is None:
        return given
    group = words.ACTIVE if is_active else words.TERMINAL
    if not given:
        return tuple(group)
    if strangers := [word for word in given if word not in group]:
        told = "has not ended" if is_active else "has ended"
        raise PayloadError(f"nothing that {told} is {strangers[0]!r}; leave out `status` or `is_active`")
    return given


def _several(status: object) -> tuple[str, ...]:
    """One word or several, as they were given: whether there are such words is seen later."""
    if isinstance(status, Iterable) and not isinstance(status, str):
        return tuple(status)
    return cast("tuple[str, ...]", () if status == "" else (status,))
