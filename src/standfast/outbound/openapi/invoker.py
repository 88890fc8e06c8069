"""The invoker of OpenAPI operations: `billing.createInvoice` is an operation of the document `billing`."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from standfast.engine.common.handlers import Fail, Retry, UncalledError
from standfast.errors import ConfigurationError
from standfast.kernel.codec.message_types import name_flaw
from standfast.outbound.http import HttpLimits, Outbound, check_header
from standfast.outbound.invokers import Invocation, Invoker
from standfast.outbound.openapi.documents import OpenApiDocument, Tree, below, read_document
from standfast.outbound.openapi.operations import Operation, body_of, check_path
from standfast.outbound.openapi.parameters import parameters_of
from standfast.outbound.openapi.schemas import Schemas
from standfast.outbound.openapi.security import SecretRedaction, Security
from standfast.outbound.urls import Url, place_of

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_TRACE: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_LONGEST: Final = 3600.0
_LONGEST_ID: Final = 200
"""Characters of an operation's id: together with its document and invoker it is the name of a handler."""


class ApiDocument:
    """An OpenAPI document (3.0 or 3.1) whose operations steps call, with the options of these calls.

    `document` is a path, `package:shop/apis/billing.yaml` for a file in a package, or the document as data. `server`
    replaces the servers of the document. `secrets` are references by security scheme: `env:NAME`, or `file:/path`.
    `allow` names non-public hosts and networks that may be reached, in addition to those of the settings.
    """

    def __init__(  # noqa: PLR0913 - all that can be said about it, by name
        self,
        name: str,
        document: str | Path | Mapping[str, object],
        *,
        server: str = "",
        secrets: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        idempotency_header: str = "Idempotency-Key",
        connect_timeout: float = 5.0,
        timeout: float = 30.0,
        max_request_bytes: int = 1_000_000,
        max_response_bytes: int = 1_000_000,
        redirects: int = 0,
        allow: Iterable[str] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        if not _NAME.fullmatch(name):
            raise ConfigurationError(f"{name!r} cannot be the name of a document; take letters, digits, - and _")
        self.name = name
        self.limits = HttpLimits(
            connect_seconds=_number(connect_timeout, "connect_timeout", _LONGEST),
            total_seconds=_number(timeout, "timeout", _LONGEST),
            request_bytes=round(_number(max_request_bytes, "max_request_bytes", 1e9)),
            response_bytes=round(_number(max_response_bytes, "max_response_bytes", 1e9)),
            redirects=round(_number(redirects, "redirects", 10, least=0)),
        )
        self.idempotency_header = idempotency_header
        self.headers = {"User-Agent": "standfast", **(headers or {})}
        _check_headers({**self.headers, **({idempotency_header: ""} if idempotency_header else {})})
        self._allow, self._tls = tuple(allow), tls
        self._document = read_document(document)
        self._server = server
        self._outbound = Outbound().extended(self._allow, tls)
        self.operations: dict[str, Operation | str] = dict(self._read(Security(self._document, secrets or {})))
        """By operation id; for an operation that cannot be called, the reason."""

    def attach(self, outbound: Outbound) -> None:
        """Receive the engine's HTTP client."""
        self._outbound = outbound.extended(self._allow, self._tls)

    def call(self, operation: Operation, invocation: Invocation) -> dict[str, object]:
        """Call an operation; return the part of the response that the step may read."""
        secrets = [each.secret() for each in operation.credentials]
        redacted = SecretRedaction(secrets)
        limit = invocation.time_limit
        total = self.limits.total_seconds if limit is None else min(self.limits.total_seconds, max(limit, 0.001))
        limits = replace(self.limits, total_seconds=total)
        headers = self.headers | ({"traceparent": invocation.trace} if _TRACE.fullmatch(invocation.trace) else {})
        key = self.idempotency_header, invocation.idempotency_key
        try:
            request = operation.request(invocation.input, secrets=secrets, headers=headers, key=key)
            return operation.response(self._outbound.send(request, limits), invocation.response_headers, redacted)
        except UncalledError as error:
            raise UncalledError(redacted(str(error))) from None
        except Fail as error:
            raise Fail(redacted(str(error))) from None
        except Retry as error:
            raise Retry(redacted(str(error)), after=error.after) from None

    def _read(self, security: Security) -> Iterator[tuple[str, Operation | str]]:
        document, schemas = self._document, Schemas(self._document)
        seen: set[str] = set()
        for path, given in document.part(document.tree.get("paths", {}), "#/paths").items():
            item, place = document.located(given, below("#/paths", path))
            for method in _METHODS:
                part = item.get(method)
                name = part.get("operationId") if isinstance(part, dict) else None
                if not isinstance(part, dict) or not isinstance(name, str):
                    continue
                if name in seen:
                    raise document.flaw(f"has several operations {name!r}; give each an id of its own")
                seen.add(name)
                if flaw := _unnamable(name):  # The other operations still work.
                    yield name, f"its id {flaw}; steps cannot name it"
                    continue
                try:
                    yield name, self._operation(name, (path, method), item, place, security, schemas)
                except ConfigurationError as error:  # The other operations still work.
                    yield name, str(error)

    def _operation(  # noqa: PLR0917 - what was found on the way to it
        self, name: str, at: tuple[str, str], item: Tree, place: str, security: Security, schemas: Schemas
    ) -> Operation:
        document, (path, method) = self._document, at
        there = below(place, method)
        part = document.part(item[method], there)
        parameters = parameters_of(document, item, method=method, place=place)
        check_path(document, path, there, parameters)
        return Operation(
            name=f"{self.name}.{name}",
            method=method.upper(),
            path=path,
            server=self._place(document, (part, item, document.tree), there),
            parameters=parameters,
            body=body_of(document, part, there),
            responses=document.part(part.get("responses", {}), below(there, "responses")),
            place=there,
            credentials=security.credentials(part, there),
            document=document,
            schemas=schemas,
        )

    def _place(self, document: OpenApiDocument, owners: tuple[Tree, ...], place: str) -> Url:
        url = self._server or next((_server(each["servers"]) for each in owners if each.get("servers")), "")
        try:
            found = place_of(url)
        except ValueError as error:
            raise document.flaw(
                f"has no server at {place!r} that can be called: {error}; give server='https://…'"
            ) from None
        if "?" in found.target:
            raise document.flaw(f"has a server at {place!r} with a query; leave it out")
        return found


class OpenApi(Invoker):
    """Calls OpenAPI operations, each by its document's name and its own id: `billing.createInvoice`."""

    def __init__(self, *documents: ApiDocument) -> None:
        self._documents = {each.name: each for each in documents}
        if len(self._documents) != len(documents):
            raise ConfigurationError("two OpenAPI documents have the same name; give each its own")

    def attach(self, outbound: Outbound) -> None:
        """Receive the engine's HTTP client."""
        for each in self._documents.values():
            each.attach(outbound)

    def operations(self) -> list[str]:
        """Return all operations whose id can be named by a step."""
        return [
            f"{name}.{each}"
            for name, document in self._documents.items()
            for each in document.operations
            if not _unnamable(each)
        ]

    def invoke(self, invocation: Invocation) -> dict[str, object]:
        """Call an operation; `response` has `status`, `headers` (those that the mapping reads) and `body`."""
        name, _, identity = invocation.operation.partition(".")
        found = self._documents[name].operations[identity]
        if isinstance(found, str):
            raise UncalledError(f"{invocation.operation!r} cannot be called: {found}")
        if invocation.arguments:
            told = ", ".join(map(repr, invocation.arguments))
            raise UncalledError(f"operations of OpenAPI documents take no arguments, and {told} is given; drop it")
        return self._documents[name].call(found, invocation)


def _unnamable(name: str) -> str:
    """Return why a step cannot name an operation, as the end of a sentence; empty if it can."""
    return f"is longer than {_LONGEST_ID} characters" if len(name) > _LONGEST_ID else name_flaw(name)


def _server(servers: object) -> str:
    """Return the first server, with the defaults of its variables."""
    first = servers[0] if isinstance(servers, list) and servers else {}
    url = first.get("url") if isinstance(first, dict) else None
    variables = first.get("variables", {}) if isinstance(first, dict) else {}
    text = url if isinstance(url, str) else ""
    for name, each in variables.items() if isinstance(variables, dict) else ():
        default = each.get("default", "") if isinstance(each, dict) else ""
        text = text.replace("{" + name + "}", str(default))
    return text


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        try:
            check_header(name, value)
        except Fail as error:
            raise ConfigurationError(str(error)) from None


def _number(given: float, name: str, most: float, *, least: float = 0.001) -> float:
    value: object = given  # Callers without type checks may pass anything.
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise ConfigurationError(f"{name} must be a number of at most {most:g}, and not less than {least:g}")
    return value
