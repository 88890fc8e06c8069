"""Secrets by reference: where one is found is written down, the secret itself never."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from holdfast.errors import ConfigurationError

ENVIRONMENT: Final = "env:"
FILE: Final = "file:"


def check_reference(reference: object, what: str) -> str:
    """A reference to a secret; ConfigurationError if it is none, without repeating what may be the secret itself."""
    if not isinstance(reference, str) or not reference.startswith((ENVIRONMENT, FILE)) or reference[-1] == ":":
        raise ConfigurationError(f"{what} must begin with env: or file:, and name a variable or a path")
    return reference


def secret_of(reference: str, what: str) -> str:
    """The secret, looked up each time: whoever changes it need not start anything anew."""
    where, _, name = reference.partition(":")
    if where == "file":
        return Path(name).read_text(encoding="utf-8").strip()
    if name not in os.environ:
        raise ConfigurationError(f"there is no variable {name!r} in the environment; {what} names it")
    return os.environ[name]
