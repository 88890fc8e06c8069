"""Routes of seals, which prove that a history was not rewritten."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec

from standfast.features.operations.seals import Seal, SealCheck, SealedPage
from standfast.http.requests.routing import NoQuery, RequestModel, Route, RouteCall, Subject


class SealHistories(RequestModel, frozen=True, kw_only=True):
    """Which stretch of the instances is sealed."""

    cursor: UUID | None = None
    """`next` of the stretch before."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000


class SealsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which stretch of the seals is looked at."""

    after: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0
    """`next` of the stretch before."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1000


async def seal_histories(call: RouteCall[NoQuery, SealHistories]) -> SealedPage:
    """Seal a stretch of the instances, newest first: each history that has grown since it was sealed last."""
    asked = call.body
    cursor = None if asked.cursor is None else str(asked.cursor)
    return await call.calls.seals.seal(cursor=cursor, limit=call.page(asked.limit))


async def verify_seals(call: RouteCall[SealsQuery, None]) -> SealCheck:
    """Verify a range of seals: none is missing or changed, and the histories match them."""
    return await call.calls.seals.verify(after=call.query.after, limit=call.page(call.query.limit))


class LastSeal(msgspec.Struct, frozen=True, kw_only=True):
    """The last seal of a tenant."""

    seal: Seal | None
    """None if nothing is sealed yet."""


async def last_seal(call: RouteCall[NoQuery, None]) -> LastSeal:
    """Return the last seal. Store it elsewhere, to detect later whether seals were removed or made anew."""
    return LastSeal(seal=await call.calls.seals.head())


class SealQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A seal that was kept elsewhere."""

    number: Annotated[int, msgspec.Meta(ge=1, le=2**53)]
    link: str


class KeptSeal(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a seal is the one that was kept."""

    holds: bool


async def hold_seal(call: RouteCall[SealQuery, None]) -> KeptSeal:
    """Compare a seal with a link stored elsewhere: if they match, no earlier seal was removed or made anew."""
    return KeptSeal(holds=await call.calls.seals.holds(call.query.number, call.query.link))


_SEALS = Subject("seals", "/api/v1/seals", "execution:read", "tenant")

ROUTES: tuple[Route, ...] = (
    _SEALS.get("", verify_seals, query=SealsQuery, answer=SealCheck),
    _SEALS.get("/head", last_seal, answer=LastSeal),
    _SEALS.get("/kept", hold_seal, query=SealQuery, answer=KeptSeal),
    _SEALS.post(
        "",
        seal_histories,
        permission="execution:repair",
        body=SealHistories,
        answer=SealedPage,
        example={"limit": 1000},
    ),
)
