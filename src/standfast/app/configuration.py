"""Configuration of a process: file, environment and flags; each overrides the one before.

Every option is declared here once, as a type: `Configuration`, with the engine's settings inside of it. Each value
records its origin.
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
"""The configuration file in the working directory, if it exists."""
FILE_VARIABLE: Final = f"{PREFIX}CONFIG"
"""The variable that names another file."""
_IN_FILE, _VARIABLE, FLAG = 1, 2, 3
"""The origins of a value by precedence."""
_HIGHEST_PORT: Final = 65_535
DEFAULT: Final = "default"
"""The origin of a value that is not set."""


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
    """Addresses of proxies whose `X-Forwarded-For` header is trusted."""
    public_address: str = ""
    """Public URL of this server, such as https:

    flows.example.org, if a proxy in front of it terminates https.
    """
    issuer: str = ""
    """The issuer whose tokens (JWT) are accepted, in addition to API keys: the claim `iss`."""
    audience: str = ""
    """The value that the claim `aud` of its tokens must contain."""
    jwks: str = ""
    """The public keys of the issuer: a file, or a URL that begins with https:

    .
    """
    algorithms: tuple[str, ...] = ("RS256",)
    """The signature algorithms accepted for its tokens."""
    token_tenant: str = ""
    """The tenant of all its tokens; empty if the claim `tenant` names it."""
    platform_tenant: str = ""
    """The tenant whose credentials may use calls that concern all tenants; empty means the tenant of the server."""
    open_metrics: bool = False
    """Serve `/metrics` without a credential, because only permitted readers can reach it."""
    requests_per_second: float = 500.0
    """Requests per second that a credential may make in the long run."""
    burst: int = 1000
    """Size of a burst above that rate."""
    options: str = ""
    """All other options, from Python: `module:attribute` of an `HttpOptions`, such as several issuers and inbound
    hooks."""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= _HIGHEST_PORT:
            raise ConfigurationError(f"serve.port must be from 0 to {_HIGHEST_PORT}, not {self.port}")
        if self.certificate_key and not self.certificate:
            raise ConfigurationError("serve.certificate_key is of no use without serve.certificate; say both")


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """Database, tenant, actor and engine settings of a process."""

    database: str = DEFAULT_URL
    """The database: `sqlite:

    /file.db`, or `postgresql:

    user@host/database`.
    """
    tenant: str = DEFAULT_TENANT
    """The tenant whose data commands use."""
    partition: str = ""
    """The part of the tenant that new runs belong to; empty if it has none."""
    actor: str = ""
    """The id of the actor of commands; empty means the engine itself, which may do everything."""
    roles: tuple[str, ...] = ()
    """The roles of that actor; in the environment separated by commas."""
    capabilities: tuple[str, ...] = ()
    """The capabilities of that actor, such as `execution:read`; in the environment separated by commas."""
    log_format: Literal["text", "json"] = "text"
    """Log format of long-running programs: lines for people, or JSON."""
    app: str = ""
    """The application of a worker: `module:attribute`, a function that takes the engine, or workflows."""
    processes: int = 1
    """Number of processes of a worker."""
    server: str = ""
    """URL of a server that commands call instead of a database, such as `https:

    standfast.example.org`.
    """
    api_key: str = ""
    """The API key or token for that server."""
    serve: Serving = Serving()
    """Options of `standfast server`: the table `serve` in the file; variables begin with it, such as
    `STANDFAST_SERVE_PORT`."""
    settings: Settings = Settings()
    """Engine settings: the table `settings` in the file; variables are without that prefix."""

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise ConfigurationError(f"processes must be at least 1, not {self.processes}")


class Source(NamedTuple):
    """A configuration and the origin of each value."""

    configuration: Configuration
    origins: Mapping[Path, str]
    """Origin by path of a value: `default`, or the name of a file, a variable or a flag."""

    def is_said(self, name: str) -> bool:
        """Return whether a value is set, even if it equals the default."""
        return self.origins[name,] != DEFAULT

    def rank(self, name: str) -> int:
        """Return the precedence of a value's origin: default, file, variable, flag."""
        origin = self.origins[name,]
        if origin == DEFAULT:
            return 0
        return FLAG if origin.startswith("--") else _VARIABLE if origin.startswith(PREFIX) else _IN_FILE

    def values(self) -> Iterator[tuple[Path, object, str]]:
        """Return every value by path, with its origin."""
        for path, origin in self.origins.items():
            value: object = self.configuration
            for name in path:
                value = getattr(value, name)
            yield path, value, origin


def configured(
    flags: Mapping[str, tuple[object, str]], environment: Mapping[str, str], *, file: str | None = None
) -> Source:
    """Read the configuration of a program; ConfigurationError names what is wrong, and its origin.

    `flags` are values, by paths such as `serve.port`, with the flags that gave them. `file` is the file that a flag
    names. Without it, the file comes from a variable, or is `standfast.toml` in the working directory, if it exists.
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
        raise ConfigurationError(f"invalid configuration in {told}: {error}") from error
    return Source(made, {path: origin for path, (_, origin) in said.items()})


def _read_file(name: str, fields: Fields) -> dict[Path, tuple[object, str]]:
    try:
        data = tomllib.loads(
            File(name).read_text(encoding="utf-8-sig")
        )  # Some editors begin every file with a byte order mark.
    except OSError as error:
        told = "give one that is there by --config or STANDFAST_CONFIG, or leave that out"
        raise ConfigurationError(f"the configuration file {name} cannot be read: {error.strerror}; {told}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the configuration file {name} is no TOML: {error}") from error
    return {path: (_value(name, path, value, fields), name) for path, value in _leaves(name, data, fields)}


def _leaves(name: str, table: Mapping[str, object], fields: Fields, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Return the values of a table and of its subtables; refuse an unknown setting."""
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
    """Describe an unknown key. A key in the wrong table is the most likely mistake, so all tables are searched."""
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
    """Convert a value of the file. Types that TOML lacks are written as text, as in the environment."""
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
    shown = "no text" if str in kinds else repr(given)  # A value that should have been a text may be a secret.
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
