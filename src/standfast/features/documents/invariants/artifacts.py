"""Published workflows held against what they were compiled from: the artifact beside them, and the contract and the body behind that.

A graph that was changed together with its hash is consistent in itself. What it was compiled from tells that it is another one.
"""

from __future__ import annotations

from collections.abc import Iterator

from standfast.calls.context import CallContext
from standfast.errors import DefinitionError
from standfast.features.documents.compiler.artifact import read_effective
from standfast.features.documents.compiler.compatibility import start_problem
from standfast.features.documents.compiler.compiler import compile_effective
from standfast.features.documents.compiler.graph import graph_of
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.invariants.rules import InvariantBreach
from standfast.features.documents.publishing.catalog import Catalog, body_of, contract_of
from standfast.graph.compiler import graph_bytes
from standfast.store.ports.documents import StoredBlueprint
from standfast.store.records.instances import StoredDefinition


def artifact_findings(desk: CallContext, stored: StoredDefinition) -> Iterator[InvariantBreach]:
    """Tells whether a published workflow is what its contract and body compile to. One that code has registered has neither."""
    shelf = Catalog(desk)
    rows = shelf.ask(lambda kept: kept.listed(stored.tenant, kind="effective", type_=stored.name))
    row = next((each for each in rows if each.tenant == stored.tenant and each.workflow == stored.version), None)
    if row is None:
        return
    row = shelf.whole(row)
    try:
        effective = read_effective(row.content)
    except DefinitionError as error:
        yield InvariantBreach("WF-04", f"the artifact that it was compiled from is not what was published: {error}")
        return
    if effective.hash != row.hash or effective.graph_hash != row.graph_hash:
        yield InvariantBreach(
            "WF-04", "the artifact that it was compiled from does not have the hash that it was published with"
        )
    elif start_problem(row.compiler or "") is None:  # Another compiler may make another graph of the same artifact.
        if graph_bytes(graph_of(effective, version=stored.version)) != stored.compiled:
            told = f"it is another graph than its artifact {row.id} compiles to: something changed it, and its hash with it"
            yield InvariantBreach("WF-04", told)
        yield from _compiled_again(shelf, row)


def _compiled_again(shelf: Catalog, row: StoredBlueprint) -> Iterator[InvariantBreach]:
    """Tells whether contract and body still compile to the artifact. Other contracts that it refers to may have changed, and it with them."""
    try:
        contract = contract_of(_part(shelf, row, row.envelope or ""))
        body = None if row.body is None else body_of(_part(shelf, row, row.body))
        related = shelf.related(contract)
        again = None if related else compile_effective(generate_envelope(contract), body)
    except DefinitionError as error:
        yield InvariantBreach("WF-04", f"its contract and body do not compile to it: {error}")
        return
    if again is not None and again.hash != row.hash:
        told = f"its contract and body compile to the artifact {again.hash}, and it was published as {row.hash}"
        yield InvariantBreach("WF-04", told)


def _part(shelf: Catalog, row: StoredBlueprint, identity: str) -> StoredBlueprint:
    found = shelf.ask(lambda kept: kept.get(row.tenant, identity))
    assert found is not None, "what is published never goes"
    return found
