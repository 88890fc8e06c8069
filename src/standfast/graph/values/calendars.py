"""Calendar rules: cron expressions on the clock of a time zone. The next time follows from the rule and an instant alone."""

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
"""By no more than this are clocks set at once."""
_ANY_DAY: Final = datetime(2024, 1, 1, tzinfo=UTC)
"""Rules repeat: one that fires at all does so within the decades after any day."""


def next_time(cron: str, zone: str, now: datetime) -> datetime:
    """The first time after an instant that a sound rule names, in UTC."""
    # In the hour that a clock shows twice, a rule counts from the first showing, and names what has passed.
    times = (each.astimezone(UTC) for each in CronSim(cron, now.astimezone(_zone(zone))))
    return next(each for each in times if each > now)


def last_time(cron: str, zone: str, now: datetime) -> datetime | None:
    """The last time that a sound rule names and that is no later than an instant, in UTC; None if there is none."""
    try:
        local = now.astimezone(_zone(zone))
        was_set = local.utcoffset() != (now - _LONGEST_SET).astimezone(_zone(zone)).utcoffset()
        # Where clocks were just set back, what they have shown once is looked for from behind the second showing.
        start = (now + _LONGEST_SET if was_set else now + _INSTANT).astimezone(_zone(zone))
        times = (each.astimezone(UTC) for each in CronSim(cron, start, reverse=True))
        return next(each for each in times if each <= now)
    except (StopIteration, OverflowError):
        return None


def calendar_findings(node: str, cron: object, zone: object) -> Iterator[Diagnostic]:
    """What is wrong with a rule and its zone."""
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
    """What is wrong with the fields of a rule; empty if it fires."""
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
    """Whether there is such a time zone."""
    try:
        return isinstance(name, str) and bool(_zone(name).key)
    except (KeyError, ValueError, OSError):  # What the name looks like decides which of them it is.
        return False


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
