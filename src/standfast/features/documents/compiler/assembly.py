"""The envelope with the patches of a body in it, and everything that is wrong with them by the rules of patches and of single nodes.

How sound patches are put into an envelope: proxies, the ways in and out, policy gates before actions, joins that were left out, ways back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from standfast.expressions import Expression, parse
from standfast.expressions.model.tree import variables
from standfast.features.documents.body import format as b
from standfast.features.documents.body.checks import NOTHING, Checked, examine
from standfast.features.documents.body.diagnostics import BodyDiagnostic, ordered
from standfast.features.documents.body.format import Body
from standfast.features.documents.body.node_checks import Chains
from standfast.features.documents.body.patch_checks import Scope, refusals
from standfast.features.documents.body.patches import DraftEdge, PatchDraft, is_rejection
from standfast.features.documents.compiler.graph import machine_node
from standfast.features.documents.contract.edit_windows import strictest
from standfast.features.documents.contract.envelope import Envelope
from standfast.features.documents.contract.expressions import ENTITY, RELATED, RESERVED, STATUS, Related, Stored
from standfast.features.documents.contract.format import LifecycleTransition, Window
from standfast.features.documents.contract.ids import (
    IN,
    OUT,
    edge_id,
    gate_id,
    join_id,
    policy_id,
    state_id,
)
from standfast.features.documents.contract.parts import (
    AGAIN,
    BRANCH,
    CONDITIONAL,
    DENIED,
    REJECT,
    UNCONDITIONAL,
    EnvelopeEdge,
    EnvelopeNode,
)
from standfast.graph.checks import node_findings
from standfast.graph.source_files.reading import StructReader
from standfast.graph.values.approver_rules import ROLE, Agree, agreement_of_list

SPLIT_JOIN: Final = "parallel_join"
LEFT_OUT: Final = ("id", "type", "window")
"""What the config of a compiled node does not repeat."""


class Merger:
    """Puts patches into one envelope."""

    def __init__(self, envelope: Envelope, patches: dict[str, Checked]) -> None:
        self._envelope = envelope
        self._patches = patches
        self.nodes: dict[str, EnvelopeNode] = dict(envelope.nodes)
        self.edges: dict[str, EnvelopeEdge] = dict(envelope.edges)
        self.joins: dict[str, tuple[str, str, int]] = {}
        """For each join: its split, its mode, and how many branches meet there."""

    def run(self) -> None:
        """Put all of them in."""
        for slot, checked in sorted(self._patches.items()):
            self._attach(slot, checked)
            for node in _slot_nodes(checked):
                self.nodes[node.id] = node
            for edge in _slot_edges(checked):
                self._add(edge)
            self._count_joins(checked)

    def written(self, node: str) -> b.PatchNode | None:
        """Returns a node as its patch has it; None if no patch has it."""
        found = self.nodes.get(node)
        checked = None if found is None else self._patches.get(found.slot)
        return None if checked is None else checked.draft.nodes.get(node)

    def _attach(self, slot: str, checked: Checked) -> None:
        """Put the proxies where the direct edges were, that of a time that is over included; what they asked for, the way in asks for now."""
        draft, declared = checked.draft, checked.draft.slot
        for direct in self._envelope.edges.values():
            if (direct.source, direct.target) == (declared.entry, declared.exit) and not direct.rework:
                del self.edges[direct.id]
                self._add(msgspec.structs.replace(direct, id="", target=draft.way_in, provenance=slot))
        self._add(EnvelopeEdge(id="", source=draft.way_out, target=declared.exit, provenance=slot))
        for transition in self._envelope.contract.lifecycle.transitions:
            if declared.exit == gate_id(transition.name):
                self._lead_back(slot, checked, transition)

    def _lead_back(self, slot: str, checked: Checked, transition: LifecycleTransition) -> None:
        """The ways from a gate back: into the slot, if its approvals are void; to where the document is, if one was refused."""
        draft = checked.draft
        gate, entry = draft.slot.exit, draft.slot.entry
        source = next(name for name in transition.sources if state_id(name) == entry)
        when = _is_status(source) if len(transition.sources) > 1 else None
        priority = UNCONDITIONAL if when is None else CONDITIONAL
        ways = [(draft.way_in, AGAIN)]
        if transition.on_reject is None:
            ways.append((entry, REJECT))
        for target, on in ways:
            self._add(
                EnvelopeEdge(
                    id="",
                    source=gate,
                    target=target,
                    on=on,
                    when=when,
                    priority=priority,
                    label=on,
                    provenance=slot,
                    rework=True,
                )
            )

    def _count_joins(self, checked: Checked) -> None:
        draft = checked.draft
        for split, node in sorted(draft.nodes.items()):
            if not isinstance(node, b.ParallelSplitNode):
                continue
            join = checked.shape.joins.get(split)
            joining = None if join is None else draft.nodes[join]
            mode = joining.mode if isinstance(joining, b.ParallelJoinNode) else "all"
            self.joins[join or join_id(split)] = (split, mode, len(draft.out[split]))

    def _add(self, edge: EnvelopeEdge) -> None:
        if not edge.id:
            number = 1
            while edge_id(edge.source, edge.target, number) in self.edges:
                number += 1
            edge = msgspec.structs.replace(edge, id=edge_id(edge.source, edge.target, number))
        assert edge.id not in self.edges, edge.id
        self.edges[edge.id] = edge


def slot_window(checked: Checked) -> Window:
    """The window of a slot, as its patch has it."""
    slot, patch = checked.draft.slot, checked.draft.patch
    return slot.window if patch.window is None else strictest(slot.window, patch.window)


def _slot_nodes(checked: Checked) -> Iterator[EnvelopeNode]:
    draft, slot, window = checked.draft, checked.draft.slot.id, slot_window(checked)
    for side, name in ((IN, draft.way_in), (OUT, draft.way_out)):
        said: dict[str, object] = {"slot": slot, "side": side}
        if side == IN and draft.patch.on_reject is not None:
            said["on_reject"] = draft.patch.on_reject
        yield EnvelopeNode(id=name, type="slot_proxy", window=window, slot=slot, config=said)
    for name, node in sorted(draft.nodes.items()):
        own = window if node.window is None else strictest(window, node.window)
        config = _config(checked, node)
        formulas = checked.formulas.nodes.get(name, {})
        kind = str(type(node).__struct_config__.tag)
        yield EnvelopeNode(id=name, type=kind, window=own, slot=slot, config=config, formulas=formulas)
        if isinstance(node, b.ActionNode):
            told: dict[str, object] = {"action": node.action, "run_as": node.run_as}
            told |= {} if node.target is None else {"elsewhere": True}
            yield EnvelopeNode(id=policy_id(name), type="policy_gate", window=own, slot=slot, config=told)
        if isinstance(node, b.ParallelSplitNode) and name not in checked.shape.joins:
            yield EnvelopeNode(id=join_id(name), type=SPLIT_JOIN, window=window, slot=slot, config={"split": name})


def _config(checked: Checked, node: b.PatchNode) -> dict[str, object]:
    plain: dict[str, object] = msgspec.to_builtins(node)
    config = {name: value for name, value in plain.items() if name not in LEFT_OUT}
    draft = checked.draft
    if isinstance(node, b.ApprovalNode) and node.distinct_from:
        config["distinct_from"] = [draft.full(each) for each in node.distinct_from]
    if isinstance(node, b.ApprovalNode) and node.covers:
        config["covers"] = list(dict.fromkeys([*node.covers, *_lists_around(checked, node)]))
    if isinstance(node, b.ApprovalNode) and (agree := _agreed(node)) is not None:
        config["agree"] = agree
    if isinstance(node, b.ParallelJoinNode):
        config["split"] = next(split for split, join in checked.shape.joins.items() if join == draft.full(node.id))
    return config


def _agreed(node: b.ApprovalNode) -> Agree | None:
    return agreement_of_list(node.agree, [ROLE if each.role is not None else "" for each in node.approvers or ()])


def _lists_around(checked: Checked, node: b.PatchNode) -> list[str]:
    """The fields whose items an approval is about: with another list it would be about other items."""
    found: set[str] = set()
    for split in checked.shape.scopes[checked.draft.full(node.id)]:
        stored = checked.formulas.nodes.get(split, {}).get("items")
        if stored is not None:
            paths = [each.path for each in variables(Expression.from_data(stored).tree)]
            found |= {path[1] for path in paths if len(path) > 1 and path[0] in {ENTITY, RELATED}}
    return sorted(found - RESERVED)


def _slot_edges(checked: Checked) -> Iterator[EnvelopeEdge]:
    draft = checked.draft
    for edge in draft.edges:
        given = edge.given
        yield EnvelopeEdge(
            id=edge.id,
            source=policy_id(edge.source) if _is_denial(draft, edge) else edge.source,
            target=_target(checked, edge),
            on=edge.on,
            priority=edge.priority,
            when=checked.formulas.edges.get(edge.id),
            label="" if given is None else given.label,
            provenance=draft.slot.id,
        )
    added = [
        EnvelopeEdge(id="", source=name, target=draft.way_out, on=word, label=word) for name, word in refusals(draft)
    ]
    for name, node in sorted(draft.nodes.items()):
        if isinstance(node, b.ActionNode):
            added.append(EnvelopeEdge(id="", source=policy_id(name), target=name))
        if isinstance(node, b.ParallelSplitNode) and name not in checked.shape.joins:
            outer = checked.shape.scopes[name]
            added.append(
                EnvelopeEdge(id="", source=join_id(name), target=join_id(outer[-1]) if outer else draft.way_out)
            )
    for each in added:
        yield msgspec.structs.replace(each, provenance=draft.slot.id)


def _is_denial(draft: PatchDraft, edge: DraftEdge) -> bool:
    """Whether an edge is for those who may not do an action: its policy gate is left by it."""
    return edge.on == DENIED and isinstance(draft.nodes.get(edge.source), b.ActionNode)


def _target(checked: Checked, edge: DraftEdge) -> str:
    """Where an edge leads once the compiler's own nodes are there: to the policy gate of an action, to the join of its branch."""
    draft = checked.draft
    if isinstance(draft.nodes.get(edge.target), b.ActionNode):
        return policy_id(edge.target)
    if edge.target != draft.way_out or is_rejection(edge, draft.nodes):
        return edge.target
    scope = _scope_behind(checked, edge)
    return join_id(scope[-1]) if scope else draft.way_out


def _scope_behind(checked: Checked, edge: DraftEdge) -> Scope:
    scope = checked.shape.scopes.get(edge.source, ())
    node = checked.draft.nodes.get(edge.source)
    if isinstance(node, b.ParallelJoinNode):
        return scope[:-1]
    return (*scope, edge.source) if isinstance(node, b.ParallelSplitNode) and edge.on == BRANCH else scope


def _is_status(status: str) -> Stored:
    """The condition that a document has a status."""
    return parse(f"entity.{STATUS} == '{status}'").to_data()


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
