"""Contracts and bodies to begin with, and ways to change them."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from functools import cache

from standfast import DefinitionError
from standfast.errors import Diagnostic
from standfast.features.documents.body.checks import read_body
from standfast.features.documents.body.diagnostics import BodyDiagnostic
from standfast.features.documents.body.format import Body
from standfast.features.documents.compiler.artifact import Effective
from standfast.features.documents.compiler.compiler import check_body, compile_effective
from standfast.features.documents.contract.envelope import Envelope, generate_envelope
from standfast.features.documents.contract.format import Contract
from standfast.features.documents.contract.library import ready_contract
from standfast.features.documents.contract.loading import read_contract

Plain = dict[str, object]

APPROVE = "slot:submitted_to_approved"
SUBMIT = "slot:draft_to_submit"
ACTIVE = "slot:approved_to_active"
AMEND = "slot:amendment_cycle"

CONTRACT: Plain = {
    "entity_type": "bill",
    "version": 1,
    "fields": {
        "number": {"type": "string", "required": True},
        "total": {"type": "money", "required": True},
        "kind": {"type": "enum", "values": ["goods", "service"]},
        "due": {"type": "date"},
        "tags": {"type": "list", "items": {"type": "string"}},
        "iban": {"type": "string", "sensitive": True},
        "vendor": {"type": "ref", "of": "vendor"},
        "owner": {"type": "string"},
        "posting": {"type": "string"},
    },
    "system_fields": ["posting"],
    "lifecycle": {
        "version": 1,
        "initial": "draft",
        "terminal": ["cancelled"],
        "amended": "amended",
        "states": {
            "draft": {"window": "editable"},
            "submitted": {"window": "amend_only"},
            "active": {"window": "locked"},
            "cancelled": {"window": "locked"},
            "amended": {"window": "editable"},
        },
        "transitions": [
            {"name": "submit", "from": ["draft", "amended"], "to": "submitted"},
            {"name": "approve", "from": ["submitted"], "to": "active", "begins": "by_itself", "on_reject": "draft"},
            {"name": "cancel", "from": ["draft", "submitted", "active", "amended"], "to": "cancelled", "kind": "cancel"},
        ],
    },
    "slots": [
        {"id": SUBMIT, "entry": "sys:state:draft", "exit": "sys:gate:submit", "window": "editable", "stable": False},
        {"id": APPROVE, "entry": "sys:state:submitted", "exit": "sys:gate:approve", "window": "amend_only", "stable": True},
        {"id": ACTIVE, "entry": "sys:gate:approve", "exit": "sys:state:active", "window": "locked", "stable": False},
        {"id": AMEND, "entry": "sys:state:amended", "exit": "sys:gate:submit", "window": "editable", "stable": False},
    ],
    "actions": [
        {"name": "bill.post", "workflow_allowed": True, "handler": "bill.post", "permission": "bill.post"},
        {"name": "bill.mark", "workflow_allowed": True},
        {"name": "bill.shred"},
        {"name": "bill.unpost", "workflow_allowed": True, "handler": "bill.unpost"},
    ],
}  # fmt: skip

GONE = object()
"""A value that takes a field away."""


def changed(given: Mapping[str, object], changes: Mapping[str, object]) -> Plain:
    """A copy with other values; the path to each is written with `__`, numbers are places in lists."""
    whole = copy.deepcopy(dict(given))
    for path, value in changes.items():
        *way, last = path.split("__")
        part: object = whole
        for name in way:
            part = part[int(name)] if isinstance(part, list) else part[name]  # type: ignore[index]
        if value is GONE:
            del part[int(last) if isinstance(part, list) else last]  # type: ignore[attr-defined]
        elif isinstance(part, list):
            part.insert(int(last), value) if int(last) >= len(part) else part.__setitem__(int(last), value)
        else:
            part[last] = value  # type: ignore[index]
    return whole


def contract(**changes: object) -> Contract:
    """The contract of a bill, with other values."""
    return read_contract(json.dumps(changed(CONTRACT, changes)))


def mistakes(text: str | Mapping[str, object]) -> tuple[Diagnostic, ...]:
    """What is wrong with a contract."""
    try:
        read_contract(text if isinstance(text, str) else json.dumps(text))
    except DefinitionError as error:
        return error.diagnostics
    return ()


@cache
def bills() -> Envelope:
    """The envelope of bills."""
    return generate_envelope(contract())


@cache
def invoices() -> Envelope:
    """The envelope of the invoices that come with the package."""
    return generate_envelope(ready_contract("invoice"))


def ask(name: str, **fields: object) -> Plain:
    """An approval."""
    return {"id": name, "type": "approval", "approvers": [{"role": "boss"}], **fields}


def way(text: str, **fields: object) -> Plain:
    """An edge written as `a b`, or `a b outcome`."""
    source, target, *on = text.split(" ")
    return {"from": source, "to": target, **({"on": on[0]} if on else {}), **fields}


def patch(nodes: Sequence[Plain], edges: Sequence[Plain | str] = (), **fields: object) -> Plain:
    """A patch."""
    steps = {"nodes": list(nodes)} if nodes else {}
    return {**steps, "edges": [way(each) if isinstance(each, str) else each for each in edges], **fields}


def body_data(slots: Mapping[str, Plain], **fields: object) -> Plain:
    """A body as plain data."""
    return {"base": {"entity_type": "bill", "envelope_version": 1}, "slots": dict(slots), **fields}


def body(slots: Mapping[str, Plain], **fields: object) -> Body:
    """A body."""
    return read_body(json.dumps(body_data(slots, **fields)))


def problems(slots: Mapping[str, Plain], **fields: object) -> list[BodyDiagnostic]:
    """What is wrong with patches for bills, as the validator says it."""
    return check_body(bills(), json.dumps(body_data(slots, **fields)))


def codes(
    nodes: Sequence[Plain], edges: Sequence[Plain | str] = (), slot: str = APPROVE, **fields: object
) -> list[str]:
    """The codes of what is wrong with one patch."""
    return [each.code for each in problems({slot: patch(nodes, edges, **fields)})]


def compiled(slots: Mapping[str, Plain], **fields: object) -> Effective:
    """The workflow of bills with these patches."""
    return compile_effective(bills(), body(slots, **fields))


def usr(name: str, slot: str = APPROVE) -> str:
    """The full id of a node."""
    return f"usr:{slot}:{name}"
