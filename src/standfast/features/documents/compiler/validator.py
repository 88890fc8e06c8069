"""The validator of bodies: everything that is wrong with the patches of an organisation, without publishing anything.

A body that is sound by its own rules is put together, every node is asked in the machine's own words whether it can run, and at last the
whole is compiled: so what has no problems here has a graph.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from standfast.features.documents.body.checks import NOTHING, examine, read_partly
from standfast.features.documents.body.diagnostics import BodyDiagnostic, ordered
from standfast.features.documents.body.format import Body
from standfast.features.documents.body.node_checks import Chains
from standfast.features.documents.compiler.assembly import merged
from standfast.features.documents.compiler.compiler import artifact
from standfast.features.documents.compiler.graph import graph_findings
from standfast.features.documents.compiler.merging import Merger
from standfast.features.documents.compiler.proof import prove_gates
from standfast.features.documents.contract.envelope import Envelope
from standfast.features.documents.contract.expressions import Related
from standfast.features.documents.contract.ids import ENVELOPE
from standfast.features.documents.contract.loading import by_place
from standfast.graph.source_files.reading import StructReader


def check_body(
    envelope: Envelope, body: Body | str | bytes, *, related: Related = NOTHING, chains: Chains = None
) -> list[BodyDiagnostic]:
    """Everything that is wrong with a body for this envelope: each problem with code, slot, node or edge; none if it compiles.

    A body that is given as text is reported on with line and column. `related` are contracts of types that the documents refer to,
    `chains` the approval chains that there are; without them none is looked for.
    """
    reader: StructReader | None = None
    if not isinstance(body, Body):
        read = read_partly(body)
        mistakes = [BodyDiagnostic(each.code, each.message, each.position) for each in read.mistakes]
        if read.body is None:
            return mistakes
        body, reader = read.body, read.reader
        if mistakes:
            _, problems = examine(envelope, body, related=related, reader=reader, chains=chains)
            return sorted([*mistakes, *problems], key=by_place)
    merger, problems = merged(envelope, body, related=related, reader=reader, chains=chains)
    return problems or ordered(_late(envelope, merger, body, reader))


def rebased(body: Body, envelope: Envelope) -> Body:
    """The same body for another version of the envelope; what does not fit there any more, the validator says."""
    return msgspec.structs.replace(
        body, base=msgspec.structs.replace(body.base, envelope_version=envelope.version), hash=None
    )


def _late(envelope: Envelope, merger: Merger, body: Body, reader: StructReader | None) -> Iterator[BodyDiagnostic]:
    """What is wrong with the whole though every patch is sound: a contract that nobody has read lets more through than one of a file."""
    found = prove_gates(envelope, merger.nodes, merger.edges) or graph_findings(artifact(envelope, merger))
    for each in found:
        node = merger.nodes.get(each.position)
        slot = "" if node is None or node.slot == ENVELOPE else node.slot
        place, written = each.position, merger.written(each.position)
        if reader is not None:
            place = str(reader.inner(body, "slots", slot) if written is None else reader.at(written))
        yield BodyDiagnostic(each.code, each.message, place, slot=slot, node="" if node is None else node.id)
