"""What a graph says of the documents that it manages: fields, lifecycle, windows, actions. Compiled from a contract, part of the hash.

A document is one run for its whole life. Everything that a decision about it depends on is here, so that deciding needs no contract.
"""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from standfast.graph.nodes.kind import Plain, Stored

Window = Literal["editable", "amend_only", "locked"]
"""May be edited; an edit is an amendment; may not be edited. From the loosest to the strictest."""
WINDOWS: tuple[Window, ...] = get_args(Window)

FieldType = Literal["string", "int", "money", "bool", "date", "datetime", "enum", "list", "object", "ref", "computed"]
FIELD_TYPES: tuple[FieldType, ...] = get_args(FieldType)

OnEdit = Literal["keep", "restart"]
OnReject = Literal["keep", "compensate"]
Amendment = Literal["new_row", "in_place"]
OnDrift = Literal["amend", "fail"]
Begins = Literal["asked", "by_itself"]


class DocumentField(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One field of a document."""

    type: FieldType
    required: bool = False
    """Whether a document cannot be created, or come out of an edit, without a value."""
    values: tuple[str, ...] = ()
    """What an enum may be."""
    items: DocumentField | None = None
    """What each entry of a list is; None means anything plain."""
    fields: dict[str, DocumentField] = {}
    """What an object holds."""
    of: str = ""
    """The type of the documents that a reference leads to."""
    formula: Stored | None = None
    """What gives the value of a computed field, from the other fields as `entity`."""
    times: Stored | None = None
    """What that is taken times, from the other fields as `entity`; None means 1."""
    per: int = 1
    """What the product is divided by; halves are rounded to the even number."""
    sensitive: bool = False
    """Whether its values are never shown in a comparison, a history or a message."""
    visible_to: tuple[str, ...] = ()
    """Roles that may read it; none given means everybody who may read the document."""
    sources: tuple[tuple[str, ...], ...] = ()
    """Of a computed field: the roles of each hidden field that it reads. A reader needs one of each, and one of `visible_to`."""
    default: Plain = None
    """What a document is created with; None means nothing."""
    system: bool = False
    """Whether only the workflow's own actions write it. A change of it leaves approvals as they are."""

    @property
    def audience(self) -> tuple[tuple[str, ...], ...]:
        """Sets of roles. A reader needs one role of each; none means everybody who may read the document."""
        return (self.visible_to, *self.sources) if self.visible_to else self.sources


class DocumentTransition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A lifecycle transition, which a gate performs and people ask for by its name."""

    name: str
    sources: tuple[str, ...]
    target: str
    capability: str = ""
    """What whoever asks for it must be allowed to do; empty means nothing in particular."""
    begins: Begins = "asked"
    """Whether the way to its gate is entered only when somebody asks, or as soon as the document rests where it can be."""
    kind: str = ""
    """What it is for, such as `cancel` or `recall`; empty for a way on, which nobody asks for while steps behind the last gate are under way."""


class DocumentAction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Something that can be done to a document."""

    name: str
    payload: dict[str, Plain] | None = None
    """What has to be given, as JSON Schema; None means fields of the document."""
    capability: str = ""
    """What whoever does it must be allowed to do; empty means nothing in particular."""
    workflow_allowed: bool = False
    """Whether the workflow's own steps may do it, whatever the window."""
    handler: str = ""
    """Name of the handler that computes the changes, inside the commit; empty means that what is given is laid over the data."""
    creates: bool = False
    """Whether it makes a document, and is done to none."""


class DocumentPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Who may do something. Where policies name an action or a transition, only those may for whom one of them holds."""

    name: str
    actions: tuple[str, ...]
    """Names of actions and transitions."""
    roles: tuple[str, ...] = ()
    """To whom it is allowed; none given means everybody."""
    when: Stored | None = None
    """Under which condition; None means always."""


class Region(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A slot: the part between two system nodes that an organisation fills."""

    id: str
    entry: str
    exit: str
    window: Window = "editable"
    stable: bool = False
    """Whether the content may not change while a token is in it."""
    on_edit: OnEdit = "keep"
    """What an edit that the window allows does to steps that were done before it: nothing, or the slot is entered again."""
    on_reject: OnReject = "keep"
    """What a rejection that leads back to before the slot does to what its steps did: nothing, or it is undone."""


class DocumentSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The documents that a graph manages."""

    entity_type: str
    fields: dict[str, DocumentField]
    initial: str
    """The status of a document that was created just now."""
    states: dict[str, Window]
    """Every status, and how a document may be edited that has it."""
    terminal: tuple[str, ...] = ()
    """Statuses that end the life of a document."""
    transitions: tuple[DocumentTransition, ...] = ()
    actions: tuple[DocumentAction, ...] = ()
    """`create` and `update` are there also where none is declared."""
    regions: tuple[Region, ...] = ()
    policies: tuple[DocumentPolicy, ...] = ()
    windows: dict[str, Window] = {}
    """How a document may be edited while a token is at a node; those that are not named are editable."""
    stable: tuple[str, ...] = ()
    """Nodes at which the content may not change, in order."""
    amendment: Amendment = "new_row"
    amended: str = "amended"
    """The status that an amendment begins with."""
    superseded: str = "cancelled"
    """The status of a document that another one has taken the place of."""
    on_drift: OnDrift = "amend"
    self_approval: bool = False
    """Whether whoever wants a document may approve it."""
    contract_version: str = ""
    envelope_version: str = ""
    compiler_version: str = ""
    reads: dict[str, tuple[str, ...]] = {}
    """Which fields of the documents that it refers to its steps read, by the field that refers to them: a document has those with it."""
