"""Asking those who issue tokens: for their keys, for where they are, for a token. The answers are short, and lead nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http.client import HTTPException, HTTPMessage
from typing import IO, Final
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

_PATIENCE_SECONDS: Final = 5.0
_MOST_BYTES: Final = 262_144
_TRUSTED: Final = ("https://", "http://127.0.0.1:", "http://localhost:")


class _NoRedirects(HTTPRedirectHandler):
    """Whoever can answer at an address must not send the server elsewhere."""

    def redirect_request(  # noqa: PLR0917 - the signature of the class it replaces
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Follow none."""


def is_trusted(address: str) -> bool:
    """Whether what is read there is what its owner wrote: by https, or on this machine."""
    return address.startswith(_TRUSTED)


async def fetched(
    address: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
) -> bytes:
    """What is answered at an address, to a form if there is one; OSError or ValueError if nothing usable is."""
    return await asyncio.to_thread(fetch, address, form, headers)


def fetch(address: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None) -> bytes:
    """The same for whoever may wait."""
    if not is_trusted(address):
        raise ValueError(f"{address!r} is neither https nor on this machine")
    body = None if form is None else urlencode(form).encode()
    request = Request(address, data=body, headers={"accept": "application/json", **(headers or {})})  # noqa: S310 - checked above
    try:
        with build_opener(_NoRedirects).open(request, timeout=_PATIENCE_SECONDS) as answer:
            data: bytes = answer.read(_MOST_BYTES + 1)
    except HTTPError as error:
        error.close()  # It holds the line until somebody does, and whoever tries codes could take them all.
        raise
    except HTTPException as error:
        raise ValueError(f"what answers there does not speak HTTP: {error!r}") from error
    if len(data) > _MOST_BYTES:
        raise ValueError(f"more than {_MOST_BYTES} bytes")
    return data
