"""What is known of the people of a tenant, by the version that it was read at.

The engine's own directory counts its changes. As long as the version is the same, what was read before is still so: it is kept in
memory, and the commit that relies on it checks the version. A directory from a file does not change. A directory of the host has no
version, and is not asked here: it is asked for each command, before that is sent.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeVar

from standfast.kernel.actor import Actor, RequestContext
from standfast.kernel.facts import Deputy, PersonFact
from standfast.kernel.people import Absence, Delegation, DirectoryLook, Grant, Principal
from standfast.people.capabilities import CapabilityResolver, with_capabilities
from standfast.people.directory import Directory
from standfast.store.ports.access import StoredKey, StoredSession
from standfast.store.ports.facts import FactLook, Gate

T = TypeVar("T")

_MOST_TENANTS: Final = 1_000
_NO_ROLES: Final = frozenset[str]()
_MOST_PIECES: Final = 10_000
"""What is remembered of one tenant; beyond that it is read anew."""


class UnreadError(Exception):
    """Something is not remembered, and must be read first."""


class PersonRows(NamedTuple):
    """What the directory has of one person. Periods that have not begun are among them, so that it can be judged at a later instant."""

    principal: Principal | None
    grants: Sequence[Grant] = ()
    absences: Sequence[Absence] = ()

    @property
    def is_active(self) -> bool:
        """Whether they may act; a person who is not in the directory may."""
        return self.principal is None or self.principal.is_active

    def roles(self, now: datetime) -> frozenset[str]:
        """Returns the roles that they have."""
        return frozenset(each.role for each in self.grants if each.holds(now)) if self.grants else _NO_ROLES

    def is_away(self, now: datetime) -> bool:
        """Whether they are away."""
        return any(each.holds(now) for each in self.absences)


PieceKind = Literal["person", "to", "by", "key", "session", "empty", "grants"]
Piece = tuple[PieceKind, str]


class _Memory:
    """What was read of a tenant at one version."""

    __slots__ = ("pieces", "version")

    def __init__(self, version: int) -> None:
        self.version = version
        self.pieces: dict[Piece, object] = {}

    def keep(self, piece: Piece, value: object) -> None:
        if len(self.pieces) >= _MOST_PIECES:
            self.pieces = {}
        self.pieces[piece] = value


class Accesses:
    """Remembers the people of tenants, and reads what it does not know."""

    def __init__(self, directory: Directory, resolvers: Sequence[CapabilityResolver] = ()) -> None:
        self.directory = directory
        self.resolvers = resolvers
        self._tenants: OrderedDict[str, _Memory] = OrderedDict()
        self._guard = threading.Lock()

    def known(self, tenant: str) -> Access | None:
        """Returns what is remembered of a tenant; None if nothing is, so that its version must be read."""
        memory = self._tenants.get(tenant)
        return None if memory is None else Access(self, tenant, memory, None, may_remember=True)

    def read(self, look: FactLook, tenant: str, *, may_remember: bool) -> Access:
        """Reads the version of a tenant. What is asked of the result is then read, unless it is remembered at this version."""
        version = look.versions(tenant).access
        memory = self._tenants.get(tenant)
        if memory is None or memory.version != version:
            memory = _Memory(version)
            if may_remember:
                self._remember(tenant, memory)
        return Access(self, tenant, memory, look, may_remember=may_remember)

    def forget(self, tenant: str) -> None:
        """Read everything of a tenant anew."""
        with self._guard:
            self._tenants.pop(tenant, None)

    def _remember(self, tenant: str, memory: _Memory) -> None:
        with self._guard:
            self._tenants[tenant] = memory
            self._tenants.move_to_end(tenant)
            if len(self._tenants) > _MOST_TENANTS:
                self._tenants.popitem(last=False)


class Access:
    """The people of one tenant at one version: from memory, or read with a look."""

    __slots__ = ("_accesses", "_look", "_may_remember", "_memory", "tenant")

    def __init__(
        self, accesses: Accesses, tenant: str, memory: _Memory, look: FactLook | None, *, may_remember: bool
    ) -> None:
        self.tenant = tenant
        self._accesses = accesses
        self._memory = memory
        self._look = look
        self._may_remember = may_remember

    @property
    def version(self) -> int:
        """The version of all that is known here."""
        return self._memory.version

    @property
    def gate(self) -> Gate:
        """What a commit checks that relies on it."""
        return Gate("access", self.tenant, self._memory.version)

    @property
    def is_elsewhere(self) -> bool:
        """Whether the people are in a directory of the host, which is not asked here."""
        return self._accesses.directory.changes_unseen

    def is_empty(self) -> bool:
        """Whether the directory has nobody."""
        return self._piece(("empty", ""), lambda rows: rows.is_empty(), True)

    def grants_roles(self) -> bool:
        """Whether the directory has ever granted a role, so that it says who has which."""
        return self._piece(("grants", ""), lambda rows: rows.has_grants(), False)

    def person(self, name: str, now: datetime) -> PersonRows:
        """Returns what the directory has of a person."""
        known = self._memory.pieces.get(("person", name))
        if known is not None:
            return known  # type: ignore[return-value]

        def read(rows: DirectoryLook) -> PersonRows:
            found = rows.principals([name])
            return PersonRows(
                next(iter(found), None), rows.grants(principals=[name], at=now), rows.absences([name], at=now)
            )

        return self._piece(("person", name), read, PersonRows(None))

    def delegations_to(self, name: str, now: datetime) -> Sequence[Delegation]:
        """Returns the delegations by which a person stands in for others."""
        return self._piece(("to", name), lambda rows: rows.delegations(receiver=name, at=now), [])

    def delegations_by(self, name: str, now: datetime) -> Sequence[Delegation]:
        """Returns the delegations by which others stand in for a person."""
        return self._piece(("by", name), lambda rows: rows.delegations(givers=[name], at=now), [])

    def key(self, identity: str) -> StoredKey | None:
        """Returns an API key."""
        return self._credential(("key", identity), lambda look: look.key(identity))

    def session(self, identity: str) -> StoredSession | None:
        """Returns a session."""
        return self._credential(("session", identity), lambda look: look.session(identity))

    def fact(self, name: str, now: datetime) -> PersonFact:
        """Returns what is known of a person, and what that lets them do."""
        is_resolved = bool(self._accesses.resolvers)
        if self.is_elsewhere:
            return PersonFact(id=name, is_elsewhere=True, is_resolved=is_resolved)
        rows = self.person(name, now)
        is_kept = rows.principal is not None or not self.is_empty()
        if not is_kept:
            return PersonFact(id=name, is_resolved=is_resolved)
        roles = rows.roles(now)
        return PersonFact(
            id=name,
            is_kept=True,
            is_known=rows.principal is not None,
            is_active=rows.is_active,
            is_away=rows.is_away(now),
            roles=roles,
            capabilities=self.resolved(name, rows, roles),
            is_resolved=is_resolved,
            stand_ins=tuple(self._deputies(name, now)),
        )

    def resolved(self, name: str, rows: PersonRows, roles: frozenset[str]) -> frozenset[str]:
        """Returns what the resolvers grant to the holder of roles."""
        if not self._accesses.resolvers:
            return frozenset()
        kind = "user" if rows.principal is None else rows.principal.kind
        request = RequestContext(tenant=self.tenant, actor=Actor(id=name, kind=kind, roles=roles))
        return with_capabilities(self._accesses.resolvers, request).actor.capabilities

    def _deputies(self, name: str, now: datetime) -> Iterable[Deputy]:
        for each in self.delegations_by(name, now):
            if each.holds(now):
                other = self.person(each.receiver, now)
                is_here = other.is_active and not other.is_away(now)
                yield Deputy(to=each.receiver, role=each.role, definition=each.definition, is_here=is_here)

    def _piece(self, piece: Piece, read: Callable[[DirectoryLook], T], nothing: T) -> T:
        if piece in self._memory.pieces:
            return self._memory.pieces[piece]  # type: ignore[return-value]
        if self.is_elsewhere:
            return nothing
        directory = self._accesses.directory
        if self._look is None and directory.has_versions:
            raise UnreadError(piece)
        if directory.has_versions:
            assert self._look is not None
            with self._look.people(self.tenant) as rows:
                found = read(rows)
        else:
            with directory.looking(self.tenant) as rows:
                found = read(rows)
        self._memory.keep(piece, found)
        return found

    def _credential(self, piece: Piece, read: Callable[[FactLook], T | None]) -> T | None:
        """One that is not there is not remembered: it may come to be without a new version."""
        if piece in self._memory.pieces:
            return self._memory.pieces[piece]  # type: ignore[return-value]
        if self._look is None:
            raise UnreadError(piece)
        found = read(self._look)
        if found is not None:
            self._memory.keep(piece, found)
        return found
