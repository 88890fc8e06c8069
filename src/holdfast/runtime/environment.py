"""Settings from environment variables: each under its own name with one prefix, and some under the names of other systems too."""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import NoneType, UnionType
from typing import Any, Final, Literal

import msgspec

from holdfast.errors import ConfigurationError

PREFIX: Final = "HOLDFAST_"
OTHER_NAMES: Final[Mapping[str, str]] = {
    "WORKFLOW_RESUME_TIMEOUT": "HOLDFAST_RESUME_TIMEOUT",
    "WORKFLOW_RESUME_AUTO_ESCALATE": "HOLDFAST_RESUME_AUTO_ESCALATE",
    "WORKFLOW_AUTO_RESUME_AFTER_APPROVAL": "HOLDFAST_AUTO_RESUME_AFTER_APPROVAL",
    "WORKFLOW_RESUME_WORKER_INTERVAL": "HOLDFAST_RESUME_WORKER_INTERVAL",
}
"""Names under which some of them are known as well; nothing else is read of what begins like them."""

_FOR_TESTS: Final = "HOLDFAST_TEST_"
"""What the tests of the engine itself are told by; no setting begins like that."""

_UNITS: Final = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds", "ms": "milliseconds"}
_DURATION: Final = re.compile(r"(?:(?:\d+(?:\.\d+)?)(?:ms|[dhms]))+")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")
_SWITCHES: Final = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


class _Wrong(Exception):  # noqa: N818 - it never leaves this module
    """A value that cannot be meant; it says what would be possible."""


def values_of(shape: type[msgspec.Struct], environment: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a struct that the environment says, as its fields take them; ConfigurationError names the variable that is wrong."""
    known = _variables(shape)
    given = {name: text for name, text in environment.items() if _is_ours(name)}
    _check_names(given, known)
    found: dict[str, Any] = {}
    _check_doubles(given)
    for name, text in given.items():
        (*path, last), kind = known[OTHER_NAMES.get(name, name)]
        place = found
        for each in path:
            place = place.setdefault(each, {})
        place[last] = _read(name, text, kind)
    return {name: _made(shape, name, value) for name, value in found.items()}


def _is_ours(name: str) -> bool:
    return name in OTHER_NAMES or (name.startswith(PREFIX) and not name.startswith(_FOR_TESTS))


def _variables(shape: type[msgspec.Struct], path: tuple[str, ...] = ()) -> dict[str, tuple[tuple[str, ...], object]]:
    """The variables of a struct, with the fields that they stand for and what these hold; those of a struct inside begin with its name."""
    found: dict[str, tuple[tuple[str, ...], object]] = {}
    for name, kind in typing.get_type_hints(shape).items():
        if name not in shape.__struct_fields__:
            continue
        inner = (*path, name)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            found |= _variables(kind, inner)
        else:
            found[PREFIX + "_".join(inner).upper()] = (inner, kind)
    return found


def _check_names(given: Mapping[str, str], known: Mapping[str, object]) -> None:
    for name in given:
        if name in known or name in OTHER_NAMES:
            continue
        alike = difflib.get_close_matches(name[len(PREFIX) :], [each[len(PREFIX) :] for each in known], n=1)
        told = (
            f"did you mean {PREFIX}{alike[0]}?"
            if alike
            else f"the names are those of the settings, such as {PREFIX}CONCURRENCY"
        )
        raise ConfigurationError(f"the environment variable {name} (now {given[name]!r}) is no setting; {told}")


def _check_doubles(given: Mapping[str, str]) -> None:
    """Two names of one setting must say the same."""
    for other, own in OTHER_NAMES.items():
        if other in given and given.get(own, given[other]) != given[other]:
            raise ConfigurationError(
                f"{own} and {other} are two names of one setting, and say {given[own]!r} and {given[other]!r}; set one of them"
            )


def _read(name: str, text: str, kind: object) -> object:
    try:
        return _value(text.strip(), kind)
    except _Wrong as wrong:
        raise ConfigurationError(f"the environment variable {name} is {text!r}; {wrong}") from None


def _value(text: str, kind: object) -> object:
    members = typing.get_args(kind) if typing.get_origin(kind) in (UnionType, typing.Union) else (kind,)
    if NoneType in members and text.lower() == "none":
        return None
    plain = next(each for each in members if each is not NoneType)
    hint = ", or none" if NoneType in members else ""
    if typing.get_origin(plain) is Literal:
        words = typing.get_args(plain)
        if text not in words:
            raise _Wrong(f"it is one of {', '.join(words)}")
        return text
    return _READERS[plain](text, hint)


def _duration(text: str, hint: str) -> timedelta:
    if not _DURATION.fullmatch(text):
        raise _Wrong(f"give a duration such as 24h, 5m, 1h30m or 500ms, with the units d, h, m, s and ms{hint}")
    try:
        return sum((timedelta(**{_UNITS[unit]: float(count)}) for count, unit in _PART.findall(text)), timedelta(0))
    except OverflowError:
        raise _Wrong(f"give a duration of at most a hundred years{hint}") from None


def _switch(text: str, hint: str) -> bool:
    if text.lower() not in _SWITCHES:
        raise _Wrong(f"give true or false{hint}")
    return _SWITCHES[text.lower()]


def _whole(text: str, hint: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _Wrong(f"give a whole number{hint}") from None


def _number(text: str, hint: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _Wrong(f"give a number{hint}") from None


def _list(text: str, hint: str) -> tuple[str, ...]:
    found = tuple(each.strip() for each in text.split(",")) if text else ()
    if not all(found):
        raise _Wrong(f"give names with commas between them{hint}")
    return found


_READERS: Final[Mapping[object, Callable[[str, str], object]]] = {
    str: lambda text, _hint: text,
    int: _whole,
    float: _number,
    bool: _switch,
    timedelta: _duration,
    tuple[str, ...]: _list,
}


def _made(shape: type[msgspec.Struct], name: str, value: object) -> object:
    """A struct inside, with what the environment says of it and the defaults for the rest."""
    kind = typing.get_type_hints(shape)[name]
    return kind(**value) if isinstance(value, dict) else value
