"""Lists and values of a server, as commands take them; and what is said where a server is not asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NoReturn, TypedDict, TypeVar
from uuid import UUID

import msgspec

from standfast.calls.paging import unwritten, written
from standfast.errors import ConfigurationError
from standfast.features.runs import views
from standfast.kernel.ids import InstanceId

if TYPE_CHECKING:
    from standfast.client.models import Listing

T = TypeVar("T")

ON_DATABASES: Final = "this command works on a database alone: leave out --server, and say --database"
MOST: Final = 10_000
"""What a page may be asked to have."""
_ALL: Final = 1_000_000


class PauseEnd(TypedDict):
    """When a pause ends by itself, as a server is told."""

    until: datetime | None
    for_seconds: float | None


class Missing:
    """Refuses the calls that a server is not asked for."""

    def __getattr__(self, name: str) -> NoReturn:
        raise ConfigurationError(ON_DATABASES)


def gathered(ask: Callable[[str, int], Listing[T]], cursor: str, limit: int) -> list[T]:
    """So many things of a list, however few of them a server gives at a time."""
    return paged(ask, cursor, limit)[0]


def whole(ask: Callable[[str, int], Listing[T]]) -> list[T]:
    """All of a list, page by page."""
    return paged(ask, "", _ALL)[0]


def paged(ask: Callable[[str, int], Listing[T]], cursor: str, limit: int) -> tuple[list[T], str | None]:
    """The same with what the next page begins behind."""
    page = ask(cursor, min(limit, MOST))
    found, after = page.items, page.next
    while len(found) < limit and after is not None:
        page = ask(after, min(limit - len(found), MOST))
        found, after = [*found, *page.items], page.next
    return found, after


def object_of(value: object) -> dict[str, object] | None:
    """A JSON object, or nothing; ConfigurationError for anything else."""
    if value is None or isinstance(value, dict):
        return value
    raise ConfigurationError("a server takes a JSON object, such as '{\"total\": 5}'")


def ending(until: datetime | timedelta | None) -> PauseEnd:
    """When a pause ends by itself: at an instant, or after a while by the server's clock."""
    if isinstance(until, timedelta):
        return PauseEnd(until=None, for_seconds=until.total_seconds())
    return PauseEnd(until=until, for_seconds=None)


def seconds_of(length: timedelta | float) -> float:
    """A length of time in seconds."""
    return length.total_seconds() if isinstance(length, timedelta) else length


def run_of(text: str) -> UUID:
    """The id of a run; ConfigurationError for what is none."""
    try:
        return UUID(text)
    except ValueError:
        raise ConfigurationError(f"{text!r} is no id of a run; `standfast list` shows those that there are") from None


def cursor_of(run: str | None) -> str:
    """What a page begins behind, in a list of runs."""
    return "" if run is None else written(run)


def paused_behind(last: views.InstanceSummary | None) -> str:
    """The same in a list of paused ones."""
    return "" if last is None else written([last.paused_at, last.id])


def place_in(cursor: str | None) -> InstanceId | None:
    """The run that a cursor stands for, which is how commands name a place in a list of runs."""
    if cursor is None:
        return None
    return InstanceId(msgspec.json.decode(unwritten(cursor), type=UUID))


def in_json(decisions: Mapping[str, str | Sequence[str]] | None) -> dict[str, str | list[str]]:
    """Decisions of a dry run, as a request has them."""
    return {
        step: outcomes if isinstance(outcomes, str) else list(outcomes) for step, outcomes in (decisions or {}).items()
    }
