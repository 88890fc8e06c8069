"""Canonical hash of a value: canonical JSON (RFC 8785) under SHA-256.

Only values with the same representation in every language can be hashed. A float such as 0.1 is refused, because
another implementation may compute a different last digit. Money is an integer in minor units, or a Decimal, which is
hashed as text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import TypeAlias, cast
from uuid import UUID

import msgspec
import rfc8785

from standfast.errors import PayloadError, indefinite

LARGEST_INTEGER = 2**53 - 1
"""Larger integers are refused, because other JSON readers round them."""

UNSTABLE_NUMBER = "UNSTABLE_NUMBER"
"""Code of a refusal: another language may write the number differently."""
UNSTABLE_VALUE = "UNSTABLE_VALUE"
"""Code of a refusal: the value has no canonical JSON form."""

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False).encode

Stable: TypeAlias = "bool | int | str | list[Stable] | dict[str, Stable] | None"
"""A value with the same representation in every language."""


def canonical_bytes(value: object) -> bytes:
    """Return the canonical JSON of `value` as bytes."""
    try:
        stable = cast("Stable", value) if _is_stable(value) else _stable(value, "$")
        text = _encode(stable)
        # The order of keys can differ only beyond ASCII. For ASCII the standard library is faster.
        return text.encode() if text.isascii() else rfc8785.dumps(stable)
    except (rfc8785.CanonicalizationError, UnicodeError) as error:
        raise PayloadError(str(error), reason=UNSTABLE_VALUE) from error
    except RecursionError as error:
        raise PayloadError("the value is nested too deep to be hashed", reason=UNSTABLE_VALUE) from error


def canonical_hash(value: object) -> str:
    """Return the SHA-256 of the canonical JSON of `value`, in hexadecimal."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def _is_stable(value: object) -> bool:
    """Whether a value is as it is to be written already, so that no copy is made of it."""
    kind = type(value)
    if kind is dict:
        values = cast("dict[object, object]", value)
        return all(type(key) is str for key in values) and all(map(_is_stable_item, values.values()))
    if kind is list or kind is tuple:
        return all(map(_is_stable_item, cast("list[object]", value)))
    return _is_stable_item(value)


def _is_stable_item(value: object) -> bool:
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is int:
        return abs(cast("int", value)) <= LARGEST_INTEGER
    return (kind is dict or kind is list or kind is tuple) and _is_stable(value)


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
