"""The format of entity contracts, declared once: these structs are what a file is read into, and what its JSON Schema is made of.

A contract says what a document is: its fields, its life, where it may be edited, what can be done to it, and where organisations may add
steps of their own.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from standfast.graph.source_files.values import (
    SLOT,
    VERB,
    WORD,
    Capability,
    Condition,
    Duration,
    Formula,
    Name,
    Plain,
    Text,
    some,
)

Window = Literal["editable", "amend_only", "locked"]
"""From the loosest to the strictest."""

Word = Annotated[str, Meta(min_length=1, max_length=64, pattern=WORD)]
State = Annotated[str, Meta(min_length=1, max_length=64, pattern=WORD, description="A state of the lifecycle.")]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is an object in the file."""


# -- fields


class _Field(_Part, frozen=True, kw_only=True, tag_field="type"):
    """What all fields have."""

    title: Annotated[Text, Meta(description="What people read.")] = ""
    description: Annotated[Text, Meta(description="What it is for.")] = ""
    required: Annotated[bool, Meta(description="Whether a document cannot be without it.")] = False
    sensitive: Annotated[
        bool, Meta(description="Whether comparisons and messages say only that it changed, never from what to what.")
    ] = False
    visible_to: (
        Annotated[
            list[Name],
            some("Roles that see it; without it, everybody who sees the document.", empty="nobody could see it"),
        ]
        | UnsetType
    ) = UNSET
    default: Annotated[Plain, Meta(description="What a new document has if nobody says otherwise.")] = None


class StringField(_Field, frozen=True, kw_only=True, tag="string"):
    """A text."""


class IntField(_Field, frozen=True, kw_only=True, tag="int"):
    """A whole number."""


class MoneyField(_Field, frozen=True, kw_only=True, tag="money"):
    """An amount in minor units: 10000 is a hundred euros."""


class BoolField(_Field, frozen=True, kw_only=True, tag="bool"):
    """True or false."""


class DateField(_Field, frozen=True, kw_only=True, tag="date"):
    """A day, as 2026-11-17."""


class DatetimeField(_Field, frozen=True, kw_only=True, tag="datetime"):
    """A moment with its time zone, as 2026-11-17T10:00:00Z."""


class EnumField(_Field, frozen=True, kw_only=True, tag="enum"):
    """One of several words."""

    values: Annotated[list[Name], Meta(min_length=1, description="The words.")]


class ListField(_Field, frozen=True, kw_only=True, tag="list"):
    """Several values of one type."""

    items: Annotated[Field | None, Meta(description="What each of them is; without it, anything.")] = None


class ObjectField(_Field, frozen=True, kw_only=True, tag="object"):
    """Several values by name, such as the lines of an invoice have."""

    fields: Annotated[dict[Word, Field], Meta(description="The values.")] = {}


class RefField(_Field, frozen=True, kw_only=True, tag="ref"):
    """The id of another document."""

    of: Annotated[Word, Meta(description="The type of the other document.")]


class ComputedField(_Field, frozen=True, kw_only=True, tag="computed"):
    """A value that follows from the others."""

    formula: Annotated[Formula, Meta(description="What gives it: an expression over entity.")]
    gives: Annotated[
        Literal["string", "int", "money", "bool", "date", "datetime"], Meta(description="The type of the value.")
    ] = field(name="as", default="bool")
    times: Annotated[
        Formula | None,
        Meta(description="A whole number that it is taken times, such as entity.exchange_rate; for int and money."),
    ] = None
    per: Annotated[
        int, Meta(ge=1, le=10**12, description="What the product is divided by; halves are rounded to the even number.")
    ] = 1


Field: TypeAlias = (
    StringField
    | IntField
    | MoneyField
    | BoolField
    | DateField
    | DatetimeField
    | EnumField
    | ListField
    | ObjectField
    | RefField
    | ComputedField
)


# -- the lifecycle


class LifecycleState(_Part, frozen=True, kw_only=True):
    """A status that a document can have."""

    window: Annotated[
        Window,
        Meta(description="Whether a document that has it may be edited: editable, amend_only (it is amended), locked."),
    ]
    title: Annotated[Text, Meta(description="What people read.")] = ""
    completes: Annotated[
        bool | None,
        Meta(
            description="Whether a round of work is over when it is reached; without it, if nothing but cancelling leads on."
        ),
    ] = None
    timeout: Annotated[
        Duration | None, Meta(description="How long a document rests here before `on_timeout` is asked for.")
    ] = None
    on_timeout: Annotated[Word | None, Meta(description="The transition that is asked for then.")] = None


class LifecycleTransition(_Part, frozen=True, kw_only=True):
    """A change of status. People ask for it by its name, and its gate performs it."""

    name: Annotated[Word, Meta(description="What is asked for, such as submit.")]
    sources: Annotated[list[State], Meta(min_length=1, description="The states that it leads from.")] = field(
        name="from"
    )
    to: Annotated[State, Meta(description="The state that it leads to.")]
    title: Annotated[Text, Meta(description="What people read.")] = ""
    kind: Annotated[
        Literal["forward", "cancel", "recall"],
        Meta(description="What it is for: the way on, the end of the document, or taking a request back."),
    ] = "forward"
    permission: Annotated[Capability | None, Meta(description="What whoever asks for it must be allowed to do.")] = None
    begins: Annotated[
        Literal["asked", "by_itself"],
        Meta(
            description="Whether steps of an organisation before its gate begin when somebody asks, or by themselves."
        ),
    ] = "asked"
    on_reject: Annotated[
        State | None,
        Meta(description="Where a document goes that was rejected before the gate; without it, it stays where it is."),
    ] = None
    window: Annotated[
        Window | None,
        Meta(
            description="The window of the gate; without it, that of where it comes from, of where it leads if that is editable, and locked before an end."
        ),
    ] = None


class Lifecycle(_Part, frozen=True, kw_only=True):
    """The life of a document."""

    version: Annotated[int, Meta(ge=1, le=1_000_000, description="The version of the envelope that follows from it.")]
    initial: Annotated[State, Meta(description="Where a new document begins.")]
    states: Annotated[dict[Word, LifecycleState], Meta(min_length=1, description="The states, by name.")]
    transitions: Annotated[list[LifecycleTransition], Meta(description="The ways between them.")]
    terminal: Annotated[list[State], Meta(description="Where a document's life ends.")] = []
    amended: Annotated[
        State | None, Meta(description="Where a document begins that amends another; without it, nothing is amended.")
    ] = None
    superseded: Annotated[
        State | None, Meta(description="What becomes of the amended one; without it, the first terminal state.")
    ] = None


# -- the rest


SlotId = Annotated[str, Meta(max_length=64, pattern=SLOT)]


OnReject = Literal["keep", "compensate"]


class Slot(_Part, frozen=True, kw_only=True):
    """A place between two system nodes where organisations may add steps."""

    id: Annotated[SlotId, Meta(description="slot: and a name, such as slot:draft_to_submit.")]
    entry: Annotated[
        Name, Meta(description="The system node before it, as sys:state:<state> or sys:gate:<transition>.")
    ]
    exit: Annotated[Name, Meta(description="The system node behind it; one edge of the envelope leads there.")]
    window: Annotated[Window, Meta(description="Whether documents may be edited while steps of the slot are at work.")]
    stable: Annotated[
        bool, Meta(description="Whether the content may not change in it: an edit is an amendment, or refused.")
    ]
    on_edit: Annotated[
        Literal["keep", "restart"],
        Meta(description="Whether an edit leaves steps that were done as they are, or begins the slot anew."),
    ] = "keep"
    on_reject: Annotated[
        OnReject,
        Meta(
            description="What a rejection that leads back to before the slot does to what its steps did: keep it, or compensate: steps with an `undo` are undone."
        ),
    ] = "keep"
    title: Annotated[Text, Meta(description="What people read.")] = ""


class ContractAction(_Part, frozen=True, kw_only=True):
    """Something that can be done to a document."""

    name: Annotated[str, Meta(max_length=130, pattern=VERB, description="The type and a verb, such as invoice.post.")]
    title: Annotated[Text, Meta(description="What people read.")] = ""
    payload: Annotated[
        dict[str, Plain] | None,
        Meta(description="What has to be given: a JSON Schema of an object; without it, fields of the document."),
    ] = None
    permission: Annotated[Capability | None, Meta(description="What whoever does it must be allowed to do.")] = None
    workflow_allowed: Annotated[
        bool, Meta(description="Whether steps of the workflow may do it, whatever the window.")
    ] = False
    handler: Annotated[
        Name | None,
        Meta(description="The function that computes what changes; without it, what is given is laid over the data."),
    ] = None
    creates: Annotated[bool, Meta(description="Whether it makes a document, and is done to none.")] = False


class Policy(_Part, frozen=True, kw_only=True):
    """Who may do what. Where a policy names an action, only those may do it for whom one of its policies holds."""

    name: Annotated[Name, Meta(description="What messages call it.")]
    actions: Annotated[
        list[Name], Meta(min_length=1, description="What it allows: names of actions, and patterns such as invoice.*.")
    ]
    roles: Annotated[list[Name], some("To whom; without it, to everybody.", empty="nobody could do it")] | UnsetType = (
        UNSET
    )
    when: Annotated[Condition | None, Meta(description="Under which condition, over entity., actor., org., now.")] = (
        None
    )


class ContractLimits(_Part, frozen=True, kw_only=True):
    """How far the workflow of one document may go, whatever an organisation puts into its slots."""

    visits: Annotated[
        int, Meta(ge=1, le=10_000, description="How often one step may be come to before the document is paused.")
    ] = 100
    tokens: Annotated[int, Meta(ge=1, le=1000, description="Branches, and what they come from, at the same time.")] = 64
    context: Annotated[
        int, Meta(ge=1, le=1_048_576, description="Bytes of the content, and of what steps keep under context.")
    ] = 262_144


class Contract(_Part, frozen=True, kw_only=True):
    """What a type of documents is."""

    entity_type: Annotated[Word, Meta(description="What it is called, such as invoice.")]
    version: Annotated[int, Meta(ge=1, le=1_000_000, description="Raised with every change.")]
    fields: Annotated[dict[Word, Field], Meta(min_length=1, description="Its fields, by name.")]
    lifecycle: Annotated[Lifecycle, Meta(description="Its life.")]
    title: Annotated[Text, Meta(description="What people read.")] = ""
    description: Annotated[Text, Meta(description="What it is for.")] = ""
    system_fields: Annotated[
        list[Word], Meta(description="Fields that only the workflow writes; their changes leave approvals valid.")
    ] = []
    slots: Annotated[list[Slot], Meta(description="Where organisations may add steps.")] = []
    actions: Annotated[list[ContractAction], Meta(description="What can be done to it.")] = []
    policies: Annotated[list[Policy], Meta(description="Who may do what.")] = []
    amendment: Annotated[
        Literal["new_row", "in_place"],
        Meta(
            description="Whether an amendment is a new document that takes the place of the old one, or the same again."
        ),
    ] = "new_row"
    on_drift: Annotated[
        Literal["amend", "fail"],
        Meta(description="What a change of content in a stable slot is: an amendment, or a mistake."),
    ] = "amend"
    self_approval: Annotated[
        bool, Meta(description="Whether those may approve who wrote the document, or ask for its transition.")
    ] = False
    replaceable: Annotated[
        bool,
        Meta(description="Whether a tenant may publish a contract of its own for the type, if all share this one."),
    ] = False
    limits: Annotated[ContractLimits, Meta(description="How far the workflow of one document may go.")] = (
        ContractLimits()
    )
    hash: Annotated[
        Name | None, Meta(description="Written by an export; what was changed since is refused until it is removed.")
    ] = None
