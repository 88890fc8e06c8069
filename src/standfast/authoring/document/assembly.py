"""The envelope with the patches of a body in it, and everything that is wrong with them by the rules of patches and of single nodes."""

from __future__ import annotations

from collections.abc import Iterator

from standfast.authoring.document.body_checks import NOTHING, Checked, examine
from standfast.authoring.document.body_format import Body
from standfast.authoring.document.envelope import Envelope
from standfast.authoring.document.formulas import Related
from standfast.authoring.document.graph import machine_node
from standfast.authoring.document.merging import Merger
from standfast.authoring.document.node_checks import Chains
from standfast.authoring.document.problems import BodyDiagnostic, ordered
from standfast.authoring.files.reading import StructReader
from standfast.machine.graphs.checks import node_findings


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
