"""Routes of contracts: versioned definitions of document types."""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from standfast.features.documents.compiler.contract_changes import ContractChange
from standfast.features.documents.publishing.views import ContractCheck, ContractVersion
from standfast.http.requests.routing import NoQuery, Paged, Route, RouteCall, RouteResponse, Subject
from standfast.http.routes.documents.bodies import TEXTS, Exported, Number, NumberQuery, Recompile, Version
from standfast.http.wire import paging as cursors
from standfast.http.wire.paging import Listing


class PublishContractQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of publishing a contract."""

    force: bool = False
    """Whether it is published although published bodies would not compile with it; they go on as they were compiled."""
    comment: str = ""


class ContractDiffQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which versions are compared."""

    old: Version
    new: Number = 0
    """The newest one if it is 0."""


class ContractChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between two versions of a contract."""

    changes: list[ContractChange]


class RecompiledContracts(msgspec.Struct, frozen=True, kw_only=True):
    """The contracts whose bare workflows were recompiled, or would be."""

    contracts: list[ContractVersion]


async def list_contracts(call: RouteCall[Paged, None]) -> Listing[ContractVersion]:
    """List the newest version of each contract that the tenant has or shares, by type."""
    found = await call.calls.contracts.list()
    return cursors.named(found, call.query.cursor, call.page(call.query.limit), lambda each: [each.type])


async def publish_contract(call: RouteCall[PublishContractQuery, object]) -> RouteResponse:
    """Publish a contract of the tenant's own, given as YAML or JSON; the same again changes nothing."""
    asked = call.query
    found = await call.calls.contracts.publish(call.raw, force=asked.force, comment=asked.comment)
    return RouteResponse(
        value=found, status=201, headers={"location": f"/api/v1/contracts/{quote(found.type, safe='')}"}
    )


async def check_contract(call: RouteCall[NoQuery, object]) -> ContractCheck:
    """Check a contract without storing it: its changes, and the published bodies that it breaks."""
    return await call.calls.contracts.check(call.raw)


async def get_contract(call: RouteCall[NumberQuery, None]) -> ContractVersion:
    """Get a version of a contract; the newest by default."""
    return await call.calls.contracts.get(call.path["type"], call.query.version)


async def list_contract_versions(call: RouteCall[Paged, None]) -> Listing[ContractVersion]:
    """List all versions of a contract, oldest first."""
    found = await call.calls.contracts.versions(call.path["type"])
    return cursors.sliced(found, call.query.cursor, call.page(call.query.limit))


async def diff_contract(call: RouteCall[ContractDiffQuery, None]) -> ContractChanges:
    """Compare two versions of a contract."""
    found = await call.calls.contracts.diff(call.path["type"], call.query.old, call.query.new)
    return ContractChanges(changes=found)


async def export_contract(call: RouteCall[NumberQuery, None]) -> Exported:
    """A version of a contract as YAML with its hash, to be kept in git."""
    return Exported(format="yaml", source=await call.calls.contracts.export(call.path["type"], call.query.version))


async def recompile_contracts(call: RouteCall[NoQuery, Recompile]) -> RecompiledContracts:
    """Compile again the bare workflows of the tenant's own contracts that an older version of the compiler has compiled, or tell which would be."""
    found = await call.calls.contracts.recompile(call.body.type, dry_run=call.body.dry_run)
    return RecompiledContracts(contracts=found)


_CONTRACTS = Subject("contracts", "/api/v1/contracts", "contracts:read", "own")
_CONTRACT = {
    "entity_type": "note",
    "version": 1,
    "fields": {"text": {"type": "string", "required": True}},
    "lifecycle": {
        "version": 1,
        "initial": "draft",
        "terminal": ["filed"],
        "states": {"draft": {"window": "editable"}, "filed": {"window": "locked"}},
        "transitions": [{"name": "file", "from": ["draft"], "to": "filed"}],
    },
}

ROUTES: tuple[Route, ...] = (
    _CONTRACTS.get("", list_contracts, query=Paged, answer=Listing[ContractVersion]),
    _CONTRACTS.post(
        "",
        publish_contract,
        permission="contracts:publish",
        reach="tenant",
        query=PublishContractQuery,
        body=object,
        texts=TEXTS,
        answer=ContractVersion,
        status=201,
        example=_CONTRACT,
    ),
    _CONTRACTS.get("/{type}", get_contract, query=NumberQuery, answer=ContractVersion),
    _CONTRACTS.get("/{type}/versions", list_contract_versions, query=Paged, answer=Listing[ContractVersion]),
    _CONTRACTS.get("/{type}/diff", diff_contract, query=ContractDiffQuery, answer=ContractChanges),
    _CONTRACTS.get("/{type}/export", export_contract, query=NumberQuery, answer=Exported),
    Subject("contracts", "/api/v1/contract-compilations", "contracts:publish", "tenant").post(
        "", recompile_contracts, body=Recompile, answer=RecompiledContracts, example={"dry_run": True}
    ),
    Subject("contracts", "/api/v1/contract-checks", "contracts:read", "own").post(
        "", check_contract, is_look=True, body=object, texts=TEXTS, answer=ContractCheck, example=_CONTRACT
    ),
)
