"""Calls of those who hold work back: of a definition, a version, a step, a tenant, or all of it."""

from __future__ import annotations

import builtins
from datetime import datetime, timedelta

from standfast.calls.authorization import check_unbound
from standfast.calls.context import (
    CallContext,
    checked_before,
    checked_key,
    checked_limit,
    checked_tenant,
    checked_text,
    told_at,
)
from standfast.calls.operator_views import PauseInfo
from standfast.calls.references import DefinitionLike, PauseLike, checked_pause
from standfast.engine.concurrency.replies import Reply
from standfast.errors import ConflictError, PayloadError, RejectedError
from standfast.features.deciders.calls import AnyKind
from standfast.features.runs.pauses.pause import Paused, check_known, named, permitted
from standfast.features.runs.resume import checked_clock, checked_until
from standfast.kernel.row_kinds.steps import PauseClock
from standfast.store.ports.pauses import ALL_TENANTS, PauseRecord, PauseScope
from standfast.store.ports.store import StoreParts


class FuturePauses:
    """What is held back, by whom and why. One run is paused by the run itself.

    Who pauses is the actor of these calls (`acting`): it needs the capability `execution:pause`, and `execution:resume` to resume.
    Calls that are bound to a partition are refused: what is paused here is paused in all of them.
    """

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def pause(
        self,
        definition: DefinitionLike | AnyKind | None = None,
        *,
        version: str | int | None = None,
        step: str | None = None,
        tenant: str | None = None,
        reason: str = "",
        clock: PauseClock = "run_on",
        until: datetime | timedelta | None = None,
    ) -> Reply[PauseInfo]:
        """Begin nothing more of a definition, of one version or one step of it; of the whole tenant if none is named. An empty name is refused, because it names nothing.

        Handlers that run finish, and what follows from them is held; commands, signals, answers and starts are taken, and what they ask
        for is held. Timers keep their instants and fire afterwards if they are due (`clock="run_on"`), or get the time back that
        they were held (`"stand_still"`). `until` ends the pause by itself. `tenant` is another one, or `*` for all, and
        for the engine itself to say. The same pause again, by the same actor for the same reason, is the one that stands; ConflictError
        if that says something else: two who have reasons of their own must know of one another before one of them resumes.
        """

        def begin() -> PauseInfo:
            self._check("pause", tenant)
            _check_written(definition=definition, version=version, step=step, tenant=tenant)
            scope = self._scope(definition, version, step, tenant)
            check_known(self._desk, scope)
            now = self._desk.service.shared.clock.now()
            asked = PauseRecord(
                scope=scope,
                clock=_checked_clock(clock, scope),
                reason=checked_text(reason, "reason"),
                paused_by=self._desk.request.actor.id,
                paused_at=now,
                until=_checked_end(until, now),
            )
            told = {"clock": asked.clock, "until": told_at(asked.until)}
            change = self._desk.changed("pause", str(scope), "pause", after=told, reason=reason, tenant=scope.tenant)

            def begun(parts: StoreParts) -> tuple[set[int], PauseRecord]:
                pauses = parts.pauses()
                return {each.id for each in pauses.standing()}, pauses.begin(asked)

            def is_new(known: set[int], made: PauseRecord) -> bool:
                # Another process may have begun one since the first look.
                return made.id not in known and _is_same(made, asked, until) and made.paused_at == now

            _, stands = self._desk.record(
                lambda done: change if is_new(*done) else None,
                begun,
                may_repeat=True,
                check=lambda desk: permitted(desk.request, "pause", tenant or ""),
            )
            if not _is_same(stands, asked, until):
                raise _differs(stands)
            self._desk.service.follow_pauses()
            return self._paused().shown(stands)

        return self._desk.act(begin)

    def resume(
        self,
        definition: DefinitionLike | AnyKind | PauseLike | None = None,
        *,
        version: str | int | None = None,
        step: str | None = None,
        tenant: str | None = None,
        reason: str = "",
    ) -> Reply[PauseInfo]:
        """End the pause of the very scope that is named, as `pause` names it, or a pause that is given itself or by its number.

        What another pause covers too stays held.

        Effects come back a few at a time, and none before one that has waited for longer. RejectedError (`not_paused`) if
        there is no such pause.
        """

        def end() -> PauseInfo:
            why = checked_text(reason, "reason")
            _check_written(definition=definition, version=version, step=step, tenant=tenant)
            number = None
            if isinstance(definition, int | PauseInfo):
                scope, number = self._scope_of(definition, version, step, tenant), checked_pause(definition)
            else:
                self._check("resume", tenant)
                scope = self._scope(definition, version, step, tenant)
            service, by = self._desk.service, self._desk.request.actor.id
            pauses = self._paused().standing()
            stands = next((each for each in pauses if each.scope == scope and number in {None, each.id}), None)
            now = service.shared.clock.now()
            before, after = {"ended_at": None}, {"ended_at": told_at(now)}
            change = self._desk.changed(
                "pause", str(scope), "resume", before=before, after=after, reason=why, tenant=scope.tenant
            )
            if stands is None or not self._desk.record(
                change,
                lambda parts: parts.pauses().end(stands.id, by=by, why=why, at=max(now, stands.paused_at)),
                check=lambda desk: permitted(desk.request, "resume", scope.tenant),
            ):
                raise _not_paused(scope, [each for each in pauses if self._may_see(each)])
            service.follow_pauses()
            return self._paused().one(stands.id, self._may_see)

        return self._desk.act(end)

    def list(
        self, *, tenant: str = "", with_ended: bool = False, before: PauseLike | None = None, limit: int = 100
    ) -> Reply[builtins.list[PauseInfo]]:
        """The pauses that concern the tenant, newest first; give the last one as `before` for the next page.

        Those that have ended are kept: who paused and who resumed, when and why. `*` lists those of all tenants.
        """

        def read() -> list[PauseInfo]:
            last = None if before is None else checked_before(before.id if isinstance(before, PauseInfo) else before)
            most, whose, paused = checked_limit(limit), self._whose(tenant), self._paused()
            if with_ended:
                found = self._desk.service.survey(lambda parts: parts.pauses().listed(whose, before=last, limit=most))
            else:
                standing = [each for each in paused.standing() if _concerns(each, whose)]
                found = [each for each in reversed(standing) if last is None or each.id < last][:most]
            return [paused.shown(each, whose) for each in found]

        return self._desk.read(read)

    def get(self, pause: PauseLike) -> Reply[PauseInfo]:
        """One pause as it is now: how much it holds, and whether all of it is held, or let go."""

        def read() -> PauseInfo:
            return self._paused().one(checked_pause(pause), self._may_see)

        return self._desk.read(read)

    # -- how

    def _paused(self) -> Paused:
        check_unbound(self._desk, "pauses")
        return Paused(self._desk)

    def _check(self, what: str, tenant: str | None) -> None:
        check_unbound(self._desk, "pauses")
        permitted(self._desk.looked_up().request, what, tenant or "")

    def _whose(self, tenant: str) -> str:
        if not tenant or tenant == self._desk.tenant:
            return self._desk.tenant
        permitted(self._desk.looked_up().request, "pause", tenant)
        return tenant if tenant == ALL_TENANTS else checked_tenant(tenant)

    def _may_see(self, pause: PauseRecord) -> bool:
        return self._desk.request.actor.kind == "system" or _concerns(pause, self._desk.tenant)

    def _scope_of(
        self, given: PauseLike, version: str | int | None, step: str | None, tenant: str | None
    ) -> PauseScope:
        """The scope of a pause, which says by itself what it is of."""
        self._check("resume", "")
        if version or step or tenant:
            raise PayloadError("a pause says itself what it is of: leave out version, step and tenant")
        known = self._paused().one(checked_pause(given), self._may_see)
        self._check("resume", known.tenant)
        return PauseScope(known.tenant, known.definition, known.version, known.step)

    def _scope(
        self,
        definition: DefinitionLike | AnyKind | None,
        version: str | int | None,
        step: str | None,
        tenant: str | None,
    ) -> PauseScope:
        name, number = named("" if definition is None else definition, version or "")
        if number and not name:
            raise PayloadError("a version is one of a definition: name the definition too")
        whose = self._desk.tenant if not tenant else tenant if tenant == ALL_TENANTS else checked_tenant(tenant)
        return PauseScope(whose, name, number, "" if step is None else checked_key(step, "step"))


def _check_written(**named: object) -> None:
    """PayloadError for a name that is written and empty: whoever gives one does not mean all of the tenant, or all of the definition."""
    for what, given in named.items():
        if isinstance(given, str) and not given:
            raise PayloadError(f"`{what}` is empty and names nothing; leave it out to mean all, or give a name")


def _concerns(pause: PauseRecord, tenant: str) -> bool:
    return tenant == ALL_TENANTS or pause.scope.tenant in {tenant, ALL_TENANTS}


def _checked_clock(given: object, scope: PauseScope) -> PauseClock:
    clock = checked_clock(given) or "run_on"
    if scope.step and clock == "stand_still":
        raise PayloadError(
            "a pause of a step holds the calls of its handler, and timers are of no step: leave the clock at 'run_on', "
            "or pause the definition"
        )
    return clock


def _checked_end(until: object, now: datetime) -> datetime | None:
    at = checked_until(until, now)
    if at is not None and at <= now:
        raise PayloadError(f"a pause ends in the future, and {at.isoformat()} is past")
    return at


def _is_same(stands: PauseRecord, asked: PauseRecord, until: object) -> bool:
    """Whether a pause says what was asked for; one that is to last for so long began when it was first asked for."""
    if (stands.clock, stands.paused_by, stands.reason) != (asked.clock, asked.paused_by, asked.reason):
        return False
    lasts = isinstance(until, timedelta) and stands.until == stands.paused_at + until
    return lasts or stands.until == asked.until


def _differs(stands: PauseRecord) -> ConflictError:
    ends = f"until {stands.until.isoformat()}" if stands.until else "until somebody resumes it"
    why = f" ({stands.reason})" if stands.reason else ""
    return ConflictError(
        f"{stands.scope} is paused already: by {stands.paused_by!r} since {stands.paused_at.isoformat()}{why}, {ends}, "
        f"with the clock {stands.clock!r}; resume it first to pause it otherwise"
    )


def _not_paused(scope: PauseScope, stands: builtins.list[PauseRecord]) -> RejectedError:
    told = ", ".join(str(each.scope) for each in stands) or "nothing"
    return RejectedError(reason="not_paused", message=f"there is no pause of {scope}; paused is: {told}")
