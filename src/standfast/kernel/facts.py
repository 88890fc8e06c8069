"""Facts: what a decision reads from outside of its instance, each with the version that it was read at.

A decision stays pure. It asks `moment.facts` for a fact. If the fact is neither remembered nor can be read on the spot, `FactsNeeded` leaves the
decider, and the runtime decides again where it can read. The commit checks that every fact which a decision used is still the newest.
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
    """Names a fact of the tenant that the instance belongs to."""

    kind: FactKind
    of: str = ""
    """The type of a document, or of those that rules are for; the name of a definition; which questions of a run count. Empty for others."""
    name: str = ""
    """Id of a person, a document or a run, the version of a definition, the action or transition that rules are for, or a request as text; empty for settings."""

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
    """Names what the actor of an earlier request may do now. The request is given as `late_text`; the value is a `RightsFact`."""
    return FactKey("rights", "", asked)


def person_fact(name: str) -> FactKey:
    """Names what is known of a person. The value is a `PersonFact`."""
    return FactKey("person", "", name)


def rules_fact(type_: str, action: str) -> FactKey:
    """Names the rules that an action or a transition of documents of a type is judged by. The value is a list of them."""
    return FactKey("rules", type_, action)


def document_fact(type_: str, id_: str) -> FactKey:
    """Names another document, in the same partition, or what is in force in its place. The value is a `DocumentFact`, or None if there is no such document."""
    return FactKey("document", type_, id_)


def asked_fact(run: str, *, is_open: bool) -> FactKey:
    """Names the people whom another run of the tenant asks, itself or in the runs that it calls: now, or also before it ends.

    The value names one question, and is empty if there is none; None if there is no such run. It has no version: what a run will not ask
    any more, it never asks, and what it still may ask counts as if it did.
    """
    return FactKey("asked", "open" if is_open else "ahead", run)


def asks_fact(definition: str, version: str) -> FactKey:
    """Names the people whom runs of a definition may ask. The value names one question, and is empty if there is none. It has no version."""
    return FactKey("asks", definition, version)


def above_fact(run: str) -> FactKey:
    """Names the people who have a say in a run of the tenant, in those that it may call, and in those that it was called by.

    The value names one of them, and is empty if there is nobody. It has no version.
    """
    return FactKey("above", "", run)


def archived_fact(definition: str, version: str) -> FactKey:
    """Names whether a version of a definition is archived, or, without one, all of them.

    The value says why nothing new begins with it, and is empty if it may. It has no version: each process learns of it within a moment.
    """
    return FactKey("archived", definition, version)


class Fact(msgspec.Struct, frozen=True, gc=False):
    """A value that was read, with the version of what it was read from."""

    value: object
    version: int
    """Of a person, rights and service accounts the access version of the tenant, of rules and settings how often they were published, of a document its number of events; 0 if there is none."""


class PersonFact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the directory knows of a person at the time of the commit, and what that lets them do."""

    id: str
    is_kept: bool = False
    """Whether the tenant keeps people in the directory at all. Where it does not, only the request says who may do what."""
    is_elsewhere: bool = False
    """Whether the people are in a directory of the host, which no commit can ask: then nothing else is told here. A step asks it by an effect."""
    is_known: bool = False
    """Whether the directory has this person."""
    is_active: bool = True
    """False if the directory has deactivated them. A person whom the directory does not have counts as active."""
    is_away: bool = False
    roles: frozenset[str] = frozenset()
    """The roles that are granted to them now."""
    capabilities: frozenset[str] = frozenset()
    """What the capability resolvers grant to these roles."""
    is_resolved: bool = False
    """Whether there are capability resolvers, so that `capabilities` is the whole of what they may do."""
    stand_ins: tuple[Deputy, ...] = ()
    """Who may decide in their place now."""


class RightsFact(msgspec.Struct, frozen=True, kw_only=True):
    """What the actor of an earlier request may do at the time of the commit."""

    actor: Actor | None
    """With the roles and capabilities of now; None if they may not act."""
    refusal: str = ""
    """Why they may not act."""
    is_elsewhere: bool = False
    """Whether the people are in a directory of the host, which no commit can ask: then nothing was looked up. A step asks it by an effect."""


class Deputy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A delegation that holds: who stands in, and for what."""

    to: str
    role: str = ""
    """Only for what the giver is asked as holder of this role; empty for all."""
    definition: str = ""
    """Only in workflows of this name; empty for all."""
    is_here: bool = True
    """Whether the receiver is active and not away."""


class DocumentFact(msgspec.Struct, frozen=True, kw_only=True):
    """Another document as it stands: the one that has taken its place, if one has."""

    type: str
    id: str
    status: str
    version: int
    """Counts the changes of its content."""
    data: Mapping[str, object]
    not_in_force: str = ""
    """Why it does not count now, and what to do; empty if it counts."""


class FactsNeeded(Exception):  # noqa: N818 - it is a question, and no error
    """Leaves a decider that asked for facts which nobody has read yet. The runtime reads them and decides again."""

    def __init__(self, *keys: FactKey) -> None:
        self.keys = keys
        super().__init__(", ".join(map(str, keys)))


class Facts(Protocol):
    """Gives the facts that were read for a decision."""

    def get(self, key: FactKey, /) -> Fact:
        """Returns a fact. Raises FactsNeeded if it has not been read."""
        ...


class GivenFacts:
    """Facts that somebody supposes: for tests, and for dry runs."""

    def __init__(self, facts: Mapping[FactKey, object] = MappingProxyType({})) -> None:
        self._facts = facts

    def get(self, key: FactKey) -> Fact:
        """Returns a fact. Raises FactsNeeded if none was supposed."""
        if key not in self._facts:
            raise FactsNeeded(key)
        return Fact(self._facts[key], 0)


NO_FACTS: Final = GivenFacts()
"""For decisions that nobody reads facts for."""


class SupposedFacts(GivenFacts):
    """Facts of a world in which nothing is known beyond what is supposed: nobody is in a directory, no rules, no settings, no other document."""

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
