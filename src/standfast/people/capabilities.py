"""Who may do what: resolvers that say which capabilities a request has, by its roles, by its claims, or as a host system knows it.

What nobody grants, nobody has. A resolver is asked once for each request, and what it grants goes with the actor all the way, so that a
decision needs to ask nobody.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from msgspec.structs import replace

from standfast.errors import ConfigurationError, StandfastError, brief, indefinite
from standfast.expressions.model.suggestions import suggestion
from standfast.kernel.actor import Actor, RequestContext

_EVERYTHING: Final = "*"
_TOP: Final = ("roles", "tenants")
_TENANT: Final = ("roles",)
_LARGEST: Final = 1_000_000
"""Characters of a file."""

Roles = Mapping[str, frozenset[str]]


class CapabilityResolver(ABC):
    """Says what a request may do."""

    @abstractmethod
    def granted(self, request: RequestContext, /) -> Iterable[str]:
        """The capabilities of a request: `orders:start`, or with a star at the end for whatever follows, as `orders.*` and `*`.

        It is answered at once, without asking the world: what has to be looked up belongs into the directory, or into the claims.
        """
        ...

    def has(self, request: RequestContext, capability: str) -> bool:
        """Whether a request has a capability by this resolver, or by what its actor brings along."""
        return with_capabilities([self], request).actor.may(capability)


class Capabilities(CapabilityResolver):
    """What roles may do: for all tenants, and otherwise for some. What a tenant says of a role takes the place of what all have."""

    def __init__(
        self,
        roles: Mapping[str, Iterable[str]],
        *,
        tenants: Mapping[str, Mapping[str, Iterable[str]]] | None = None,
    ) -> None:
        reading = _Reading()
        self._roles = reading.roles(roles, "roles")
        self._tenants = {
            name: {**self._roles, **reading.roles(own, f"tenants.{name}.roles")}
            for name, own in (tenants or {}).items()
        }
        reading.end("the capabilities")

    @classmethod
    def from_file(cls, path: str | Path) -> Capabilities:
        """Those of a YAML file. It is read once; ConfigurationError with all its faults if it cannot be."""
        where = f"the capabilities {str(path)!r}"
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"{where} cannot be read: {error}") from error
        if len(text) > _LARGEST:
            raise ConfigurationError(f"{where} have more than {_LARGEST} characters; a role may have stars")
        import yaml  # Loaded where a file is read.

        from standfast.people.directory_files import loaded

        try:
            given: object = loaded(text)
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            raise ConfigurationError(f"{where} are not YAML: {error}") from error
        reading = _Reading()
        document = reading.fields(given, "the file", _TOP)
        shared = reading.roles(document.get("roles", {}), "roles")
        tenants = {
            name: reading.roles(
                reading.fields(said, f"tenants.{name}", _TENANT).get("roles", {}), f"tenants.{name}.roles"
            )
            for name, said in reading.named(document.get("tenants", {}), "tenants")
        }
        reading.end(where)
        return cls(shared, tenants=tenants)

    @property
    def named(self) -> frozenset[str]:
        """All that roles have, of all tenants, stars included."""
        return frozenset(
            each for roles in (self._roles, *self._tenants.values()) for have in roles.values() for each in have
        )

    def grant(self, capability: str) -> bool:
        """Whether there is a role, of whichever tenant, that has a capability."""
        return Actor(id="anybody", capabilities=self.named).may(capability)

    def granted(self, request: RequestContext) -> Iterator[str]:
        """Those of the roles of the actor."""
        known = self._tenants.get(request.tenant, self._roles)
        for role in request.actor.roles:
            yield from known.get(role, ())


class ClaimedCapabilities(CapabilityResolver):
    """What the claims of a request say, such as those of a token: a list of capabilities, or a text with spaces between them, as `scope`.

    `claim` is the name of the claim, with dots for one inside of another: `resource_access.standfast.roles`.
    """

    def __init__(self, claim: str) -> None:
        given: object = claim  # What a caller without types gave.
        if not isinstance(given, str) or not given:
            raise ConfigurationError(f"a claim is given by its name, not as {given!r}")
        self._claim = given

    def granted(self, request: RequestContext) -> Sequence[str]:
        """Those of the claim; none if it says anything else."""
        found: object = request.claims.get(self._claim)
        if found is None:
            found = request.claims
            for name in self._claim.split("."):
                found = found.get(name) if isinstance(found, Mapping) else None
        if isinstance(found, str):
            return found.split()
        return [each for each in found if isinstance(each, str) and each] if isinstance(found, list | tuple) else []


def with_capabilities(resolvers: Sequence[CapabilityResolver], request: RequestContext) -> RequestContext:
    """The request of an actor who has what the resolvers grant, besides what they bring along."""
    actor = request.actor
    if not resolvers or actor.kind == "system":
        return request
    granted = frozenset(each for resolver in resolvers for each in _granted(resolver, request))
    return replace(request, actor=replace(actor, capabilities=actor.capabilities | granted)) if granted else request


def with_front_end(request: RequestContext) -> RequestContext:
    """The request of an actor who has what the roles stand for at the front end, besides what they bring along."""
    if not request.role_capabilities:
        return request
    actor = request.actor
    more = frozenset[str]().union(*(request.role_capabilities.get(role, frozenset()) for role in actor.roles))
    if more <= actor.capabilities:
        return request
    return replace(request, actor=replace(actor, capabilities=actor.capabilities | more))


def checked_resolvers(given: object) -> tuple[CapabilityResolver, ...]:
    """The resolvers of an engine: none, one, or several that grant together."""
    several = () if given is None else given if isinstance(given, list | tuple) else (given,)
    for each in several:
        if not isinstance(each, CapabilityResolver):
            told = f"capabilities are given as a CapabilityResolver, or a list of them, not as {indefinite(type(each))}"
            raise ConfigurationError(f"{told}; for example Capabilities.from_file(…)")
    return cast("tuple[CapabilityResolver, ...]", tuple(several))


def _granted(resolver: CapabilityResolver, request: RequestContext) -> Iterable[str]:
    """What a resolver grants; one that fails grants nobody anything, and its owner is told."""
    try:
        given: object = resolver.granted(request)
    except StandfastError:
        raise
    except Exception as error:
        told = f"{type(resolver).__name__}.granted raised {type(error).__name__} for {request.actor.id!r}"
        raise ConfigurationError(
            f"{told}: {brief(str(error))}; mend it, nobody is granted anything until then"
        ) from error
    return _checked(given, resolver)


def _checked(granted: object, resolver: CapabilityResolver) -> Iterable[str]:
    """What a resolver grants. A text is many letters, and one of them may be a star."""
    several = [] if isinstance(granted, str) or not isinstance(granted, Iterable) else list(granted)
    if isinstance(granted, str) or not isinstance(granted, Iterable) or not all(isinstance(x, str) for x in several):
        raise ConfigurationError(f"{type(resolver).__name__}.granted must give several texts, not {granted!r}")
    return several


class _Reading:
    """Takes roles apart and gathers what is wrong with them."""

    def __init__(self) -> None:
        self._faults: list[str] = []

    def end(self, what: str) -> None:
        """ConfigurationError if there was anything wrong."""
        if self._faults:
            lines = "".join(f"\n  - {each}" for each in self._faults)
            raise ConfigurationError(f"{what} cannot be used:{lines}")

    def fields(self, given: object, where: str, known: Sequence[str]) -> Mapping[str, object]:
        """An object with known names."""
        found = dict(self.named(given, where))
        for name in found:
            if name not in known:
                told = suggestion(name, known) or f"; there are {', '.join(known)}"
                self._faults.append(f"{where}: {name!r} means nothing here{told}")
        return found

    def named(self, given: object, where: str) -> Iterator[tuple[str, object]]:
        """The parts of an object, by name."""
        if given is not None and not isinstance(given, Mapping):
            self._faults.append(f"{where}: give names with values, not {given!r}")
            return
        for name, value in (given or {}).items():
            if isinstance(name, str) and name:
                yield name, value
            else:
                self._faults.append(f"{where}: {name!r} is no name; put it in quotes")

    def roles(self, given: object, where: str) -> Roles:
        """Roles with what they may do."""
        return {name: frozenset(self._capabilities(said, f"{where}.{name}")) for name, said in self.named(given, where)}

    def _capabilities(self, given: object, where: str) -> Iterator[str]:
        if not isinstance(given, list | tuple | set | frozenset):
            self._faults.append(f"{where}: give a list of capabilities, not {given!r}")
            return
        for each in given:
            if not isinstance(each, str) or not each.strip() or each != each.strip():
                self._faults.append(f"{where}: {each!r} is no capability; give a text such as orders.approve")
            elif _EVERYTHING in each[:-1]:
                self._faults.append(
                    f"{where}: in {each!r} a star stands elsewhere than at the end; nothing is so meant"
                )
            else:
                yield each
