"""Read JSON response bodies: the media type, the encoding and the depth are checked."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from standfast.engine.common.handlers import Fail
from standfast.kernel.codec.depth import DEEPEST, is_deep, is_flat_json
from standfast.outbound.http import HttpResponse

_JSON: Final = re.compile(r"application/(?:[a-z0-9!#$&^_.+-]+\+)?json")


def media_type(header: str) -> str:
    """Return the media type of a header, without its parameters."""
    return header.partition(";")[0].strip().lower()


def is_json(media: str) -> bool:
    """Return whether a media type is JSON."""
    return _JSON.fullmatch(media_type(media)) is not None


def json_of(answer: HttpResponse) -> object:
    """Parse a response body into plain data, None if it is empty; `Fail` describes any other body."""
    if not answer.body:
        return None
    media = answer.headers.get("content-type", "")
    if not is_json(media):
        told = f"{media_type(media)[:100]!r}" if media else "without a content type"
        raise Fail(f"{answer.place.name} has answered {told}, and not JSON")
    try:
        found: object = msgspec.json.decode(answer.body)
    except RecursionError:
        raise _too_deep(answer) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Fail(f"{answer.place.name} has answered with invalid JSON: {error}") from None
    if not is_flat_json(answer.body) and is_deep(found):
        raise _too_deep(answer)
    return found


def _too_deep(answer: HttpResponse) -> Fail:
    return Fail(f"the answer of {answer.place.name} is nested deeper than {DEEPEST} levels")
