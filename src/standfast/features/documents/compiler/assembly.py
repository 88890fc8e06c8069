"""The envelope with the patches of a body in it, and everything that is wrong with them by the rules of patches and of single nodes."""

from __future__ import annotations

from collections.abc import Iterator

from standfast.features.documents.body.checks import NOTHING, Checked, examine
from standfast.features.documents.body.diagnostics import BodyDiagnostic, ordered
from standfast.features.documents.body.format import Body
from standfast.features.documents.body.node_checks import Chains
from standfast.features.documents.compiler.graph import machine_node
from standfast.features.documents.compiler.merging import Merger
from standfast.features.documents.contract.envelope import Envelope
from standfast.features.documents.contract.expressions import Related
from standfast.graph.checks import node_findings
from standfast.graph.source_files.reading import StructReader


def merged(
    envelope: Envelope,
    body: Body,
    *,
    related: Related = NOTHING,
    reader: StructReader | None = None,
    chains: Chains = None,
) -> tuple[Merger, list[BodyDiagnostic]]:
    """The envelope with the patches of a body in it, and everything that is wrong with them; with problems nothing is put in."""
    patches, problems = examine(envelope, body, related=related, reader=reader, chains=chains)
    merger = Merger(envelope, {} if problems else patches)
    merger.run()
    return merger, problems or ordered(_unfit(envelope, merger, patches, reader))


def _unfit(
    envelope: Envelope, merger: Merger, patches: dict[str, Checked], reader: StructReader | None
) -> Iterator[BodyDiagnostic]:
    """What the machine has against nodes that are sound by the rules of patches."""
    for slot, checked in patches.items():
        for name, written in checked.draft.nodes.items():
            for each in node_findings(machine_node(envelope.contract, merger.nodes[name])):
                position = name if reader is None else str(reader.at(written, each.code))
                yield BodyDiagnostic(each.code, each.message, position, slot=slot, node=name)
