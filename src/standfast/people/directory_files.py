"""A directory in a YAML file: what it may say, and all that is wrong with it at once, each with its place.

How files of people and of rights are read: a name that is there twice says two things, and neither counts.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import msgspec

from standfast.errors import ConfigurationError
from standfast.kernel.people import Absence, Delegation, Grant, Principal, is_address
from standfast.people.cycles import circles_of, delegation_circle

if TYPE_CHECKING:
    import yaml


@cache
def _loader() -> type[yaml.SafeLoader]:
    """The loader; made by the first file, so that engines without files load no YAML library."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses a name that is given twice in one place, of which the library keeps the last without a word."""

        def construct_yaml_map(self, node: yaml.MappingNode) -> Generator[dict[object, object], None, None]:
            seen: dict[str, yaml.Node] = {}
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue
                if key.value in seen:
                    line = seen[key.value].start_mark.line + 1
                    told = f"{key.value!r} was given before, in line {line}; keep one of them"
                    raise yaml.constructor.ConstructorError(None, None, told, key.start_mark)
                seen[key.value] = key
            return super().construct_yaml_map(node)

    Loader.add_constructor("tag:yaml.org,2002:map", Loader.construct_yaml_map)
    return Loader


def loaded(text: str) -> object:
    """What a text in YAML says; YAMLError if it says it twice, or cannot be read."""
    import yaml

    given: object = yaml.load(text, Loader=_loader())  # noqa: S506 - a safe one
    return given


_TOP = ("people", "delegations", "absences")
_PERSON = ("name", "email", "kind", "active", "manager", "roles", "attributes")
_PERIOD = ("begins", "ends")
_GRANT = ("role", *_PERIOD)
_DELEGATION = ("from", "to", "role", "definition", "reason", *_PERIOD)
_ABSENCE = ("who", "reason", *_PERIOD)


class Roster(msgspec.Struct, frozen=True, kw_only=True):
    """All that a file says."""

    principals: list[Principal] = []
    grants: list[Grant] = []
    delegations: list[Delegation] = []
    absences: list[Absence] = []


def read_roster(path: str | Path) -> Roster:
    """The people of a file; ConfigurationError that names all faults."""
    import yaml

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the directory {str(path)!r} cannot be read: {error}") from error
    try:
        given: object = loaded(text)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"the directory {str(path)!r} is not YAML: {error}") from error
    reading = _Reading()
    roster = reading.roster(given)
    faults = reading.faults or list(_contradictions(roster))
    if faults:
        lines = "".join(f"\n  - {each}" for each in faults)
        raise ConfigurationError(f"the directory {str(path)!r} cannot be used:{lines}")
    return roster


class _Reading:
    """Takes a document apart and gathers what is wrong with it."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def roster(self, given: object) -> Roster:
        document = self._mapping(given, "the file", _TOP)
        principals: list[Principal] = []
        grants: list[Grant] = []
        for name, said in self._named(document.get("people", {})):
            where = f"people.{name}"
            fields = self._mapping({} if said is None else said, where, _PERSON)
            principals.append(self._principal(name, fields, where))
            grants += self._grants(name, fields.get("roles", []), f"{where}.roles")
        return Roster(
            principals=principals,
            grants=grants,
            delegations=[self._delegation(*each) for each in self._listed(document, "delegations", _DELEGATION)],
            absences=[self._absence(*each) for each in self._listed(document, "absences", _ABSENCE)],
        )

    def _principal(self, name: str, fields: Mapping[str, object], where: str) -> Principal:
        kind = self._text(fields, "kind", where) or "user"
        if kind not in {"user", "service"}:
            self.faults.append(f"{where}.kind: it is `user` or `service`, not {kind!r}")
        is_active = fields.get("active", True)
        if not isinstance(is_active, bool):
            self.faults.append(f"{where}.active: it is `true` or `false`, not {is_active!r}")
        attributes = fields.get("attributes", {})
        if not isinstance(attributes, dict):
            self.faults.append(f"{where}.attributes: give names with values, not {attributes!r}")
        email = self._text(fields, "email", where)
        if email and not is_address(email):
            self.faults.append(f"{where}.email: {email!r} is no address that mail can be sent to")
        return Principal(
            id=name,
            kind=cast("Literal['user', 'service']", kind),
            name=self._text(fields, "name", where),
            email=email,
            is_active=bool(is_active),
            manager=self._text(fields, "manager", where),
            attributes=attributes if isinstance(attributes, dict) else {},
        )

    def _grants(self, name: str, given: object, where: str) -> Iterator[Grant]:
        if not isinstance(given, list):
            self.faults.append(f"{where}: give a list of roles, not {given!r}")
            return
        for number, each in enumerate(given):
            place = f"{where}[{number}]"
            fields = self._mapping({"role": each} if isinstance(each, str) else each, place, _GRANT)
            role = self._text(fields, "role", place, is_needed=True)
            begins_at, ends_at = self._period(fields, place)
            yield Grant(principal=name, role=role, begins_at=begins_at, ends_at=ends_at)

    def _delegation(self, fields: Mapping[str, object], where: str) -> Delegation:
        begins_at, ends_at = self._period(fields, where)
        return Delegation(
            giver=self._text(fields, "from", where, is_needed=True),
            receiver=self._text(fields, "to", where, is_needed=True),
            role=self._text(fields, "role", where),
            definition=self._text(fields, "definition", where),
            reason=self._text(fields, "reason", where),
            begins_at=begins_at,
            ends_at=ends_at,
        )

    def _absence(self, fields: Mapping[str, object], where: str) -> Absence:
        begins_at, ends_at = self._period(fields, where)
        who = self._text(fields, "who", where, is_needed=True)
        return Absence(principal=who, reason=self._text(fields, "reason", where), begins_at=begins_at, ends_at=ends_at)

    def _period(self, fields: Mapping[str, object], where: str) -> tuple[datetime | None, datetime | None]:
        begins_at = self._instant(fields, "begins", where)
        ends_at = self._instant(fields, "ends", where, is_end=True)
        if begins_at is not None and ends_at is not None and ends_at <= begins_at:
            self.faults.append(f"{where}.ends: the period ends before it begins")
        return begins_at, ends_at

    def _instant(self, fields: Mapping[str, object], key: str, where: str, *, is_end: bool = False) -> datetime | None:
        """A date begins at midnight, UTC, and as an end counts itself: who is away until the 14th is away on the 14th."""
        given = fields.get(key)
        if isinstance(given, datetime):
            return given if given.tzinfo else given.replace(tzinfo=UTC)
        if isinstance(given, date):
            return datetime.combine(given + timedelta(days=int(is_end)), time(), tzinfo=UTC)
        if given is not None:
            self.faults.append(f"{where}.{key}: give a date such as 2026-07-01, or a time, not {given!r}")
        return None

    def _text(self, fields: Mapping[str, object], key: str, where: str, *, is_needed: bool = False) -> str:
        given = fields.get(key, "")
        if not isinstance(given, str):
            self.faults.append(f"{where}.{key}: give text, in quotes if need be, not {given!r}")
            return ""
        if is_needed and not given:
            self.faults.append(f"{where}.{key}: it must be said")
        return given

    def _listed(
        self, document: Mapping[str, object], key: str, known: tuple[str, ...]
    ) -> Iterator[tuple[Mapping[str, object], str]]:
        given = document.get(key, [])
        if not isinstance(given, list):
            self.faults.append(f"{key}: give a list, not {given!r}")
            return
        for number, each in enumerate(given):
            where = f"{key}[{number}]"
            yield self._mapping(each, where, known), where

    def _named(self, given: object) -> Iterator[tuple[str, object]]:
        if not isinstance(given, dict):
            self.faults.append(f"people: give ids with what is to be known of each, not {given!r}")
            return
        for name, said in given.items():
            if isinstance(name, str) and name:
                yield name, said
            else:
                self.faults.append(f"people: an id is text, in quotes if need be, not {name!r}")

    def _mapping(self, given: object, where: str, known: tuple[str, ...]) -> Mapping[str, object]:
        if not isinstance(given, dict):
            self.faults.append(f"{where}: give some of {', '.join(known)}, not {given!r}")
            return {}
        for key in given:
            if key not in known:
                close = get_close_matches(str(key), known, n=1)
                remedy = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
                self.faults.append(f"{where}: unknown key {key!r}; {remedy}")
        return given


def _contradictions(roster: Roster) -> Iterator[str]:
    """What each part of a file may say, but not all of them together."""
    known = {each.id for each in roster.principals}
    named = [(f"people.{each.id}.manager", each.manager) for each in roster.principals if each.manager]
    for number, each in enumerate(roster.delegations):
        named += [(f"delegations[{number}].from", each.giver), (f"delegations[{number}].to", each.receiver)]
        if each.giver == each.receiver:
            yield f"delegations[{number}]: nobody can stand in for themselves"
        elif circle := delegation_circle(each, lambda givers: [d for d in roster.delegations if d.giver in givers]):
            yield f"delegations[{number}]: it leads back to its giver: {' → '.join(circle)}"
    named += [(f"absences[{number}].who", each.principal) for number, each in enumerate(roster.absences)]
    for where, name in named:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            yield f"{where}: nobody here is called {name!r}{f'; did you mean {close[0]!r}?' if close else ''}"
    for circle in circles_of({each.id: each.manager for each in roster.principals}):
        yield f"people.{circle[0]}.manager: they would be their own manager: {' → '.join(circle)}"
