"""Reads request bodies: bytes within limits, and unambiguous JSON."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec
from starlette.requests import ClientDisconnect, Request

from standfast.http.wire.options import HttpOptions
from standfast.http.wire.problems import EdgeCode, EdgeError
from standfast.kernel.codec.type_cache import settled
from standfast.kernel.codec.unique_keys import RepeatedNameError, check_names

_MEASURED = re.compile(rb'"(?:[^"\\]|\\.)*"?|[\[{]|[\]}]', re.DOTALL)
_BELOW = " - at `$"
"""How msgspec marks a part of the body in its messages."""
_OF_FIELDS = " field `"


async def read_body(request: Request, options: HttpOptions) -> bytes:
    """The body of a request, if it is not too large or too slow; it is never kept beyond the limit."""
    most = options.max_body_bytes
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > most:
        raise _too_large(most)
    chunks, size = [], 0
    try:
        async with asyncio.timeout(options.body_timeout.total_seconds()):
            async for chunk in request.stream():
                size += len(chunk)
                if size > most:
                    raise _too_large(most)
                chunks.append(chunk)
    except TimeoutError:
        headers = {"connection": "close"}
        raise EdgeError(EdgeCode.TOO_SLOW, "the body did not arrive in time", headers=headers) from None
    except ClientDisconnect:
        raise EdgeError(EdgeCode.MALFORMED, "the body was not sent to its end") from None
    return b"".join(chunks)


def decoded(raw: bytes, kind: Any, *, is_file: bool = False) -> Any:
    """Decode a JSON body to this type; EdgeError if it does not fit, or is ambiguous.

    Duplicate names in an uploaded file are left to the file's parser, which reports their lines.
    """
    try:
        value = msgspec.json.decode(raw or b"{}", type=settled(kind))
        if not is_file:
            check_names(raw)
    except msgspec.ValidationError as error:
        told = f"the body is not what the route takes: {error}{_fields_told(str(error), kind)}"
        raise EdgeError(EdgeCode.MALFORMED, told) from None
    except RepeatedNameError as error:
        raise EdgeError(EdgeCode.REPEATED_NAME, str(error)) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise EdgeError(EdgeCode.MALFORMED, f"the body is no JSON: {error}") from None
    return value


def _fields_told(fault: str, kind: object) -> str:
    """Return the valid fields, for a message about an unknown or missing one."""
    if _BELOW in fault or _OF_FIELDS not in fault or not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return ""
    fields = msgspec.structs.fields(kind)
    names = [f"`{each.encode_name}`{' (required)' if each.required else ''}" for each in fields]
    return f"; it takes {', '.join(names)}" if names else "; it takes none"


def check_depth(body: bytes, most: int) -> None:
    """Refuse JSON that is nested too deep, before any recursive code reads it."""
    if body.count(b"[") + body.count(b"{") <= most:
        return
    depth = 0
    for found in _MEASURED.finditer(body):
        mark = found.group()
        if mark in {b"[", b"{"}:
            depth += 1
            if depth > most:
                raise EdgeError(EdgeCode.TOO_DEEP, f"the body is nested deeper than {most} levels")
        elif mark in {b"]", b"}"}:
            depth -= 1


def _too_large(most: int) -> EdgeError:
    return EdgeError(EdgeCode.TOO_LARGE, f"the body is larger than {most} bytes", headers={"connection": "close"})
