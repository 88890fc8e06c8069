"""What a program is told from outside: a file, the environment and its flags, each of which overrules the one before.

Everything that can be said is declared here, once, as types: `Configuration`, and the settings of the engine inside of it. Each value knows
where it came from.
"""

from __future__ import annotations

import tomllib
import typing
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path as File
from types import NoneType
from typing import Final, Literal, NamedTuple

import msgspec

from standfast.engine.common.environment import (
    PREFIX,
    Fields,
    Impossible,
    Path,
    fields_of,
    nested,
    read_variables,
    value_of,
)
from standfast.engine.common.settings import Settings
from standfast.errors import ConfigurationError
from standfast.expressions.model.suggestions import suggestion
from standfast.store.opening import DEFAULT_URL
from standfast.store.records.instances import DEFAULT_TENANT

FILE: Final = "standfast.toml"
"""The file that is read where a program is started, if it is there."""
FILE_VARIABLE: Final = f"{PREFIX}CONFIG"
"""The variable that names another file."""
_IN_FILE, _VARIABLE, FLAG = 1, 2, 3
"""How near to a command something can be said."""
_HIGHEST_PORT: Final = 65_535
DEFAULT: Final = "default"
"""Where a value comes from that nobody said."""


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """How `standfast server` serves the API."""

    host: str = "127.0.0.1"
    """The address that it listens at; `0.0.0.0` is every one that the machine has."""
    port: int = 8080
    """The port that it listens at; 0 takes one that is free."""
    certificate: str = ""
    """File of the certificate for https; empty if a proxy before it speaks https."""
    certificate_key: str = ""
    """File of the private key of that certificate, if it is not in the same file."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses of proxies that are believed when they say for whom they ask."""
    public_address: str = ""
    """Where browsers find this server, such as https://flows.example.org, if a proxy before it speaks https."""
    issuer: str = ""
    """Whose tokens (JWT) are believed, beside API keys: the claim `iss`."""
    audience: str = ""
    """What the claim `aud` of its tokens must name."""
    jwks: str = ""
    """Where the public keys of the issuer are: a file, or an address that begins with https://."""
    algorithms: tuple[str, ...] = ("RS256",)
    """How its tokens may be signed."""
    token_tenant: str = ""
    """The tenant of all its tokens; empty if the claim `tenant` names it."""
    platform_tenant: str = ""
    """Whose credentials may look at what concerns all tenants; empty means the tenant of the server."""
    open_metrics: bool = False
    """Whether `/metrics` needs no credential, because only those who may read it can reach it."""
    requests_per_second: float = 500.0
    """How many requests a credential may make in the long run."""
    burst: int = 1000
    """How many of them at once."""
    options: str = ""
    """All the rest, from Python: `module:attribute` of an `HttpOptions`, such as several issuers and inbound hooks."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= _HIGHEST_PORT:
            raise ConfigurationError(f"serve.port must be from 0 to {_HIGHEST_PORT}, not {self.port}")
        if self.certificate_key and not self.certificate:
            raise ConfigurationError("serve.certificate_key is of no use without serve.certificate; say both")


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """Where a program works, for whom, and how its engine behaves."""

    database: str = DEFAULT_URL
    """The database: `sqlite:///file.db`, or `postgresql://user@host/database`."""
    tenant: str = DEFAULT_TENANT
    """The tenant whose data commands are about."""
    partition: str = ""
    """The part of the tenant that new runs belong to; empty if it has none."""
    actor: str = ""
    """Id of whom commands are done as; empty means the engine itself, which may do everything."""
    roles: tuple[str, ...] = ()
    """The roles of that actor; in the environment parted by commas."""
    capabilities: tuple[str, ...] = ()
    """What that actor may do, such as `execution:read`; in the environment parted by commas."""
    log_format: Literal["text", "json"] = "text"
    """How programs that stay write their logs: lines for people, or JSON."""
    app: str = ""
    """What a worker runs: `module:attribute`, a function that is given the engine, or workflows."""
    processes: int = 1
    """How many processes a worker has."""
    server: str = ""
    """Address of a server that commands ask instead of a database, such as `https://standfast.example.org`."""
    api_key: str = ""
    """The API key, or token, that a server is asked with."""
    serve: Serving = Serving()
    """How a server serves. In the file it is a table of this name; its variables begin with it, such as `STANDFAST_SERVE_PORT`."""
    settings: Settings = Settings()
    """How the engine behaves: see the settings. In the file they are a table of this name; their variables do without it."""

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise ConfigurationError(f"processes must be at least 1, not {self.processes}")


class Source(NamedTuple):
    """A configuration, and where each of its values came from."""

    configuration: Configuration
    origins: Mapping[Path, str]
    """By the names that lead to a value: `default`, the name of a file, of a variable, or of a flag."""

    def is_said(self, name: str) -> bool:
        """Whether somebody said a value, even if it is what it would have been otherwise."""
        return self.origins[name,] != DEFAULT

    def rank(self, name: str) -> int:
        """How near to the command a value was said: by nobody, in the file, by a variable, by a flag."""
        origin = self.origins[name,]
        if origin == DEFAULT:
            return 0
        return FLAG if origin.startswith("--") else _VARIABLE if origin.startswith(PREFIX) else _IN_FILE

    def values(self) -> Iterator[tuple[Path, object, str]]:
        """Every value by its names, and where it came from."""
        for path, origin in self.origins.items():
            value: object = self.configuration
            for name in path:
                value = getattr(value, name)
            yield path, value, origin


def configured(
    flags: Mapping[str, tuple[object, str]], environment: Mapping[str, str], *, file: str | None = None
) -> Source:
    """The configuration that a program is started with; ConfigurationError names what is wrong, and where that was said.

    `flags` are values, by names such as `serve.port`, with the flags that gave them. `file` is the one that a flag names; else a variable names it, or it is
    `standfast.toml` in the present folder, if that is there.
    """
    fields = fields_of(Configuration)
    said: dict[Path, tuple[object, str]] = dict.fromkeys(fields, (None, DEFAULT))
    named = file or environment.get(FILE_VARIABLE)
    if named or File(FILE).is_file():
        said |= _read_file(named or FILE, fields)
    said |= read_variables(fields, environment)
    said |= {tuple(name.split(".")): value for name, value in flags.items()}
    values = {path: value for path, (value, origin) in said.items() if origin != DEFAULT}
    try:
        made = Configuration(**nested(Configuration, values))
    except ConfigurationError as error:
        told = ", ".join(dict.fromkeys(origin for _, origin in said.values() if origin != DEFAULT))
        raise ConfigurationError(f"the configuration ({told}) says what cannot be: {error}") from error
    return Source(made, {path: origin for path, (_, origin) in said.items()})


def _read_file(name: str, fields: Fields) -> dict[Path, tuple[object, str]]:
    try:
        data = tomllib.loads(File(name).read_text(encoding="utf-8-sig"))  # Some editors begin every file with a mark.
    except OSError as error:
        told = "give one that is there by --config or STANDFAST_CONFIG, or leave that out"
        raise ConfigurationError(f"the configuration file {name} cannot be read: {error.strerror}; {told}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the configuration file {name} is no TOML: {error}") from error
    return {path: (_value(name, path, value, fields), name) for path, value in _leaves(name, data, fields)}


def _leaves(name: str, table: Mapping[str, object], fields: Fields, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """The values of a table and of those inside of it; what is no setting is refused."""
    places = {each[: len(path) + 1] for each in fields if each[: len(path)] == path}
    for key, value in table.items():
        inner = (*path, key)
        if inner not in places:
            raise ConfigurationError(_unknown(name, inner, fields))
        if inner in fields:
            yield inner, value
        elif isinstance(value, dict):
            yield from _leaves(name, value, fields, inner)
        else:
            raise ConfigurationError(
                f"{name}: {'.'.join(inner)} is a table, such as [{'.'.join(inner)}], not {value!r}"
            )


def _unknown(name: str, path: Path, fields: Fields) -> str:
    """A key that stands in the wrong table is the most likely mistake, so all tables are looked through."""
    key = path[-1]
    elsewhere = [each for each in fields if each[-1] == key]
    if elsewhere:
        place = ".".join(elsewhere[0][:-1])
        where = f"the table [{place}]" if place else "the top of the file, before the first table"
        return f"{name}: there is no setting {'.'.join(path)!r}; {key!r} belongs into {where}"
    siblings = {each[len(path) - 1] for each in fields if each[: len(path) - 1] == path[:-1]}
    told = suggestion(key, siblings) or suggestion(key, {each[-1] for each in fields})
    return f"{name}: there is no setting {'.'.join(path)!r}{told or '; `standfast config` lists those that there are'}"


def _value(name: str, path: Path, given: object, fields: Fields) -> object:
    """A value of the file. What TOML has no type for is written as a text, as in the environment."""
    kind = fields[path]
    kinds = typing.get_args(kind) if NoneType in typing.get_args(kind) else (kind,)
    try:
        if isinstance(given, str):
            return value_of(given, kind) if str not in kinds else given
        if kind == tuple[str, ...] and isinstance(given, list) and all(isinstance(each, str) for each in given):
            return tuple(given)
        if type(given) in kinds:
            return given
        if float in kinds and type(given) is int:
            return float(given)
    except Impossible as wrong:
        raise ConfigurationError(f"{name}: {'.'.join(path)} is {given!r}; {wrong}") from None
    shown = "no text" if str in kinds else repr(given)  # What should have been a text may be a secret.
    raise ConfigurationError(f"{name}: {'.'.join(path)} is {shown}; give {_wanted(kinds)}")


def _wanted(kinds: tuple[object, ...]) -> str:
    words: dict[object, str] = {
        str: "a text",
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        timedelta: 'a duration such as "24h"',
        NoneType: '"none"',
        tuple[str, ...]: "a list of texts",
    }
    return " or ".join(words.get(kind, "one of its words") for kind in kinds)
