"""The command line inside another program's own, configured by that program."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType
from typing import get_args

from standfast.app.configuration import Configuration, configured
from standfast.cli import main
from standfast.engine.common.environment import (
    PREFIX,
    Impossible,
    fields_of,
    text_of,
    value_of,
    variable_of,
)
from standfast.errors import ConfigurationError
from standfast.expressions.model.suggestions import suggestion


def variables_of(told: Mapping[str, object]) -> dict[str, str]:
    """Convert a program's options to environment variables: `{"settings": {"concurrency": 5}}` is STANDFAST_CONCURRENCY.

    ConfigurationError uses the program's names instead of the variables.
    """
    fields, found = fields_of(Configuration), dict[str, str]()
    for path, value in _leaves(told):
        name, text = ".".join(path), text_of(value)
        if path not in fields:
            alike = suggestion(path[-1], sorted({each[-1] for each in fields}))
            raise ConfigurationError(
                f"there is no setting {name!r}{alike or '; `standfast config` lists those that there are'}"
            )
        if value is None and NoneType not in get_args(fields[path]):
            continue  # An empty value counts as not set.
        try:
            value_of(text, fields[path])
        except Impossible as wrong:
            raise ConfigurationError(f"the setting {name!r} is {value!r}; {wrong}") from None
        found[variable_of(path)] = text
    return found


def _leaves(told: Mapping[str, object], *path: str) -> Iterator[tuple[tuple[str, ...], object]]:
    for name, value in told.items():
        if not isinstance(name, str):
            raise ConfigurationError(f"{name!r} names no setting; settings are named by texts")
        if isinstance(value, Mapping):
            yield from _leaves(value, *path, name)
        else:
            yield (*path, name), value


def configuration_of(told: Mapping[str, object]) -> Configuration:
    """Validate the program's configuration. Values that it leaves out come from the environment or `standfast.toml`."""
    return configured({}, {**os.environ, **variables_of(told)}).configuration


def run_command(words: Sequence[str], told: Mapping[str, object], *, program: str, app: str) -> None:
    """Run a command of `standfast`; it ends with SystemExit.

    Workers run `app`, in this process and in those that it starts.
    """
    configuration_of(told)  # Report configuration errors before any change.
    before = {name: text for name, text in os.environ.items() if name.startswith(PREFIX)}
    os.environ.update({**variables_of({"app": app}), **variables_of(told)})
    try:
        main(list(words), prog_name=program)
    finally:
        for name in [name for name in os.environ if name.startswith(PREFIX) and name not in before]:
            del os.environ[name]
        os.environ.update(before)
