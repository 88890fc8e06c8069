"""The format of scenarios, by which an organisation tests its body: a document, what happens to it, and how that comes out."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from standfast.graph.source_files.values import Capability, Duration, Name, Plain, Text

MOST_SCENARIOS: Final = 200
"""Scenarios of one body, and acts of one scenario."""

NodeId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        description="usr:<slot>:<name>, or the name alone: letters, digits, _ and -, at most 64.",
    ),
]


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is an object in the file."""


class Player(_Part, frozen=True, kw_only=True):
    """Somebody in a scenario."""

    roles: Annotated[list[Name], Meta(description="Their roles.")] = []
    capabilities: Annotated[list[Capability], Meta(description="What they may do.")] = []


class ScenarioAction(_Part, frozen=True, kw_only=True):
    """Something that happens in a scenario: one of `ask`, `decide`, `edit`, `event` and `wait`."""

    ask: Annotated[Name | None, Meta(description="A transition that is asked for, such as submit.")] = None
    decide: Annotated[NodeId | None, Meta(description="The approval that is decided.")] = None
    decision: Annotated[Name, Meta(description="How it is decided.")] = "approved"
    edit: Annotated[dict[str, Plain] | None, Meta(description="Fields that are changed.")] = None
    event: Annotated[Name | None, Meta(description="An event that comes from outside.")] = None
    key: Annotated[Name | None, Meta(description="Its key; without it, the one that is waited for.")] = None
    payload: Annotated[dict[str, Plain], Meta(description="What it brings.")] = {}
    wait: Annotated[Duration | None, Meta(description="Time that goes by.")] = None
    by: Annotated[
        Name | None,
        Meta(
            description="Who does it, one of `people`; without it, the requester, or for a decision those who are asked."
        ),
    ] = None
    reason: Annotated[Text, Meta(description="Why they do it.")] = ""
    refused: Annotated[Name | None, Meta(description="The code by which it is refused; without it, it is not.")] = None


class Expectation(_Part, frozen=True, kw_only=True):
    """How a scenario comes out. What is not said does not matter."""

    status: Annotated[Name | None, Meta(description="The status of the document.")] = None
    data: Annotated[dict[str, Plain], Meta(description="Fields with these values; null means that there is none.")] = {}
    path: Annotated[list[NodeId], Meta(description="Nodes that it came through in this order, others in between.")] = []
    avoids: Annotated[list[NodeId], Meta(description="Nodes that it never came to.")] = []
    asks: Annotated[list[NodeId], Meta(description="The approvals that are open then, all of them.")] = []
    asks_nobody: Annotated[bool, Meta(description="Whether no approval is open then.")] = False
    paused: Annotated[bool, Meta(description="Whether it waits for an operator, because a step cannot go on.")] = False


class Scenario(_Part, frozen=True, kw_only=True):
    """A test of the body: a document, what happens to it, and how that comes out."""

    name: Annotated[Name, Meta(description="What it shows, in a sentence.")]
    data: Annotated[dict[str, Plain], Meta(description="The fields of the document.")] = {}
    expect: Annotated[Expectation, Meta(description="How it comes out.")]
    acts: Annotated[
        list[ScenarioAction], Meta(max_length=MOST_SCENARIOS, description="What happens, one after the other.")
    ] = []
    org: Annotated[dict[str, Plain], Meta(description="The settings of the organisation, read as org.")] = {}
    related: Annotated[
        dict[str, dict[str, Plain]],
        Meta(description="What steps read of the documents that it refers to, by the field that does."),
    ] = {}
    people: Annotated[
        dict[str, Player],
        Meta(
            description="Who takes part, by id; `requester` wants the document, and may do everything unless it is said."
        ),
    ] = {}
    answers: Annotated[
        dict[str, dict[str, Plain]], Meta(description="What handlers answer, by their names; without it, nothing.")
    ] = {}
    failing: Annotated[list[Name], Meta(description="Handlers that fail for good.")] = []
