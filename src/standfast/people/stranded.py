"""Questions that nobody can answer any more, because those who are asked were deactivated."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from standfast.machine.model.engine_tasks import Person
from standfast.people.directory import Look


class Stranded(msgspec.Struct, frozen=True):
    """Those of whom no answer can come: deactivated people for whom nobody stands in, and roles that nobody else has."""

    people: frozenset[str]
    roles: frozenset[str]

    def holds_up(self, asked: Iterable[Person], *, takes_several: bool) -> bool:
        """Whether a question waits for them: none of those who are asked can answer it, or one of several who have to agree cannot."""
        lost = [each.name in (self.roles if each.kind == "role" else self.people) for each in asked]
        return any(lost) if takes_several else bool(lost) and all(lost)


def stranded(look: Look) -> Stranded:
    """Who is stranded now. A delegation that is about one role or one workflow only is no remedy for a person as a whole."""
    gone = look.rows.inactive()
    crowd = look.crowd(gone)
    people = frozenset(each for each in gone if not crowd.stand_in(each, role="", definition=""))
    roles = frozenset().union(*look.roles(gone).values()) if gone else frozenset[str]()
    return Stranded(people, frozenset(each for each in roles if _is_lost(look, each)))


def _is_lost(look: Look, role: str) -> bool:
    """Whether nobody can decide as holder of a role."""
    holders = look.holders(role)
    crowd = look.crowd(holders)
    return not any(crowd.is_active(each) or crowd.stand_in(each, role=role, definition="") for each in holders)
