"""Routes of dead letters."""

from __future__ import annotations

from uuid import UUID

from standfast.calls.operator_views import DeadLetter
from standfast.errors import NotFoundError
from standfast.features.operations.dead_letter_groups import LetterGroups
from standfast.http.requests.routing import NoQuery, Paged, RequestModel, Route, RouteCall, Subject
from standfast.http.wire import paging as cursors
from standfast.http.wire.paging import Listing
from standfast.kernel.row_kinds.steps import DeadLetterSource

_DIGITS = len(str(2**63))


class LetterQuery(Paged, frozen=True, kw_only=True):
    """The filters of a list of dead letters."""

    execution: UUID | None = None
    definition: str = ""
    source: DeadLetterSource | None = None
    key: str = ""


class GroupQuery(NoQuery, frozen=True, kw_only=True):
    """Which dead letters are put in groups."""

    definition: str = ""


class Requeue(RequestModel, frozen=True, kw_only=True):
    """How work is put back."""

    input: dict[str, object] | None = None
    """Another input, for a step."""


async def list_letters(call: RouteCall[LetterQuery, None]) -> Listing[DeadLetter]:
    """List dead letters, oldest first."""
    asked, size = call.query, call.page(call.query.limit)
    found = await call.calls.dead_letters.list(
        instance=asked.execution,
        definition=asked.definition,
        source=asked.source,
        key=asked.key,
        after=cursors.counted(asked.cursor),
        limit=size + 1,
    )
    return cursors.listing(found, size, lambda each: each.id)


async def group_letters(call: RouteCall[GroupQuery, None]) -> LetterGroups:
    """Group dead letters by cause, the largest group first."""
    return await call.calls.dead_letters.groups(definition=call.query.definition)


async def get_letter(call: RouteCall[NoQuery, None]) -> DeadLetter:
    """Get a dead letter."""
    return await call.calls.dead_letters.get(numbered(call.path["number"], "dead letter"))


async def requeue_letter(call: RouteCall[NoQuery, Requeue]) -> None:
    """Requeue a dead letter."""
    await call.calls.dead_letters.requeue(numbered(call.path["number"], "dead letter"), call.body.input)


async def retry_compensation(call: RouteCall[NoQuery, None]) -> None:
    """Try again to undo a step."""
    await call.calls.dead_letters.retry_compensation(numbered(call.path["number"], "dead letter"))


async def discard_letter(call: RouteCall[NoQuery, None]) -> None:
    """Discard a dead letter."""
    await call.calls.dead_letters.discard(numbered(call.path["number"], "dead letter"))


def numbered(text: str, what: str) -> int:
    """Parse a number in a path; NotFoundError if it is none."""
    if not (text.isascii() and text.isdecimal() and len(text) < _DIGITS):
        raise NotFoundError(what, text)
    return int(text)


_LETTERS = Subject("dead letters", "/api/v1/dead-letters", "execution:read", "own")
_LETTER = Subject("dead letters", "/api/v1/dead-letters/{number}", "execution:read", "run")
_REPAIR = "execution:repair"

ROUTES: tuple[Route, ...] = (
    _LETTERS.get("", list_letters, query=LetterQuery, answer=Listing[DeadLetter]),
    _LETTERS.get("/groups", group_letters, query=GroupQuery, answer=LetterGroups),
    _LETTER.get("", get_letter, answer=DeadLetter),
    _LETTER.post("/requeue", requeue_letter, permission=_REPAIR, body=Requeue, example={"input": {"sku": "lamp"}}),
    _LETTER.post("/retry-compensation", retry_compensation, permission=_REPAIR),
    _LETTER.post("/discard", discard_letter, permission=_REPAIR),
)
