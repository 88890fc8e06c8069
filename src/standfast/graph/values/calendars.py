"""Calendar rules: cron expressions in a time zone. Results depend only on the rule and a time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from standfast.errors import Diagnostic

UTC_ZONE: Final = "UTC"

_FIELDS: Final = 5
_INSTANT: Final = timedelta(microseconds=1)
_LONGEST_SET: Final = timedelta(hours=3)
"""Maximum size of a clock change."""
_ANY_DAY: Final = datetime(2024, 1, 1, tzinfo=UTC)
"""Rules repeat: a rule that ever matches does so within decades of any day."""


def next_time(cron: str, zone: str, now: datetime) -> datetime:
    """Return the first match of a valid rule after a time, in UTC."""
    # In a repeated hour the rule counts from the first occurrence and would return a past time.
    times = (each.astimezone(UTC) for each in CronSim(cron, now.astimezone(_zone(zone))))
    return next(each for each in times if each > now)


def last_time(cron: str, zone: str, now: datetime) -> datetime | None:
    """Return the last match of a valid rule up to a time, in UTC, or None."""
    try:
        local = now.astimezone(_zone(zone))
        was_set = local.utcoffset() != (now - _LONGEST_SET).astimezone(_zone(zone)).utcoffset()
        # After a clock was set back, the search for the first occurrence starts after the second one.
        start = (now + _LONGEST_SET if was_set else now + _INSTANT).astimezone(_zone(zone))
        times = (each.astimezone(UTC) for each in CronSim(cron, start, reverse=True))
        return next(each for each in times if each <= now)
    except (StopIteration, OverflowError):
        return None


def calendar_findings(node: str, cron: object, zone: object) -> Iterator[Diagnostic]:
    """Yield the findings of a rule and its zone."""
    if not is_zone(zone):
        message = f"{node!r} goes by the time zone {zone!r}, which is not known; give one such as 'Europe/Berlin'"
        yield Diagnostic("time_zone", message, node)
    fields = cron.split() if isinstance(cron, str) else []
    flaw = _flaw(fields)
    if flaw and not _flaw([*fields[:2], "*", *fields[3:]]) and not _flaw([*fields[:3], "*", *fields[4:]]):
        message = f"the cron {cron!r} of {node!r} never fires: no such day exists; correct its day or its month"
        yield Diagnostic("cron_never", message, node)
    elif flaw:
        message = f"the cron {cron!r} of {node!r} cannot be read: {flaw}; give five fields, such as '0 9 * * MON-FRI'"
        yield Diagnostic("cron", message, node)


def _flaw(fields: list[str]) -> str:
    """Return what is wrong with the fields of a rule. Empty if it can match."""
    if len(fields) != _FIELDS:
        return f"it has {len(fields)} fields"
    try:
        next(CronSim(" ".join(fields), _ANY_DAY))
    except CronSimError as error:
        return str(error)
    except StopIteration:
        return "no such day"
    return ""


def is_zone(name: object) -> bool:
    """Return whether the time zone exists."""
    try:
        return isinstance(name, str) and bool(_zone(name).key)
    except (KeyError, ValueError, OSError):  # The form of the name determines which of them is raised.
        return False


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
