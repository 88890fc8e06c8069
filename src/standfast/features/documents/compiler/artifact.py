"""The compiled workflow of an organisation's documents: everything that a run depends on, looked up and never computed again, and its hash."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from standfast.errors import DefinitionError, Diagnostic
from standfast.features.documents.contract.format import Contract, Window
from standfast.features.documents.contract.parts import EnvelopeEdge, EnvelopeNode
from standfast.kernel.codec.canonical import canonical_hash
from standfast.kernel.codec.defaults import with_default_texts
from standfast.kernel.codec.type_cache import settled

HASH_MISMATCH: Final = "WORKFLOW_HASH_MISMATCH"


class JoinRequirement(msgspec.Struct, frozen=True, kw_only=True):
    """What a join waits for."""

    split: str
    tokens: int
    """How many branches its split has."""
    mode: Literal["all", "any"]


class Gates(msgspec.Struct, frozen=True, kw_only=True):
    """The proof that the envelope is whole."""

    required: list[str]
    """System nodes that the envelope has."""
    present: list[str]
    is_valid: bool


class ArtifactHeader(msgspec.Struct, frozen=True, kw_only=True):
    """Figures by which a stored artifact can be judged without loading it."""

    nodes: int
    edges: int
    order: int
    slot_map_hash: str


class Effective(msgspec.Struct, frozen=True, kw_only=True):
    """An envelope and a body, compiled."""

    entity_type: str
    envelope_version: int
    envelope_hash: str
    compiler_version: str
    contract: Contract
    nodes_by_id: dict[str, EnvelopeNode]
    edges_by_id: dict[str, EnvelopeEdge]
    adjacency: dict[str, list[str]]
    """For each node the ids of the edges that leave it, in the order in which they are tried."""
    reverse_adjacency: dict[str, list[str]]
    order: list[str]
    """The nodes, each after those that lead to it, rework apart; of equal ones the lower id first."""
    joins: dict[str, JoinRequirement]
    windows: dict[str, Window]
    stable: list[str]
    """Nodes at which the content may not change."""
    slot_map: dict[str, str]
    """For each node the slot that it belongs to, or `envelope`."""
    gates: Gates
    header: ArtifactHeader
    graph_hash: str = ""
    """Over what a run follows: the same graph from another compiler has the same."""
    hash: str = ""
    """Over everything else."""


def sealed(effective: Effective) -> Effective:
    """The artifact with its hashes."""
    plain = with_default_texts(effective)
    with_graph = msgspec.structs.replace(plain, graph_hash=_graph_hash(plain))
    return msgspec.structs.replace(with_graph, hash=_hash(with_graph))


def effective_data(effective: Effective) -> dict[str, object]:
    """The artifact as plain data, as it is stored and hashed."""
    plain: dict[str, object] = msgspec.to_builtins(effective)
    return plain


def read_effective(data: bytes | str | dict[str, object]) -> Effective:
    """A stored artifact; DefinitionError if it was changed since it was compiled."""
    try:
        plain = msgspec.json.decode(data, type=dict[str, object]) if isinstance(data, bytes | str) else data
        found = msgspec.convert(plain, settled(Effective))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _mismatch("the compiled workflow", f"the stored workflow cannot be read: {error}") from error
    check_whole(found)
    return found


def check_whole(effective: Effective) -> None:
    """DefinitionError if an artifact is not the one that was compiled."""
    if effective.hash != _hash(effective) or effective.graph_hash != _graph_hash(effective):
        raise _mismatch(
            effective.entity_type, "the stored workflow is not the one that was compiled: something changed it"
        )


def _mismatch(name: str, message: str) -> DefinitionError:
    return DefinitionError(name, [Diagnostic(HASH_MISMATCH, f"{message}; restore it, or publish the body again")])


def _hash(effective: Effective) -> str:
    plain = effective_data(effective)
    del plain["hash"]
    return canonical_hash(plain)


def _graph_hash(effective: Effective) -> str:
    """Over nodes, edges and contract: all the rest follows from them."""
    parts = (effective.nodes_by_id, effective.edges_by_id, effective.contract)
    return canonical_hash(msgspec.to_builtins(parts))
