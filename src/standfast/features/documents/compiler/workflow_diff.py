"""What an organisation has changed: its workflow beside the bare envelope, or one version of it beside another, slot by slot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal

import msgspec

from standfast.features.documents.compiler.artifact import Effective
from standfast.features.documents.contract.ids import ENVELOPE
from standfast.features.documents.contract.parts import EnvelopeEdge, EnvelopeNode

UNTOUCHED: Final = "no customisation"
Sign = Literal["+", "-", "~"]


class WorkflowChange(msgspec.Struct, frozen=True, kw_only=True):
    """One difference."""

    sign: Sign
    """Added, removed or changed."""
    what: Literal["node", "edge", "window"]
    id: str
    told: str
    """What it is, or from what to what, in words."""
    provenance: str
    """The slot that it comes from, or `envelope`."""


class SlotDifference(msgspec.Struct, frozen=True, kw_only=True):
    """What differs in one slot."""

    slot: str
    changes: list[WorkflowChange]

    @property
    def is_untouched(self) -> bool:
        """Whether nothing differs."""
        return not self.changes


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two workflows, slot by slot."""

    entity_type: str
    old_hash: str
    new_hash: str
    slots: list[SlotDifference]

    def to_data(self) -> dict[str, object]:
        """The same as plain data."""
        plain: dict[str, object] = msgspec.to_builtins(self)
        return plain

    def to_text(self) -> str:
        """The same for people: a heading for each slot, and a line for each change."""
        return "\n".join(_lines(self)) + "\n"


def diff(old: Effective, new: Effective) -> Difference:
    """What differs between two compiled workflows of one type: the bare envelope and a body, or two versions of a body."""
    slots = sorted({slot.id for each in (old, new) for slot in each.contract.slots})
    changes = [*_nodes(old, new), *_edges(old, new)]
    groups = [SlotDifference(slot=name, changes=_of(changes, name, (old, new))) for name in slots]
    rest = _of(changes, ENVELOPE, (old, new))
    if rest:
        groups.append(SlotDifference(slot=ENVELOPE, changes=rest))
    return Difference(entity_type=new.entity_type, old_hash=old.hash, new_hash=new.hash, slots=groups)


def _nodes(old: Effective, new: Effective) -> Iterator[WorkflowChange]:
    before, after = old.nodes_by_id, new.nodes_by_id
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield _change("+", "node", name, _node_told(after[name]), after[name].slot)
        elif name not in after:
            yield _change("-", "node", name, _node_told(before[name]), before[name].slot)
        else:
            yield from _node_changes(before[name], after[name])
    for slot in sorted({each.id for each in new.contract.slots}):
        yield from _window(old, new, slot)


def _node_changes(before: EnvelopeNode, after: EnvelopeNode) -> Iterator[WorkflowChange]:
    if before.window != after.window:
        yield _change("~", "window", after.id, f"{before.window} → {after.window}", after.slot)
    if before.type != after.type:
        yield _change("~", "node", after.id, f"{before.type} → {after.type}", after.slot)
    for field in sorted(before.config.keys() | after.config.keys()):
        was, is_now = before.config.get(field), after.config.get(field)
        if was != is_now:
            yield _change("~", "node", after.id, f"{field}: {_shown(was)} → {_shown(is_now)}", after.slot)


def _window(old: Effective, new: Effective, slot: str) -> Iterator[WorkflowChange]:
    """A window that a patch has made stricter for the whole slot."""
    default = {each.id: each.window for each in old.contract.slots}.get(slot)
    proxy = f"sys:{slot}:in"
    now = new.windows.get(proxy)
    if proxy not in old.windows and now is not None and default is not None and now != default:
        yield _change("~", "window", slot, f"{default} → {now}", slot)


def _edges(old: Effective, new: Effective) -> Iterator[WorkflowChange]:
    before, after = old.edges_by_id, new.edges_by_id
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield _change("+", "edge", name, _edge_told(after[name]), after[name].provenance)
        elif name not in after:
            yield _change("-", "edge", name, _edge_told(before[name]), before[name].provenance)
        elif before[name] != after[name]:
            told = f"{_edge_told(before[name])} → {_edge_told(after[name])}"
            yield _change("~", "edge", name, told, after[name].provenance)


def _of(changes: Iterable[WorkflowChange], slot: str, workflows: tuple[Effective, Effective]) -> list[WorkflowChange]:
    """The changes that belong to a slot: those that come from it, and the direct edge that its patch replaces."""
    ends = {f"edge:{each.entry}->{each.exit}": each.id for workflow in workflows for each in workflow.contract.slots}
    return [
        each
        for each in changes
        if (ends.get(each.id, ENVELOPE) if each.provenance == ENVELOPE else each.provenance) == slot
    ]


def _change(  # noqa: PLR0917 - the fields of a change
    sign: Sign, what: Literal["node", "edge", "window"], name: str, told: str, provenance: str
) -> WorkflowChange:
    return WorkflowChange(sign=sign, what=what, id=name, told=told, provenance=provenance)


def _node_told(node: EnvelopeNode) -> str:
    title = str(node.config.get("title", "") or node.config.get("action", ""))
    return f"{node.type}{f' {title!r}' if title else ''}, {node.window}"


def _edge_told(edge: EnvelopeEdge) -> str:
    asks = "" if edge.when is None else f" when {edge.when.get('source')}"
    return f"{edge.source} -[{edge.on}]-> {edge.target}{asks}"


def _shown(value: object) -> str:
    return "nothing" if value is None else msgspec.json.encode(value, order="sorted").decode()


def _lines(difference: Difference) -> Iterator[str]:
    yield f"{difference.entity_type}: {difference.old_hash[:12]} → {difference.new_hash[:12]}"
    for group in difference.slots:
        yield f"{group.slot}:"
        if group.is_untouched:
            yield f"  {UNTOUCHED}"
        yield from (f"  {each.sign} {each.what} {each.id}: {each.told}" for each in group.changes)
