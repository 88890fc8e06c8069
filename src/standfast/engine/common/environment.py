"""Settings from environment variables.

Each has its own name with one prefix, and some have the names that other systems use.
"""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeAlias

import msgspec

from standfast.errors import ConfigurationError

Path: TypeAlias = tuple[str, ...]
"""The path of a field: the names of the enclosing structs, then its own."""
Fields: TypeAlias = Mapping[Path, object]
"""Fields with the current value or default of each."""

PREFIX: Final = "STANDFAST_"
SETTINGS: Final = "settings"
"""The name under which a configuration holds the engine's settings."""
OTHER_NAMES: Final[Mapping[str, str]] = {
    "WORKFLOW_RESUME_TIMEOUT": "STANDFAST_RESUME_TIMEOUT",
    "WORKFLOW_RESUME_AUTO_ESCALATE": "STANDFAST_RESUME_AUTO_ESCALATE",
    "WORKFLOW_AUTO_RESUME_AFTER_APPROVAL": "STANDFAST_AUTO_RESUME_AFTER_APPROVAL",
    "WORKFLOW_RESUME_WORKER_INTERVAL": "STANDFAST_RESUME_WORKER_INTERVAL",
}
"""Alternative names of some settings. No other variable with their prefixes is read."""

_SERVING: Final = (
    "HOST", "PORT", "CERTIFICATE", "CERTIFICATE_KEY", "TRUSTED_PROXIES", "PUBLIC_ADDRESS", "ISSUER", "AUDIENCE", "JWKS", "ALGORITHMS", "TOKEN_TENANT",
    "PLATFORM_TENANT", "OPEN_METRICS", "REQUESTS_PER_SECOND", "BURST", "OPTIONS",
)  # fmt: skip
OF_PROGRAMS: Final = frozenset(
    PREFIX + name
    for name in (
        *(
            "CONFIG",
            "DATABASE",
            "TENANT",
            "PARTITION",
            "ACTOR",
            "ROLES",
            "CAPABILITIES",
            "APP",
            "PROCESSES",
            "LOG_FORMAT",
        ),
        *("SERVER", "API_KEY"),
        *(f"SERVE_{name}" for name in _SERVING),
    )
)
"""Variables that give programs their database and acting user (see `app/configuration`). They are no engine
settings."""

_FOR_TESTS: Final = "STANDFAST_TEST_"
"""Prefix of the variables for the engine's own tests. No setting begins with it."""

_OF_SERVICES: Final = re.compile(
    r"_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$"
)
_OF_LINKS: Final = ("tcp://", "udp://", "sctp://")

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


class Impossible(Exception):  # noqa: N818 - a remark about a value; the reader of the variable makes an error of it
    """An impossible value. The message says which values are possible."""


def values_of(shape: type[msgspec.Struct], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a struct that environment variables set.

    Raises ConfigurationError, which names the faulty variable.
    """
    return nested(shape, {path: value for path, (value, _) in read_variables(fields_of(shape), environment).items()})


def read_variables(fields: Fields, environment: Mapping[str, str]) -> dict[Path, tuple[object, str]]:
    """Return the fields that environment variables set, with each variable.

    Raises ConfigurationError, which names the faulty variable.
    """
    known = {variable_of(path): path for path in fields}
    ours = {name: text for name, text in environment.items() if _is_ours(name, text)}
    given = {name: text for name, text in ours.items() if name in known or name not in OF_PROGRAMS}
    _check_names(given, known)
    _check_doubles(given)
    paths = {name: known[OTHER_NAMES.get(name, name)] for name in given}
    return {paths[name]: (_read(name, text, fields[paths[name]]), name) for name, text in given.items()}


def variable_of(path: Path) -> str:
    """Return the variable of a field: its path in capitals, without the part for engine settings."""
    return PREFIX + "_".join(path[1:] if path[0] == SETTINGS else path).upper()


def fields_of(shape: type[msgspec.Struct], path: Path = ()) -> dict[Path, object]:
    """Return the fields of a struct and of its nested structs, with their values."""
    found: dict[Path, object] = {}
    for name, kind in typing.get_type_hints(shape).items():
        if name not in shape.__struct_fields__:
            continue
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            found |= fields_of(kind, (*path, name))
        else:
            found[*path, name] = kind
    return found


def nested(shape: type[msgspec.Struct], values: Mapping[Path, object]) -> dict[str, Any]:
    """Arrange values by field as arguments of the struct.

    Nested structs are built with their defaults for missing fields.
    """
    found: dict[str, dict[Path, object]] = {}
    for (name, *rest), value in values.items():
        found.setdefault(name, {})[tuple(rest)] = value
    kinds = typing.get_type_hints(shape)
    return {
        name: inner[()] if () in inner else kinds[name](**nested(kinds[name], inner)) for name, inner in found.items()
    }


def _is_ours(name: str, text: str) -> bool:
    if name in OTHER_NAMES:
        return True
    return name.startswith(PREFIX) and not name.startswith(_FOR_TESTS) and not _is_of_a_cluster(name, text)


def _is_of_a_cluster(name: str, text: str) -> bool:
    """Return whether Kubernetes or a Docker link sets the variable in each container, for a service with the same prefix as the settings."""
    return bool(_OF_SERVICES.search(name)) or (name.endswith("_PORT") and text.startswith(_OF_LINKS))


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
        # The value is omitted, because it may be a misplaced secret.
        raise ConfigurationError(f"the environment variable {name} is no setting; {told}")


def _check_doubles(given: Mapping[str, str]) -> None:
    """Raise unless two names of one setting have the same value."""
    for other, own in OTHER_NAMES.items():
        if other in given and given.get(own, given[other]) != given[other]:
            raise ConfigurationError(
                f"{own} and {other} are two names of one setting, and say {given[own]!r} and {given[other]!r}; set one of them"
            )


def _read(name: str, text: str, kind: object) -> object:
    try:
        return value_of(text.strip(), kind)
    except Impossible as wrong:
        raise ConfigurationError(f"the environment variable {name} is {text!r}; {wrong}") from None


def value_of(text: str, kind: object) -> object:
    """Parse a text for a field of this type. Raises Impossible if the text is not a possible value."""
    members = typing.get_args(kind) if typing.get_origin(kind) in (UnionType, typing.Union) else (kind,)
    if NoneType in members and text.lower() == "none":
        return None
    plain = next(each for each in members if each is not NoneType)
    hint = ", or none" if NoneType in members else ""
    if typing.get_origin(plain) is Literal:
        words = typing.get_args(plain)
        if text not in words:
            raise Impossible(f"it is one of {', '.join(words)}")
        return text
    return _READERS[plain](text, hint)


def text_of(value: object) -> str:
    """Format a value as the text of a variable. Parsing the text returns the value again."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case timedelta():
            rest, told = round(value.total_seconds() * 1000), ""
            for unit, size in _SIZES:
                count, rest = divmod(rest, size)
                told += f"{count}{unit}" if count else ""
            return told or "0s"
        case list() | tuple() | set() | frozenset():
            return ",".join(map(str, value))
        case _:
            return str(value)


def _duration(text: str, hint: str) -> timedelta:
    if not _DURATION.fullmatch(text):
        raise Impossible(f"give a duration such as 24h, 5m, 1h30m or 500ms, with the units d, h, m, s and ms{hint}")
    try:
        return sum((timedelta(**{_UNITS[unit]: float(count)}) for count, unit in _PART.findall(text)), timedelta(0))
    except OverflowError:
        raise Impossible(f"give a duration of at most a hundred years{hint}") from None


def _switch(text: str, hint: str) -> bool:
    if text.lower() not in _SWITCHES:
        raise Impossible(f"give true or false{hint}")
    return _SWITCHES[text.lower()]


def _whole(text: str, hint: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Impossible(f"give a whole number{hint}") from None


def _number(text: str, hint: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise Impossible(f"give a number{hint}") from None


def _list(text: str, hint: str) -> tuple[str, ...]:
    found = tuple(each.strip() for each in text.split(",")) if text else ()
    if not all(found):
        raise Impossible(f"give names with commas between them{hint}")
    return found


_SIZES: Final = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))
"""Units of durations in milliseconds, the longest first."""
_READERS: Final[Mapping[object, Callable[[str, str], object]]] = {
    str: lambda text, _hint: text,
    int: _whole,
    float: _number,
    bool: _switch,
    timedelta: _duration,
    tuple[str, ...]: _list,
}
