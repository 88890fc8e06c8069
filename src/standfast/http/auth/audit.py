"""The audit of denied requests: all of them, within a rate that keeps attackers from filling the database."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Final
from urllib.parse import quote

from starlette.requests import Request

from standfast.app.engine import Engine
from standfast.calls.catalog.rate_limits import Rate
from standfast.errors import ForbiddenError, StandfastError
from standfast.http.auth.authenticator import CrossSiteError, Identity
from standfast.http.wire.options import HttpOptions
from standfast.http.wire.problems import EdgeCode, EdgeError
from standfast.http.wire.tracing import Trace

_log = logging.getLogger("standfast.http")
_REFUSALS: Final = frozenset({EdgeCode.FORBIDDEN, EdgeCode.OTHER_PARTITION, EdgeCode.PLATFORM_ONLY})
_MOST_REMEMBERED: Final = 10_000


class Audit:
    """Stores denied requests for auditors, up to a rate per credential, and counts the others."""

    def __init__(self, engine: Engine, options: HttpOptions) -> None:
        self._engine = engine
        self._keep = options.keep_refusals
        self._rate = Rate(options.refusals_per_second, options.refusals_burst)
        self._untold: OrderedDict[str, int] = OrderedDict()
        """Denials by credential that are only in the log, since the last stored one."""

    async def note(self, identity: Identity, request: Request, trace: Trace, error: Exception) -> None:
        """Store a denial. A failure to store it does not change the response."""
        if isinstance(error, CrossSiteError) or (isinstance(error, EdgeError) and error.code in _REFUSALS):
            code = error.code.value
        elif isinstance(error, ForbiddenError):
            code = error.reason
        else:
            return
        path = shown(request.scope["path"])
        _log.warning(
            "request_denied method=%s path=%s actor=%r tenant=%r credential=%r code=%s",
            request.method, ascii(path), identity.actor.id, identity.tenant, identity.credential, code,
        )  # fmt: skip
        if self._rate.take(identity.account):
            self._count(identity.account)
            return
        more = self._untold.pop(identity.account, 0)
        context = identity.context(trace.parent)
        try:
            await self._engine.aio.acting(context).refusals.note(
                credential=identity.credential,
                method=request.method,
                path=path,
                code=code,
                detail=shown(f"{error}; {more} more before it are in the log alone" if more else str(error)),
                keep=self._keep,
            )
        except StandfastError:
            _log.exception("denial_not_stored")

    def _count(self, account: str) -> None:
        self._untold[account] = self._untold.get(account, 0) + 1
        if len(self._untold) > _MOST_REMEMBERED:
            self._untold.popitem(last=False)


def shown(text: str) -> str:
    """Escape a client's text for the database and the log: invisible characters are percent-encoded."""
    return "".join(each if each.isprintable() else quote(each, errors="replace") for each in text)
