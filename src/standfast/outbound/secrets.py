"""Secrets by reference: configuration holds the reference, never the secret itself."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Self

import msgspec

from standfast.errors import ConfigurationError
from standfast.kernel.names import is_misleading

ENVIRONMENT: Final = "env:"
FILE: Final = "file:"
_LONGEST: Final = 65_536
_WHATEVER: Final = "*"


class Lent(msgspec.Struct, frozen=True):
    """The secrets that workflows may name.

    Authors of workflows are not operators of the machine, which has other secrets.
    """

    entries: tuple[str, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> Self:
        """Parse the entries of the settings; ConfigurationError for one that is no reference."""
        return cls(tuple(check_reference(each, "each entry of webhook_secrets") for each in entries))

    def has(self, reference: str) -> bool:
        """Return whether a reference is allowed. A trailing star matches any suffix, but no parent folder."""
        if reference in self.entries:
            return True
        within = [each.removesuffix(_WHATEVER) for each in self.entries if each.endswith(_WHATEVER)]
        return any(
            reference.startswith(each) and reference != each and not is_misleading(reference.removeprefix(each))
            for each in within
        )


def check_reference(reference: object, what: str) -> str:
    """Check a reference to a secret.

    ConfigurationError if it is invalid; the message does not repeat it, because it may be the secret.
    """
    if not isinstance(reference, str) or not reference.startswith((ENVIRONMENT, FILE)) or reference[-1] == ":":
        raise ConfigurationError(f"{what} must begin with env: or file:, and name a variable or a path")
    return reference


def secret_of(reference: str, what: str) -> str:
    """Read the secret. It is read each time, so that a change needs no restart."""
    where, _, name = reference.partition(":")
    if where == "file":
        return _read(Path(name), what)
    if name not in os.environ:
        raise ConfigurationError(f"there is no variable {name!r} in the environment; {what} names it")
    return os.environ[name]


def _read(file: Path, what: str) -> str:
    # Reading something other than a regular file may block forever.
    if not stat.S_ISREG(file.stat().st_mode) or file.stat().st_size > _LONGEST:
        raise ConfigurationError(f"{what} names no regular file, or one of more than {_LONGEST} bytes")
    return file.read_text(encoding="utf-8").strip()
