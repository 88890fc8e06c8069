"""Where the facts of an engine come from: people, the rules and settings of organisations, documents.

What is remembered is remembered with its version. The commit that relies on it checks that the version is still the newest.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from standfast.calls.catalog.organisation_settings import (
    RULES,
    SETTINGS,
    Data,
    OrganisationRules,
    OrganisationSettings,
    body_of,
)
from standfast.calls.catalog.registry import Registry
from standfast.calls.handlers.step_handlers import plain_data
from standfast.calls.people_in_runs import PeopleBelow
from standfast.engine.commit.facts import Asking, Authorised, Place, Read
from standfast.engine.dispatcher import Dispatcher
from standfast.errors import ForbiddenError
from standfast.kernel.actor import late_request
from standfast.kernel.facts import DocumentFact, Fact, FactKey, FactsNeeded, RightsFact
from standfast.kernel.people import DirectoryLook
from standfast.machine.recovery.passed_steps import Called
from standfast.people.access_facts import Access, Accesses, UnreadError
from standfast.people.authorization import authorize
from standfast.store.ports.facts import DocumentFactRecord, FactLook, Gate

_MOST_DOCUMENTS: Final = 1_000
_MOST_TENANTS: Final = 1_000
_PAGE_OF_PEOPLE: Final = 1_000
_decode = msgspec.json.Decoder(dict[str, object]).decode

_OF_PEOPLE: Final = frozenset({"person", "rights", "services"})
_OF_RUNS: Final = frozenset({"asked", "asks", "above"})
"""What is never remembered: it is read for each operator who needs it."""

Body = OrganisationRules | Data | None


class _Charter(NamedTuple):
    """What an organisation has published under a name."""

    version: int
    """Counts what was published under it; 0 if nothing was."""
    body: Body


class EngineFacts:
    """The source of one engine."""

    def __init__(self, accesses: Accesses, registry: Registry, *, limit: int) -> None:
        self.accesses = accesses
        self._limit = limit
        self._registry = registry
        self._charters: OrganisationSettings = registry.charters
        self._kept = _Kept()

    def known(self, place: Place, key: FactKey, now: datetime) -> Read | None:
        """Returns a fact from memory; None if it must be read."""
        if key.kind in _OF_PEOPLE:
            access = self.accesses.known(place.tenant)
            return None if access is None else self._remembered(access, place, key, now)
        if key.kind in _OF_RUNS:
            return None
        if key.kind == "archived":
            return self._archived(place, key) if self._registry.library.is_fresh else None
        if key.kind == "document":
            return self._kept.document(place, key)
        found = self._kept.charter(place.tenant, _charter_of(key))
        return None if found is None else self._told(place, key, *found)

    def read(
        self, look: FactLook, place: Place, keys: Sequence[FactKey], now: datetime, *, may_remember: bool
    ) -> dict[FactKey, Read]:
        """Reads facts, each behind its version."""
        found: dict[FactKey, Read] = {}
        for key in keys:
            if key.kind in _OF_PEOPLE:
                access = self.accesses.read(look, place.tenant, may_remember=may_remember)
                found[key] = self._of_people(access, look, place, key, now=now)
            elif key.kind == "document":
                found[key] = self._document(look, place, key, may_remember=may_remember)
            elif key.kind in _OF_RUNS:
                found[key] = self._people_below(look, place, key)
            elif key.kind == "archived":
                found[key] = self._archived(place, key)
            else:
                found[key] = self._charter(look, place, key, may_remember=may_remember)
        return found

    def authorised(self, asking: Asking, now: datetime) -> Authorised | None:
        """Returns a request with the actor's present rights, from memory; None if they must be read."""
        access = self.accesses.known(asking.tenant)
        if access is None:
            return None
        try:
            return self._authorised(access, asking, now)
        except UnreadError:
            return None

    def authorise(self, look: FactLook, asking: Asking, now: datetime, *, may_remember: bool) -> Authorised:
        """Reads the actor's present rights."""
        return self._authorised(self.accesses.read(look, asking.tenant, may_remember=may_remember), asking, now)

    def _authorised(self, access: Access, asking: Asking, now: datetime) -> Authorised:
        return Authorised(authorize(access, asking, self.accesses.resolvers, now), (access.gate,))

    def _remembered(self, access: Access, place: Place, key: FactKey, now: datetime) -> Read | None:
        try:
            return self._of_people(access, None, place, key, now=now)
        except UnreadError:
            return None

    def _of_people(self, access: Access, look: FactLook | None, place: Place, key: FactKey, *, now: datetime) -> Read:
        match key.kind:
            case "rights":
                value: object = self._rights(access, place, key, now)
            case "services":
                value = self._has_services(access, look, place.tenant)
            case _:
                value = access.fact(key.name, now)
        return Read(Fact(value, access.version), (access.gate,))

    def _rights(self, access: Access, place: Place, key: FactKey, now: datetime) -> RightsFact:
        asking = Asking(request=late_request(key.name), tenant=place.tenant)
        try:
            actor = authorize(access, asking, self.accesses.resolvers, now).actor
        except ForbiddenError as error:
            return RightsFact(
                actor=None, refusal=str(error).removesuffix(f" [{error.reason}]"), is_elsewhere=access.is_elsewhere
            )
        return RightsFact(actor=actor, is_elsewhere=access.is_elsewhere)

    def _has_services(self, access: Access, look: FactLook | None, tenant: str) -> bool:
        known = self._kept.services.get(tenant)
        if known is not None and known[0] == access.version:
            return known[1]
        if access.is_elsewhere:
            return False
        if look is None:
            raise UnreadError("services")
        directory = self.accesses.directory
        with look.people(tenant) if directory.has_versions else directory.looking(tenant) as rows:
            found = bool(services_in(rows))
        if directory.has_versions:
            self._kept.keep_services(tenant, access.version, found)
        return found

    def _document(self, look: FactLook, place: Place, key: FactKey, *, may_remember: bool) -> Read:
        """What is in force in the place of a document: those that have taken its place are followed to the last one."""
        found = last = look.document(*place, key.of, key.name)
        gates = {key.name: _gate(place, key, 0 if found is None else found.version)}
        told = ""
        while found is not None and (name := found.row.superseded_by):
            found = None if name in gates else look.document(*place, key.of, name)
            gates.setdefault(name, _gate(place, key._replace(name=name), 0 if found is None else found.version))
            if found is None:
                told = f"{key.of} {name!r} took the place of {key.name!r} and is not there; refer to another document"
            last = found or last
        if last is not None and not told and last.row.is_amending:
            told = f"{key.of} {last.row.id!r} is an amendment and {last.row.status!r}, so nothing is in force"
            told += "; finish the amendment, then do what `why` names; if it was closed, refer to another document"
        read = Read(_document_fact(last, told), tuple(gates.values()))
        if may_remember:
            self._kept.keep_document(place, key, read)
        return read

    def _archived(self, place: Place, key: FactKey) -> Read:
        return Read(Fact(self._registry.library.closed(place.tenant, key.of, key.name), 0))

    def _people_below(self, look: FactLook, place: Place, key: FactKey) -> Read:
        below = PeopleBelow(self._registry, look, place.tenant)
        if key.kind == "asks":
            return Read(Fact(below.of_definition(Called(key.of, key.name)), 0))
        if key.kind == "above":
            return Read(Fact(below.above(key.name), 0))
        return Read(Fact(below.of_run(key.name, is_open=key.of == "open"), 0))

    def _charter(self, look: FactLook, place: Place, key: FactKey, *, may_remember: bool) -> Read:
        version, name = look.versions(place.tenant).charters, _charter_of(key)
        known = self._kept.charter(place.tenant, name)
        if known is not None and known[0] == version:
            return self._told(place, key, *known)
        stored = look.charter(place.tenant, name)
        charter = _Charter(0, None) if stored is None else _Charter(stored.version, body_of(stored))
        if may_remember:
            self._kept.keep_charter(place.tenant, name, version, charter)
        return self._told(place, key, version, charter)

    def _told(self, place: Place, key: FactKey, version: int, charter: _Charter) -> Read:
        """What was published, joined by what the application says itself, which has no version."""
        gates = (Gate("charters", place.tenant, version),)
        try:
            value = self._joined(place.tenant, key, charter.body)
        except Exception as error:  # noqa: BLE001 - the application's own code, and each asker's own failure
            return Read(Fact(None, charter.version), gates, error)
        return Read(Fact(value, charter.version), gates)

    def _joined(self, tenant: str, key: FactKey, body: Body) -> object:
        told = self._charters
        if key.kind != "settings":
            return told.rules_with(tenant, key.of, key.name, body)
        settings = told.settings_with(tenant, body)
        return settings if told.organisation is None else plain_data(settings, "organisation", limit=self._limit)


class ReadFacts:
    """Facts for a question that no commit answers: each is read when it is asked for, on a connection for reading."""

    def __init__(self, service: Dispatcher, place: Place) -> None:
        self._service = service
        self._place = place
        self._known: dict[FactKey, Fact] = {}

    def get(self, key: FactKey) -> Fact:
        """Returns a fact as it was when it was asked for first."""
        if key not in self._known:
            self._known[key] = self._read(key)
        return self._known[key]

    def _read(self, key: FactKey) -> Fact:
        source, now = self._service.around.facts, self._service.shared.clock.now()
        with self._service.store.survey() as parts, parts.writer().looking() as look:
            found = source.read(look, self._place, [key], now, may_remember=True)
        if key not in found:
            raise FactsNeeded(key)
        read = found[key]
        if read.error is not None:
            raise read.error
        return read.fact


class _Kept:
    """What is remembered of documents and charters."""

    def __init__(self) -> None:
        self._documents: OrderedDict[tuple[Place, FactKey], Read] = OrderedDict()
        self._charters: OrderedDict[str, tuple[int, dict[str, _Charter]]] = OrderedDict()
        self.services: dict[str, tuple[int, bool]] = {}
        """Whether the directory of a tenant has service accounts, at a version."""
        self._guard = threading.Lock()

    def keep_services(self, tenant: str, version: int, found: bool) -> None:  # noqa: FBT001 - what is kept
        with self._guard:
            if len(self.services) >= _MOST_TENANTS:
                self.services = {}
            self.services[tenant] = (version, found)

    def document(self, place: Place, key: FactKey) -> Read | None:
        return self._documents.get((place, key))

    def keep_document(self, place: Place, key: FactKey, read: Read) -> None:
        with self._guard:
            self._documents[place, key] = read
            self._documents.move_to_end((place, key))
            if len(self._documents) > _MOST_DOCUMENTS:
                self._documents.popitem(last=False)

    def charter(self, tenant: str, name: str) -> tuple[int, _Charter] | None:
        found = self._charters.get(tenant)
        return None if found is None or name not in found[1] else (found[0], found[1][name])

    def keep_charter(self, tenant: str, name: str, version: int, charter: _Charter) -> None:
        with self._guard:
            found = self._charters.get(tenant)
            bodies = dict(found[1]) if found is not None and found[0] == version else {}
            bodies[name] = charter
            self._charters[tenant] = (version, bodies)
            self._charters.move_to_end(tenant)
            if len(self._charters) > _MOST_TENANTS:
                self._charters.popitem(last=False)


def _charter_of(key: FactKey) -> str:
    """Returns the name of the charter that a fact stands in."""
    return SETTINGS if key.kind == "settings" else f"{RULES}{key.of}"


def _document_fact(found: DocumentFactRecord | None, not_in_force: str) -> Fact:
    if found is None:
        return Fact(None, 0)
    row = found.row
    fact = DocumentFact(
        type=row.type,
        id=row.id,
        status=row.status,
        version=row.version,
        data=_decode(row.data),
        not_in_force=not_in_force,
    )
    return Fact(fact, found.version)


def _gate(place: Place, key: FactKey, version: int) -> Gate:
    return Gate("instance", place.tenant, version, place.partition, key.of, key.name)


def services_in(rows: DirectoryLook) -> list[str]:
    """The service accounts that the directory knows, as many as a suggestion needs."""
    after = ""
    while page := rows.page(after=after, limit=_PAGE_OF_PEOPLE):
        found = [each.id for each in page if each.kind == "service"]
        if found:
            return found
        after = page[-1].id
    return []
