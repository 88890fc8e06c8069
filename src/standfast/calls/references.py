"""What callers name things by: ids and names, and the objects that stand for them.

What stands for one run of a workflow in the hands of a caller.
"""

from __future__ import annotations

from typing import Any, Protocol
from uuid import UUID

import msgspec

from standfast.calls.operator_views import DeadLetter, InboxMessage, PauseInfo
from standfast.engine.commit.limits import check_key
from standfast.errors import NotFoundError, PayloadError, indefinite
from standfast.graph.definition import Definition, TypedDefinition
from standfast.kernel.decider import Decider
from standfast.kernel.decision import Attribute
from standfast.kernel.ids import InstanceId


class Handle:
    """Names a run. It asks nothing of the database by itself, and two with the same id are equal, of whichever face they are."""

    __slots__ = ("id",)

    id: InstanceId

    def __init__(self, id: InstanceId) -> None:  # noqa: A002 - the word that everybody uses for it
        self.id = id

    def __eq__(self, other: object) -> bool:
        return self.id == other.id if isinstance(other, Handle) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"


class HasId(Protocol):
    """A view of one instance, such as a run or a process."""

    @property
    def id(self) -> InstanceId:
        """The id of the instance."""
        ...


class HasTextId(Protocol):
    """A view of a step."""

    @property
    def id(self) -> str:
        """The id of the step."""
        ...


class HasStepId(Protocol):
    """A view of a human task."""

    @property
    def step_id(self) -> str:
        """The id of the step that asks."""
        ...


InstanceLike = InstanceId | UUID | str | Handle | HasId
"""The id of an instance, as such or as text; or a run, or the instance as the engine shows it."""

StepLike = str | HasTextId | HasStepId
"""The id of a step, as `steps` and `tasks` give it; or the step or question itself."""

Untyped = str | Definition
"""The name of a workflow, or its id such as `order-v1`; or the finished workflow."""

AnyTyped = TypedDefinition[Any, Any]
"""A finished workflow with types, whichever they are."""

DefinitionLike = Untyped | AnyTyped
"""The same, or the finished workflow with its types."""

LetterLike = int | DeadLetter
"""The id of a dead letter, or the letter itself."""

MessageLike = int | InboxMessage
"""The id of a message that waits, or the message itself."""

PauseLike = int | PauseInfo
"""The number of a pause of wider scope than a run, or the pause itself."""

_LONGEST = 60
_NO_NUMBER = 2**63
"""No database counts so far."""


def written_attribute(text: str) -> tuple[str, Attribute]:
    """A name and a value, as in `amount=5`: numbers and yes or no as JSON has them, anything else is a text."""
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise PayloadError(f"{described(text)} is no attribute; write name=value")
    try:
        return name, msgspec.json.decode(value, type=bool | int | float | str)
    except msgspec.DecodeError:
        return name, value


def checked_instance(given: object) -> InstanceId:
    """The id of an instance."""
    if isinstance(given, UUID):
        return InstanceId(given)
    try:
        if isinstance(given, str):
            return InstanceId(UUID(given))
    except ValueError:
        pass
    shown = getattr(given, "id", None)
    if isinstance(shown, UUID):
        return InstanceId(shown)
    raise PayloadError(f"{described(given)} is not the id of an instance; give a run, its id, or the instance itself")


_OF_A_RUN = ". It is that of a run: its questions are listed by `tasks`, and a process is led on by `advance`"


def _is_id(given: object) -> bool:
    try:
        return isinstance(given, str) and bool(UUID(given))
    except ValueError:
        return False


def checked_step(given: object) -> tuple[InstanceId, int]:
    """The instance and the number of a step."""
    name = given if isinstance(given, str) else getattr(given, "step_id", None) or getattr(given, "id", None)
    instance, _, number = name.rpartition(":") if isinstance(name, str) else ("", "", "")
    if not (number.isascii() and number.isdecimal()):
        told = f"{described(given)} is not the id of a step; take it from `steps` or `tasks`, or give the step itself"
        raise PayloadError(f"{told}{_OF_A_RUN}" if _is_id(given) else told)
    return checked_instance(instance), int(number)


def checked_step_of(run: InstanceId, given: object) -> int:
    """The number of a step of this very run."""
    instance, number = checked_step(given)
    if instance != run:
        raise PayloadError(f"{instance}:{number} is a step of another run; give one of {run}")
    return number


def checked_definition(given: object, version: str | int = "") -> tuple[str, str]:
    """The name and the version of a workflow; of a finished saga its own version, unless another one is wanted."""
    if version:
        check_key(str(version), "version")
    if isinstance(given, Definition | TypedDefinition):
        return given.name, str(version or given.version)
    if kind := unbuilt(given):
        raise PayloadError(f"a {kind} is named once it is built: give {kind}.build(), or its name")
    if not isinstance(given, str) or not given:
        raise PayloadError(
            f"the definition must be non-empty text, not {described(given)}; give its name, or the built saga"
        )
    check_key(given, "definition")
    return given, str(version)


def unbuilt(given: object) -> str:
    """What a front end has under construction, by the name of its class, such as `saga`; empty for anything else."""
    return type(given).__name__.lower() if callable(getattr(given, "build", None)) else ""


BRINGS_ITS_OWN = (
    "a workflow is registered by itself: it brings its handlers along, and its steps say how often and how long they are tried; "
    "register(first).register(second) makes two of them known"
)


def unregistrable(given: object) -> str:
    """Why something cannot be registered."""
    kind = unbuilt(given)
    if kind:
        return f"a {kind} is registered once it is built: give {kind}.build()"
    return f"{described(given)} cannot be registered; give a decider, or a built saga"


def checked_decider(given: object) -> str:
    """The type of a decider, which may be given as its class or as an object of it."""
    # Looked up in the order of its classes, because an abstract class answers `issubclass` with a search.
    is_decider = Decider in (given if isinstance(given, type) else type(given)).__mro__
    named = getattr(given, "type", None) if is_decider else given
    if not isinstance(named, str):
        raise PayloadError(f"{described(given)} is not a decider; give its class, or its type as text")
    return named


def checked_letter(given: object) -> int:
    """The id of a dead letter."""
    return given.id if isinstance(given, DeadLetter) else _checked_id(given, "dead letter")


def checked_message(given: object) -> int:
    """The id of a message that waits."""
    return given.id if isinstance(given, InboxMessage) else _checked_id(given, "message")


def checked_pause(given: object) -> int:
    """The number of a pause."""
    return given.id if isinstance(given, PauseInfo) else _checked_id(given, "pause")


def _checked_id(given: object, what: str) -> int:
    """A number that a database has given to something."""
    if isinstance(given, int) and not isinstance(given, bool) and abs(given) < _NO_NUMBER:
        return given
    told = given if isinstance(given, str) else described(given)
    raise NotFoundError(what, told, hint=f"give the {what}, or its id, which is a number")


def described(given: object) -> str:
    """What a caller gave, for a message: texts and numbers as they are, anything else by its type."""
    if given is None or isinstance(given, str | int | float):
        shown = repr(given)
        return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
    return indefinite(given if isinstance(given, type) else type(given))
