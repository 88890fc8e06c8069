"""Calls of sessions: browsers that people came in with, and how they are sent away again."""

from __future__ import annotations

import builtins
import json
import secrets
from datetime import timedelta
from hashlib import sha256

from standfast.calls.context import CallContext, checked_key, checked_limit, checked_text, told_at
from standfast.engine.concurrency.replies import Reply
from standfast.errors import ForbiddenError, NotFoundError, PayloadError
from standfast.features.access.keys import MANAGE_KEYS
from standfast.features.access.views import NewSession, Session, session_of
from standfast.kernel.decision import NOT_ALLOWED
from standfast.store.ports.access import AccessPort, StoredSession

PREFIX = "sfs"
LIFETIME = timedelta(hours=12)
"""How long a session lasts at most, unless whoever opens it says otherwise."""
OPEN = 100
"""How many sessions of one actor and credential are open, unless whoever opens one says otherwise."""
_REMEMBERED = 10
"""For each of them so many more are listed that have ended."""
_KEPT = timedelta(days=30)
"""How long one that has expired is still listed."""
_LONGEST = timedelta(days=30)
_LONGEST_CREDENTIAL = 2000
_SECRET_BYTES = 32
_MOST = 1000


class FutureSessions:
    """Sessions of browsers. Everybody sees and ends their own; those of others take the capability `keys:manage`."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def open(self, *, credential: str, lifetime: timedelta = LIFETIME, most: int = OPEN) -> Reply[NewSession]:
        """Begin a session of the actor of these calls, with the rights that they have now; `credential` says what they came in with.

        Its secret is in the answer and nowhere else. One that was opened with a key (`key:` and its id) ends with the key. Of one actor
        and credential the newest `most` stay open: the oldest ends where there would be more.
        """
        service, request = self._desk.service, self._desk.request
        now = service.shared.clock.now()

        def write() -> NewSession:
            if not timedelta(0) < lifetime <= _LONGEST:
                raise PayloadError(f"a session lasts up to {_LONGEST.days} days, not {lifetime}")
            many = checked_limit(most)
            actor = (
                self._desk.asked.actor
            )  # Without what was looked up: that is looked up again whenever the session is used.
            if actor.kind not in {"user", "service"}:
                raise PayloadError("the engine itself has no session: call on behalf of somebody")
            # Not from the engine's own source of chance, whose numbers can be foretold.
            identity, secret = service.shared.chance.new_id(now).hex, secrets.token_urlsafe(_SECRET_BYTES)
            stored = StoredSession(
                id=identity,
                tenant=self._desk.tenant,
                partition=request.partition,
                actor=actor.id,
                kind="user" if actor.kind == "user" else "service",
                roles=json.dumps(sorted(actor.roles)),
                capabilities=json.dumps(sorted(actor.capabilities)),
                hash=sha256(secret.encode()).digest(),
                credential=checked_text(credential, "credential")[:_LONGEST_CREDENTIAL],
                created_at=now,
                expires_at=now + lifetime,
                last_used_at=now,
                ended_at=None,
            )
            self._desk.operate(
                lambda parts: parts.access().add_session(
                    stored, keep_since=now - _KEPT, most=many, kept=many * _REMEMBERED
                )
            )
            return NewSession(session=session_of(stored), secret=f"{PREFIX}_{identity}_{secret}")

        return self._desk.act(write)

    def list(self, *, actor: str = "", after: str | Session = "", limit: int = 100) -> Reply[builtins.list[Session]]:
        """Sessions, oldest first, ended ones included: one's own, those of `actor`, or all for whoever looks after keys."""

        def read() -> list[Session]:
            last = after.id if isinstance(after, Session) else checked_key(after, "`after`", may_be_empty=True)
            wanted = checked_key(actor, "actor", may_be_empty=True)
            whose = wanted if self._is_manager() else self._own(wanted)
            most = min(checked_limit(limit), _MOST)
            return self._desk.service.survey(
                lambda parts: self._seen(parts.access(), actor=whose, after=last, most=most)
            )

        return self._desk.read(read)

    def end(self, session: str | Session) -> Reply[Session]:
        """End a session, at once and for good; one that has ended stays as it is."""
        service = self._desk.service
        now = service.shared.clock.now()

        def write() -> Session:
            identity = session.id if isinstance(session, Session) else checked_key(session, "id of a session")
            known = self._known(identity)
            if known.ended_at is not None:
                return session_of(known)
            before, after = {"ended_at": None}, {"ended_at": told_at(now), "actor": known.actor}
            change = self._desk.changed("session", identity, "end", before=before, after=after)
            self._desk.record(
                change,
                lambda parts: parts.access().end_session(known.tenant, identity, at=now),
                may_repeat=True,
                # Whoever leaves needs no right to do so.
                needs_right=known.actor != self._desk.request.actor.id,
            )
            return session_of(self._known(identity))

        return self._desk.act(write)

    # -- how

    def _is_manager(self) -> bool:
        return self._desk.looked_up().request.actor.may(MANAGE_KEYS)

    def _own(self, wanted: str) -> str:
        actor = self._desk.request.actor
        if wanted not in {"", actor.id}:
            told = f"{actor.id!r} may not look at sessions of others: that takes the capability {MANAGE_KEYS!r}"
            raise ForbiddenError(reason=NOT_ALLOWED, message=told)
        return actor.id

    def _seen(self, access: AccessPort, *, actor: str, after: str, most: int) -> builtins.list[Session]:
        """A page of the sessions that the caller may see, which need not lie beside one another."""
        found: list[Session] = []
        while True:
            page = access.sessions(self._desk.tenant, actor=actor, after=after, limit=most)
            found += [session_of(each) for each in page if self._may_see(each)]
            if len(page) < most or len(found) >= most:
                return found[:most]
            after = page[-1].id

    def _may_see(self, stored: StoredSession) -> bool:
        request = self._desk.request
        is_here = stored.tenant == self._desk.tenant and request.partition in {"", stored.partition}
        return is_here and (self._is_manager() or stored.actor == request.actor.id)

    def _known(self, identity: str) -> StoredSession:
        found = self._desk.service.survey(lambda parts: parts.access().session(identity))
        if found is None or not self._may_see(found):
            raise NotFoundError("session", identity, hint="`engine.sessions.list` names those that there are")
        return found
