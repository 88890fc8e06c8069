"""Circles: managers who would be their own, delegations that lead back to their giver."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from holdfast.kernel.people import Delegation


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
    """The way from the giver of a delegation back to the giver, by others that hold at the same time in the same matters; empty if none."""
    ways = {new.receiver: [new.giver, new.receiver]}
    frontier = [new.receiver]
    while frontier:
        reached = []
        for each in given_by(frontier):
            if not (each.meets(new) and _concern_the_same(each, new)):
                continue
            if each.receiver == new.giver:
                return [*ways[each.giver], new.giver]
            if each.receiver not in ways:
                ways[each.receiver] = [*ways[each.giver], each.receiver]
                reached.append(each.receiver)
        frontier = reached
    return []


def _concern_the_same(one: Delegation, other: Delegation) -> bool:
    """Whether there is a matter that both are about."""
    pairs = ((one.role, other.role), (one.definition, other.definition))
    return all(not mine or not theirs or mine == theirs for mine, theirs in pairs)
