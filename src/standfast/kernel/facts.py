"""Facts: data that a decision reads from outside its instance, each with the version that was read.

A decision stays pure and gets facts from `moment.facts`. If a fact is neither cached nor readable there, `FactsNeeded`
aborts the decider. The engine then reads the fact and decides again. The commit verifies that every used fact is still
current.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, Protocol

import msgspec

from standfast.kernel.actor import Actor, late_request

FactKind = Literal[
    "person", "rights", "services", "rules", "settings", "document", "asked", "asks", "above", "archived"
]


class FactKey(NamedTuple):
    """Names a fact of the instance's tenant."""

    kind: FactKind
    of: str = ""
    """Type of a document, or of those that rules apply to; name of a definition; which tasks of a run count. Empty
    for other facts."""
    name: str = ""
    """Id of a person, document or run; version of a definition; action or transition that rules apply to; a request
    as text. Empty for settings."""

    def __str__(self) -> str:
        """Returns the key as histories write it, such as `person:ann` or `document:invoice/I-1`."""
        name = late_request(self.name).actor.id if self.kind == "rights" else self.name
        named = "/".join(filter(None, (self.of, name)))
        return f"{self.kind}:{named}" if named else self.kind


SETTINGS_FACT: Final = FactKey("settings")
"""The settings of the organisation. The value is a dict."""


SERVICES_FACT: Final = FactKey("services")
"""Whether the directory has service accounts. The value is a bool."""


def rights_fact(asked: str) -> FactKey:
    """Names the current rights of an earlier request's actor.

    The request is given as `late_text`; the value is a `RightsFact`.
    """
    return FactKey("rights", "", asked)


def person_fact(name: str) -> FactKey:
    """Names the directory's data about a person. The value is a `PersonFact`."""
    return FactKey("person", "", name)


def rules_fact(type_: str, action: str) -> FactKey:
    """Names the rules for an action or transition of documents of a type. The value is a list of them."""
    return FactKey("rules", type_, action)


def document_fact(type_: str, id_: str) -> FactKey:
    """Names another document in the same partition, or its active successor.

    The value is a `DocumentFact`, or None if there is no such document.
    """
    return FactKey("document", type_, id_)


def asked_fact(run: str, *, is_open: bool) -> FactKey:
    """Names the approvers of another run of the tenant, in its tasks and those of the runs that it calls: currently, or until it ends.

    The value names one task, and is empty if there is none. It is None if there is no such run. The fact has no
    version: tasks that can no longer occur never return, and possible tasks count as present.
    """
    return FactKey("asked", "open" if is_open else "ahead", run)


def asks_fact(definition: str, version: str) -> FactKey:
    """Names the approvers of possible tasks of a definition's runs.

    The value names one task, empty if there is none. It has no version.
    """
    return FactKey("asks", definition, version)


def above_fact(run: str) -> FactKey:
    """Names the people who have a say in a run of the tenant, in runs that it may call, and in its callers.

    The value names one of them, and is empty if there is none. It has no version.
    """
    return FactKey("above", "", run)


def archived_fact(definition: str, version: str) -> FactKey:
    """Names whether a version of a definition is archived, or, without a version, all of them.

    The value is the reason why no new run may start, and is empty if one may. It has no version: each process learns of
    a change within a moment.
    """
    return FactKey("archived", definition, version)


class Fact(msgspec.Struct, frozen=True, gc=False):
    """A value that was read, with its version."""

    value: object
    version: int
    """For a person, rights and service accounts, the access version of the tenant. For rules and settings, the
    number of publications. For a document, its number of events. 0 if there is none."""


class PersonFact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The directory's data about a person at the time of the commit, with the person's rights."""

    id: str
    is_kept: bool = False
    """Whether the tenant keeps people in the directory. If not, only the request determines rights."""
    is_elsewhere: bool = False
    """Whether a host directory holds the people, which a commit cannot query. The other fields are then unset, and a
    step queries it by an effect."""
    is_known: bool = False
    """Whether the directory has this person."""
    is_active: bool = True
    """False if the directory has deactivated the person. An unknown person counts as active."""
    is_away: bool = False
    roles: frozenset[str] = frozenset()
    """The roles currently granted."""
    capabilities: frozenset[str] = frozenset()
    """The capabilities that the resolvers grant to these roles."""
    is_resolved: bool = False
    """Whether there are capability resolvers, so that `capabilities` is complete."""
    stand_ins: tuple[Deputy, ...] = ()
    """People who may currently decide in this person's place."""


class RightsFact(msgspec.Struct, frozen=True, kw_only=True):
    """The rights of an earlier request's actor at the time of the commit."""

    actor: Actor | None
    """The actor with its current roles and capabilities. None if the actor may not act."""
    refusal: str = ""
    """Why the actor may not act."""
    is_elsewhere: bool = False
    """Whether a host directory holds the people, which a commit cannot query. Nothing was looked up then, and a step
    queries it by an effect."""


class Deputy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An effective delegation: the representative and its scope."""

    to: str
    role: str = ""
    """Limits it to tasks that the giver has by this role. Empty for all."""
    definition: str = ""
    """Limits it to workflows of this name. Empty for all."""
    is_here: bool = True
    """Whether the receiver is active and not absent."""


class DocumentFact(msgspec.Struct, frozen=True, kw_only=True):
    """The current state of another document, or of its successor if there is one."""

    type: str
    id: str
    status: str
    version: int
    """Version of its content."""
    data: Mapping[str, object]
    not_in_force: str = ""
    """Why the document does not count now, and what to do. Empty if it counts."""


class FactsNeeded(Exception):  # noqa: N818 - it is a request, and no error
    """Raised in a decider that needs facts that have not been read. The engine reads them and decides again."""

    def __init__(self, *keys: FactKey) -> None:
        self.keys = keys
        super().__init__(", ".join(map(str, keys)))


class Facts(Protocol):
    """Gives a decision the facts that were read for it."""

    def get(self, key: FactKey, /) -> Fact:
        """Returns a fact. Raises FactsNeeded if it has not been read."""
        ...


class GivenFacts:
    """Assumed facts, for tests and dry runs."""

    def __init__(self, facts: Mapping[FactKey, object] = MappingProxyType({})) -> None:
        self._facts = facts

    def get(self, key: FactKey) -> Fact:
        """Returns a fact. Raises FactsNeeded if none is assumed."""
        if key not in self._facts:
            raise FactsNeeded(key)
        return Fact(self._facts[key], 0)


NO_FACTS: Final = GivenFacts()
"""For decisions without facts."""


class SupposedFacts(GivenFacts):
    """Facts of an empty environment plus the assumed ones: no people, rules, settings or other documents."""

    def get(self, key: FactKey) -> Fact:
        """Returns a fact."""
        try:
            return super().get(key)
        except FactsNeeded:
            return Fact(_nothing(key), 0)


def _nothing(key: FactKey) -> object:
    match key.kind:
        case "person":
            return PersonFact(id=key.name)
        case "rights":
            return RightsFact(actor=late_request(key.name).actor)
        case "services":
            return False
        case "rules":
            return []
        case "settings":
            return {}
        case "document" | "asked":
            return None
        case "asks" | "above" | "archived":
            return ""
