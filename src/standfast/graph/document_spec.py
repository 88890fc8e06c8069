"""Specification of the documents that a graph manages: fields, lifecycle, windows and actions. It is compiled from a contract and part of the hash.

A document is one run for its whole life. Decisions about it depend only on this specification and never on the
contract.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from standfast.graph.nodes.kind import Plain, Stored

Window = Literal["editable", "amend_only", "locked"]
"""`editable`: may be edited; `amend_only`: an edit is an amendment; `locked`: may not be edited. Ordered by
strictness."""
WINDOWS: tuple[Window, ...] = get_args(Window)

FieldType = Literal["string", "int", "money", "bool", "date", "datetime", "enum", "list", "object", "ref", "computed"]
FIELD_TYPES: tuple[FieldType, ...] = get_args(FieldType)

OnEdit = Literal["keep", "restart"]
OnReject = Literal["keep", "compensate"]
Amendment = Literal["new_row", "in_place"]
OnDrift = Literal["amend", "fail"]
Begins = Literal["asked", "by_itself"]


class DocumentField(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A field of a document."""

    type: FieldType
    required: bool = False
    """Whether a document must have a value after its creation and after every edit."""
    values: tuple[str, ...] = ()
    """The values of an enum."""
    items: DocumentField | None = None
    """The type of list entries. None means any plain data."""
    fields: dict[str, DocumentField] = {}
    """The fields of an object."""
    of: str = ""
    """The document type of a reference."""
    formula: Stored | None = None
    """The expression of a computed field over the other fields, as `entity`."""
    times: Stored | None = None
    """An expression to multiply it with, over the other fields as `entity`. None means 1."""
    per: int = 1
    """The divisor of the product. Halves are rounded to even."""
    sensitive: bool = False
    """Whether its values are hidden in comparisons, histories and messages."""
    visible_to: tuple[str, ...] = ()
    """Roles that may read it. Empty means all readers of the document."""
    sources: tuple[tuple[str, ...], ...] = ()
    """For a computed field: the roles of each hidden field that it reads. A reader needs one role of each set and
    one of `visible_to`."""
    default: Plain = None
    """Value of a new document. None means none."""
    system: bool = False
    """Whether only actions of the workflow write it. A change of it keeps approvals valid."""

    @property
    def audience(self) -> tuple[tuple[str, ...], ...]:
        """Sets of roles. A reader needs one role of each; without sets all readers of the document may read it."""
        return (self.visible_to, *self.sources) if self.visible_to else self.sources


class DocumentTransition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A lifecycle transition. A gate performs it, and callers request it by name."""

    name: str
    sources: tuple[str, ...]
    target: str
    capability: str = ""
    """Capability required of the requester. Empty requires none."""
    begins: Begins = "asked"
    """Whether it begins on request, or automatically when the document reaches a possible status."""
    kind: str = ""
    """Purpose, such as `cancel` or `recall`. Empty for a forward transition, which cannot be requested while steps
    behind the last gate are active."""


class DocumentAction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An action on a document."""

    name: str
    payload: dict[str, Plain] | None = None
    """JSON Schema of its payload. None means fields of the document."""
    capability: str = ""
    """Capability required of the actor. Empty requires none."""
    workflow_allowed: bool = False
    """Whether steps of the workflow may perform it in any window."""
    handler: str = ""
    """Handler that computes the changes inside the commit. Empty merges the payload into the data."""
    creates: bool = False
    """Whether it creates a document instead of changing one."""


class DocumentPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A policy. An action or a transition with policies is allowed only if one of them applies."""

    name: str
    actions: tuple[str, ...]
    """Names of actions and transitions."""
    roles: tuple[str, ...] = ()
    """Roles that it allows. Empty means all actors."""
    when: Stored | None = None
    """Its condition. None means always."""


class Region(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A slot: the part between two system nodes that an organisation fills."""

    id: str
    entry: str
    exit: str
    window: Window = "editable"
    stable: bool = False
    """Whether the content must not change while a token is in it."""
    on_edit: OnEdit = "keep"
    """Effect of an allowed edit on earlier steps: none, or the slot is entered again."""
    on_reject: OnReject = "keep"
    """Effect of a rejection that leads back before the slot on its steps: none, or compensation."""


class DocumentSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The documents that a graph manages."""

    entity_type: str
    fields: dict[str, DocumentField]
    initial: str
    """Status of a new document."""
    states: dict[str, Window]
    """All statuses, with the window of each."""
    terminal: tuple[str, ...] = ()
    """Statuses that end the life of a document."""
    transitions: tuple[DocumentTransition, ...] = ()
    actions: tuple[DocumentAction, ...] = ()
    """`create` and `update` exist even if they are not declared."""
    regions: tuple[Region, ...] = ()
    policies: tuple[DocumentPolicy, ...] = ()
    windows: dict[str, Window] = {}
    """Window while a token is at a node. Missing nodes are editable."""
    stable: tuple[str, ...] = ()
    """Nodes at which the content must not change, in order."""
    amendment: Amendment = "new_row"
    amended: str = "amended"
    """Status at the start of an amendment."""
    superseded: str = "cancelled"
    """Status of a document that was replaced by another."""
    on_drift: OnDrift = "amend"
    self_approval: bool = False
    """Whether the requester of a document may approve it."""
    contract_version: str = ""
    envelope_version: str = ""
    compiler_version: str = ""
    reads: dict[str, tuple[str, ...]] = {}
    """Fields that its steps read from referenced documents, by the referring field. They are loaded with the
    document."""
