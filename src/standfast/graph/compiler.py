"""Compiles nodes and edges to a graph: checks, canonical order and hash.

Also converts graphs to their stored form and back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from standfast.errors import DefinitionError, Diagnostic, PayloadError
from standfast.graph.checks import NO_RIGHTS, check_graph
from standfast.graph.model import (
    IR_VERSION,
    DocumentSpec,
    Edge,
    EventTrigger,
    Graph,
    Kind,
    Node,
    Policies,
    Rights,
)
from standfast.kernel.codec.canonical import canonical_hash
from standfast.kernel.codec.defaults import with_default_texts
from standfast.kernel.codec.type_cache import settled
from standfast.kernel.codec.unique_keys import RepeatedNameError, check_names

_encoder = msgspec.json.Encoder(order="deterministic")


def compile_graph(  # noqa: PLR0913 - the parts of a graph, all by name
    *,
    kind: Kind,
    name: str,
    version: str,
    entry: str,
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    policies: Policies,
    rights: Rights = NO_RIGHTS,
    triggers: Sequence[EventTrigger] = (),
    document: DocumentSpec | None = None,
    title: str = "",
) -> Graph:
    """Compile nodes and edges to a graph. Raises DefinitionError with all findings."""
    found = check_graph(
        kind=kind,
        name=name,
        version=version,
        entry=entry,
        nodes=nodes,
        edges=edges,
        policies=policies,
        rights=rights,
        triggers=triggers,
        document=document,
    )
    if found:
        raise DefinitionError(name, found)
    drafted = Graph(
        kind=kind,
        name=name,
        version=version,
        entry=entry,
        nodes={node.id: node for node in sorted(nodes, key=lambda node: node.id)},
        edges=tuple(sorted(edges, key=lambda edge: (edge.source, edge.priority, edge.id))),
        policies=policies,
        rights=rights,
        triggers=tuple(triggers),
        document=document,
        title=title or msgspec.UNSET,
    )
    graph = with_default_texts(drafted)
    return msgspec.structs.replace(graph, hash=_hash_of(msgspec.to_builtins(graph)))


def compile_data(data: Mapping[str, object] | str | bytes) -> Graph:
    """Compile a graph from plain data, from `graph_data` or written by an author.

    Raises DefinitionError with all findings.
    """
    name = ""
    try:
        plain = msgspec.json.decode(data, type=dict[str, object]) if isinstance(data, str | bytes) else dict(data)
        name = str(plain.get("name", ""))
        given = msgspec.convert(plain, settled(_Given))
        if isinstance(data, str | bytes):
            check_names(data.encode() if isinstance(data, str) else data)
    except RepeatedNameError as error:
        raise _refusal(name, "duplicate_key", str(error)) from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"this is no graph: {error}; take the form that the data of a published definition has"
        raise _refusal(name, "unreadable_graph", message) from error
    _check_version(_Header(name=given.name, ir_version=given.ir_version))
    wrong = [
        Diagnostic("wrong_id", f"node {key!r} has the id {node.id!r}: the two must be the same", key)
        for key, node in given.nodes.items()
        if key != node.id
    ]
    if wrong:
        raise DefinitionError(given.name, wrong)
    return compile_graph(
        kind=given.kind,
        name=given.name,
        version=given.version,
        entry=given.entry,
        nodes=list(given.nodes.values()),
        edges=given.edges,
        policies=given.policies,
        rights=given.rights,
        triggers=given.triggers,
        document=given.document,
        title=given.title,
    )


def graph_data(graph: Graph) -> dict[str, object]:
    """Return a graph as plain data for JSON."""
    return cast("dict[str, object]", msgspec.to_builtins(graph))


def graph_hash(graph: Graph) -> str:
    """Return the hash over everything that a run depends on. Equal graphs have equal hashes."""
    return _hash_of(msgspec.to_builtins(with_default_texts(graph)))


def _hash_of(plain: dict[str, object]) -> str:
    """Return the hash of a graph in plain data."""
    # A graph without triggers or a document keeps the hash from before these fields existed.
    absent = {name for name in ("triggers", "document") if not plain.get(name)}
    return canonical_hash(
        {name: value for name, value in plain.items() if name not in {"hash", "title"} and name not in absent}
    )


def graph_bytes(graph: Graph) -> bytes:
    """Encode a graph. Equal graphs have equal bytes."""
    return _encoder.encode(graph)


def copy_graph(graph: Graph) -> Graph:
    """Return a deep copy of a graph."""
    return msgspec.json.decode(graph_bytes(graph), type=settled(Graph))


def read_graph(data: bytes) -> Graph:
    """Decode a stored graph. Raises DefinitionError if it was changed after compilation or has a newer format."""
    try:
        header = msgspec.json.decode(data, type=settled(_Header))
        _check_version(header)
        graph = msgspec.json.decode(data, type=settled(Graph))
        plain = msgspec.json.decode(data, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"the stored graph cannot be read: {error}; restore it, or publish the workflow again"
        raise _refusal("", "unreadable_graph", message) from error
    if graph.hash != _hash_as_stored(plain):
        message = "the stored graph is not the one that was compiled: something changed it; restore it from a backup"
        raise _refusal(graph.name, "changed_graph", message)
    return graph


class _Given(msgspec.Struct, forbid_unknown_fields=True):
    """A graph as authors may write it, without the fields that the compiler adds."""

    name: str
    version: str
    entry: str
    nodes: dict[str, Node]
    edges: tuple[Edge, ...]
    kind: Kind = "saga"
    policies: Policies = Policies()
    rights: Rights = Rights()
    triggers: tuple[EventTrigger, ...] = ()
    document: DocumentSpec | None = None
    title: str = ""
    ir_version: int = IR_VERSION
    hash: str = ""


class _Header(msgspec.Struct):
    """The fields of a stored graph that every version of the code can read."""

    name: str
    ir_version: int


def _check_version(header: _Header) -> None:
    """Raise if this code would misread the format."""
    if 1 <= header.ir_version <= IR_VERSION:
        return
    message = (
        f"the stored graph has the form {header.ir_version}, and this code knows the forms up to {IR_VERSION}; "
        "run it with the version of Standfast that compiled it, or a newer one"
    )
    raise _refusal(header.name, "unknown_ir_version", message)


def _hash_as_stored(plain: dict[str, object]) -> str:
    """Return the hash of the stored data, with the omitted defaults as stored."""
    try:
        return _hash_of(plain)
    except PayloadError:
        return ""  # Data without a hash was never compiled.


def _refusal(name: str, code: str, message: str) -> DefinitionError:
    return DefinitionError(name or "the workflow", [Diagnostic(code, message)])
