"""Documents as callers see them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from standfast.graph.document_spec import Window
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.documents import MutationKind


class TransitionChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A transition that leads on from the status of a document."""

    name: str
    target: str
    is_allowed: bool
    """Whether the caller may ask for it now."""
    why_not: str = ""


class DocumentView(msgspec.Struct, frozen=True, kw_only=True):
    """A document, and what can be done from here."""

    type: str
    id: str
    status: str
    version: int
    data: dict[str, object]
    """Its content; values that the caller may not see are masked."""
    window: Window
    """Whether it can be edited, an edit is an amendment, or it cannot be edited at all."""
    places: list[str]
    """The nodes of its workflow that are under way; empty while it rests."""
    transitions: list[TransitionChoice]
    amended_from: str
    superseded_by: str
    requester: str
    round: int
    is_resting: bool
    """Whether nothing is under way for it."""
    run_status: str
    """How its run stands, and why: `running`, `paused`, or how it ended."""
    run_reason: str
    instance: InstanceId
    workflow_version: str
    created_at: datetime
    updated_at: datetime
    updated_by: str
    is_amendment: bool = False
    """Whether the edit that answers with it has made this document in the place of the one that was edited."""


class DocumentSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A document in a list."""

    type: str
    id: str
    status: str
    version: int
    data: dict[str, object]
    amended_from: str
    superseded_by: str
    requester: str
    is_resting: bool
    instance: InstanceId
    created_at: datetime
    updated_at: datetime
    updated_by: str


class DocumentMove(msgspec.Struct, frozen=True, kw_only=True):
    """What became, or would become, of a document that is to follow another version of its workflow."""

    type: str
    id: str
    instance: InstanceId
    status: str
    places: list[str]
    """The nodes that it is at, by their names before."""
    workflow_version: str
    """The version that it followed."""
    to: str
    is_moved: bool
    """Whether it follows the other one now, or would."""
    problem: str = ""
    """Why it cannot; empty if it can."""


class DocumentMoves(msgspec.Struct, frozen=True, kw_only=True):
    """A page of them, newest first."""

    items: list[DocumentMove]
    next: InstanceId | None
    """Give it as `cursor` for the next page; None if there is none."""


class DocumentPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a list."""

    items: list[DocumentSummary]
    next: InstanceId | None
    """The cursor for the page behind; None if there is none."""


class EditCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the system that keeps the data of a document may change it now."""

    is_allowed: bool
    version: int
    """The version that this is about. A change that is told later is judged by the version of then."""
    window: Window
    code: str = ""
    """Why not, as a stable code and as a sentence."""
    why: str = ""


class DocumentVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a document, as it was."""

    version: int
    status: str
    data: dict[str, object]
    data_hash: str
    """That of the whole content; empty where a part of it is for others' eyes, because values can be tried against it."""
    written_by: str
    written_at: datetime


class FieldDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A field that is different in two versions."""

    field: str
    how: Literal["added", "removed", "changed"]
    before: object
    after: object
    is_masked: bool
    """Whether only that it changed is told, because it is sensitive, or not for the caller's eyes."""


class DocumentMutation(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was done to a document."""

    sequence: int
    kind: MutationKind
    action: str
    version_before: int
    version_after: int
    actor: str
    on_behalf_of: str
    run_as: str
    step: int | None
    reason: str
    changes: dict[str, object]
    made_at: datetime
    trace: str = ""
    """The trace of the request that it follows from, also where a step or a timer did it; empty if none was named."""


class AuditLine(msgspec.Struct, frozen=True, kw_only=True):
    """Who did what to which document, from where, why, whence and how; whose it is, is the tenant that asks."""

    sequence: int
    who: str
    whom: str
    whose: str
    what: str
    which: str
    at: datetime
    place: str
    why: str
    whence: str
    how: str
    trace: str = ""
    """As in a mutation."""


class AskedCondition(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a workflow asked of a document."""

    expression: str
    """As its author wrote it."""
    values: dict[str, object]
    """What it read, by name; sensitive values, and those for others' eyes, are masked."""
    result: object
    error: str = ""
    """Why there was no answer; empty if there was one."""
    edge: str = ""
    """The edge whose condition it is; empty for that of the node itself."""


class DocumentChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A step that asked something when it was left."""

    step: int
    node: str
    outcome: str
    to: str
    """Where the document went, if there was a choice."""
    at: datetime
    asked: list[AskedCondition]
    read: dict[str, str] = {}
    """What it read from outside of the document, with the version: `settings@3` as `org`, and documents such as `customer/C-1@7` by the field that refers to them."""


class DocumentLink(msgspec.Struct, frozen=True, kw_only=True):
    """Another document, or another run, that a document has to do with."""

    how: Literal["refers_to", "made", "changed", "made_by", "changed_by", "started"]
    """A field refers to it; a step of this one has made it, changed it, or started it; or a step of it has made or changed this one."""
    type: str
    """The type of the document, or the definition of the run."""
    id: str
    """The id of the document, or of the run."""
    at: datetime | None = None
    """When, if it happened."""
    step: int = 0
    """The step of this document that did it; 0 if none."""
    field: str = ""
    """The field that refers to it."""


class DocumentRound(msgspec.Struct, frozen=True, kw_only=True):
    """A way of a document from a state to its rest."""

    round: int
    started_at: datetime
    completed_at: datetime | None
    status: str
    """The status that it began with, or came to."""
