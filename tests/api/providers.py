"""A provider of logins for tests: it says where it is, asks nobody for a password, and gives a token for a code, once."""

from __future__ import annotations

import secrets
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from api.serving import serving
from api.tokens import token

CLIENT, SECRET = "standfast-ui", "between us & them"


class Provider:
    """Vouches for whoever comes; `claims` is what its tokens say, `spoil` what they say wrongly."""

    def __init__(self) -> None:
        self.claims: dict[str, Any] = {"sub": "ann", "tenant": "acme", "roles": ["viewer"]}
        self.asked: list[dict[str, str]] = []
        self.redeemed = 0
        self.address = ""
        self.says: dict[str, str] = {}
        """What it says of itself besides the truth."""
        self._codes: dict[str, dict[str, str]] = {}

    def app(self) -> Starlette:
        """The provider as a site."""
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._tell),
                Route("/authorize", self._authorize),
                Route("/token", self._exchange, methods=["POST"]),
            ]
        )

    async def _tell(self, _request: Request) -> Response:
        told = {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/authorize",
            "token_endpoint": f"{self.address}/token",
        }
        return JSONResponse({**told, **self.says})

    async def _authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        self.asked.append(asked)
        code = secrets.token_urlsafe(8)
        self._codes[code] = asked
        return RedirectResponse(f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}", 302)

    async def _exchange(self, request: Request) -> Response:
        form = {key: values[0] for key, values in parse_qs((await request.body()).decode()).items()}
        asked = self._codes.pop(form["code"], None)
        shown = b64decode(request.headers["authorization"].removeprefix("Basic ")).decode()
        challenge = urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        is_right = (
            asked is not None
            and shown == f"{CLIENT}:between+us+%26+them"
            and (form["client_id"], form["redirect_uri"]) == (asked["client_id"], asked["redirect_uri"])
            and challenge == asked["code_challenge"]
        )
        if asked is None or not is_right:
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        self.redeemed += 1
        claims = {"iss": self.address, "aud": CLIENT, "nonce": asked["nonce"], **self.claims}
        return JSONResponse({"id_token": token(**claims), "access_token": "x", "token_type": "Bearer"})


@contextmanager
def provider() -> Iterator[Provider]:
    """One that can be reached as long as the block lasts."""
    made = Provider()
    with serving(made.app()) as address:
        made.address = address
        yield made
