"""From nodes and edges to a graph: checked, put in canonical order, hashed; and from a graph to its stored form and back."""

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
    """The graph of these nodes and edges; DefinitionError with every finding if it is not sound."""
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
    """The graph of plain data, as `graph_data` gives it or as somebody wrote it; DefinitionError with every finding."""
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
    """A graph as plain data, which can be written as JSON."""
    return cast("dict[str, object]", msgspec.to_builtins(graph))


def graph_hash(graph: Graph) -> str:
    """The hash over everything that a run depends on; equal graphs have equal hashes."""
    return _hash_of(msgspec.to_builtins(with_default_texts(graph)))


def _hash_of(plain: dict[str, object]) -> str:
    """The hash of a graph that is given as plain data."""
    # Without triggers or a document it is the graph that it was before there were any.
    absent = {name for name in ("triggers", "document") if not plain.get(name)}
    return canonical_hash(
        {name: value for name, value in plain.items() if name not in {"hash", "title"} and name not in absent}
    )


def graph_bytes(graph: Graph) -> bytes:
    """The stored form of a graph: the same bytes for the same graph."""
    return _encoder.encode(graph)


def copy_graph(graph: Graph) -> Graph:
    """The same graph as another object, down to its parts."""
    return msgspec.json.decode(graph_bytes(graph), type=settled(Graph))


def read_graph(data: bytes) -> Graph:
    """A stored graph. DefinitionError if it was changed since it was compiled, or comes from code that is newer than this."""
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
    """A graph as somebody may write it: what the compiler adds may be left out."""

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
    """What can be read of a graph from any version of the code."""

    name: str
    ir_version: int


def _check_version(header: _Header) -> None:
    """Refuse what this code would misread, before it tries."""
    if 1 <= header.ir_version <= IR_VERSION:
        return
    message = (
        f"the stored graph has the form {header.ir_version}, and this code knows the forms up to {IR_VERSION}; "
        "run it with the version of Standfast that compiled it, or a newer one"
    )
    raise _refusal(header.name, "unknown_ir_version", message)


def _hash_as_stored(plain: dict[str, object]) -> str:
    """The hash of what is stored, which says itself what it leaves to defaults."""
    try:
        return _hash_of(plain)
    except PayloadError:
        return ""  # What has no hash was never compiled.


def _refusal(name: str, code: str, message: str) -> DefinitionError:
    return DefinitionError(name or "the workflow", [Diagnostic(code, message)])
