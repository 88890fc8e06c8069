"""What an envelope and what it is compiled to are made of: nodes and edges, each of which says where it comes from."""

from __future__ import annotations

from typing import Final

import msgspec

from standfast.features.documents.contract.expressions import Stored
from standfast.features.documents.contract.format import Window
from standfast.features.documents.contract.ids import ENVELOPE

CONDITIONAL, UNCONDITIONAL = 100, 1000
"""Priorities of edges that say none: a way with a condition is tried before one without, whatever their names."""

OK, ANY, PASS, REJECT, AGAIN = "ok", "*", "pass", "reject", "again"
AMENDED, AMEND, TIMEOUT, BRANCH, DENIED, REJECTED, BLOCKED = (
    "amended",
    "amend",
    "timeout",
    "branch",
    "denied",
    "rejected",
    "blocked",
)
"""What nodes are left by."""

SYSTEM_TYPES: Final = frozenset({"start", "end", "state", "lifecycle_gate", "policy_gate", "slot_proxy"})
"""Types of nodes that no patch can have."""


class EnvelopeNode(msgspec.Struct, frozen=True, kw_only=True):
    """One place of a workflow."""

    id: str
    type: str
    window: Window
    slot: str = ENVELOPE
    """The slot that it belongs to, or `envelope`."""
    config: dict[str, object] = {}
    """What its author said of it, as plain data."""
    formulas: dict[str, Stored] = {}
    """Its expressions in their stored form, by where they stand."""


class EnvelopeEdge(msgspec.Struct, frozen=True, kw_only=True):
    """A way from one node to another. Lower priorities are tried first, and of equal ones the lower id."""

    id: str
    source: str
    target: str
    on: str = OK
    """What the source is left by for this way."""
    priority: int = UNCONDITIONAL
    when: Stored | None = None
    """What must hold, in stored form."""
    label: str = ""
    provenance: str = ENVELOPE
    """The slot whose patch brought it, or `envelope`."""
    rework: bool = False
    """Leads back; only the generator and the compiler make such edges."""
