"""Calls of those who run the engine: maintenance, what waits, who works. They concern all tenants and all processes."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from standfast.calls.context import CallContext, checked_after, checked_limit, checked_text
from standfast.calls.operator_views import (
    Backlog,
    GivenUp,
    IncidentInfo,
    MissingHandler,
    WorkerInfo,
    shown,
)
from standfast.engine.concurrency.replies import Reply
from standfast.features.access.keys import opens, secret_parts
from standfast.features.access.sessions import PREFIX
from standfast.features.access.views import ApiKey, Session, WrittenPage, api_key, session_of, written
from standfast.features.runs.incidents import directory_incidents, incidents_in
from standfast.graph.nodes.task import WEBHOOK
from standfast.kernel.actor import Actor
from standfast.kernel.codec.message_types import SYSTEM_PREFIX
from standfast.people.directory import Look
from standfast.store.records.instances import SHARED_TENANT, Maintenance

_USE_NOTED = timedelta(minutes=1)
"""A key or a session that was used since then is not noted again."""
_KEY = "key:"
Credential = TypeVar("Credential", ApiKey, Session)


class FutureAdmin:
    """What is asked of the engine as a whole."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def pause_processing(self) -> Reply[None]:
        """Maintenance for all processes: commands are taken, but no work is begun until `resume_processing`."""
        return self._maintain("pause")

    def refuse_commands(self) -> Reply[None]:
        """Maintenance for all processes: no work is begun, and commands are refused too, until `resume_processing`."""
        return self._maintain("refuse")

    def resume_processing(self) -> Reply[None]:
        """End maintenance, in all processes."""
        return self._maintain("")

    def backlog(self) -> Reply[list[Backlog]]:
        """How much work waits, by handler and by definition."""
        moment = self._desk.service.shared.clock.judge()

        def read() -> list[Backlog]:
            found = self._desk.service.survey(lambda parts: parts.keeper().backlog(moment))
            return [shown(each, Backlog) for each in found]

        return self._desk.read(read)

    def given_up(self) -> Reply[list[GivenUp]]:
        """How many dead letters there are, by tenant: lists of them are those of one tenant."""

        def read() -> list[GivenUp]:
            found = self._desk.service.survey(lambda parts: parts.keeper().given_up())
            return [shown(each, GivenUp) for each in found]

        return self._desk.read(read)

    def missing_handlers(self) -> Reply[list[MissingHandler]]:
        """Handlers that work waits for and no live worker has: how many effects wait for each, and since when."""
        service = self._desk.service
        moment = service.shared.clock.judge()

        def read() -> list[MissingHandler]:
            found = service.survey(lambda parts: parts.keeper().unhandled(waited=timedelta(0), now=moment))
            return [shown(each, MissingHandler) for each in found]

        return self._desk.read(read)

    def incidents(self) -> Reply[list[IncidentInfo]]:
        """What does not go on by itself and has waited for too long, of all tenants.

        That are questions that nobody can decide, calls that may hang, work that no code of this process can read, and a directory of
        the host that this process cannot ask. What gave up is among the dead letters, and runs that nothing can wake are in `runs.stuck`.
        """
        service = self._desk.service
        now, moment = service.shared.clock.now(), service.shared.clock.judge()

        def read() -> list[IncidentInfo]:
            found = service.survey(lambda parts: list(incidents_in(parts, service.shared, now=now, moment=moment)))
            return [*directory_incidents(self._desk.directory), *found]

        return self._desk.read(read)

    def inbox_depth(self) -> Reply[int]:
        """How many accepted commands wait for their turn."""
        service = self._desk.service
        return self._desk.read(lambda: service.survey(lambda parts: parts.inbox().depth()))

    def workers(self) -> Reply[list[WorkerInfo]]:
        """The workers that are alive, in all processes."""
        service = self._desk.service
        moment = service.shared.clock.judge()

        def read() -> list[WorkerInfo]:
            found = service.survey(lambda parts: parts.workers().live(moment))
            return [_without_own(shown(each, WorkerInfo)) for each in found]

        return self._desk.read(read)

    def identify(self, secret: str) -> Reply[ApiKey | None]:
        """The API key, of whichever tenant, that somebody came with; None unless there is one that still holds, and its bearer is not deactivated.

        One that acts as a person of the directory is told with no more roles and capabilities than that person has now.
        Its use is noted, about once a minute. How long it takes does not tell how much of the secret was right.
        """
        service = self._desk.service
        now = service.shared.clock.now()

        def find() -> ApiKey | None:
            parts_given = secret_parts(checked_text(secret, "key"))
            if parts_given is None:
                return None
            identity, offered = parts_given
            stored = service.survey(lambda parts: parts.access().key(identity))
            if not opens(stored, offered) or stored is None:
                return None
            found = api_key(stored)
            bearer = self._present(found.tenant, found.bearer, now) if found.holds(now) else None
            if bearer is None:
                return None
            since = now - _USE_NOTED
            if found.last_used_at is None or found.last_used_at < since:
                service.operate(lambda parts: parts.access().note_use(identity, at=now, unless_since=since))
            return _of(found, bearer)

        return self._desk.read(find)

    def identify_session(self, secret: str, *, idle: timedelta = timedelta(hours=1)) -> Reply[Session | None]:
        """The session, of whichever tenant, that a browser came with; None unless it still holds: it was used within `idle`, and the key that opened it holds too."""
        service = self._desk.service
        now = service.shared.clock.now()

        def find() -> Session | None:
            parts_given = secret_parts(checked_text(secret, "session"), PREFIX)
            if parts_given is None:
                return None
            identity, offered = parts_given
            stored = service.survey(lambda parts: parts.access().session(identity))
            if not opens(stored, offered) or stored is None:
                return None
            if stored.ended_at is not None or now >= min(stored.expires_at, stored.last_used_at + idle + _USE_NOTED):
                return None
            if stored.credential.startswith(_KEY):
                key = service.survey(lambda parts: parts.access().key(stored.credential.removeprefix(_KEY)))
                if key is None or not api_key(key).holds(now):
                    return None
            found = session_of(stored)
            bearer = self._present(stored.tenant, found.bearer, now)
            if bearer is None:
                return None
            if stored.last_used_at < now - _USE_NOTED:
                since = now - _USE_NOTED
                service.operate(lambda parts: parts.access().note_session(identity, at=now, unless_since=since))
            return _of(found, bearer)

        return self._desk.read(find)

    def _present(self, tenant: str, bearer: Actor, now: datetime) -> Actor | None:
        """Whoever comes with a key or a session, with what still counts; None if they are deactivated. A directory that may hang is asked when they act."""
        directory = self._desk.directory
        if directory.may_hang or directory.is_known_empty(tenant, now):
            return bearer
        with directory.looking(tenant) as rows:
            look = Look(rows, now)
            known = look.person(bearer.id)
            if known is None or not known.is_active:
                return None if known is not None else bearer
            if not bearer.key or known.kind != "user" or not rows.has_grants():
                return bearer
            granted = look.roles([bearer.id])[bearer.id]
        return self._desk.bound_to(bearer, granted, tenant)

    def has_keys(self) -> Reply[bool]:
        """Whether any tenant has an API key that holds, so that anybody could come with one."""
        service = self._desk.service
        now = service.shared.clock.now()
        return self._desk.read(lambda: service.survey(lambda parts: parts.access().has_key(at=now)))

    def written(self, *, after: int | None = None, limit: int = 1000) -> Reply[WrittenPage]:
        """Which instances, of all tenants, have new events behind a position; without one, only where that is now."""

        def read() -> WrittenPage:
            if after is None:
                tip = self._desk.service.survey(lambda parts: parts.feed().newest())
                return WrittenPage(items=[], next=tip)
            start, most = checked_after(after), checked_limit(limit)
            found = self._desk.service.survey(lambda parts: parts.feed().headlines(after=start, limit=most))
            return WrittenPage(items=[written(each) for each in found], next=found[-1].position if found else start)

        return self._desk.read(read)

    def _maintain(self, mode: Maintenance) -> Reply[None]:
        service = self._desk.service

        def switch() -> None:
            before, after = {"mode": service.maintenance}, {"mode": mode}
            change = self._desk.changed("maintenance", "*", "switch", before=before, after=after, tenant=SHARED_TENANT)
            self._desk.record(change, lambda parts: parts.keeper().maintain(mode), may_repeat=True)
            service.watch.tell(mode)

        return self._desk.act(switch)


def _of(found: Credential, bearer: Actor) -> Credential:
    """A key or a session with the roles and capabilities that its bearer has now."""
    if bearer == found.bearer:
        return found
    return msgspec.structs.replace(found, roles=sorted(bearer.roles), capabilities=sorted(bearer.capabilities))


def _without_own(worker: WorkerInfo) -> WorkerInfo:
    """Every worker has the engine's own handlers, so that they tell nobody anything."""
    handlers = [each for each in worker.handlers if not each.startswith(SYSTEM_PREFIX) and each != WEBHOOK]
    return msgspec.structs.replace(worker, handlers=handlers)
