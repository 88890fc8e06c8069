"""Circles: managers who would be their own, delegations that lead back to their giver."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from standfast.kernel.people import Delegation


def circles_of(managers: Mapping[str, str]) -> Iterator[list[str]]:
    """Each circle once, beginning and ending with the same person."""
    done: set[str] = set()
    for start in managers:
        way: list[str] = []
        at = start
        while at and at not in done and at in managers:
            way.append(at)
            done.add(at)
            at = managers[at]
        if at in way:
            yield [*way[way.index(at) :], at]


def manager_circle(person: str, manager: str, manager_of: Callable[[str], str]) -> list[str]:
    """The way from somebody up to themselves, were they to get this manager; empty if there is none."""
    way = [person]
    at = manager
    while at and at != person:
        if at in way:  # A circle that others are in already is not theirs.
            return []
        way.append(at)
        at = manager_of(at)
    return [*way, person] if at == person else []


def delegation_circle(new: Delegation, given_by: Callable[[Collection[str]], Sequence[Delegation]]) -> list[str]:
    """The way from the giver of a delegation back to the giver, by others that all hold at one time in one matter; empty if there is none."""
    frontier = [_Way([new.giver, new.receiver], new)]
    known = {(new.receiver, new)}
    while frontier:
        givers = given_by({way.people[-1] for way in frontier})
        reached = []
        for way in frontier:
            for each in givers:
                if each.giver != way.people[-1] or not (each.meets(way.shared) and _concern_the_same(each, way.shared)):
                    continue
                if each.receiver == new.giver:
                    return [*way.people, new.giver]
                further = _Way([*way.people, each.receiver], _shared(way.shared, each))
                if each.receiver not in way.people and (each.receiver, further.shared) not in known:
                    known.add((each.receiver, further.shared))
                    reached.append(further)
        frontier = reached
    return []


class _Way(NamedTuple):
    """From the giver of a delegation to somebody who would decide in the end."""

    people: list[str]
    shared: Delegation
    """When, and in which matters, all of the delegations on the way hold."""


def _shared(one: Delegation, other: Delegation) -> Delegation:
    begins = [each.begins_at for each in (one, other) if each.begins_at is not None]
    ends = [each.ends_at for each in (one, other) if each.ends_at is not None]
    return replace(
        one,
        begins_at=max(begins, default=None),
        ends_at=min(ends, default=None),
        role=one.role or other.role,
        definition=one.definition or other.definition,
    )


def _concern_the_same(one: Delegation, other: Delegation) -> bool:
    """Whether there is a matter that both are about."""
    pairs = ((one.role, other.role), (one.definition, other.definition))
    return all(not mine or not theirs or mine == theirs for mine, theirs in pairs)
