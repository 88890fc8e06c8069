"""The names of nodes and edges. System names are stable: the same contract has the same ones on every machine."""

from __future__ import annotations

import re
from typing import Final

START: Final = "sys:start"
END: Final = "sys:end"
ENVELOPE: Final = "envelope"
"""What a node or an edge is said to come from that no organisation has added."""

LONGEST: Final = 128
"""Characters of an id."""
LOCAL: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
"""The part of a custom id that its author chooses."""
EDGE: Final = "edge:"
"""What the ids of edges begin with that their author gave none."""
IN, OUT = "in", "out"
"""The short names of a slot's proxies, in the edges of its patch."""


def state_id(name: str) -> str:
    """The node where a document rests that has a status."""
    return f"sys:state:{name}"


def gate_id(transition: str) -> str:
    """The node that performs a transition."""
    return f"sys:gate:{transition}"


def proxy_id(slot: str, side: str) -> str:
    """The way into a slot, or out of it."""
    return f"sys:{slot}:{side}"


def policy_id(node: str) -> str:
    """The policy gate before an action."""
    return f"sys:policy:{node}"


def join_id(split: str) -> str:
    """The join that the compiler adds to a split that has none."""
    return f"sys:join:{split}"


def prefix_of(slot: str) -> str:
    """What the ids of a slot's own nodes begin with."""
    return f"usr:{slot}:"


def edge_id(source: str, target: str, number: int = 1) -> str:
    """The id of an edge that its author gave none."""
    name = f"{EDGE}{source}->{target}"
    return name if number == 1 else f"{name}#{number}"


def local_name(node: str) -> str:
    """A node as its author names it; system nodes have no other name than their id."""
    return node.rsplit(":", 1)[-1] if node.startswith("usr:") else node
