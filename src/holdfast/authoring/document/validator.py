"""The validator of bodies: everything that is wrong with the patches of an organisation, without publishing anything.

A body that is sound by its own rules is put together, and every node is asked in the machine's own words whether it can run: so what has
no problems here has a graph.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from holdfast.authoring.document.body_checks import NOTHING, Checked, examine, read_with_places
from holdfast.authoring.document.body_format import Body
from holdfast.authoring.document.envelope import Envelope
from holdfast.authoring.document.formulas import Related
from holdfast.authoring.document.graph import machine_node
from holdfast.authoring.document.merging import Merger
from holdfast.authoring.document.problems import Problem, ordered
from holdfast.authoring.files.reading import Reader
from holdfast.errors import DefinitionError


def check_body(envelope: Envelope, body: Body | str | bytes, *, related: Related = NOTHING) -> list[Problem]:
    """Everything that is wrong with a body for this envelope: each problem with code, slot, node or edge; none if it compiles.

    A body that is given as text is reported on with line and column. `related` are contracts of types that the documents refer to.
    """
    reader: Reader | None = None
    if not isinstance(body, Body):
        try:
            body, reader = read_with_places(body, "the body")
        except DefinitionError as error:
            return [Problem(each.code, each.message, each.position) for each in error.diagnostics]
    return merged(envelope, body, related=related, reader=reader)[1]


def merged(
    envelope: Envelope, body: Body, *, related: Related = NOTHING, reader: Reader | None = None
) -> tuple[Merger, list[Problem]]:
    """The envelope with the patches of a body in it, and everything that is wrong with them; with problems nothing is put in."""
    patches, problems = examine(envelope, body, related=related, reader=reader)
    merger = Merger(envelope, {} if problems else patches)
    merger.run()
    return merger, problems or ordered(_unfit(envelope, merger, patches, reader))


def rebased(body: Body, envelope: Envelope) -> Body:
    """The same body for another version of the envelope; what does not fit there any more, the validator says."""
    return msgspec.structs.replace(
        body, base=msgspec.structs.replace(body.base, envelope_version=envelope.version), hash=None
    )


def _unfit(envelope: Envelope, merger: Merger, patches: dict[str, Checked], reader: Reader | None) -> Iterator[Problem]:
    """What the machine has against nodes that are sound by the rules of patches."""
    for slot, checked in patches.items():
        for name, written in checked.draft.nodes.items():
            position = name if reader is None else str(reader.at(written))
            node = machine_node(envelope.contract, merger.nodes[name])
            for each in node.op.findings(name):
                yield Problem(each.code, each.message, position, slot=slot, node=name)
