"""The format of process files, declared once: these structs are what a file is read into, and what its JSON Schema is made of.

Names are those of the file. What a value means is said in its description, which editors show.

The JSON Schema of process files.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from standfast.features.process_files.operations import SDK
from standfast.graph.source_files.json_schema import schema_of
from standfast.graph.source_files.values import (
    Capability,
    Condition,
    Duration,
    Formula,
    Name,
    Plain,
    Text,
    some,
)

Target = Annotated[
    str, Meta(min_length=1, max_length=200, pattern=r"\S", description="The id of a step of this workflow.")
]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What is an object in the file."""


class OperationSpec(_Part, frozen=True, kw_only=True):
    """What a step calls."""

    name: Annotated[
        Name, Meta(description="What is called: the name of a handler, or of an operation that the invoker knows.")
    ]
    invoker: Annotated[
        Name,
        Meta(
            description="Who makes the call: `python` (or `sdk`) a handler of the application, `openapi` an operation of an OpenAPI document, or an invoker that the engine is given."
        ),
    ] = SDK
    arguments: Annotated[
        dict[str, str | int | bool | None], Meta(description="What the invoker needs to know besides, as it is.")
    ] = {}
    capability: Annotated[
        Name | None,
        Meta(description="What the starter of the process needs for the call; a handler may require it."),
    ] = None


class RetrySpec(_Part, frozen=True, kw_only=True):
    """How often a call is made, and how long is waited in between."""

    attempts: Annotated[int, Meta(ge=1, le=1_000_000, description="Calls in all, the first one included.")] = 3
    delay: Annotated[Duration, Meta(description="The wait before the second call.")] = "0s"
    backoff: Annotated[
        Literal["fixed", "linear", "exponential"], Meta(description="How the wait grows from call to call.")
    ] = "fixed"
    factor: Annotated[float, Meta(ge=1, le=1000, description="By what an exponential wait grows.")] = 2.0
    cap: Annotated[Duration, Meta(description="The longest wait; `delay`, if that is longer.")] = "5m"
    jitter: Annotated[float, Meta(ge=0, le=1, description="The share of the wait that is added at random.")] = 0.0


class Assignee(_Part, frozen=True, kw_only=True):
    """Who is asked: one of `role`, `user`, `expression` and `resolver`."""

    role: Annotated[Name | None, Meta(description="Those who have this role.")] = None
    user: Annotated[Name | None, Meta(description="This person, by id.")] = None
    expression: Annotated[
        Name | None,
        Meta(
            description="Whoever this expression over workflow. names, such as workflow.manager_id: a user, role:<name>, or a list."
        ),
    ] = None
    resolver: Annotated[
        Name | None,
        Meta(description="Whoever this resolver finds, such as manager, or one that the application registers."),
    ] = None
    of: Annotated[Name | None, Meta(description="What the resolver is given.")] = None
    weight: Annotated[int, Meta(ge=1, le=1_000_000, description="What a decision of each of them weighs.")] = 1
    pick: Annotated[
        Literal["any", "all", "in_turn"],
        Meta(description="Of several: they share one question, each of them is asked, or one of them in turn."),
    ] = "any"


class CapabilityRules(_Part, frozen=True, kw_only=True):
    """What callers must be allowed to do to act on a whole instance."""

    start: Annotated[
        Capability | list[Capability] | None,
        some("To start one; of a list, all are needed.", empty="nobody could start one"),
    ] = None
    cancel: Annotated[
        Capability | list[Capability] | None,
        some(
            "To cancel one; of a list, all are needed. Without it, the one to start.", empty="nobody could cancel one"
        ),
    ] = None


class _Step(_Part, frozen=True, kw_only=True, tag_field="type"):
    """What all steps have."""

    id: Annotated[Name, Meta(description="By which transitions name the step.")]
    title: Annotated[Text, Meta(description="What people read.")] = ""
    description: Annotated[Text, Meta(description="What it is for.")] = ""


class _Calling(_Step, frozen=True, kw_only=True):
    """Steps that call something."""

    input: Annotated[
        dict[str, Formula],
        Meta(description="What the operation is given: expressions over workflow. and context., by name."),
    ] = {}
    retry: Annotated[RetrySpec, Meta(description="How often the call is made.")] = RetrySpec()
    timeout: Annotated[Duration | None, Meta(description="A call that takes longer has failed.")] = None
    stuck_after: Annotated[
        Duration | None, Meta(description="A call that was not heard of for so long is made again.")
    ] = None


class _Asking(_Step, frozen=True, kw_only=True):
    """Steps that wait for a person."""

    assignee: Annotated[Assignee | None, Meta(description="Who is asked; without it, whoever has the capability.")] = (
        None
    )
    assignees: (
        Annotated[list[Assignee], some("Who is asked, where that is several.", empty="it cannot be answered")]
        | UnsetType
    ) = UNSET
    chain: Annotated[Name | None, Meta(description="The approval chain that says who is asked, stage by stage.")] = None
    agree: Annotated[
        Literal["any", "all", "n", "weight"] | None,
        Meta(description="How many of those who are asked have to be for it; `n` and `weight` take `least`."),
    ] = None
    least: Annotated[int, Meta(ge=0, le=1_000_000, description="How many, or how much weight.")] = 0
    requires_reason: Annotated[bool, Meta(description="Whether a rejection needs a comment.")] = False
    self_approval: Annotated[bool, Meta(description="Whether whoever started the workflow may answer too.")] = True
    distinct_from: (
        Annotated[
            list[Target],
            some("Steps whose deciders may not decide this one.", empty="it would keep nobody apart"),
        ]
        | UnsetType
    ) = UNSET
    capability: Annotated[
        Capability | list[Capability] | None,
        some("What is needed to answer; of a list, all are needed.", empty="it cannot be answered"),
    ] = None
    form: Annotated[
        dict[str, Plain] | None,
        Meta(description="What is to be given with the answer: a JSON Schema of an object, with titles, and `order`."),
    ] = None
    form_for: (
        Annotated[
            list[Name],
            some(
                "The events that the form must be filled in for; without it, all but a rejection.",
                empty="nobody would have to fill it in",
            ),
        ]
        | UnsetType
    ) = UNSET
    timeout: Annotated[Duration | None, Meta(description="How long the answer is waited for.")] = None
    on_timeout: Annotated[Target | None, Meta(description="Where to go then; without it, where the workflow says.")] = (
        None
    )
    operation: Annotated[
        OperationSpec | Name | None, Meta(description="Called once the step is answered, before it is left.")
    ] = None
    input: Annotated[dict[str, Formula], Meta(description="What the operation is given.")] = {}
    output: Annotated[
        dict[str, Formula], Meta(description="What of the response is kept, by name: expressions over response.")
    ] = {}
    retry: Annotated[RetrySpec, Meta(description="How often the call is made.")] = RetrySpec()


class ActionStep(_Asking, frozen=True, kw_only=True, tag="action"):
    """Waits for a person who gives something. Left by the events of its transitions."""


class ApprovalStep(_Asking, frozen=True, kw_only=True, tag="approval"):
    """Waits for a person who decides: `approved`, `rejected`, or another event of its transitions."""


class SystemStep(_Calling, frozen=True, kw_only=True, tag="system"):
    """Calls something by itself. Left by `completed` or `error`."""

    operation: Annotated[OperationSpec | Name, Meta(description="What is called; a text is the name of a handler.")]
    output: Annotated[
        dict[str, Formula], Meta(description="What of the response is kept, by name: expressions over response.")
    ] = {}


class NotificationStep(_Calling, frozen=True, kw_only=True, tag="notification"):
    """Tells somebody something, and goes on by `completed` whatever becomes of it."""

    operation: Annotated[OperationSpec | Name, Meta(description="What is called; a text is the name of a handler.")]


class AwaitedSpec(_Part, frozen=True, kw_only=True):
    """One of several events that are waited for."""

    event: Annotated[Name, Meta(description="The name that it is published under.")]
    key: Annotated[Name | None, Meta(description="Which of these events: an expression that yields their key.")] = None
    condition: Annotated[Condition | None, Meta(description="Which of these events, over workflow. and event.")] = None
    name: Annotated[Name | None, Meta(description="What it is called here, where that is not its own name.")] = None


class WaitStep(_Step, frozen=True, kw_only=True, tag="wait"):
    """Waits: for a time, until an instant, for the next time of a calendar rule, or for events. Left by `completed`, or by the name of the event."""

    duration: Annotated[Duration | None, Meta(description="How long.")] = None
    until: Annotated[Name | None, Meta(description="Until when: an expression that yields an instant.")] = None
    cron: Annotated[
        Name | None, Meta(description="The next time of a calendar rule of five fields, such as 0 9 * * MON-FRI.")
    ] = None
    time_zone: Annotated[
        Name | None, Meta(description="Whose clock `cron` means, as Europe/Berlin; without it, UTC.")
    ] = None
    event: Annotated[
        Name | None,
        Meta(
            description="The event that is waited for, by name: sent to the instance, or published for a key, if there is one."
        ),
    ] = None
    key: Annotated[Name | None, Meta(description="Which of these events: an expression that yields their key.")] = None
    condition: Annotated[
        Condition | None, Meta(description="Which of the events of this key, over workflow. and event.")
    ] = None
    events: (
        Annotated[
            list[AwaitedSpec],
            some(
                "The published events that are waited for, where that is several.", empty="nothing would end the wait"
            ),
        ]
        | UnsetType
    ) = UNSET
    need: Annotated[
        Literal["all", "any"],
        Meta(description="Whether every one of several events has to come, or the first is enough."),
    ] = "all"
    timeout: Annotated[Duration | None, Meta(description="How long the event is waited for.")] = None
    on_timeout: Annotated[Target | None, Meta(description="Where to go then; without it, where the workflow says.")] = (
        None
    )


class TerminalStep(_Step, frozen=True, kw_only=True, tag="terminal"):
    """The end: the workflow is completed."""

    outcome: Annotated[Name | None, Meta(description="What it came to, in a word, for reports.")] = None


Step: TypeAlias = ActionStep | ApprovalStep | SystemStep | WaitStep | NotificationStep | TerminalStep


class TransitionSpec(_Part, frozen=True, kw_only=True):
    """A way from one step to another. Of several with the same event, the first that is open is taken."""

    source: Annotated[Target, Meta(description="The step that is left.")] = field(name="from")
    event: Annotated[
        Name, Meta(description="What happens there: what a person answers, `completed`, `error`, `timeout`.")
    ]
    to: Annotated[Target, Meta(description="The step that is entered.")]
    condition: Annotated[
        Condition | None, Meta(description="What must hold, over workflow., input., context., actor. and now.")
    ] = None
    guard: Annotated[
        Capability | None, Meta(description="What the caller must be allowed to do for it to be open.")
    ] = None
    label: Annotated[Text, Meta(description="What the button is called.")] = ""


class TriggerSpec(_Part, frozen=True, kw_only=True):
    """An event that starts the workflow."""

    event: Annotated[Name, Meta(description="The event, by name.")]
    condition: Annotated[Condition | None, Meta(description="Which of these events, over event. and key.")] = None
    key: Annotated[
        Name | None, Meta(description="The business key of what is started: an expression over event. and key.")
    ] = None
    input: Annotated[
        dict[str, Formula], Meta(description="What it is started with; without it, what the event brings.")
    ] = {}


class Workflow(_Part, frozen=True, kw_only=True):
    """One process."""

    id: Annotated[Name, Meta(description="What it is started by, such as orders.approval.")]
    steps: Annotated[list[Step], Meta(min_length=1, description="Its steps.")]
    transitions: Annotated[list[TransitionSpec], Meta(description="The ways between them.")] = []
    version: Annotated[Name | int, Meta(description="Runs stay with the version that they began with.")] = "1"
    title: Annotated[Text, Meta(description="What people read.")] = ""
    description: Annotated[Text, Meta(description="What it is for.")] = ""
    initial_step: Annotated[Target | None, Meta(description="Where it begins; without it, at its first step.")] = None
    timeout: Annotated[Duration | None, Meta(description="How long all of it may take.")] = None
    on_timeout: Annotated[Target | None, Meta(description="Where to go then; without it, the workflow has failed.")] = (
        None
    )
    capabilities: Annotated[CapabilityRules, Meta(description="Who may start and cancel it.")] = CapabilityRules()
    replaceable: Annotated[
        bool, Meta(description="Whether a tenant may publish its own under this name, if all tenants share this one.")
    ] = False
    triggers: Annotated[list[TriggerSpec], Meta(description="Events that start it.")] = []
    chain_limit: Annotated[int, Meta(ge=1, le=1000, description="Automatic steps in a row before it is suspended.")] = (
        10
    )


class Domain(_Part, frozen=True, kw_only=True):
    """A file of processes."""

    domain: Annotated[Name, Meta(description="What these processes belong to, such as orders.")]
    workflows: Annotated[list[Workflow], Meta(min_length=1, description="The processes.")]
    title: Annotated[Text, Meta(description="What people read.")] = ""
    description: Annotated[Text, Meta(description="What it is for.")] = ""


TITLE: Final = "Standfast process file"


def process_schema() -> dict[str, object]:
    """The schema, as plain data."""
    return schema_of(Domain, TITLE)
