"""What does not go on by itself, of all tenants, as operators see it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from standfast.calls.operator_views import IncidentInfo
from standfast.engine.commit.context import EngineContext
from standfast.engine.loops.stuck_instances import hung_calls
from standfast.engine.worker.unreadable_work import Unread, unread_words
from standfast.people.directory import Directory
from standfast.people.directory_watch import WatchedDirectory
from standfast.store.ports.store import StoreParts

_MOST = 1000


def incidents_in(
    parts: StoreParts, shared: EngineContext, *, now: datetime, moment: datetime | None
) -> Iterator[IncidentInfo]:
    """What has waited for too long."""
    workers = {each.id: each.name for each in parts.workers().live(moment)}
    for found in parts.incidents().undecidable(limit=_MOST):
        yield IncidentInfo(
            kind="no_approver",
            told=f"nobody can decide a question of {found.definition!r} {found.instance}",
            remedy="`run.why()` says who was asked, and what helps",
            since=found.since,
            tenant=found.tenant,
            instance=found.instance,
        )
    for refused in parts.incidents().refused_schedules(limit=_MOST):
        yield IncidentInfo(
            kind="refused_schedule",
            told=f"the schedule {refused.schedule!r}{_of(refused.partition)} was refused its last start: {refused.detail}",
            remedy=f"mend what the refusal names; if its owner lacks a right, give it back, or have somebody else put the schedule{_there(refused.partition)}; or delete it",
            since=refused.since,
            tenant=refused.tenant,
            partition=refused.partition,
            instance=refused.instance,
        )
    for call in hung_calls(parts.incidents(), shared.settings, now):
        where = workers.get(call.worker)
        yield IncidentInfo(
            kind="hung_call",
            told=f"{call.handler!r} of {call.definition!r} {call.instance} has run on worker {where or call.worker} since {call.since}",
            remedy="if it hangs, end that process, and another worker calls it; give it a timeout",
            since=call.since,
            tenant=call.tenant,
            instance=call.instance,
        )
    yield from _unread(parts, shared, moment)


def directory_incidents(directory: Directory) -> list[IncidentInfo]:
    """That the directory of the host cannot be asked, as far as this process knows."""
    silence = directory.silence() if isinstance(directory, WatchedDirectory) else None
    if silence is None:
        return []
    told = f"the directory {directory.name} cannot be asked: {silence.told}; what people do is refused until it answers"
    remedy = "mend it, or its connection; nothing has to be repeated here but what was refused"
    return [IncidentInfo(kind="directory_unreachable", told=told, remedy=remedy, since=silence.since)]


def _unread(parts: StoreParts, shared: EngineContext, moment: datetime | None) -> Iterator[IncidentInfo]:
    """Work whose words this process does not know although it has the code of their language."""
    handlers = sorted({name for each in parts.workers().live(moment) for name in each.handlers})
    spoken = {each.language for each in shared.languages.commands()}
    waiting = parts.keeper().waiting_words(handlers, waited=shared.settings.unreadable_after, now=moment)
    for each in unread_words(waiting, shared):
        if each.word.language in spoken:
            why = "a worker with the code that can read it takes it, or it moves to the dead letters"
            yield IncidentInfo(
                kind="unreadable", told=Unread(each, why).told, remedy="find out who wrote it", since=each.since
            )


def _of(partition: str) -> str:
    return f" of the partition {partition!r}" if partition else ""


def _there(partition: str) -> str:
    return f", in a request for the partition {partition!r}" if partition else ""
