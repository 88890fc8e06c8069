"""Route declarations: path, permission, parameters, body and response.

Dispatch, checks, the OpenAPI document, the reference page and the test matrix are generated from the table of routes.
Preconditions (`If-Match`, RFC 9110) are parsed here, too.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypedDict, TypeVar, Unpack
from uuid import UUID

import msgspec
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import Scope

from standfast.app.api.aio import AsyncCalls, AsyncEngineCalls, AsyncRun
from standfast.errors import NotFoundError, PayloadError
from standfast.http.auth.authenticator import Identity
from standfast.http.requests.server import Server
from standfast.http.wire.problems import EdgeCode, EdgeError

_TAG: Final = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
_TAGS: Final = re.compile(rf"[ \t,]*{_TAG}(?:[ \t]*,(?:[ \t]*{_TAG})?)*[ \t,]*")
_EACH: Final = re.compile(_TAG)
_VERSION: Final = re.compile(r'"v?([0-9]{1,9})(?:\.[^"]*)?"')
"""An ETag with a version; the part after the dot is ignored. A weak one, `W/"v3"`, never matches."""
_LONGEST: Final = 2000


class Precondition(NamedTuple):
    """The parsed `If-Match` header."""

    version: int | None = None
    """The required version; None for any."""
    is_any: bool = False
    """Whether any version matches (`*`)."""


def condition_of(given: Sequence[str]) -> Precondition:
    """Parse the `If-Match` headers, of which there may be none."""
    if not given:
        return Precondition()
    text = ",".join(given).strip()
    if text == "*":
        return Precondition(is_any=True)
    if len(text) > _LONGEST or not _TAGS.fullmatch(text):
        raise EdgeError(EdgeCode.BAD_HEADER, 'If-Match is the tag of what was seen, in quotes, such as "v3", or *')
    versions = {int(found[1]) for each in _EACH.findall(text) if (found := _VERSION.fullmatch(each))}
    if not versions:
        raise EdgeError(EdgeCode.CHANGED_MEANWHILE, "If-Match names a version that there is not")
    if len(versions) > 1:
        raise EdgeError(EdgeCode.BAD_HEADER, "If-Match names several versions; name the one that you have seen")
    return Precondition(version=versions.pop())


Q = TypeVar("Q")
B = TypeVar("B")

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

Reach = Literal["public", "own", "run", "tenant", "platform"]
"""The data that a route concerns: public; the caller's own; one run, which may be of another partition; the whole
tenant; all tenants."""

_LONGEST_KEY: Final = 255
_ELSEWHERE: Final = frozenset({HTTPStatus.SEE_OTHER})


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No parameters in the address."""


class RouteCall(msgspec.Struct, Generic[Q, B], frozen=True, kw_only=True):
    """One request, as a handler sees it."""

    server: Server
    calls: AsyncCalls
    """The engine's calls on behalf of the caller."""
    identity: Identity
    path: Mapping[str, str]
    query: Q
    body: B
    raw: bytes
    headers: Headers
    trace: str
    """The trace that the engine stores with the effects of this request."""
    scope: Scope
    """The ASGI scope of the request."""
    client: str
    """The address that the request came from; empty if it came by a file."""
    revisit: Callable[[], Awaitable[Identity]]
    """Authenticate the caller again; EdgeError if the credential or the permission is gone."""

    @property
    def base(self) -> str:
        """Return the base URL of the server, as the caller sees it."""
        url = HTTPConnection(self.scope).url
        return f"{url.scheme}://{url.netloc}{self.scope.get('root_path', '')}"

    @property
    def is_secure(self) -> bool:
        """Return whether the connection is encrypted, or local."""
        return self.server.options.is_secure(self.base)

    @property
    def engine(self) -> AsyncEngineCalls:
        """Return the engine's own calls, for what concerns all tenants."""
        return self.server.engine.aio

    def needing(self, *permissions: str) -> AsyncCalls:
        """Return the caller's calls with more required permissions, checked now and at the commit; EdgeError if one is missing."""
        for each in permissions:
            self.identity.check(each)
        known = self.calls.request
        context = self.identity.context(self.trace, reason=known.reason)
        return self.engine.acting(msgspec.structs.replace(context, needs=known.needs | {*permissions}))

    @property
    def run_id(self) -> UUID:
        """Return the run id in the path; NotFoundError for an invalid id, as for an unknown one."""
        return run_id(self.path["id"])

    @property
    def run(self) -> AsyncRun[object]:
        """The run that the address names."""
        return self.calls.run(self.run_id)

    async def resumable(self) -> AsyncRun[object]:
        """The run that the address names, if runs of its kind can be resumed here; NotFoundError where that is switched off."""
        engine, run = self.server.engine, self.run
        if not engine.settings.resumes_rules:
            found = await run.describe()
            own = engine.aio.as_tenant(self.identity.tenant)
            graph = await own.definitions.get(found.definition, found.definition_version)
            if graph.kind == "rules":
                told = "auto_resume_after_approval and resume_worker_interval of the settings switch resuming off"
                raise NotFoundError("resume of run", run.id, hint=told)
        return run

    @property
    def idempotency_key(self) -> str:
        """The header `Idempotency-Key`; empty if it is not there."""
        given = self.headers.getlist("idempotency-key")
        if len(given) > 1 or (given and not _is_sound(given[0])):
            raise EdgeError(EdgeCode.BAD_HEADER, "Idempotency-Key is one text of at most 255 printable characters")
        return given[0] if given else ""

    @property
    def expected_version(self) -> int | None:
        """The version that `If-Match` names; None if it is not there, or is `*`, which holds of everything that is there to be changed."""
        return condition_of(self.headers.getlist("if-match")).version

    async def replaced_version(self, look: Callable[[], Awaitable[int]]) -> int | None:
        """Return the version that `If-Match` names, where the resource may not exist yet.

        For `*` it is the current version; EdgeError if there is none.
        """
        condition = condition_of(self.headers.getlist("if-match"))
        if not condition.is_any:
            return condition.version
        try:
            return await look()
        except NotFoundError:
            told = "If-Match: * is about something that is there, and there is nothing yet"
            raise EdgeError(EdgeCode.CHANGED_MEANWHILE, told) from None

    def page(self, limit: int) -> int:
        """Return the number of items of a page."""
        return min(limit, self.server.options.max_page)


class RouteResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A handler's response where it is more than a value."""

    value: object = None
    status: int = 200
    headers: Mapping[str, str] = {}
    cookies: tuple[str, ...] = ()
    """`Set-Cookie` headers for the browser."""


class TextResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that is no JSON."""

    text: str
    media_type: str


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """Server-sent events."""

    chunks: AsyncIterator[bytes]


AnyCall: TypeAlias = RouteCall[Any, Any]
"""A call of whichever route."""
Handler = Callable[[AnyCall], Awaitable[object]]


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """One address and method."""

    method: Method
    path: str
    handler: Handler
    tag: str
    """The subject, for readers."""
    permission: str
    """The capability that it takes; empty if none does."""
    reach: Reach
    query: Any = NoQuery
    """A Struct of the parameters in the address."""
    body: Any = None
    """The type of the body; None if it takes none."""
    answer: Any = None
    """The type of the answer; None if it has no body."""
    status: int = 200
    also: tuple[int, ...] = ()
    """Other statuses that are no problem."""
    example: object = None
    """A body."""
    texts: tuple[str, ...] = ()
    """Media types of other bodies that it takes, as they are: the handler reads `raw`."""
    is_signed: bool = False
    """Whether the handler reads the body itself, after checking its signature."""
    takes_condition: bool = False
    """Whether it understands `If-Match`."""
    is_look: bool = False
    """Whether the request is a read with a body: its response is not stored under an idempotency key."""
    takes_key: bool = False
    """Whether it hands `Idempotency-Key` to the engine; for all others that change something the edge keeps it."""
    tells_secret: bool = False
    """Whether the response contains a secret that is returned only once."""
    media_type: str = "application/json"
    """Of the answer."""

    @property
    def name(self) -> str:
        """Names it in the OpenAPI document and in metrics."""
        return self.handler.__name__

    @property
    def bodiless(self) -> int:
        """The status of an answer without a body: it sends a browser elsewhere, or there is nothing to say."""
        return self.status if self.status in _ELSEWHERE else HTTPStatus.NO_CONTENT

    @property
    def is_repeatable(self) -> bool:
        """Whether an `Idempotency-Key` makes it safe to send again."""
        return self.method != "GET" and not self.is_public

    @property
    def is_public(self) -> bool:
        """Whether it needs no credential."""
        return self.reach == "public"


class More(TypedDict, total=False):
    """Optional parts of a route; see Route."""

    permission: str
    reach: Reach
    query: Any
    body: Any
    answer: Any
    status: int
    also: tuple[int, ...]
    example: object
    texts: tuple[str, ...]
    is_signed: bool
    takes_condition: bool
    is_look: bool
    takes_key: bool
    tells_secret: bool
    media_type: str


class Subject(NamedTuple):
    """A group of routes: shared defaults."""

    tag: str
    base: str
    permission: str
    reach: Reach

    def get(self, path: str, handler: Handler, **more: Unpack[More]) -> Route:
        """A route that looks."""
        return self._route("GET", path, handler, more)

    def post(self, path: str, handler: Handler, **more: Unpack[More]) -> Route:
        """A route that does something."""
        return self._route("POST", path, handler, more)

    def put(self, path: str, handler: Handler, **more: Unpack[More]) -> Route:
        """A route that says how something is."""
        return self._route("PUT", path, handler, more)

    def patch(self, path: str, handler: Handler, **more: Unpack[More]) -> Route:
        """A route that changes a part of something."""
        return self._route("PATCH", path, handler, more)

    def delete(self, path: str, handler: Handler, **more: Unpack[More]) -> Route:
        """Declare a DELETE route."""
        return self._route("DELETE", path, handler, more)

    def _route(self, method: Method, path: str, handler: Handler, more: More) -> Route:
        shared = More(permission=self.permission, reach=self.reach)
        whole: More = {**shared, **more}
        return Route(method=method, path=f"{self.base}{path}", handler=handler, tag=self.tag, **whole)


class Paged(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Query parameters of every list."""

    cursor: str = ""
    """`next` of the page before; empty for the first one."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 100
    """The number of items of a page; reduced to the server's limit."""


class RequestModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request body; unknown fields are refused."""


class Reasoned(RequestModel, frozen=True, kw_only=True):
    """A body that says why."""

    reason: str = ""


class TimedReason(Reasoned, frozen=True, kw_only=True):
    """A request body with a reason and an optional end."""

    until: datetime | None = None
    """At this instant."""
    for_seconds: Annotated[float, msgspec.Meta(ge=0, le=3_155_760_000)] | None = None
    """After so long, by the server's clock; instead of `until`."""

    @property
    def ending(self) -> datetime | timedelta | None:
        """Return the end time; PayloadError if two are given."""
        if self.for_seconds is None:
            return self.until
        if self.until is not None:
            raise PayloadError("`until` and `for_seconds` say two ends; leave one of them out")
        return timedelta(seconds=self.for_seconds)


def run_id(text: str) -> UUID:
    """The id of a run in an address."""
    try:
        return UUID(text) if len(text) == len(str(UUID(int=0))) else _no_run(text)
    except ValueError:
        return _no_run(text)


def _no_run(text: str) -> UUID:
    raise NotFoundError("workflow instance", text)


def _is_sound(key: str) -> bool:
    return 0 < len(key) <= _LONGEST_KEY and key.isprintable()
