"""The command line inside of other programs' own: where it works is said by them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import get_args

from holdfast.app.configuration import Configuration, configured
from holdfast.cli import main
from holdfast.errors import ConfigurationError
from holdfast.runtime.environment import PREFIX, fields_of, text_of, variable_of

_FIELDS = fields_of(Configuration)
_UNKNOWN = int | None
"""What is no setting is told so, whatever it is said to be."""


def variables_of(told: Mapping[str, object], *path: str) -> dict[str, str]:
    """What a program says of the engine, as the variables that say the same: `{"settings": {"concurrency": 5}}` is HOLDFAST_CONCURRENCY."""
    found: dict[str, str] = {}
    for name, value in told.items():
        if not isinstance(name, str):
            raise ConfigurationError(f"{name!r} names no setting; settings are named by texts")
        inner = (*path, name)
        if isinstance(value, Mapping):
            found |= variables_of(value, *inner)
        elif value is not None or NoneType in get_args(_FIELDS.get(inner, _UNKNOWN)):  # Else it is left out.
            found[variable_of(inner)] = text_of(value)
    return found


def configuration_of(told: Mapping[str, object]) -> Configuration:
    """What a program says, checked; what it leaves out is said by the environment or by `holdfast.toml`."""
    return configured({}, {**os.environ, **variables_of(told)}).configuration


def run_command(words: Sequence[str], told: Mapping[str, object], *, program: str, app: str) -> None:
    """Run a command of `holdfast`; it ends with SystemExit. Workers run `app`, in this process and in those that it starts."""
    configuration_of(told)  # What is wrong is told before anything is changed.
    before = {name: text for name, text in os.environ.items() if name.startswith(PREFIX)}
    os.environ.update({**variables_of({"app": app}), **variables_of(told)})
    try:
        main(list(words), prog_name=program)
    finally:
        for name in [name for name in os.environ if name.startswith(PREFIX) and name not in before]:
            del os.environ[name]
        os.environ.update(before)
