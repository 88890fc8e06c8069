"""One hash for one value: canonical JSON (RFC 8785) under SHA-256.

Only values that look the same in every language are hashed. A float such as 0.1 is refused, because what computed it may
differ in its last digit elsewhere; money is an integer in minor units, or a Decimal, which is hashed as its text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import TypeAlias
from uuid import UUID

import msgspec
import rfc8785

from standfast.errors import PayloadError, indefinite

LARGEST_INTEGER = 2**53 - 1
"""Beyond this a JSON number is not the same number everywhere, so larger integers are refused."""

UNSTABLE_NUMBER = "UNSTABLE_NUMBER"
"""The reason of a refusal: another language may write the number differently."""
UNSTABLE_VALUE = "UNSTABLE_VALUE"
"""The reason of a refusal: the value has no canonical JSON form."""

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False).encode

Stable: TypeAlias = "bool | int | str | list[Stable] | dict[str, Stable] | None"
"""A value that looks the same in every language."""


def canonical_bytes(value: object) -> bytes:
    """The canonical JSON of `value`, as the bytes that are hashed."""
    try:
        stable = _stable(value, "$")
        text = _encode(stable)
        # Only beyond ASCII can the order of keys be another one; what is within is written by the standard library, which is quicker.
        return text.encode() if text.isascii() else rfc8785.dumps(stable)
    except (rfc8785.CanonicalizationError, UnicodeError) as error:
        raise PayloadError(str(error), reason=UNSTABLE_VALUE) from error
    except RecursionError as error:
        raise PayloadError("the value is nested too deep to be hashed", reason=UNSTABLE_VALUE) from error


def canonical_hash(value: object) -> str:
    """The SHA-256 of the canonical JSON of `value`, in hexadecimal."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def _stable(value: object, path: str) -> Stable:
    match value:
        case None | bool() | str():
            return value
        case int():
            return _integer(value, path)
        case float():
            return _integer(_integral(value, path), path)
        case Decimal() | UUID():
            return str(value)
        case date():
            return value.isoformat()
        case Mapping():
            return {
                _key(key, path): _stable(item, f"{path}.{key}")
                for key, item in value.items()
                if item is not msgspec.UNSET
            }
        case list() | tuple():
            return [_stable(item, f"{path}[{index}]") for index, item in enumerate(value)]
        case _:
            message = f"{path} is {indefinite(type(value))}, which has no canonical JSON form"
            raise PayloadError(message, reason=UNSTABLE_VALUE)


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise PayloadError(f"{path} has the key {key!r}; keys must be strings", reason=UNSTABLE_VALUE)
    return key


def _integer(value: int, path: str) -> int:
    if abs(value) > LARGEST_INTEGER:
        raise PayloadError(f"{path} is an integer beyond 2^53; hash it as a string", reason=UNSTABLE_NUMBER)
    return value


def _integral(value: float, path: str) -> int:
    if not value.is_integer():
        message = f"{path} is {value!r}; use an integer in minor units, or a Decimal"
        raise PayloadError(message, reason=UNSTABLE_NUMBER)
    return int(value)
