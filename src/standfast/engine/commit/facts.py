"""Facts in a commit: who acts, with which rights, and what decisions read from outside of their instance.

The application gives a source. On the quick way a fact may come from memory, because the commit checks its version. On the careful way
every fact is read anew, in the transaction that writes.
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
"""How many facts decisions of one commit get at once. For more they are made anew, so often and no more: one that asks without end fails."""


class Place(NamedTuple):
    """Whose facts are asked for."""

    tenant: str
    partition: str


class Read(NamedTuple):
    """A fact, and the gates that prove it."""

    fact: Fact
    gates: tuple[Gate, ...] = ()
    error: Exception | None = None
    """Why it cannot be told: whoever asks for it fails by this, and others in the same commit do not."""


class Authorised(NamedTuple):
    """A request whose actor has the rights of this moment, and the gates that prove them."""

    request: RequestContext
    gates: tuple[Gate, ...] = ()


class StandsIn(NamedTuple):
    """For whom the actor acts by a delegation of the directory, as the front end has found out; the commit checks it."""

    name: str
    roles: frozenset[str] = frozenset()
    """The roles by which that one is asked; empty if by name."""
    lent: frozenset[str] = frozenset()
    """All of their roles, if they are asked by name: what a question takes they may have by one."""


class Vouched(msgspec.Struct, frozen=True, kw_only=True):
    """What a directory of the host has said of an actor, for this very command."""

    at: datetime
    roles: frozenset[str] = frozenset()
    directory: str = ""
    """The class of the directory."""
    granted: frozenset[str] | None = None
    """All roles that it grants to the actor; None if it does not have the actor, or grants no roles at all."""
    is_known: bool = False
    """Whether it has the actor."""
    is_person: bool = False
    """Whether it has them as a person, and not as a service account."""
    people: tuple[PersonFact, ...] = ()
    """What it has said of others, on whom it depends whether the actor may do this."""


class Acting(NamedTuple):
    """For whom a command is carried out."""

    asked: RequestContext
    """The request as its caller made it."""
    stands_in: StandsIn | None = None
    vouched: Vouched | None = None


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants to have a command carried out, as the caller said it."""

    request: RequestContext
    tenant: str
    """Of the instance, whatever the request says."""
    definition: str = ""
    """Of the instance; empty if the address does not name it."""
    stands_in: StandsIn | None = None
    vouched: Vouched | None = None
    """What the host's directory has said; None if it was not asked."""


class FactSource(Protocol):
    """Where the facts of an engine come from. `known` and `authorised` answer from memory, and ask nobody."""

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
    """For engines whose commands carry everything: nothing is read, and every actor is as the request says."""

    def known(self, place: Place, key: FactKey, now: datetime) -> Read | None:
        """Returns nothing."""
        del place, key, now
        return None

    def read(
        self, look: FactLook, place: Place, keys: Sequence[FactKey], now: datetime, *, may_remember: bool
    ) -> dict[FactKey, Read]:
        """Reads nothing."""
        del look, place, keys, now, may_remember
        return {}

    def authorised(self, asking: Asking, now: datetime) -> Authorised | None:
        """Takes the request at its word."""
        del now
        return Authorised(asking.request)

    def authorise(self, look: FactLook, asking: Asking, now: datetime, *, may_remember: bool) -> Authorised:
        """Takes the request at its word."""
        del look, now, may_remember
        return Authorised(asking.request)


class FactBook:
    """The facts of one batch: from memory if nothing is to be read, and otherwise those that were read for it."""

    __slots__ = ("_at_once", "_failure", "_look", "_may_remember", "_read", "_rights", "_source")

    def __init__(self, source: FactSource, look: FactLook | None = None, *, may_remember: bool = True) -> None:
        self._source = source
        self._look = look
        self._may_remember = may_remember
        self._read: dict[tuple[Place, FactKey], Read] = {}
        self._at_once = 0
        """How many were read while a decision was made."""
        self._failure: Exception | None = None
        """What a fact could not be read by; nothing can be read behind it."""
        self._rights: dict[tuple[int, str, datetime], tuple[RequestContext, Authorised]] = {}
        """By the number of the request, which stands beside the answer so that no other one gets it, by tenant and instant."""

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
        """Returns a request with the rights of this moment; None if they must be read first. Raises ForbiddenError."""
        is_plain = asking.stands_in is None and asking.vouched is None
        key = (id(asking.request), asking.tenant, now)
        if is_plain and key in self._rights:
            return self._rights[key][1]  # It was judged at this very instant.
        if self._look is None:
            found = self._source.authorised(asking, now)
        else:
            found = self._source.authorise(self._look, asking, now, may_remember=self._may_remember)
        if is_plain and found is not None:
            self._rights[key] = (asking.request, found)
        return found

    def _found(self, place: Place, key: FactKey, now: datetime) -> Read | None:
        """Reads a fact that a decision asks for. What keeps it from being read is raised by `fill`: it is no failure of the decision."""
        if self._failure is None and self._at_once < _MOST_AT_ONCE:
            self._at_once += 1
            try:
                self._read |= self._facts(place, [key], now)
            except Exception as error:  # noqa: BLE001 - whatever it is, the whole commit fails by it
                self._failure = error
        return self._read.get((place, key))

    def _facts(self, place: Place, keys: Sequence[FactKey], now: datetime) -> dict[tuple[Place, FactKey], Read]:
        assert self._look is not None
        found = self._source.read(self._look, place, keys, now, may_remember=self._may_remember)
        return {(place, key): read for key, read in found.items()}

    def fill(self, wanted: Iterable[tuple[Place, FactKey]], now: datetime) -> bool:
        """Reads facts that decisions have asked for; False if none of them is new."""
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
    """The facts that the decisions on one draft can ask for, and the gates of those that they did."""

    book: FactBook
    place: Place
    """Whose facts they are."""
    now: datetime
    gates: tuple[Gate, ...] = ()

    def get(self, key: FactKey) -> Fact:
        """Returns a fact. Raises FactsNeeded if it must be read first."""
        found = self.book.get(self.place, key, self.now)
        self.gates += found.gates
        return found.fact


class VouchedFacts:
    """Facts, and before them what a directory of the host has said of people for one command."""

    def __init__(self, facts: Facts, people: Iterable[PersonFact]) -> None:
        self._facts = facts
        self._people = {person_fact(each.id): each for each in people}

    def get(self, key: FactKey) -> Fact:
        """Returns a fact. Raises FactsNeeded if it must be read first."""
        found = self._people.get(key)
        return self._facts.get(key) if found is None else Fact(found, 0)


def gates_of(drafted: Iterable[tuple[InstanceChange, Iterable[Gate]]]) -> list[Gate]:
    """Returns the gates that a commit has to check besides the versions of the instances that it changes itself.

    Raises StaleFactError if a decision was based on another version of one of these.
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
