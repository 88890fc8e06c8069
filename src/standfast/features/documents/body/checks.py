"""What can be wrong with a body: its form, its base, and each of its patches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from standfast.errors import DefinitionError, Diagnostic
from standfast.expressions import Type
from standfast.expressions.model.suggestions import suggestion
from standfast.features.documents.body import format as b
from standfast.features.documents.body.diagnostics import BodyDiagnostic, ordered
from standfast.features.documents.body.expressions import Formulas, declared, read_formulas, writes_of
from standfast.features.documents.body.node_checks import Chains, check_nodes
from standfast.features.documents.body.patch_checks import PatchShape, check_shape
from standfast.features.documents.body.patches import PatchDraft
from standfast.features.documents.body.scenario_format import MOST_SCENARIOS
from standfast.features.documents.contract.envelope import Envelope
from standfast.features.documents.contract.expressions import Related
from standfast.features.documents.contract.format import Contract
from standfast.features.documents.contract.loading import by_place, check_hash, given_text
from standfast.graph.source_files.json_schema import schema_of
from standfast.graph.source_files.parsing import parse, shown
from standfast.graph.source_files.reading import EnoughError, Findings, StructReader
from standfast.graph.source_files.tree import Fields, plain
from standfast.graph.source_files.values import empties
from standfast.graph.values.value_checks import empty_words

TITLE: Final = "Standfast slot patches"
UNKNOWN_SLOT: Final = "SLOT_UNKNOWN"
MOST_PROBLEMS: Final = 500
"""Problems that are listed; whoever has made more sees the others when these are mended."""
NOTHING: Final[dict[str, Contract]] = {}
"""No contracts of other types."""


class Checked(NamedTuple):
    """A patch that was found sound, with all that was found out about it."""

    draft: PatchDraft
    shape: PatchShape
    formulas: Formulas


def read_body(text: str | bytes, *, name: str = "the body") -> b.Body:
    """The body of a file in YAML or JSON; DefinitionError with every mistake of its form. Whether it fits an envelope is for the validator to say."""
    return read_with_places(text, name)[0]


def body_schema() -> dict[str, object]:
    """The JSON Schema of bodies, as plain data."""
    return schema_of(b.Body, TITLE)


def examine(
    envelope: Envelope,
    body: b.Body,
    *,
    related: Related = NOTHING,
    reader: StructReader | None = None,
    chains: Chains = None,
) -> tuple[dict[str, Checked], list[BodyDiagnostic]]:
    """The patches of a body, as far as they are sound, and everything that is wrong with it."""
    return _Examination(envelope, body, related, reader, chains=chains).run()


class Partly(NamedTuple):
    """A file, as far as it can be read as a body."""

    body: b.Body | None
    """None if not even its outline is there."""
    reader: StructReader
    mistakes: list[Diagnostic]
    """What is wrong with its form, by place."""
    plain: object
    """What the file says; None if it is no sound YAML or JSON."""


def read_with_places(text: str | bytes, name: str) -> tuple[b.Body, StructReader]:
    """The body of a file, and where its parts stand; DefinitionError with every mistake of its form."""
    read = read_partly(text)
    if read.mistakes or read.body is None:
        raise DefinitionError(name, read.mistakes)
    return read.body, read.reader


def read_partly(text: str | bytes) -> Partly:
    """The body of a file as far as it can be read, with every mistake of its form: nodes that cannot be read are `Unread`."""
    findings = Findings([])
    reader = StructReader(findings, noun="node", stand_in=_unread)
    body, told = None, None
    with suppress(EnoughError):
        tree = parse(given_text(text, "a body"), findings.found)
        told = None if tree is None or findings.found else plain(tree)
        read = None if tree is None else reader.read(b.Body, tree)
        if read is not None and not findings.found:
            check_hash(read, read.hash, reader, findings)
        body = read
    return Partly(body, reader, sorted(findings.found, key=by_place), told)


def _unread(tree: Fields) -> b.UnreadNode | None:
    """What stands for a node that cannot be read, if it has a name; its type may be anything."""
    given = {name: plain(tree.fields[name].tree) for name in tree.fields.keys() & {"id", "into"}}
    name, into = given.get("id"), given.get("into")
    if not isinstance(name, str) or not name:
        return None
    return b.UnreadNode(id=name, into=into if isinstance(into, str) else None)


class _Examination:
    """Looks at one body."""

    def __init__(
        self, envelope: Envelope, body: b.Body, related: Related, reader: StructReader | None, *, chains: Chains
    ) -> None:
        self._chains = chains
        self._envelope = envelope
        self._body = body
        self._related: Mapping[str, Contract] = {envelope.entity_type: envelope.contract, **related}
        self._reader = reader
        self._problems: list[BodyDiagnostic] = []
        self._slot = ""
        self._is_whole = True

    def run(self) -> tuple[dict[str, Checked], list[BodyDiagnostic]]:
        self._base()
        drafts: dict[str, PatchDraft] = {}
        for name, patch in sorted(self._body.slots.items()):
            self._slot = name
            slot = self._envelope.slots.get(name)
            if slot is None:
                self._unknown_slot(name)
            elif self._fits(patch):
                self._is_whole = self._has_all(patch)
                drafts[name] = PatchDraft(slot, patch, self._report)
        checked = {
            name: each for name, draft in drafts.items() if (each := self._patch(name, draft, drafts)) is not None
        }
        self._unique(drafts)
        self._scenarios()
        found = ordered(self._problems)
        if len(found) > MOST_PROBLEMS:
            more = f"there are {len(found) - MOST_PROBLEMS} more; mend these first"
            found[MOST_PROBLEMS:] = [BodyDiagnostic("too_many_findings", more)]
        return checked, found

    def _base(self) -> None:
        base, envelope = self._body.base, self._envelope
        if base.entity_type != envelope.entity_type:
            message = f"the body is for {shown(base.entity_type)}, and the envelope is that of {shown(envelope.entity_type)}; take the right one"
            self._report("base", message, part=base, field="entity_type")
        if base.envelope_version != envelope.version:
            message = f"the body is for version {base.envelope_version} of the envelope, and this is version {envelope.version}; rebase it"
            self._report("base", message, part=base, field="envelope_version")

    def _unknown_slot(self, name: str) -> None:
        known = sorted(self._envelope.slots)
        told = suggestion(name, known) or f"; there are {', '.join(known) or 'none'}"
        self._report(
            UNKNOWN_SLOT, f"the envelope has no {shown(name)}{told}", part=self._body, field="slots", inner=name
        )

    def _fits(self, patch: b.Patch) -> bool:
        """Whether a patch is small enough to be looked at: what else is wrong with a larger one would take for ever to find."""
        sizes = (("nodes", len(patch.nodes or ()), b.MOST_NODES), ("edges", len(patch.edges), b.MOST_EDGES))
        for what, count, most in sizes:
            if count > most:
                told = f"the patch has {count} {what}; use at most {most}"
                self._report("too_many", told, part=patch, field=what)
        return all(count <= most for _, count, most in sizes)

    def _has_all(self, patch: b.Patch) -> bool:
        """Whether every node and edge of a patch could be read; otherwise nothing is said about ways and nodes that may be missing."""
        if self._reader is None:
            return True
        read = {"nodes": len(patch.nodes or ()), "edges": len(patch.edges)}
        return all(len(self._reader.items(patch, field)) == count for field, count in read.items())

    def _patch(self, name: str, draft: PatchDraft, drafts: Mapping[str, PatchDraft]) -> Checked | None:
        self._slot = name
        for field, then in empties(draft.patch):
            self._report("empty", empty_words(f"`{field}` of {shown(name)}", then), part=draft.patch, field=field)
        for full, node in draft.nodes.items():
            for field, then in empties(node):
                told = empty_words(f"`{field}` of {shown(full)}", then)
                self._report("empty", told, node=full, part=node, field=field)
        self._is_whole = self._has_all(draft.patch)
        shape = check_shape(draft, self._report) if self._is_whole else None
        check_nodes(draft, self._envelope.contract, self._report, chains=self._chains)
        outside = declared(self._body.context)
        for other, each in drafts.items():
            if other != name:
                outside |= {
                    kept: Type("any") for node in each.nodes.values() for kept in writes_of(node) if kept not in outside
                }
        formulas = read_formulas(
            draft,
            [] if shape is None else shape.order,
            contract=self._envelope.contract,
            related=self._related,
            outside=outside,
            report=self._report,
        )
        return None if shape is None else Checked(draft, shape, formulas)

    def _scenarios(self) -> None:
        """There are not so many, and none is so long, that publishing would take for ever."""
        if len(self._body.scenarios) > MOST_SCENARIOS:
            told = f"there are {len(self._body.scenarios)} scenarios, and {MOST_SCENARIOS} is the most; keep those that matter"
            self._report("too_many", told, part=self._body, field="scenarios")
        for each in self._body.scenarios:
            if len(each.acts) > MOST_SCENARIOS:
                told = f"the scenario {shown(each.name)} has {len(each.acts)} acts, and {MOST_SCENARIOS} is the most; make it shorter"
                self._report("too_many", told, part=each, field="acts")

    def _unique(self, drafts: Mapping[str, PatchDraft]) -> None:
        """Ids are unique over the whole graph; those of the envelope no edge of a patch can have."""
        edges = {slot: {edge.id: edge for edge in draft.edges} for slot, draft in drafts.items()}
        counts = Counter(name for each in edges.values() for name in each)
        for self._slot, each in edges.items():
            for name, edge in each.items():
                if counts[name] > 1:
                    message = f"the edge id {shown(name)} is used in several slots; give each its own"
                    self._report("duplicate_edge", message, edge=name, part=edge.given, field="id")
        self._slot = ""

    def _report(
        self,
        code: str,
        message: str,
        *,
        node: str = "",
        edge: str = "",
        part: object = None,
        field: str = "",
        inner: str = "",
        path: Sequence[str | int] = (),
    ) -> None:
        if code == "unknown_node" and not self._is_whole:
            return
        position = edge or node or self._slot
        if self._reader is not None:
            if part is None:  # What the compiler has added stands in no file; its slot does.
                part, field, inner = self._body, "slots", self._slot
            place = self._reader.inner(part, field, inner) if inner else self._reader.at(part, field)
            position = str(self._reader.within(part, field, path) if path else place)
        self._problems.append(BodyDiagnostic(code, message, position, slot=self._slot, node=node, edge=edge))
