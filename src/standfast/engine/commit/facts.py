"""Facts in a commit: the actor, the actor's rights, and external data that decisions depend on.

The application supplies the source. The optimistic path may use cached facts, because the commit checks their versions.
The locking path reads every fact again in the writing transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple, Protocol

import msgspec

from standfast.kernel.actor import RequestContext
from standfast.kernel.facts import Fact, FactKey, Facts, FactsNeeded, PersonFact, person_fact
from standfast.store.ports.facts import FactLook, Gate
from standfast.store.ports.store import StaleFactError
from standfast.store.records.instances import InstanceChange

_MOST_AT_ONCE: Final = 16
"""Facts that the decisions of one commit get in one round. Decisions that need more are repeated a limited number of
times, then fail."""


class Place(NamedTuple):
    """The tenant and instance for which facts are requested."""

    tenant: str
    partition: str


class Read(NamedTuple):
    """A fact and the gates that prove it."""

    fact: Fact
    gates: tuple[Gate, ...] = ()
    error: Exception | None = None
    """Why the fact cannot be read. Only the decision that needs the fact fails."""


class Authorised(NamedTuple):
    """A request with the actor's current rights, and the gates that prove them."""

    request: RequestContext
    gates: tuple[Gate, ...] = ()


class StandsIn(NamedTuple):
    """The person whom the actor represents by a delegation, as resolved by the API layer.

    The commit verifies the delegation.
    """

    name: str
    roles: frozenset[str] = frozenset()
    """The represented person's roles that the task names. Empty if the task names the person."""
    lent: frozenset[str] = frozenset()
    """All roles of the represented person, if the task names the person. The decision may require one of them."""


class Vouched(msgspec.Struct, frozen=True, kw_only=True):
    """The host directory's answer about an actor, for one command."""

    at: datetime
    roles: frozenset[str] = frozenset()
    directory: str = ""
    """Class name of the directory."""
    granted: frozenset[str] | None = None
    """All roles that the directory grants to the actor. None if the actor is unknown to it or it grants no roles."""
    is_known: bool = False
    """Whether the directory knows the actor."""
    is_person: bool = False
    """Whether the directory knows the actor as a person and not as a service account."""
    people: tuple[PersonFact, ...] = ()
    """The directory's answers about other people on whom the actor's right depends."""


class Acting(NamedTuple):
    """The actor on whose behalf a command is committed."""

    asked: RequestContext
    """The request as the caller made it."""
    stands_in: StandsIn | None = None
    vouched: Vouched | None = None


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """An authorization request, with the caller's claims."""

    request: RequestContext
    tenant: str
    """Tenant of the instance. The request cannot override it."""
    definition: str = ""
    """Definition of the instance. Empty if the address does not name it."""
    stands_in: StandsIn | None = None
    vouched: Vouched | None = None
    """The host directory's answer. None if the directory was not queried."""


class FactSource(Protocol):
    """Source of the facts of an engine. `known` and `authorised` answer from memory, without I/O."""

    def known(self, place: Place, key: FactKey, now: datetime) -> Read | None:
        """Returns a fact from memory; None if it must be read."""
        ...

    def read(
        self, look: FactLook, place: Place, keys: Sequence[FactKey], now: datetime, *, may_remember: bool
    ) -> dict[FactKey, Read]:
        """Reads facts. `may_remember` is False in a transaction that may see what is never committed."""
        ...

    def authorised(self, asking: Asking, now: datetime) -> Authorised | None:
        """Returns a request with the actor's present rights, from memory; None if they must be read.

        Raises ForbiddenError if the actor may not act.
        """
        ...

    def authorise(self, look: FactLook, asking: Asking, now: datetime, *, may_remember: bool) -> Authorised:
        """Reads the actor's present rights. Raises ForbiddenError if the actor may not act."""
        ...


class NoSource:
    """Source for engines whose commands carry all data. It reads nothing and accepts every request as it is."""

    def known(self, place: Place, key: FactKey, now: datetime) -> Read | None:
        """Returns None."""
        del place, key, now
        return None

    def read(
        self, look: FactLook, place: Place, keys: Sequence[FactKey], now: datetime, *, may_remember: bool
    ) -> dict[FactKey, Read]:
        """Reads nothing."""
        del look, place, keys, now, may_remember
        return {}

    def authorised(self, asking: Asking, now: datetime) -> Authorised | None:
        """Accepts the request as it is."""
        del now
        return Authorised(asking.request)

    def authorise(self, look: FactLook, asking: Asking, now: datetime, *, may_remember: bool) -> Authorised:
        """Accepts the request as it is."""
        del look, now, may_remember
        return Authorised(asking.request)


class FactBook:
    """The facts of one batch, from memory or read for the batch."""

    __slots__ = ("_at_once", "_failure", "_look", "_may_remember", "_read", "_rights", "_source")

    def __init__(self, source: FactSource, look: FactLook | None = None, *, may_remember: bool = True) -> None:
        self._source = source
        self._look = look
        self._may_remember = may_remember
        self._read: dict[tuple[Place, FactKey], Read] = {}
        self._at_once = 0
        """The number of facts read during the current decision."""
        self._failure: Exception | None = None
        """The error that ended reading. Later reads fail with it."""
        self._rights: dict[tuple[int, str, datetime], tuple[RequestContext, Authorised]] = {}
        """Authorized requests by object id, tenant and time. The value holds the request, so that its id is not
        reused."""

    def get(self, place: Place, key: FactKey, now: datetime) -> Read:
        """Returns a fact, read now if there is a look. Raises FactsNeeded if it must be read first."""
        if self._look is None:
            found = self._source.known(place, key, now)
        else:
            found = self._read.get((place, key)) or self._found(place, key, now)
        if found is None:
            raise FactsNeeded(key)
        if found.error is not None:
            raise found.error
        return found

    def authorised(self, asking: Asking, now: datetime) -> Authorised | None:
        """Returns a request with the actor's current rights, or None if they must be read first.

        Raises ForbiddenError.
        """
        is_plain = asking.stands_in is None and asking.vouched is None
        key = (id(asking.request), asking.tenant, now)
        if is_plain and key in self._rights:
            return self._rights[key][1]  # Already authorized at this instant.
        if self._look is None:
            found = self._source.authorised(asking, now)
        else:
            found = self._source.authorise(self._look, asking, now, may_remember=self._may_remember)
        if is_plain and found is not None:
            self._rights[key] = (asking.request, found)
        return found

    def _found(self, place: Place, key: FactKey, now: datetime) -> Read | None:
        """Reads a fact for a decision.

        A read error is raised by `fill` and does not count as a failure of the decision.
        """
        if self._failure is None and self._at_once < _MOST_AT_ONCE:
            self._at_once += 1
            try:
                self._read |= self._facts(place, [key], now)
            except Exception as error:  # noqa: BLE001 - the whole commit fails with it
                self._failure = error
        return self._read.get((place, key))

    def _facts(self, place: Place, keys: Sequence[FactKey], now: datetime) -> dict[tuple[Place, FactKey], Read]:
        assert self._look is not None
        found = self._source.read(self._look, place, keys, now, may_remember=self._may_remember)
        return {(place, key): read for key, read in found.items()}

    def fill(self, wanted: Iterable[tuple[Place, FactKey]], now: datetime) -> bool:
        """Reads the facts that decisions need. Returns False if none of them is new."""
        if self._failure is not None:
            raise self._failure
        by_place: dict[Place, list[FactKey]] = {}
        for place, key in wanted:
            if (place, key) not in self._read:
                by_place.setdefault(place, []).append(key)
        for place, keys in by_place.items():
            self._read |= self._facts(place, keys, now)
        return any((place, key) in self._read for place, keys in by_place.items() for key in keys)


class DraftFacts(msgspec.Struct, gc=False):
    """The facts available to the decisions on one draft, with the gates of those that were used."""

    book: FactBook
    place: Place
    """The tenant and instance of the facts."""
    now: datetime
    gates: tuple[Gate, ...] = ()
    are_versioned: bool = True
    """Whether each of them has a gate."""

    def get(self, key: FactKey) -> Fact:
        """Returns a fact. Raises FactsNeeded if it must be read first."""
        found = self.book.get(self.place, key, self.now)
        self.gates += found.gates
        self.are_versioned = self.are_versioned and bool(found.gates)
        return found.fact


class VouchedFacts:
    """Facts that answer from the host directory's statement about people before they use the source."""

    def __init__(self, facts: Facts, people: Iterable[PersonFact]) -> None:
        self._facts = facts
        self._people = {person_fact(each.id): each for each in people}

    def get(self, key: FactKey) -> Fact:
        """Returns a fact. Raises FactsNeeded if it must be read first."""
        found = self._people.get(key)
        return self._facts.get(key) if found is None else Fact(found, 0)


def gates_of(drafted: Iterable[tuple[InstanceChange, Iterable[Gate]]]) -> list[Gate]:
    """Returns the gates that a commit checks in addition to the versions of its own instances.

    Raises StaleFactError if a decision was based on another version of one of these instances.
    """
    changes = [change for change, _ in drafted]
    wanted = {gate for _, gates in drafted for gate in gates}
    if not any(gate.kind == "instance" for gate in wanted):
        return list(wanted)
    own = {
        (each.header.tenant, each.header.partition, each.header.definition, each.header.key): each.expected
        for each in changes
        if each.header.key
    }
    left = []
    for gate in wanted:
        expected = own.get((gate.tenant, gate.partition, gate.definition, gate.key))
        if gate.kind != "instance" or expected is None:
            left.append(gate)
        elif expected != gate.version:
            raise StaleFactError(f"{gate.definition}/{gate.key} has changed since it was read")
    return left
