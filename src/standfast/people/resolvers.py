"""Resolvers of the application: functions that find people by what a run is about, registered by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TypeAlias

import msgspec

from standfast.engine.common.handlers import Fail
from standfast.errors import ConfigurationError, brief
from standfast.machine.model.engine_tasks import Data, Person
from standfast.machine.model.task_state import is_name, person_named

BUILT_IN = ("user", "role", "manager", "chain", "rule")
"""The names that the engine itself gives a meaning."""


NOBODY = Person(name="")
"""A blank in a list of people."""


class PeopleRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a resolver is asked."""

    tenant: str
    definition: str
    """The workflow that asks."""
    node: str
    """Its step."""
    of: str
    """What the definition gives the resolver; empty if nothing."""
    requester: str
    """Who wants the run; empty if the engine started it."""
    data: Data
    """What the run is about."""


Resolver: TypeAlias = Callable[[PeopleRequest], object]
"""Finds people: the id of a user, `role:<name>`, a list of such, or None. It may be called again, and is not called for its effects."""


class Resolvers:
    """The resolvers of one process, by name."""

    def __init__(self) -> None:
        self._functions: dict[str, Resolver] = {}

    def add(self, name: str, function: Resolver) -> None:
        """Make a resolver known."""
        given: tuple[object, object] = name, function  # What a caller without types gave.
        if not isinstance(given[0], str) or not name:
            raise ConfigurationError("a resolver needs a name; definitions find it by that")
        if name in BUILT_IN:
            raise ConfigurationError(f"the resolver {name!r} is the engine's own; take another name")
        if not callable(given[1]) or inspect.iscoroutinefunction(function):
            raise ConfigurationError(f"the resolver {name!r} must be a plain function of one argument, a PeopleRequest")
        before = self._functions.get(name)
        if before is not None and before != function:
            raise ConfigurationError(f"there is already another resolver {name!r}")
        self._functions[name] = function

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def ask(self, name: str, request: PeopleRequest) -> list[Person]:
        """Whom a resolver finds. What it raises is raised, so that it is tried again; an answer that means nobody and nothing is final."""
        function = self._functions.get(name)
        if function is None:
            known = ", ".join([*BUILT_IN[:-1], *sorted(self._functions)])
            hint = "" if request.of else f"; a user is written 'user:{name}', a role 'role:{name}'"
            raise LookupError(  # Another process may have it.
                f"no resolver {name!r} here; register it with `engine.resolve_people`, in every process that works; there are {known}{hint}"
            )
        return list(_people(function(request), name))


def _people(answer: object, name: str) -> Iterable[Person]:
    if answer is None:
        return
    if isinstance(answer, str) and is_name((named := person_named(answer, via=name)).name):
        yield named
    elif isinstance(answer, list | tuple | set | frozenset):
        for each in sorted(answer, key=str) if isinstance(answer, set | frozenset) else answer:
            yield from [NOBODY] if each is None else _people(each, name)
    else:
        raise Fail(
            f"the resolver {name!r} answered with {brief(answer)}; it gives the id of a user, `role:<name>`, a list of such, or None"
        )
